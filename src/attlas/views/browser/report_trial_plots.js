// The plots of a trial, one function for each kind, and their numbers.

const PLOT = {width: 360, height: 252, left: 48, right: 12, top: 10, bottom: 40};
const MOST_NUMBERED = 8;  // columns of a matrix whose cells have numbers
const PLOT_ROWS = {
  /** @param {ScatterPlot} given */
  scatter: ({groups, x_label: x, y_label: y}) => [["group", x, y],
    ...groups.flatMap((each) => each.x.map((across, place) => [each.name, across, each.y[place]]))],
  /** @param {CurvePlot} given */
  curve: ({lines, x, x_label: across, y_label: up}) => [["line", across, up, "low", "high"],
    ...lines.flatMap((line) => x.map((at, place) => [line.name, at, line.y[place], line.low?.[place], line.high?.[place]]))],
  /** @param {BarsPlot} given */
  bars: ({bars, x_label: label}) => [["name", label, "low", "high"], ...bars.map((bar) => [bar.name, bar.value, bar.low, bar.high])],
  /** @param {ViolinsPlot} given */
  violins: ({groups}) => [["group", "count", "5 %", "25 %", "median", "75 %", "95 %"],
    ...groups.map((each) => [each.name, each.count, ...each.marks])],
  /** @param {MatrixPlot} given */
  matrix: ({rows, columns, values, x_label: x, y_label: y}) => [[y, x, "value"],
    ...rows.flatMap((row, down) => columns.map((column, across) => [row, column, values[down][across]]))],
  /** @param {MapsPlot} given */
  maps: ({rows, columns, maps}) => [["map", "query", "key", "weight"], ...maps.flatMap(({name, values}) =>
    rows.flatMap((row, y) => columns.map((column, x) => [name, row, column, values[y][x]])))],
  /** @param {TablePlot} given */
  table: ({columns, rows}) => [columns, ...rows],
};

/** @param {Numbers} values */
const spanOf = (values) => {
  const known = values.filter(isNumber);
  if (!known.length) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), room = 0.04 * (high - low || Math.abs(high) || 1);
  return [low >= 0 && low <= 0.5 * high ? 0 : low - room, high + room];
};

