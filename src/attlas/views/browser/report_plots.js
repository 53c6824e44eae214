// Intervals on a track: a thin line between the bounds, a mark at the value. The colour shows the
// family of the method, the shape of the mark how tokens were removed.

/** @type {Record<string, number>} */
const FAMILY_TINTS = {W: 0, V: 1, P: 2, reference: 3, control: 5};
/** @type {Record<string, string>} */
const FAMILY_NAMES = {W: "the weights", V: "weights with values or gradients",
  P: "propagation through the model", reference: "reference", control: "control"};
const SHAPES = ["round", "square", "pointed", "tilted", "hollow"];
const MARKS = ["●", "■", "▲", "◆", "○"];  // the same as characters
const WIDEST = 5;  // characters of a figure: −0.04
/** @param {string} family */
const familyTint = (family) => `tint-${FAMILY_TINTS[family] ?? 4}`;

/** @param {TrackItem[]} items @param {Span} given @param {Mark[]} marks */
function track(items, [start, end], marks) {
  /** @param {number} value */
  const place = (value) => 100 * Math.max(0, Math.min(1, (value - start) / (end - start)));
  const made = make("span", "interval-track");
  for (const {at} of marks) {
    const rule = make("span", "at");
    rule.style.left = `calc(${place(at)}% - ${place(at) / 100}px)`;  // keeps the last one within the track
    made.append(rule);
  }
  for (const {figure, family, shape = 0} of items) {
    const line = make("span", `interval-line ${familyTint(family)}`);
    if (typeof figure.low === "number" && typeof figure.high === "number") {
      const reach = make("span", "reach");
      reach.style.left = `${place(figure.low)}%`;
      reach.style.width = `${place(figure.high) - place(figure.low)}%`;
      line.append(reach);
    }
    if (typeof figure.value === "number") {
      const dot = make("span", `dot ${SHAPES[shape % SHAPES.length]}`);
      dot.style.left = `${place(figure.value)}%`;
      line.append(dot);
    }
    made.append(line);
  }
  return made;
}

/** @param {{removal: string}[]} rows */
const removalsOf = (rows) => [...new Set(rows.map((each) => each.removal))];

/** @param {string[]} removals */
function shapeKey(removals) {
  const key = make("p", "legend");
  removals.forEach((removal, index) => key.append(make("span", "",
    make("span", `dot still tint-5 ${SHAPES[index % SHAPES.length]}`), removalWords(removal))));
  return key;
}

/** @param {string | null} removal */
const removalWords = (removal) => (removal ? visible(removal) : "nothing removed");

/** @param {string[]} families */
function familyKey(families) {
  const key = make("p", "legend");
  for (const family of Object.keys(FAMILY_NAMES).filter((each) => families.includes(each))) {
    key.append(make("span", "", familyTag(family), FAMILY_NAMES[family]));
  }
  return key;
}

/** @param {string} family */
const familyTag = (family) =>
  make("span", `family ${familyTint(family)}`, family.length === 1 ? family : family.charAt(0).toUpperCase());

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawStandings(made, payload) {
  const box = make("div", "");
  drawStandingList(box, payload);
  made.append(saveable(box, "attlas-standing-methods", () => [FIGURE_HEAD, ...payload.standings.map(standingRow)]));
}

// The methods from the highest standing to the lowest, with one line for each removal.
/** @param {HTMLElement} made @param {Pick<ReportPayload, "standings" | "verdict">} payload */
function drawStandingList(made, payload) {
  const removals = removalsOf(payload.standings), rows = new Map();
  for (const each of payload.standings) rows.set(each.method, [...(rows.get(each.method) ?? []), each]);
  /** @param {Standing[]} all */
  const mean = (all) => {
    const known = all.map((each) => each.figure.value).filter((each) => typeof each === "number");
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : -Infinity;
  };
  const sorted = [...rows].sort((one, other) => mean(other[1]) - mean(one[1]));
  const lows = payload.standings.flatMap(({figure}) => [figure.low, figure.value]).filter((each) => typeof each === "number");
  const span = [Math.min(-0.1, ...lows), Math.max(1, ...payload.standings.map(({figure}) => figure.high ?? 1))];
  made.append(make("p", "hint quiet", "0: chance. 1: as much as can be found. A line is the 95 % interval over texts."));
  made.append(familyKey([...new Set(payload.standings.map((each) => each.family))]), shapeKey(removals));
  const list = make("ul", "standings");
  const marks = removals.map((_, index) => MARKS[index % MARKS.length]);
  list.append(axisLine(span, [[0, "0 chance"], [0.5, "0.5"], [1, "1 all"]], inColumns(marks)));
  for (const [method, all] of sorted) list.append(standingLine(method, all, removals, span, payload));
  made.append(list);
}

