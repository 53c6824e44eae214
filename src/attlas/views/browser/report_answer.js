// The first screen of a report, for a reader in a hurry; each finding opens for one who doubts it.

/** @type {Record<string, string>} */
const VERDICT_MARKS = {supported: "✓", "not supported": "✕", partly: "◐", "too few texts": "?"};
const MOST_FINDINGS = 3;  // on the first screen
const READING_GUIDE = "Attention gives every word a weight. To test the weights, words are taken away and the " +
  "model is asked again: a word matters if the answer moves. 0: the weights find no more of what matters than " +
  "chance; 1: they find all of it. A line through a dot is a 95 % interval.";

/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawFirstScreen(element, payload, state) {
  drawQuestion(element, payload, state);
  section(element, "How to read this", "reading-guide").append(make("p", "", READING_GUIDE));
  drawAnswer(element, payload.verdict);
  drawFindings(element, payload, state);
  const row = make("div", "first-row");
  drawFirstExample(row, payload, state);
  drawSteps(row, payload.verdict.next_step);
  element.append(row);
}

/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawQuestion(element, payload, state) {
  const {data} = payload, facts = make("p", "facts");
  /** @param {string} name @param {...(Node | string)} values */
  const fact = (name, ...values) =>
    facts.append(make("span", "fact", make("span", "quiet", `${name} `), ...values));
  fact("model", modelName(payload.model));
  fact("data", make("b", "mono", visible(data.name)), ` ${reportTexts({n: data.texts})}`);
  const {value, low, high} = data.accuracy ?? {value: null, low: null, high: null};
  if (isNumber(value)) fact("right", `${shownPercent(value, 1)} %`, ...(isNumber(low) && isNumber(high)
    ? [make("span", "quiet", ` (${shownPercent(low, 1)} to ${shownPercent(high, 1)})`)] : []));
  element.append(make("header", "", make("div", "", make("p", "brand quiet", "Attlas · audit"),
    make("h1", "", visible(payload.question)), facts), themeSwitch(state)));
}

// The shortest answer is the first sentence; a report without everyday words has its verdict.
/** @param {Verdict} given */
function answerWords({plain, word, sentence}) {
  if (!plain) return [sentenceCase(visible(word)), `${visible(sentence).split(":")[0].replace(/\.$/, "")}.`];
  const [first, ...rest] = plain.split(". ");
  return [visible(first.replace(/\.$/, "")), rest.length ? visible(rest.join(". ")) : ""];
}

/** @param {HTMLElement} element @param {Verdict} verdict */
function drawAnswer(element, verdict) {
  const [short, rest] = answerWords(verdict);
  const mark = make("span", "verdict-mark", VERDICT_MARKS[verdict.word] ?? "·");
  mark.setAttribute("aria-hidden", "true");
  const word = make("p", "verdict-word", mark, short);
  word.dataset.word = verdict.word;
  if (verdict.plain) word.append(" ", make("span", "verdict-tag", visible(verdict.word)));
  const made = make("div", "answer", word, make("p", "plain-answer", rest));
  made.id = sectionId("answer");
  element.append(made);
}

