// How the answer was reached: the figures under each removal, whether the attention is used, the word
// that other thresholds would give, the same by kind of text, and readings that use more.

const FINDINGS = {for: "speaks for the weights", "in part": "speaks for them in part",
  against: "speaks against them", open: "leaves it open"};

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawVerdictBounds(made, payload) {
  const {verdict} = payload, rules = payload.settings.rules ?? {};
  for (const [heading, name, sentence] of [["Where?", "where", verdict.sentence], ["Which way?", "which-way", verdict.which_way]]) {
    made.append(make("p", `lead ${name}`, make("b", "", `${heading} `), visible(sentence).replace(/(\d) %/g, "$1\u00a0%")));
  }
  made.append(make("p", "hint quiet", "0: chance. 1: as much as can be found. A line is a 95 % interval; all of " +
    "them hold at once. A thin bar is the threshold that the line must clear."));
  made.append(familyKey(["W", ...verdict.readings.map((each) => each.family)]));
  const list = make("ul", "standings");
  list.append(axisLine([-1, 1], [[-1, "−1"], [0, "0"], [1, "1"]]));
  for (const [removal, bounds] of Object.entries(verdict.bounds)) {
    list.append(make("li", "heading", make("span", "", make("b", "", removalWords(removal)),
      ` ${FINDINGS[bounds.finding]}: `, make("span", "quiet", visible(bounds.why)))),
      ...boundLines(bounds, verdict.method, rules));
  }
  made.append(saveable(make("div", "bounds", list), "attlas-verdict-bounds", () => [FIGURE_HEAD, ...boundRows(verdict)]));
  drawUse(made, verdict, rules);
  drawDirections(made, verdict);
  drawGrid(made, verdict, rules);
  drawGroups(made, verdict);
  drawReadings(made, verdict);
  if (verdict.notes.length) made.append(make("ul", "notes", ...verdict.notes.map((note) => make("li", "", visible(note)))));
}

/** @param {Verdict} given */
const boundRows = ({bounds, method}) => Object.entries(bounds).flatMap(([removal, each]) => [
  [method, "W", removal, ...figureCells(each.s)],
  ...(each.less_control ? [[`more than ${each.control}`, "control", removal, ...figureCells(each.less_control)]] : []),
  ...(each.less_reference ? [[`more than ${each.reference}`, "reference", removal, ...figureCells(each.less_reference)]] : [])]);

/** @param {string} control */
const controlWords = (control) => visible(control).replace(/^other_text /, "another text's ");

/**
 * @param {(Node | string)[]} words
 * @param {Figure} figure
 * @param {Span} span
 * @param {Mark[]} marks
 * @param {string} family
 */
const figureLine = (words, figure, span, marks, family) => make("li", "", make("span", "who", ...words),
  track([{figure, family}], span, marks), make("span", "mono figure", reportFigure(figure)));

/** @param {Bounds} given @param {string} method @param {Rules} others */
function boundLines({s, less_control: control, less_reference: reference, ...names}, method, {floor, margin}) {
  /** @param {number | undefined} at */
  const mark = (at) => (isNumber(at) ? [{at}] : []);
  const beyond = () => make("span", "quiet", "more than ");
  const lines = [figureLine([familyTag("W"), methodName(method)], s, [-1, 1], mark(floor), "W")];
  if (control) lines.push(figureLine([beyond(), make("bdi", "mono", controlWords(names.control))], control, [-1, 1], mark(0), "control"));
  if (reference) lines.push(figureLine([beyond(), methodName(names.reference)], reference, [-1, 1],
    mark(isNumber(margin) ? -margin : undefined), "reference"));
  return lines;
}

/** @param {HTMLElement} made @param {Verdict} given @param {Rules} others */
function drawUse(made, {used, same_word: same, texts}, {least_use: least}) {
  if (used) {
    const asked = isNumber(least) ? ` (${least} is the least that counts as used)` : "";
    made.append(make("p", "lead", make("b", "", "Is the attention used? "), "Shuffled, it moves the answer by ",
      make("span", "mono", reportFigure(used)), `${asked}.`));
  }
  made.append(make("p", "lead", make("b", "", "Does the split matter? "), "Methods are chosen on one half of the " +
    `${texts} texts and tested on the other, both ways, several times: ${shownPercent(same, 0)} % of the splits give this word.`));
}

