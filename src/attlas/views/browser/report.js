// @ts-nocheck
// A report: the question, the two answers, what to do next, one example, and each finding as a line
// with a small plot. Below, each finding has a section with its full plot and what it does not show.

VIEWS.report = [drawReport];

const VERDICT_MARKS = {supported: "✓", "not supported": "✕", partly: "◐", "too few texts": "…"};
const REPORT_SECTIONS = {
  verdict: ["How the answer was reached", drawVerdictBounds, () => true],
  standing: ["How much of what matters each method finds", drawStandings, (payload) => payload.standings.length],
  curves: ["What happens as tokens are removed", drawPanels, (payload) => payload.panels.length],
  agreement: ["Do the methods agree?", drawAgreement, (payload) => payload.agreement],
  removals: ["Does it matter how tokens are removed?", drawRemovals,
    (payload) => payload.removals.length || payload.unusual.length],
  examples: ["Examples", drawExamples,
    (payload) => payload.examples.some((each) => each.section === "examples")],
  trials: ["The attention on trial", drawTrials, (payload) => payload.trials.length],
  plausibility: ["Do people agree?", drawPlausibility,
    (payload) => payload.plausibility || columnsOf(payload, isPlausibility).length],
  table: ["All figures", drawFigures, (payload) => columnsOf(payload, (each) => !isPlausibility(each)).length],
};
const reportNumber = (value, digits = 2) =>
  typeof value === "number" ? minus(value.toFixed(digits)) : "–";
const reportInterval = ({low, high}, digits = 2) =>
  typeof low === "number" && typeof high === "number"
    ? `${reportNumber(low, digits)} to ${reportNumber(high, digits)}` : "no interval";
const reportFigure = (figure) => `${reportNumber(figure.value)} (${reportInterval(figure)})`;
const reportTexts = ({n}) => (typeof n === "number" ? `${n} text${n === 1 ? "" : "s"}` : "");
const allFindings = (payload) => [...payload.findings, payload.plausibility].filter(Boolean);
const sectionId = (name) => `attlas-${name}`;

function drawReport(element, payload, state) {
  element.classList.add("report");
  drawAnswer(element, payload, state);
  drawFirstExample(element, payload, state);
  drawFindings(element, payload);
  drawNotes(element, payload);
  for (const [name, [title, draw, isThere]] of Object.entries(REPORT_SECTIONS)) {
    if (!isThere(payload)) continue;
    const made = section(element, title, `part part-${name}`);
    made.id = sectionId(name);
    made.append(...findingsIn(payload, name).map((each) => make("p", "lead", visible(each.sentence))));
    draw(made, payload, state);
    if (name !== "examples") drawExamples(made, payload, state, name);
    made.append(...doesNotShow(findingsIn(payload, name).map((each) => each.does_not_show)));
  }
  drawLimits(element, payload);
  drawLeftOut(element, payload);
  drawSettings(element, payload);
}

const findingsIn = (payload, name) => allFindings(payload).filter((each) => each.section === name);

function doesNotShow(sentences) {
  const told = sentences.filter(Boolean);
  if (!told.length) return [];
  return [make("p", "limit", make("b", "", "What this does not show. "), told.map(visible).join(" "))];
}

function drawAnswer(element, payload, state) {
  const {verdict, data} = payload;
  const facts = make("p", "facts");
  const fact = (name, ...values) =>
    facts.append(make("span", "fact", make("span", "quiet", `${name} `), ...values));
  fact("model", make("b", "mono", visible(payload.model)));
  fact("data", make("b", "mono", visible(data.name)), ` ${data.texts} texts`);
  if (data.accuracy) fact("right", `${shownPercent(data.accuracy.value, 1)} %`,
    make("span", "quiet", ` (${shownPercent(data.accuracy.low, 1)} to ${shownPercent(data.accuracy.high, 1)})`));
  element.append(make("header", "", make("div", "", make("p", "brand quiet", "Attlas · audit"),
    make("h1", "", visible(payload.question)), facts), themeSwitch(state)));
  const mark = make("span", "verdict-mark", VERDICT_MARKS[verdict.word] ?? "·");
  mark.setAttribute("aria-hidden", "true");
  const word = make("p", "verdict-word", mark, sentenceCase(visible(verdict.word)));
  word.dataset.word = verdict.word;
  const answers = [["Where?", "where", verdict.sentence], ["Which way?", "which-way", verdict.which_way],
    ["What next?", "next", verdict.next_step]];
  element.append(make("div", "answer", word, ...answers.map(([heading, name, sentence]) =>
    make("div", `one-answer ${name}`, make("h2", "", heading), make("p", "", ...withCode(sentence))))));
}

