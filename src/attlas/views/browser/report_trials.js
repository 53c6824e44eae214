// @ts-nocheck
// The trials of the attention: the figures and plots of each.

const PLOT = {width: 360, height: 252, left: 48, right: 12, top: 10, bottom: 40};
const PLOTS = {scatter: drawScatter, curve: drawCurves, bars: drawPlotBars, matrix: drawPlotMatrix,
  maps: drawPlotMaps, table: drawPlotTable};
const MOST_NUMBERED = 8, MOST_FIGURES = 6;  // columns with numbers in a matrix; figures shown at first
const MOST_BESIDE = {matrix: 16, maps: 6, table: 4};  // the most columns of a plot that shares a line
const shortNumber = (value) =>
  typeof value === "number" ? minus(String(Number(value.toPrecision(3)))) : "–";
const isNumber = (value) => typeof value === "number";

function drawTrials(made, payload, state) {
  for (const trial of payload.trials) {
    const lines = trialLines(trial.figures), plots = trial.plots.map((plot) => plotFigure(plot, state));
    const found = make("div", "", make("h3", "", visible(trial.name)), make("p", "lead", visible(trial.sentence)),
      make("p", "hint quiet", `Which attention: ${visible(trial.scope)}`),
      make("ul", "standings", ...lines.slice(0, MOST_FIGURES)));
    if (lines.length > MOST_FIGURES) {
      found.append(make("details", "", make("summary", "", `${lines.length - MOST_FIGURES} more figures`),
        make("ul", "standings", ...lines.slice(MOST_FIGURES))));
    }
    found.append(...doesNotShow([trial.does_not_show]));
    const besides = plots.length === 1 && !plots[0].classList.contains("wide");
    made.append(make("div", besides ? "pair" : "", found, make("div", "plots", ...plots)));
  }
}

// All figures of a trial on one scale.
function trialLines(figures) {
  const known = figures.flatMap(({figure, ceiling}) => [figure.value, figure.low, figure.high, ceiling]).filter(isNumber);
  const span = [Math.min(0, ...known), Math.max(0, ...known) || 1];
  return figures.map(({name, figure, ceiling}) => make("li", "", make("span", "who", visible(name)),
    track([{figure, family: "W"}], span, isNumber(ceiling) ? [{at: 0}, {at: ceiling}] : [{at: 0}]),
    make("span", "mono figure", trialFigure(figure, ceiling))));
}

// Small figures have a third decimal.
function trialFigure(figure, ceiling) {
  const digits = Math.max(Math.abs(figure.value ?? 0), Math.abs(ceiling ?? 0)) < 0.1 ? 3 : 2;
  const end = isNumber(ceiling) ? ` of ${reportNumber(ceiling, digits)}` : "";
  return `${reportNumber(figure.value, digits)} (${reportInterval(figure, digits)})${end}`;
}

function plotFigure(plot, state) {
  const wide = plot.columns?.length > MOST_BESIDE[plot.kind];
  const box = make("figure", `plot plot-${plot.kind}${wide ? " wide" : ""}`,
    make("figcaption", "", visible(plot.title)));
  PLOTS[plot.kind](box, plot, state);
  box.append(make("p", "reads quiet", visible(plot.reading)));
  return box;
}

const spanOf = (values) => {
  const known = values.filter(isNumber);
  if (!known.length) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), room = 0.04 * (high - low || Math.abs(high) || 1);
  return [low >= 0 && low <= 0.5 * high ? 0 : low - room, high + room];
};