/** @param {HTMLElement} made @param {Verdict} given */
function drawDirections(made, {directions}) {
  if (!directions.length) return;
  made.append(make("h3", "", "Which way", make("span", "quiet", " the share that speaks for the prediction")));
  const list = make("ul", "standings", axisLine([0, 1], [[0, "0"], [0.5, "0.5"], [1, "1"]]));
  for (const {removal, highlighted, all_tokens: all} of directions) {
    list.append(figureLine([make("span", "quiet", `${removalWords(removal)}: `), "of what they highlight"], highlighted, [0, 1], [{at: 0.5}], "W"),
      figureLine([make("span", "quiet", `${removalWords(removal)}: `), "of all tokens"], all, [0, 1], [{at: 0.5}], "control"));
  }
  made.append(saveable(make("div", "", list), "attlas-verdict-directions", () => [FIGURE_HEAD, ...directions.flatMap((each) => [
    ["of what the weights highlight", "W", each.removal, ...figureCells(each.highlighted)],
    ["of all tokens", "control", each.removal, ...figureCells(each.all_tokens)]])]));
}

// The word is the same in words and in signs, so that no colour is needed.
/** @param {HTMLElement} made @param {Verdict} given @param {Rules} others */
function drawGrid(made, {grid}, {floor, margin}) {
  if (!grid.length) return;
  const margins = [...new Set(grid.map((each) => each.margin))], floors = [...new Set(grid.map((each) => each.floor))];
  const head = make("tr", "", make("th", "", "floor"), ...margins.map((each) => make("th", "", `margin ${each}`)));
  const rows = floors.map((low) => make("tr", "", make("th", "", String(low)), ...margins.map((wide) => {
    const word = grid.find((each) => each.floor === low && each.margin === wide)?.word ?? "";
    return make("td", low === floor && wide === margin ? "chosen" : "", `${VERDICT_MARKS[word] ?? "·"} ${visible(word)}`);
  })));
  made.append(make("h3", "", "The word that other thresholds would give"), make("p", "hint quiet",
    "Floor: how much of what matters the weights must find. Margin: how far they may stay behind a method without attention."),
  saveable(make("div", "", make("div", "scroll wide", make("table", "grid words", make("thead", "", head), make("tbody", "", ...rows)))),
    "attlas-verdict-grid", () => [["floor", "margin", "word"], ...grid.map((each) => [each.floor, each.margin, each.word])]));
}

/** @param {HTMLElement} made @param {Verdict} given */
function drawGroups(made, {by_group: found}) {
  if (!found.length) return;
  const removals = removalsOf(found), groups = [...new Set(found.map((each) => each.group))];
  const head = make("tr", "", ...["texts", "how many", ...removals.flatMap((each) => [`found, ${removalWords(each)}`, "nothing to find in"])]
    .map((each) => make("th", "", each)));
  const rows = groups.map((group) => {
    const own = removals.map((removal) => found.find((each) => each.group === group && each.removal === removal));
    return make("tr", "", make("th", "", visible(group)), make("td", "", String(own.find(Boolean)?.texts ?? "")),
      ...own.flatMap((each) => [each ? reportFigure(each.s) : "–", each ? String(each.without_room) : "–"]).map((each) => make("td", "", each)));
  });
  const table = make("div", "scroll wide", make("table", "grid mono", make("thead", "", head), make("tbody", "", ...rows)));
  made.append(make("h3", "", "By kind of text"), saveable(make("div", "", table), "attlas-verdict-groups",
    () => [["group", "removal", "value", "low", "high", "nothing to find", "texts"], ...found.map((each) =>
      [each.group, each.removal, each.s.value, each.s.low, each.s.high, each.without_room, each.texts])]));
}

/** @param {HTMLElement} made @param {Verdict} given */
function drawReadings(made, {readings}) {
  if (!readings.length) return;
  made.append(make("h3", "", "Readings that use more than the weights", make("span", "quiet",
    " how much more of what matters they find; ✓ surely")));
  const list = make("ul", "standings", axisLine([-1, 1], [[-1, "−1"], [0, "0"], [1, "1"]]));
  for (const {method, family, gain, better} of readings) {
    list.append(figureLine([familyTag(family), methodName(method), better ? "  ✓" : ""], gain, [-1, 1], [{at: 0}], family));
  }
  made.append(saveable(make("div", "", list), "attlas-verdict-readings", () => [["method", "family", "finds", "low", "high",
    "more than the weights", "low", "high", "surely"], ...readings.map(({method, family, s, gain, better}) =>
    [method, family, s.value, s.low, s.high, gain.value, gain.low, gain.high, better])]));
}