// Words between backticks are something to type.
const withCode = (sentence) => sentence.split("`").filter(Boolean).map((part, index) =>
  index % 2 ? make("code", "mono", visible(part)) : visible(part).replace(/(\d) %/g, "$1\u00a0%"));

const sentenceCase = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function drawFindings(element, payload) {
  const made = section(element, "Findings", "findings");
  const list = make("ol", "");
  for (const finding of payload.findings) list.append(findingLine(finding, payload));
  made.append(list);
  if (payload.plausibility) {
    made.append(make("p", "apart quiet", "Not about faithfulness, and not counted in the answer:"),
      make("ul", "", findingLine(payload.plausibility, payload)));
  }
}

function findingLine(finding, payload) {
  const title = make("span", "strong", visible(finding.title));
  const link = make("a", "", title);
  if (REPORT_SECTIONS[finding.section][2](payload)) link.href = `#${sectionId(finding.section)}`;
  const marks = finding.mark === null ? [] : [{at: finding.mark}];
  const plot = track([{figure: finding.figure, family: "W"}], finding.span, marks);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", reportFigure(finding.figure));
  const [low, high] = finding.span.map((each) => make("span", "end mono", minus(String(each))));
  return make("li", "finding", make("span", "said", link, " ", make("span", "quiet", visible(finding.sentence))),
    make("span", "small-plot", low, plot, high),
    make("span", "figures mono", make("b", "", reportNumber(finding.figure.value)),
      make("span", "quiet", ` ${reportInterval(finding.figure)}`)),
    make("span", "count quiet", reportTexts(finding.figure)));
}

function drawLimits(element, payload) {
  if (!payload.does_not_show.length) return;
  const list = make("ul", "notes", ...payload.does_not_show.map((each) => make("li", "", visible(each))));
  section(element, "What this report does not show", "part").append(list);
}

function drawLeftOut(element, payload) {
  const {left_out: reasons, left_out_rows: rows} = payload.data;
  const all = Object.entries(reasons);
  if (!all.length) return;
  const made = section(element, "Rows left out", "part left-out");
  made.append(make("p", "", all.map(([reason, count]) => `${count} × ${visible(reason)}`).join(" · ")));
  if (!rows.length) return;
  const lines = rows.map((row) => make("tr", "", make("td", "", visible(row.row)),
    make("td", "", visible(row.reason)), make("td", "quiet", row.shown ? visible(row.shown) : "")));
  made.append(make("details", "", make("summary", "", `The first ${rows.length}`),
    make("div", "scroll", make("table", "mono", ...lines))));
}

function drawSettings(element, payload) {
  const foot = make("footer", ""), list = make("dl", "");
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const costs = payload.costs.map((each) =>
    `${visible(each.part)} ${reportSeconds(each.seconds)}${each.texts === null ? "" : ` on ${each.texts} texts`}`);
  const facts = [["seed", String(payload.seed)], ["time", reportSeconds(payload.seconds)],
    ["of which", costs.join(" · ")], ...Object.entries(payload.settings), ["labels", payload.data.labels.join(" · ")],
    ["versions", Object.entries(payload.versions).map((pair) => pair.join(" ")).join(" · ")]];
  for (const [name, value] of facts) {
    if (value !== "") list.append(make("dt", "", visible(name)), make("dd", "mono", visible(written(value))));
  }
  foot.append(make("h2", "", "Settings"), list);
  if (payload.command) foot.append(codeBox(payload.command, "copy the command"));
  element.append(foot);
}

const reportSeconds = (seconds) =>
  seconds < 90 ? `${Number(seconds.toPrecision(2))} s` : `${(seconds / 60).toFixed(1)} min`;