/** @param {string} text */
const sentenceCase = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Every sentence is a step; what stands between backticks is to be typed.
/** @param {string} text */
const stepsOf = (text) => text.split(/(?<=\.) (?=[A-Z](?:[^`]*`[^`]*`)*[^`]*$)/);

/** @param {HTMLElement} element @param {string} text */
function drawSteps(element, text) {
  const made = section(element, "What to do next", "next"), list = make("ol", "");
  made.id = sectionId("next");
  for (const step of stepsOf(text)) {
    const line = make("li", "");
    step.split("`").forEach((part, index) => {
      if (index % 2) line.append(part.includes(" ") ? codeBox(visible(part), "copy") : make("code", "mono", visible(part)));
      else if (part !== "." && part) line.append(make("span", "", visible(part).replace(/(\d) %/g, "$1\u00a0%")));
    });
    list.append(line);
  }
  made.append(list);
}

/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawFindings(element, payload, state) {
  if (!payload.findings.length) return;
  const made = section(element, "Findings", "findings");
  made.id = sectionId("findings");
  made.append(...payload.findings.slice(0, MOST_FINDINGS).map((each, index) => findingFold(each, index, payload, state)));
}

/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawMoreFindings(element, payload, state) {
  const others = payload.findings.slice(MOST_FINDINGS);
  if (!others.length && !payload.plausibility) return;
  const made = section(element, "More findings", "findings more-findings");
  made.id = sectionId("more-findings");
  made.append(...others.map((each, index) => findingFold(each, MOST_FINDINGS + index, payload, state)));
  if (payload.plausibility) {
    made.append(make("p", "apart quiet", "Not about faithfulness, and not counted in the answer:"),
      findingFold(payload.plausibility, payload.findings.length, payload, state));
  }
}

/** @param {Finding} finding @param {number} index @param {ReportPayload} payload @param {State} state */
function findingFold(finding, index, payload, state) {
  const marks = finding.mark === null ? [] : [{at: finding.mark}];
  const plot = track([{figure: finding.figure, family: "W"}], finding.span, marks);
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", reportFigure(finding.figure));
  const [low, high] = finding.span.map((each) => make("span", "end mono", minus(String(each))));
  const line = make("summary", "finding-line", make("span", "strong said", visible(finding.title)),
    make("span", "small-plot", low, plot, high),
    make("span", "figures mono", make("b", "", `${finding.difference && (finding.figure.value ?? 0) > 0 ? "+" : ""}${reportNumber(finding.figure.value)}`),
      make("span", "quiet", ` ${reportInterval(finding.figure)}`)),
    make("span", "count quiet", reportTexts(finding.figure)));
  const made = make("details", "finding", line, findingBody(finding, index, payload, state));
  made.id = sectionId(`finding-${index + 1}`);
  return made;
}

// What a sceptic asks for: the plot with controls and ceiling, a text, and what this does not show.
/** @param {Finding} finding @param {number} index @param {ReportPayload} payload @param {State} state */
function findingBody(finding, index, payload, state) {
  const made = make("div", "finding-body", make("p", "lead", visible(finding.sentence)));
  const plot = make("div", "figure-box");
  (FINDING_PLOTS[finding.section] ?? drawFindingTrack)(plot, payload, finding);
  made.append(saveable(plot, sectionId(`finding-${index + 1}-plot`), () => [FIGURE_HEAD, ...findingRows(finding, payload)]));
  const texts = payload.examples.filter(isTested), example = texts[index % texts.length];
  if (example && isShownBy(example, finding, payload)) {
    made.append(make("h3", "", "In one of the texts", make("span", "quiet", ` ${visible(example.point)}`)),
      ...exampleTruth(example, state, example.readings.slice(0, 1)));
  }
  made.append(...doesNotShow([finding.does_not_show]));
  if (REPORT_SECTIONS[finding.section][2](payload)) {
    const link = make("a", "", `All about it: ${REPORT_SECTIONS[finding.section][0]}`);
    link.href = `#${sectionId(finding.section)}`;
    made.append(make("p", "onward", link));
  }
  return made;
}

// Whether a text is about what was found: not if the weights were read in another way than on the text.
/** @param {TestedSample} example @param {Finding} finding @param {ReportPayload} payload */
const isShownBy = (example, finding, {standings}) => ["standing", "verdict"].includes(finding.section) &&
  !standings.some(({family, method}) => family === "W" && method !== example.readings[0].method && isNamedIn(finding, method));

/** @param {Finding} finding @param {string} method */
const isNamedIn = ({sentence}, method) => sentence.split(/[^\w]+/).includes(method);

/** @type {Record<string, (made: HTMLElement, payload: ReportPayload, finding: Finding) => void>} */
const FINDING_PLOTS = {standing: drawTestedMethods, verdict: drawTestedMethods, removals: drawFindingRemovals, trials: drawFindingTrial};

/** @param {Finding} finding @param {ReportPayload} payload */
function findingRows(finding, payload) {
  const tested = ["standing", "verdict"].includes(finding.section) ? testedStandings(payload, finding).map(standingRow) : [];
  return [[finding.title, "", "", ...figureCells(finding.figure)], ...tested];
}

// The weights beside the rule that does best without the model, the best other methods, those that the finding names, chance and the ceiling.
/** @param {ReportPayload} given @param {Finding} finding */
function testedStandings({standings, verdict}, finding) {
  const named = new Set([verdict.method, ...verdict.readings.slice(0, 1).map((each) => each.method)]);
  for (const {reference} of Object.values(verdict.bounds)) named.add(reference);
  return standings.filter((each) => each.family === "control" || named.has(each.method) || isNamedIn(finding, each.method));
}

/** @param {HTMLElement} made @param {ReportPayload} payload @param {Finding} finding */
function drawTestedMethods(made, payload, finding) {
  const tested = testedStandings(payload, finding);
  if (tested.length) drawStandingList(made, {...payload, standings: tested});
  else drawFindingTrack(made, payload, finding);
}

/** @param {HTMLElement} made @param {ReportPayload} payload @param {Finding} finding */
function drawFindingRemovals(made, payload, finding) {
  if (payload.removals.length) drawRemovalPairs(made, payload);
  else drawFindingTrack(made, payload, finding);
}

/** @param {HTMLElement} made @param {ReportPayload} payload @param {Finding} finding */
function drawFindingTrial(made, payload, finding) {
  const lines = payload.trials.filter((each) => each.name === "permutation").flatMap((trial) => {
    const [line] = trialLines(trial.figures.slice(0, 1));
    return line ? [make("li", "heading quiet", visible(trial.scope)), line] : [];
  });
  drawFindingTrack(made, payload, finding);
  if (lines.length) made.append(make("p", "hint quiet", "By trial, the second bar is the most that could be moved:"), make("ul", "standings", ...lines));
}

/** @param {HTMLElement} made @param {ReportPayload} payload @param {Finding} given */
function drawFindingTrack(made, payload, {figure, span, mark, title}) {
  made.append(make("ul", "standings", axisLine(span, [...new Set([span[0], 0, span[1]])].map((each) => [each, minus(String(each))])),
    figureLine([visible(title)], figure, span, isNumber(mark) ? [{at: mark}] : [], "W")));
}