/** @param {string[]} words */
const inColumns = (words) => words.map((word) => word.padStart(WIDEST)).join(" ");

/**
 * @param {string} method
 * @param {Standing[]} all
 * @param {string[]} removals
 * @param {Span} span
 * @param {Pick<ReportPayload, "verdict">} payload
 */
function standingLine(method, all, removals, span, payload) {
  const items = all.map((each) => ({...each, shape: removals.indexOf(each.removal)}));
  const plot = track(items, span, [{at: 0}, {at: 0.5}, {at: 1}]);
  const words = all.map((each) => `${removalWords(each.removal)} ${reportFigure(each.figure)}`).join("; ");
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", words);
  const line = make("li", all[0].family === "control" ? "control" : "",
    make("span", "who", familyTag(all[0].family), methodName(method)), plot,
    make("span", "mono figure", inColumns(removals.map((removal) => {
      const own = all.find((each) => each.removal === removal);
      return own ? reportNumber(own.figure.value) : "–";
    }))));
  if (method === payload.verdict.method) line.classList.add("asked");
  line.title = words;
  return line;
}

/** @param {Span} span @param {[number, string][]} ticks @param {string} [heading] */
function axisLine(span, ticks, heading = "") {
  const axis = make("span", "interval-axis mono quiet");
  for (const [at, label] of ticks) {
    const place = 100 * (at - span[0]) / (span[1] - span[0]);
    const tick = make("span", place < 2 ? "start" : place > 98 ? "end" : "", label);
    tick.style.left = `${place}%`;
    axis.append(tick);
  }
  const line = make("li", "axis-row", make("span", ""), axis, make("span", "mono quiet figure", heading));
  line.setAttribute("aria-hidden", "true");
  return line;
}

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawRemovals(made, payload) {
  if (payload.removals.length) {
    const box = make("div", "");
    drawRemovalPairs(box, payload);
    made.append(saveable(box, "attlas-removals-orders", () => [["measure", "one", "other", "value", "low", "high", "texts"],
      ...payload.removals.map((each) => [each.measure, each.one, each.other, ...figureCells(each.figure)])]));
  }
  if (payload.unusual.length) {
    const box = make("div", "");
    drawUnusual(box, payload);
    made.append(saveable(box, "attlas-removals-strange", () => [["removal", "value", "low", "high", "texts"],
      ...payload.unusual.map((each) => [each.removal, ...figureCells(each.figure)])]));
  }
}

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawRemovalPairs(made, payload) {
  made.append(make("p", "hint quiet", "The rank correlation of the methods' order between every two ways of removing tokens: " +
    "1 is the same order, 0 none, −1 the reverse."));
  const list = make("ul", "standings");
  list.append(axisLine([-1, 1], [[-1, "−1"], [0, "0"], [1, "1"]]));
  for (const pair of payload.removals) {
    list.append(make("li", "", make("span", "who pair-of mono", `${visible(pair.one)} – ${visible(pair.other)} `,
      make("span", "quiet", visible(pair.measure))),
      track([{figure: pair.figure, family: "W"}], [-1, 1], [{at: -1}, {at: 0}, {at: 1}]),
      make("span", "mono figure", reportFigure(pair.figure))));
  }
  made.append(list);
}

// How strange texts without some tokens are to the model, and what to do about it.
/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawUnusual(made, payload) {
  made.append(make("p", "hint quiet", "Are texts without some of their tokens strange to the model? How often they are stranger than " +
    `${visible(payload.unusual[0].usual)}: 0.5 is no more so, 1 always.`));
  const list = make("ul", "standings");
  list.append(axisLine([0, 1], [[0, "0"], [0.5, "0.5"], [1, "1"]]));
  for (const {removal, figure, remedy} of payload.unusual) {
    list.append(make("li", "", make("span", "who mono", visible(removal)),
      track([{figure, family: "W"}], [0, 1], [{at: 0}, {at: 0.5}, {at: 1}]),
      make("span", "mono figure", reportFigure(figure))));
    if (remedy) list.append(make("li", "heading", make("span", "", `${visible(removal)}: ${visible(remedy)}`)));
  }
  made.append(list);
}
