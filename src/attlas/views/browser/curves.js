// Curves: accuracy as heads are switched off, with the 95 % interval of the curve pointed at.

const CHART = {width: 720, height: 320, left: 48, right: 16, top: 12, bottom: 48};
const SMALL_CHART = {...CHART, width: 360, height: 240};  // on a phone, where letters keep their size
const LETTER = 7;  // pixels
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 4", "10 4"];

/** @param {HTMLElement} element @param {HeadsPayload} payload @param {State} state */
function drawCharts(element, payload, state) {
  for (const chart of payload.charts) drawChart(element, chart, state);
}

/** @param {HTMLElement} element @param {Chart} chart @param {State} state */
function drawChart(element, chart, state) {
  const made = section(element, visible(chart.title ?? "Accuracy as heads are switched off"), "chart");
  const told = make("p", "told one-line", "Point at a curve, or at its name, for its interval.");
  const picture = drawn("svg", {role: "img", "aria-label": `Accuracy by ${chart.axis}`});
  const keys = make("ul", "keys");
  /** @param {number} index */
  const light = (index) => {
    for (const list of [keys.children, picture.querySelectorAll(".curve")]) {
      [...list].forEach((each, place) => each.classList.toggle("lit", place === index));
    }
    if (index !== null) told.textContent = curveWords(chart.curves[index]);
  };
  chart.curves.forEach((curve, index) => {
    const key = button("", "key", () => light(index));
    key.append(keyLine(index), visible(curve.name));
    key.addEventListener("pointerenter", () => light(index));
    keys.append(make("li", "", key));
  });
  const fill = () => {
    const size = state.width < 2 * SMALL_CHART.width ? SMALL_CHART : CHART;
    if (picture.getAttribute("viewBox")?.startsWith(`0 0 ${size.width} `)) return;
    picture.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    const groups = chart.curves.map((curve, index) => curveGroup(curve, chart, index, size));
    groups.forEach((group, index) => group.addEventListener("pointerenter", () => light(index)));
    picture.replaceChildren(...chartAxes(chart, size), ...groups);
  };
  state.on(["width"], fill);
  fill();
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

/** @param {Chart} chart @param {{place: number}} point @param {number} share @param {typeof CHART} size */
function chartPlace(chart, point, share, {width, height, left, right, top, bottom}) {
  const last = chart.curves[0].points.at(-1)?.place || 1;
  return [left + (width - left - right) * point.place / last,
    top + (height - top - bottom) * (1 - share)];
}

/** @param {Chart} chart @param {typeof CHART} size */
function chartAxes(chart, size) {
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const [x, y] = chartPlace(chart, {place: 0}, share, size);
    parts.push(drawn("line", {class: "rule", x1: x, x2: size.width - size.right, y1: y, y2: y}),
      drawn("text", {class: "side", x: x - 8, y: y + 4}, `${100 * share} %`));
  }
  let free = 0;  // where the next label may begin
  chart.curves[0].points.forEach((point, index) => {
    const [x] = chartPlace(chart, point, 0, size), label = visible(chart.labels[index]);
    const half = LETTER * label.length / 2;
    if (x - half < free) return;
    free = x + half + LETTER;
    parts.push(drawn("text", {x, y: size.height - size.bottom + 18}, label));
  });
  const middle = (size.left + size.width - size.right) / 2;
  parts.push(drawn("text", {x: middle, y: size.height - 8}, visible(chart.axis)));
  return parts;
}

/** @param {Curve} curve @param {Chart} chart @param {number} index @param {typeof CHART} size */
function curveGroup(curve, chart, index, size) {
  /** @param {keyof Interval} name */
  const along = (name) => curve.points.map((point) =>
    chartPlace(chart, point, point.accuracy[name], size).map((value) => value.toFixed(1)).join(" "));
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
