// Small charts side by side, one for each measure and removal. Pointing at a method highlights it in all.

const PANEL = {width: 320, height: 220, left: 44, right: 8, top: 8, bottom: 36};
/** @type {Record<string, string>} */
const ARROWS = {higher: "↑", lower: "↓"};
/** @param {string} better */
const betterWords = (better) => `${ARROWS[better] ?? ""} ${better} is better`;

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawPanels(made, payload) {
  const measures = [...new Set(payload.panels.map((each) => each.measure))];
  const told = make("p", "told", "Point at a method, or at its curve: its band is the 95 % interval.");
  const keys = make("ul", "keys");
  /** @type {Map<string, Element[]>} */
  const groups = new Map();
  /** @param {string} method */
  const light = (method) => {
    for (const [each, elements] of groups) {
      elements.forEach((element) => element.classList.toggle("lit", each === method));
    }
    told.textContent = panelWords(method, payload);
  };
  /** @param {string} method @param {Element} element */
  const follow = (method, element) => {
    groups.set(method, [...(groups.get(method) ?? []), element]);
    element.addEventListener("pointerenter", () => light(method));
  };
  const families = new Map(payload.panels.flatMap((each) => each.lines).map((line) => [line.method, line.family]));
  for (const measure of measures) {
    const panels = payload.panels.filter((each) => each.measure === measure), box = make("div", "panels");
    const range = panelRange(panels);
    for (const panel of panels) box.append(panelChart(panel, range, follow, payload));
    made.append(make("h3", "", visible(measure), make("span", "quiet", ` ${betterWords(panels[0].better)}`)), box);
  }
  for (const [method, family] of families) {
    const key = button("", `key ${familyTint(family)}`, () => light(method));
    key.append(familyTag(family), visible(method));
    follow(method, key);
    keys.append(make("li", "", key));
  }
  made.append(told, keys);
}

/** @param {Panel[]} panels */
function panelRange(panels) {
  const values = panels.flatMap((each) => each.lines).flatMap((line) => line.mean).filter((each) => typeof each === "number");
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  return low === high ? [0, 1] : [low - 0.03 * (high - low), high + 0.03 * (high - low)];
}

/** @param {string} method @param {ReportPayload} payload */
function panelWords(method, payload) {
  const means = payload.panels.map((panel) => {
    const line = panel.lines.find((each) => each.method === method);
    const known = line?.mean.filter((each) => typeof each === "number") ?? [];
    if (!known.length) return null;
    const mean = known.reduce((a, b) => a + b, 0) / known.length;
    return `${visible(panel.measure)} by ${removalWords(panel.removal)} ${reportNumber(mean)}`;
  });
  return `${visible(method)}, mean of the curve: ${means.filter(Boolean).join(" · ")}`;
}

/**
 * @param {Panel} panel
 * @param {Span} range
 * @param {(method: string, element: Element) => void} follow
 * @param {ReportPayload} payload
 */
function panelChart(panel, range, follow, payload) {
  const {width, height, left, right, top, bottom} = PANEL;
  const last = Math.max(...panel.places), first = Math.min(0, ...panel.places);
  /** @param {number} place */
  const x = (place) => left + (width - left - right) * (place - first) / (last - first || 1);
  /** @param {number} value */
  const y = (value) => top + (height - top - bottom) * (range[1] - value) / (range[1] - range[0]);
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${visible(panel.measure)} by ${removalWords(panel.removal)}, ${visible(panel.axis)}`}, ...panelAxes(panel, range, x, y));
  const marked = [payload.verdict.method, payload.verdict.bounds[panel.removal]?.reference, "shuffled", "ceiling"];
  const lines = [...panel.lines].sort((one, other) => Number(marked.includes(one.method)) - Number(marked.includes(other.method)));
  for (const line of lines) {
    const group = panelLine(line, panel.places, x, y, marked.includes(line.method));
    follow(line.method, group);
    picture.append(group);
  }
  const made = make("figure", "panel", make("figcaption", "mono", removalWords(panel.removal)), picture);
  return saveable(made, `attlas-curves-${idWord(panel.measure)}-${idWord(panel.removal)}`, () => panelRows(panel));
}

/** @param {Panel} given */
const panelRows = ({places, lines}) => [["method", "family", "share", "mean", "low", "high"],
  ...lines.flatMap((line) => places.map((place, index) =>
    [line.method, line.family, place, line.mean[index], line.low[index], line.high[index]]))];

/** @param {Panel} panel @param {Span} range @param {(place: number) => number} x @param {(value: number) => number} y */
function panelAxes(panel, range, x, y) {
  const {width, height, right, bottom, left} = PANEL, parts = [];
  for (const value of niceTicks(range)) {
    parts.push(drawn("line", {class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
      drawn("text", {class: "side", x: left - 6, y: y(value) + 4}, minus(String(value))));
  }
  const last = Math.max(...panel.places);
  for (const place of [0, 0.25, 0.5, 0.75, 1].filter((each) => each <= last + 1e-9)) {
    parts.push(drawn("text", {x: x(place), y: height - bottom + 16}, `${100 * place} %`));
  }
  parts.push(drawn("text", {x: (left + width - right) / 2, y: height - 4}, visible(panel.axis)));
  return parts;
}

// Up to six round numbers within the range.
/** @param {Span} given */
function niceTicks([low, high]) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? 10 * power;
  const first = Math.ceil(low / step), count = Math.floor(high / step) - first + 1;
  return Array.from({length: count}, (_, index) => Number(((first + index) * step).toPrecision(6)));
}

/**
 * @param {PanelLine} line
 * @param {number[]} places
 * @param {(place: number) => number} x
 * @param {(value: number) => number} y
 * @param {boolean} marked
 */
function panelLine(line, places, x, y, marked) {
  const known = places.map((_, index) => index).filter((index) => typeof line.mean[index] === "number");
  /** @param {Numbers} values */
  const along = (values) => known.flatMap((index) => {
    const value = values[index];
    return isNumber(value) ? [`${x(places[index]).toFixed(1)} ${y(value).toFixed(1)}`] : [];
  });
  const band = [...along(line.high), ...along(line.low).reverse()], path = along(line.mean);
  const parts = [];
  if (band.length) parts.push(drawn("path", {class: "spread", d: `M${band.join("L")}Z`}));
  if (path.length) parts.push(drawn("path", {class: "line", d: `M${path.join("L")}`}));
  const kind = `${marked ? " marked" : ""}${line.family === "control" ? " control" : ""}`;
  const group = drawn("g", {class: `curve ${familyTint(line.family)}${kind}`}, ...parts);
  group.append(drawn("title", {}, visible(line.method)));
  return group;
}
