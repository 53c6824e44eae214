// Curves: accuracy as heads are switched off, with the 95 % interval of the curve pointed at.

const CHART = {width: 720, height: 320, left: 48, right: 16, top: 12, bottom: 48};
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];

/** @param {HTMLElement} element @param {HeadsPayload} payload @param {State} state */
function drawCharts(element, payload, state) {
  for (const chart of payload.charts) drawChart(element, chart, state);
}

/** @param {HTMLElement} element @param {Chart} chart @param {State} state */
function drawChart(element, chart, state) {
  const made = section(element, visible(chart.title ?? "Accuracy as heads are switched off"), "chart");
  const told = make("p", "told one-line", "Point at a curve, or at its name, for its interval.");
  const {width, height} = CHART;
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Accuracy by ${chart.axis}`}, ...chartAxes(chart));
  const keys = make("ul", "keys");
  /** @param {number} index */
  const light = (index) => {
    for (const list of [keys.children, picture.querySelectorAll(".curve")]) {
      [...list].forEach((each, place) => each.classList.toggle("lit", place === index));
    }
    if (index !== null) told.textContent = curveWords(chart.curves[index]);
  };
  chart.curves.forEach((curve, index) => {
    const group = curveGroup(curve, chart, index);
    const key = button("", "key", () => light(index));
    key.append(keyLine(index), visible(curve.name));
    for (const each of [group, key]) each.addEventListener("pointerenter", () => light(index));
    picture.append(group);
    keys.append(make("li", "", key));
  });
  made.append(told, make("div", "scroll", picture), keys, chartTable(chart));
}

/** @param {number} share @param {number} [digits] */
const shownPercent = (share, digits = 0) => minus((100 * share).toFixed(digits));
/** @param {Interval} given */
const shownMean = ({mean, low, high}) =>
  `${shownPercent(mean, 1)} % (${shownPercent(low, 1)} to ${shownPercent(high, 1)})`;

/** @param {Curve} curve */
function curveWords(curve) {
  const ahead = curve.ahead ? `, ${shownMean(curve.ahead)} beyond random` : "";
  return `${visible(curve.name)}: mean accuracy ${shownMean(curve.area)}${ahead}`;
}

/** @param {Chart} chart @param {{place: number}} point @param {number} share */
function chartPlace(chart, point, share) {
  const last = chart.curves[0].points.at(-1)?.place || 1;
  const {width, height, left, right, top, bottom} = CHART;
  return [left + (width - left - right) * point.place / last,
    top + (height - top - bottom) * (1 - share)];
}

/** @param {Chart} chart */
function chartAxes(chart) {
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const [x, y] = chartPlace(chart, {place: 0}, share);
    parts.push(drawn("line", {class: "rule", x1: x, x2: CHART.width - CHART.right, y1: y, y2: y}),
      drawn("text", {class: "side", x: x - 8, y: y + 4}, `${100 * share} %`));
  }
  chart.curves[0].points.forEach((point, index) => {
    const [x] = chartPlace(chart, point, 0);
    parts.push(drawn("text", {x, y: CHART.height - CHART.bottom + 18}, visible(chart.labels[index])));
  });
  const middle = (CHART.left + CHART.width - CHART.right) / 2;
  parts.push(drawn("text", {x: middle, y: CHART.height - 8}, visible(chart.axis)));
  return parts;
}

/** @param {Curve} curve @param {Chart} chart @param {number} index */
function curveGroup(curve, chart, index) {
  /** @param {keyof Interval} name */
  const along = (name) => curve.points.map((point) =>
    chartPlace(chart, point, point.accuracy[name]).map((value) => value.toFixed(1)).join(" "));
  const band = [...along("high"), ...along("low").reverse()];
  return drawn("g", {class: `curve tint-${index % 6}`},
    drawn("path", {class: "spread", d: `M${band.join("L")}Z`}),
    drawn("path", {class: "line", d: `M${along("mean").join("L")}`, "stroke-dasharray": DASHES[index % 6]}));
}

/** @param {number} index */
function keyLine(index) {
  return drawn("svg", {class: `tint-${index % 6}`, width: 28, height: 8, "aria-hidden": "true"},
    drawn("path", {class: "line", d: "M0 4L28 4", "stroke-dasharray": DASHES[index % 6]}));
}

// The same numbers as a table, for readers who cannot see the curves.
/** @param {Chart} chart */
function chartTable(chart) {
  /** @param {"td" | "th"} tag @param {string[]} values */
  const cells = (tag, values) => make("tr", "", ...values.map((value) => make(tag, "", value)));
  const rows = chart.curves.map((curve) => cells("td", [visible(curve.name),
    ...curve.points.map((point) => shownPercent(point.accuracy.mean)), shownMean(curve.area),
    curve.ahead ? shownMean(curve.ahead) : "–"]));
  const head = cells("th", ["accuracy in %", ...chart.labels.map(visible), "mean", "beyond random"]);
  return make("details", "", make("summary", "", "As a table"),
    make("div", "scroll", make("table", "mono", head, ...rows)));
}
