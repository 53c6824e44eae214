// Texts that illustrate a point: what the weights highlight, beside what matters.

// The first screen has one text; the section has them all, each with more readings.
/** @param {HTMLElement} element @param {ReportPayload} payload @param {State} state */
function drawFirstExample(element, payload, state) {
  const example = payload.examples.find(isTested);
  if (!example) return;
  const made = section(element, "One of the texts", "first-example");
  made.firstElementChild?.append(make("span", "quiet", ` ${visible(example.point)}`));
  made.id = sectionId("text");
  made.append(...exampleTruth(example, state, example.readings.slice(0, 1)));
}

/** @param {HTMLElement} made @param {ReportPayload} payload @param {State} state @param {string} [section] */
function drawExamples(made, payload, state, section = "examples") {
  for (const [index, example] of payload.examples.entries()) {
    if (example.section !== section) continue;
    const box = make("article", "example", make("p", "lead", visible(example.point)));
    if (isTested(example)) box.append(...exampleTruth(example, state, []));
    else box.append(make("p", "quiet", "The whole text: ", answer(example.label, example.probability), ...trueLabel(example)));
    box.append(make("div", "readings", ...example.readings.map((each) => exampleReading(example, each, state))));
    made.append(saveable(box, `attlas-example-${index + 1}`, () => exampleRows(example)));
  }
}

/** @param {Sample} given */
const exampleRows = ({tokens, readings, truth}) => [
  ["token", ...readings.map((each) => each.method), ...(truth ? ["importance", "pull"] : [])],
  ...tokens.map((token, place) => [token, ...readings.map((each) => each.scores[place]),
    ...(truth ? [truth.importance[place], truth.pull[place]] : [])])];

/** @type {Record<string, string>} */
const REMOVED = {delete: "deleted", mask: "masked", pad: "replaced by padding", zero_embedding: "replaced by zeros"};
// What the licence of a map says to a reader in a hurry.
/** @type {Record<string, string>} */
const TRUSTED = {
  "may be read as where": "On this text the map can be trusted: its strongest words are among those that matter.",
  "may not be read as where": "On this text the map may mislead: its strongest words are not surely those that matter.",
  "cannot be told for this text": "On this text it cannot be told whether the map can be trusted.",
};

/** @param {Sample} example @returns {example is TestedSample} */
const isTested = (example) => example.truth !== null;

/** @param {TestedSample} example @param {State} state @param {SampleReading[]} readings */
function exampleTruth(example, state, readings) {
  const {importance, pull, s} = example.truth, answered = visible(example.label);
  const pulls = importance.map((value, place) => (value ?? 0) * ((pull[place] ?? 0) < 0 ? -1 : 1));
  const facts = make("p", "quiet", "The model says ", answer(example.label, example.probability), ...trueLabel(example), ".",
    isNumber(s) ? ` The weights find ${reportNumber(s)} of what matters here (0: chance, 1: all there is).` : "");
  const rows = readings.map((each) => make("div", "map-row", make("p", "map-name", make("b", "", "What the weights highlight "),
    make("span", "mono quiet", visible(each.method))), tokenFlow(example, each.scores, each.signed, state).flow));
  const words = `if words are ${REMOVED[example.removal] ?? visible(example.removal)}: orange speaks for ${answered}, blue against it`;
  rows.push(make("div", "map-row", make("p", "map-name", make("b", "", "What matters "), make("span", "quiet", words)),
    tokenFlow(example, pulls, true, state).flow));
  return [...rows, ...exampleLicence(example, readings.length > 0), facts];
}

// In a line on the first screen, with its figures in the section.
/** @param {Sample} given @param {boolean} isShort */
function exampleLicence({licence, tokens}, isShort) {
  if (!licence) return [];
  if (isShort && TRUSTED[licence.word]) return [make("p", "licence-line", TRUSTED[licence.word])];
  const [line, ...figures] = licenceParts(licence, tokens.map((token) => token.trim() || token));
  line.prepend(make("span", "quiet", "Licence of the weights' map: "));
  line.classList.add("licence-line");
  return isShort ? [line] : [line, make("details", "licence", make("summary", "", "the licence in figures"), ...figures)];
}

/** @param {string} label @param {number | null} probability */
const answer = (label, probability) =>
  make("span", "", make("bdi", "strong", visible(label)), make("span", "mono", ` ${reportNumber(probability)}`));

/** @param {Sample} given */
const trueLabel = ({true_label: label}) =>
  (label ? [", the true label is ", make("bdi", "strong", visible(label))] : []);

// If the answer changes, only the probability of the first answer is known.
/** @param {Sample} example @param {SampleReading} reading */
const afterwards = (example, reading) => reading.label === example.label
  ? answer(reading.label, reading.probability)
  : make("span", "", make("bdi", "strong", visible(reading.label)),
    make("span", "turned", " ⚑ the answer turns "), make("span", "quiet",
      `${visible(example.label)} has ${reportNumber(reading.probability)} left`));

// The text with a colour for each word, by the sum of its tokens' scores; `pieces` are the tokens.
/** @param {Sample} example @param {number[]} scores @param {boolean} signed @param {State} state */
function tokenFlow(example, scores, signed, state) {
  /** @type {HTMLElement[]} */
  const pieces = [];
  const flow = make("p", "flow");
  const words = example.words?.length ? example.words : example.tokens.map((_, place) => [place]);
  const sums = words.map((places) => places.reduce((sum, place) => sum + scores[place], 0));
  const top = Math.max(...sums.map(Math.abs));
  const chips = words.map((places, number) => {
    const chip = make("span", "unit");
    places.forEach((place, i) => {
      const text = i ? example.tokens[place] : example.tokens[place].trimStart();
      chip.append(pieces[place] = make("span", "", visible(text)));
    });
    if (/^\s/.test(example.tokens[places[0]])) flow.append(" ");
    chip.title = exact(sums[number], signed);
    flow.append(chip);
    return chip;
  });
  const colour = () => chips.forEach((chip, number) => {
    const share = strength(sums[number], top);
    paint(chip, share, signed, state.theme);
    chip.classList.toggle("against", signed && share < -0.15);
  });
  state.on(["theme"], colour);
  colour();
  return {flow, pieces};
}

/** @param {Sample} example @param {SampleReading} reading @param {State} state */
function exampleReading(example, reading, state) {
  const {flow, pieces} = tokenFlow(example, reading.scores, reading.signed, state);
  reading.removed.forEach((place) => pieces[place].classList.add("removed"));
  const after = make("p", "", make("span", "quiet",
    `Without the ${reading.removed.length} marked (${visible(example.removal)}): `), afterwards(example, reading));
  return make("div", "reading", make("p", "mono strong", visible(reading.method)), flow, after);
}