// The frame of a chart: rules at round numbers, axis labels, and the place of a point.
/** @param {PlotAxes} plot @param {Numbers} xs @param {Numbers} ys @param {number[]} ticks */
function plotFrame(plot, xs, ys, ticks = niceTicks(spanOf(xs))) {
  const {width, height, left, right, top, bottom} = PLOT, [across, up] = [spanOf(xs), spanOf(ys)];
  /** @param {number} value */
  const x = (value) => left + (width - left - right) * (value - across[0]) / (across[1] - across[0]);
  /** @param {number} value */
  const y = (value) => top + (height - top - bottom) * (up[1] - value) / (up[1] - up[0]);
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${visible(plot.title)}: ${visible(plot.y_label)} by ${visible(plot.x_label)}`});
  for (const value of niceTicks(up)) {
    picture.append(drawn("line", {class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
      drawn("text", {class: "side", x: left - 6, y: y(value) + 4}, minus(String(value))));
  }
  for (const value of ticks) {
    picture.append(drawn("text", {x: x(value), y: height - bottom + 16}, minus(String(value))));
  }
  if (plot.x_label) {
    picture.append(drawn("text", {class: "axis-name", x: (left + width - right) / 2, y: height - 6}, visible(plot.x_label)));
  }
  return {picture, x, y};
}

/** @param {string[]} names @param {(index: number) => Node} mark */
function plotKeys(names, mark) {
  if (names.length < 2) return [];
  return [make("p", "legend", ...names.map((name, index) => make("span", "", mark(index), ` ${visible(name)}`)))];
}

/** @param {PlotAxes} plot */
const upwards = (plot) => make("p", "up quiet", `↑ ${visible(plot.y_label)}`);

/** @param {HTMLElement} box @param {ScatterPlot} plot */
function drawScatter(box, plot) {
  const {picture, x, y} = plotFrame(plot, plot.groups.flatMap((each) => each.x), plot.groups.flatMap((each) => each.y));
  plot.groups.forEach((group, index) => {
    const points = drawn("g", {class: `points tint-${index % 6}`});
    group.x.forEach((across, place) => {
      const up = group.y[place];
      if (isNumber(across) && isNumber(up)) points.append(drawn("circle", {cx: x(across).toFixed(1), cy: y(up).toFixed(1), r: 3}));
    });
    points.append(drawn("title", {}, visible(group.name)));
    picture.append(points);
  });
  picture.append(...drawArrows(plot, x, y));
  box.append(upwards(plot), picture, ...plotKeys(plot.groups.map((each) => each.name),
    (index) => make("span", `dot still round tint-${index % 6}`)));
}

// Arrows from the first point of one group to the first of each other group.
/** @param {ScatterPlot} plot @param {(value: number) => number} x @param {(value: number) => number} y */
function drawArrows(plot, x, y) {
  const from = plot.groups.find((each) => each.name === plot.arrows_from);
  if (!from || !isNumber(from.x[0]) || !isNumber(from.y[0])) return [];
  const [startX, startY] = [x(from.x[0]), y(from.y[0])];
  return plot.groups.flatMap((each) => {
    const [across, up] = [each.x[0], each.y[0]];
    if (each === from || !isNumber(across) || !isNumber(up)) return [];
    const [endX, endY] = [x(across), y(up)], turn = Math.atan2(endY - startY, endX - startX);
    /** @param {number} by */
    const wing = (by) => `${(endX - 7 * Math.cos(turn + by)).toFixed(1)} ${(endY - 7 * Math.sin(turn + by)).toFixed(1)}`;
    const end = `${endX.toFixed(1)} ${endY.toFixed(1)}`;
    const d = `M${startX.toFixed(1)} ${startY.toFixed(1)}L${end}M${wing(0.4)}L${end}L${wing(-0.4)}`;
    const inward = endX > PLOT.width / 2 ? "side" : "ahead"; // a name at the edge must not leave the picture
    const name = drawn("text", {class: inward, x: endX, y: endY - 7}, visible(each.name));
    return [drawn("path", {d, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5}), name];
  });
}

/** @param {HTMLElement} box @param {CurvePlot} plot */
function drawCurves(box, plot) {
  const values = plot.lines.flatMap((line) => [...line.y, ...(line.low ?? []), ...(line.high ?? [])]);
  const {picture, x, y} = plotFrame(plot, plot.x, values);
  plot.lines.forEach((line, index) => {
    /** @param {Numbers | null} values */
    const along = (values) => (values ?? []).flatMap((value, place) =>
      isNumber(value) && isNumber(plot.x[place]) ? [`${x(plot.x[place]).toFixed(1)} ${y(value).toFixed(1)}`] : []);
    const band = [...along(line.high), ...along(line.low).reverse()], path = along(line.y);
    const group = drawn("g", {class: `curve marked tint-${index % 6}`});
    if (band.length) group.append(drawn("path", {class: "spread", d: `M${band.join("L")}Z`}));
    if (path.length) group.append(drawn("path", {class: "line", d: `M${path.join("L")}`, "stroke-dasharray": DASHES[index % 6]}));
    group.append(drawn("title", {}, visible(line.name)));
    picture.append(group);
  });
  box.append(upwards(plot), picture, ...plotKeys(plot.lines.map((each) => each.name), keyLine));
}

/** @param {HTMLElement} box @param {BarsPlot} plot */
function drawPlotBars(box, plot) {
  const [low, high] = spanOf(plot.bars.flatMap((bar) => [0, bar.value, bar.low, bar.high]));
  const span = [Math.min(0, low), Math.max(0, high)];
  /** @param {number} value */
  const place = (value) => 100 * (value - span[0]) / (span[1] - span[0]);
  const list = make("ul", "plot-bars");
  for (const bar of plot.bars) {
    const line = make("span", "bar-track");
    if (isNumber(bar.value)) {
      const fill = make("span", "bar");
      fill.style.left = `${place(Math.min(0, bar.value))}%`;
      fill.style.width = `${Math.abs(place(bar.value) - place(0))}%`;
      line.append(fill);
    }
    if (isNumber(bar.low) && isNumber(bar.high)) {
      const reach = make("span", "whisker");
      reach.style.left = `${place(bar.low)}%`;
      reach.style.width = `${place(bar.high) - place(bar.low)}%`;
      line.append(reach);
    }
    const interval = isNumber(bar.low) ? ` (${shortNumber(bar.low)} to ${shortNumber(bar.high)})` : "";
    const item = make("li", "", make("bdi", "label", visible(bar.name)), line, make("span", "mono figure", shortNumber(bar.value)));
    item.title = `${visible(bar.name)}: ${shortNumber(bar.value)}${interval}`;
    list.append(item);
  }
  box.append(make("p", "up quiet", `→ ${visible(plot.x_label)}`), list);
}

// A table of coloured cells; `tell` gets the row and the column pointed at.
/**
 * @param {{rows: string[], columns: string[]}} given
 * @param {Numbers[]} values
 * @param {HeatScale} others
 * @param {State} state
 * @param {(y: number, x: number) => void} tell
 */
function heatTable({rows, columns}, values, {top, signed, numbered}, state, tell) {
  const head = make("tr", "", make("th", ""), ...columns.map((name) =>
    make("th", "upright", make("span", "", visible(name)))));
  /** @type {[HTMLElement, number][]} */
  const painted = [];
  const lines = values.map((row, y) => make("tr", "", make("th", "", visible(rows[y])), ...row.map((value, x) => {
    const cell = make("td", isNumber(value) ? "" : "none", !numbered && isNumber(value) ? "" : reportNumber(value).replace(/^(−?)0\./, "$1."));
    if (isNumber(value)) painted.push([cell, strength(value, top)]);
    cell.addEventListener("pointerenter", () => tell(y, x));
    return cell;
  })));
  const colour = () => painted.forEach(([cell, share]) => paint(cell, share, signed, state.theme));
  state.on(["theme"], colour);
  colour();
  return make("table", `likeness mono${numbered ? "" : " fine"}`, make("thead", "", head), make("tbody", "", ...lines));
}

/** @param {Numbers} values */
const heatScale = (values) => {
  const known = values.filter(isNumber);
  return {top: Math.max(0, ...known.map(Math.abs)), signed: known.some((each) => each < 0)};
};

/** @param {{top: number}} given */
const strongest = ({top}) => `the strongest colour is ${shortNumber(top)}`;

/** @param {HTMLElement} box @param {MatrixPlot} plot @param {State} state */
function drawPlotMatrix(box, plot, state) {
  const scale = {...heatScale(plot.values.flat()), numbered: plot.columns.length <= MOST_NUMBERED};
  const told = make("p", "told one-line", `${visible(plot.y_label)} by ${visible(plot.x_label)}; ${strongest(scale)}`);
  /** @param {number} y @param {number} x */
  const tell = (y, x) => (told.textContent =
    `${visible(plot.rows[y])}, ${visible(plot.x_label)} ${visible(plot.columns[x])}: ${shortNumber(plot.values[y][x])}`);
  box.append(told, make("div", "scroll wide", heatTable(plot, plot.values, scale, state, tell)));
}

// One scale for all, so that a colour always means the same weight.
/** @param {HTMLElement} box @param {MapsPlot} plot @param {State} state */
function drawPlotMaps(box, plot, state) {
  const scale = {...heatScale(plot.maps.flatMap((each) => each.values.flat())), numbered: false};
  const told = make("p", "told one-line", `Point at a cell: query → key, and its weight in each; ${strongest(scale)}`);
  /** @param {number} y @param {number} x */
  const tell = (y, x) => (told.textContent = `${visible(plot.rows[y])} → ${visible(plot.columns[x])}: ` +
    plot.maps.map((each) => `${visible(each.name)} ${shortNumber(each.values[y][x])}`).join(" · "));
  const sides = plot.maps.map((each) => make("div", "side-map", make("p", "mono quiet", visible(each.name)),
    make("div", "scroll wide", heatTable(plot, each.values, scale, state, tell))));
  box.append(told, make("div", "sides", ...sides));
}

/** @param {HTMLElement} box @param {TablePlot} plot */
function drawPlotTable(box, plot) {
  /** @param {string | number | null} cell */
  const shown = (cell) => (typeof cell === "string" ? cell && visible(cell) : shortNumber(cell));
  const isWord = plot.columns.map((_, index) => plot.rows.some((row) => typeof row[index] === "string"));
  /** @param {"td" | "th"} tag @param {(string | number | null)[]} row */
  const cells = (tag, row) => row.map((cell, index) => make(tag, isWord[index] ? "word" : "", shown(cell)));
  const head = make("thead", "", make("tr", "", ...cells("th", plot.columns)));
  const rows = plot.rows.map((row) => make("tr", "", ...cells("td", row)));
  box.append(make("div", "scroll wide", make("table", "plain mono", head, make("tbody", "", ...rows))));
}
