// A judgement: what each measure says about an explanation, compared with chance and the best order.

VIEWS.judgement = [
  drawHeader, drawReading, drawScores, drawLicence, drawJudgement, drawNotes, drawFoot, drawTip
];

const JUDGED = ["measure", "removal", "figure", "shuffled", "best", "share", "p", ""];

/** @param {HTMLElement} element @param {JudgementPayload} payload */
function drawJudgement(element, payload) {
  const made = section(element, "Measures", "judgement");
  const head = make("tr", "", ...JUDGED.map((name) => make("th", "", name)));
  const body = make("tbody", "", ...payload.measured.map(measuredRow));
  const table = make("div", "scroll", make("table", "mono", make("thead", "", head), body));
  made.append(make("div", "pair", table, make("div", "", ...measureWords(payload.measured))));
}

// How to read the columns, and what each measure asks, once.
/** @param {Measured[]} measured */
function measureWords(measured) {
  const readings = new Map(measured.filter((row) => row.reading).map((row) => [row.measure, row.reading]));
  const list = make("dl", "asks", ...[...readings].flatMap(([name, reading]) =>
    [make("dt", "mono", visible(name)), make("dd", "", visible(reading))]));
  return [make("p", "hint quiet", "↑ more is better, ↓ less is better. Shuffled: the mean of the same scores at " +
    "other tokens. Best: the best order found. Share: where the figure lies from shuffled (0) to best (1). " +
    "p: how often shuffled scores do as well."), ...(readings.size ? [list] : [])];
}

/** @param {Measured} row */
function measuredRow(row) {
  /** @param {number | null} value @param {number} [digits] */
  const number = (value, digits = 3) =>
    make("td", "", typeof value === "number" ? minus(value.toFixed(digits)) : "");
  const name = make("th", "", `${ARROWS[row.better] ?? ""} ${visible(row.measure)}`);
  name.scope = "row";
  name.title = visible(row.reading);
  /** @param {string | null} text */
  const words = (text) => (text ? visible(text) : "");
  const told = row.circular ? "circular: computed by what the measure does" : words(row.note);
  return make("tr", "", name, make("td", "", words(row.removal)), number(row.value),
    number(row.shuffled), number(row.ceiling), number(row.share, 2), make("td", "", chanceWords(row.p)),
    make("td", "quiet", told));
}
