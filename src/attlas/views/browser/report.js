// A report for three readers. In a hurry: the first screen has the question, the answer, three findings,
// a text and what to do. Sceptic: each finding opens. Reviewer: a section for all that was measured.

VIEWS.report = [drawReport];

// By name: the title, what draws it, whether there is anything to draw, and what the folded line says.
/** @type {Record<string, ReportSection>} */
const REPORT_SECTIONS = {
  verdict: ["How the answer was reached", drawVerdictBounds, () => true,
    ({verdict}) => `${verdict.texts} texts; ${shownPercent(verdict.same_word)} % of the splits give this word`],
  standing: ["How much of what matters each method finds", drawStandings, (payload) => payload.standings.length,
    ({standings}) => `${countOf(standings.map((each) => each.method), "method")}, tokens removed by ${removalsOf(standings).map(removalWords).join(", ")}`],
  curves: ["What happens as tokens are removed", drawPanels, (payload) => payload.panels.length,
    ({panels}) => [...new Set(panels.map((each) => visible(each.measure)))].join(", ")],
  agreement: ["Do the methods agree?", drawAgreement, (payload) => payload.agreement,
    ({agreement}) => (agreement?.sentence ? visible(agreement.sentence) : countOf(agreement?.methods ?? [], "method"))],
  removals: ["Does it matter how tokens are removed?", drawRemovals,
    (payload) => payload.removals.length || payload.unusual.length,
    ({removals, unusual}) => [...new Set([...removals.flatMap((each) => [each.one, each.other]), ...removalsOf(unusual)])]
      .map(removalWords).join(", ")],
  examples: ["Examples", drawExamples,
    (payload) => payload.examples.some((each) => each.section === "examples"),
    ({examples}) => reportTexts({n: examples.filter((each) => each.section === "examples").length})],
  trials: ["The attention on trial", drawTrials, (payload) => payload.trials.length,
    ({trials}) => `${trials.length === 1 ? "1 trial" : `${trials.length} trials`}: the attention is changed, and the model asked again`],
  plausibility: ["Do people agree?", drawPlausibility,
    (payload) => payload.plausibility || columnsOf(payload, isPlausibility).length,
    () => "not counted in the answer"],
  table: ["All figures", drawFigures, (payload) => columnsOf(payload, (each) => !isPlausibility(each)).length,
    ({table}) => `${countOf(table.rows.map((each) => each.method), "method")} by ${countOf(table.columns.map((each) => each.measure), "measure")}`],
};
/** @param {string[]} names @param {string} word */
const countOf = (names, word) => {
  const count = new Set(names).size;
  return `${count} ${word}${count === 1 ? "" : "s"}`;
};
/** @param {number | null} value @param {number} [digits] */
const reportNumber = (value, digits = 2) =>
  typeof value === "number" ? minus(value.toFixed(digits)) : "–";
/** @param {Figure} given @param {number} [digits] */
const reportInterval = ({low, high}, digits = 2) =>
  typeof low === "number" && typeof high === "number"
    ? `${reportNumber(low, digits)} to ${reportNumber(high, digits)}` : "no interval";
/** @param {Figure} figure */
const reportFigure = (figure) => `${reportNumber(figure.value)} (${reportInterval(figure)})`;
/** @param {{n?: number | null}} given */
const reportTexts = ({n}) => (typeof n === "number" ? `${n} text${n === 1 ? "" : "s"}` : "");
/** @param {ReportPayload} payload */
const allFindings = ({findings, plausibility}) => (plausibility ? [...findings, plausibility] : findings);
/** @param {string} name */
const sectionId = (name) => `attlas-${name}`;