// The frame of a chart: rules at round numbers, axis labels, and the place of a point.
function plotFrame(plot, xs, ys) {
  const {width, height, left, right, top, bottom} = PLOT, [across, up] = [spanOf(xs), spanOf(ys)];
  const x = (value) => left + (width - left - right) * (value - across[0]) / (across[1] - across[0]);
  const y = (value) => top + (height - top - bottom) * (up[1] - value) / (up[1] - up[0]);
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${visible(plot.title)}: ${visible(plot.y_label)} by ${visible(plot.x_label)}`});
  for (const value of niceTicks(up)) {
    picture.append(drawn("line", {class: "rule", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
      drawn("text", {class: "side", x: left - 6, y: y(value) + 4}, minus(String(value))));
  }
  for (const value of niceTicks(across)) {
    picture.append(drawn("text", {x: x(value), y: height - bottom + 16}, minus(String(value))));
  }
  picture.append(drawn("text", {class: "axis-name", x: (left + width - right) / 2, y: height - 6}, visible(plot.x_label)));
  return {picture, x, y};
}

function plotKeys(names, mark) {
  if (names.length < 2) return [];
  return [make("p", "legend", ...names.map((name, index) => make("span", "", mark(index), ` ${visible(name)}`)))];
}

const upwards = (plot) => make("p", "up quiet", `↑ ${visible(plot.y_label)}`);

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
  box.append(upwards(plot), picture, ...plotKeys(plot.groups.map((each) => each.name),
    (index) => make("span", `dot still round tint-${index % 6}`)));
}

function drawCurves(box, plot) {
  const values = plot.lines.flatMap((line) => [...line.y, ...(line.low ?? []), ...(line.high ?? [])]);
  const {picture, x, y} = plotFrame(plot, plot.x, values);
  plot.lines.forEach((line, index) => {
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

function drawPlotBars(box, plot) {
  const [low, high] = spanOf(plot.bars.flatMap((bar) => [0, bar.value, bar.low, bar.high]));
  const span = [Math.min(0, low), Math.max(0, high)], place = (value) => 100 * (value - span[0]) / (span[1] - span[0]);
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
function heatTable({rows, columns}, values, {top, signed, numbered}, state, tell) {
  const head = make("tr", "", make("th", ""), ...columns.map((name) =>
    make("th", "upright", make("span", "", visible(name)))));
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

const heatScale = (values) => {
  const known = values.filter(isNumber);
  return {top: Math.max(0, ...known.map(Math.abs)), signed: known.some((each) => each < 0)};
};

const strongest = ({top}) => `the strongest colour is ${shortNumber(top)}`;

function drawPlotMatrix(box, plot, state) {
  const scale = {...heatScale(plot.values.flat()), numbered: plot.columns.length <= MOST_NUMBERED};
  const told = make("p", "told one-line", `${visible(plot.y_label)} by ${visible(plot.x_label)}; ${strongest(scale)}`);
  const tell = (y, x) => (told.textContent =
    `${visible(plot.rows[y])}, ${visible(plot.x_label)} ${visible(plot.columns[x])}: ${shortNumber(plot.values[y][x])}`);
  box.append(told, make("div", "scroll wide", heatTable(plot, plot.values, scale, state, tell)));
}

// One scale for all, so that a colour always means the same weight.
function drawPlotMaps(box, plot, state) {
  const scale = {...heatScale(plot.maps.flatMap((each) => each.values.flat())), numbered: false};
  const told = make("p", "told one-line", `Point at a cell: query → key, and its weight in each; ${strongest(scale)}`);
  const tell = (y, x) => (told.textContent = `${visible(plot.rows[y])} → ${visible(plot.columns[x])}: ` +
    plot.maps.map((each) => `${visible(each.name)} ${shortNumber(each.values[y][x])}`).join(" · "));
  const sides = plot.maps.map((each) => make("div", "side-map", make("p", "mono quiet", visible(each.name)),
    make("div", "scroll wide", heatTable(plot, each.values, scale, state, tell))));
  box.append(told, make("div", "sides", ...sides));
}

function drawPlotTable(box, plot) {
  const shown = (cell) => (typeof cell === "string" ? cell && visible(cell) : shortNumber(cell));
  const isWord = plot.columns.map((_, index) => plot.rows.some((row) => typeof row[index] === "string"));
  const cells = (tag, row) => row.map((cell, index) => make(tag, isWord[index] ? "word" : "", shown(cell)));
  const head = make("thead", "", make("tr", "", ...cells("th", plot.columns)));
  const rows = plot.rows.map((row) => make("tr", "", ...cells("td", row)));
  box.append(make("div", "scroll wide", make("table", "plain mono", head, make("tbody", "", ...rows))));
}