/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawReport(element, payload, state) {
  element.classList.add("report");
  const body = make("div", "report-body");
  drawFirstScreen(body, payload, state);
  drawMoreFindings(body, payload, state);
  drawNotes(body, payload);
  body.append(make("p", "evidence-title quiet", "Everything the answer rests on. Open a line to see it."));
  for (const [name, [title, draw, isThere, told]] of Object.entries(REPORT_SECTIONS)) {
    if (!isThere(payload)) continue;
    const made = foldedPart(body, name, title, told(payload));
    made.append(...findingsIn(payload, name).map((each) => make("p", "lead", visible(each.sentence))));
    draw(made, payload, state);
    if (name !== "examples") drawExamples(made, payload, state, name);
    made.append(...doesNotShow(findingsIn(payload, name).map((each) => each.does_not_show)));
  }
  drawLimits(body, payload);
  drawLeftOut(body, payload);
  drawSettings(body, payload);
  element.append(contentsList(body, state), body);
  placeContents(element, state);
  followPlaces(element);
  followPrint(element);
}

/** @param {ReportPayload} payload @param {string} name */
const findingsIn = (payload, name) => allFindings(payload).filter((each) => each.section === name);

/** @param {string[]} sentences */
function doesNotShow(sentences) {
  const told = sentences.filter(Boolean);
  if (!told.length) return [];
  return [make("p", "limit", make("b", "", "What this does not show. "), told.map(visible).join(" "))];
}

/** @param {HTMLElement} element @param {ReportPayload} payload */
function drawLimits(element, payload) {
  if (!payload.does_not_show.length) return;
  const list = make("ul", "notes", ...payload.does_not_show.map((each) => make("li", "", visible(each))));
  const made = section(element, "What this report does not show", "part");
  made.id = sectionId("limits");
  made.append(list);
}

/** @param {HTMLElement} element @param {TriedPayload} payload */
function drawLeftOut(element, payload) {
  const {left_out: reasons, left_out_rows: rows} = payload.data;
  const all = Object.entries(reasons);
  if (!all.length) return;
  const made = section(element, "Rows left out", "part left-out");
  made.id = sectionId("left-out");
  made.append(make("p", "", all.map(([reason, count]) => `${count} × ${visible(reason)}`).join(" · ")));
  if (!rows.length) return;
  const lines = rows.map((row) => make("tr", "", make("td", "", visible(row.row)),
    make("td", "", visible(row.reason)), make("td", "quiet", row.shown ? visible(row.shown) : "")));
  made.append(make("details", "", make("summary", "", `The first ${rows.length}`),
    make("div", "scroll", make("table", "mono", ...lines))));
}

/** @param {HTMLElement} element @param {ReportPayload} payload */
function drawSettings(element, payload) {
  const foot = make("footer", ""), list = make("dl", "");
  foot.id = sectionId("settings");
  /** @param {unknown} value */
  const written = (value) => {
    if (Array.isArray(value)) return value.map(String).join(", ");
    if (!value || typeof value !== "object") return String(value);
    return Object.entries(value).map((pair) => pair.join(" ")).join(" · ");
  };
  const costs = payload.costs.map((each) =>
    `${visible(each.part)} ${reportSeconds(each.seconds)}${each.texts === null ? "" : ` on ${each.texts} texts`}`);
  const facts = [["seed", String(payload.seed)], ["time", reportSeconds(payload.seconds)],
    ["of which", costs.join(" · ")], ...Object.entries(payload.settings), ["labels", payload.data.labels.join(" · ")],
    ["versions", Object.entries(payload.versions).map((pair) => pair.join(" ")).join(" · ")]];
  for (const [name, value] of facts) {
    if (value !== "") list.append(make("dt", "", visible(name)), make("dd", "mono", visible(written(value))));
  }
  foot.append(make("h2", "", "Settings"));
  if (payload.command) foot.append(codeBox(payload.command, "copy the command"));
  foot.append(make("details", "", make("summary", "", "Settings, versions, seed and time"), list));
  element.append(foot);
}

/** @param {number} seconds */
const reportSeconds = (seconds) =>
  seconds < 90 ? `${Number(seconds.toPrecision(2))} s` : `${(seconds / 60).toFixed(1)} min`;
