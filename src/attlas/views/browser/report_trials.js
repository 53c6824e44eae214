// @ts-nocheck
// The trials of the attention: the figures and plots of each.

const PLOT = {width: 360, height: 252, left: 48, right: 12, top: 10, bottom: 40};
const PLOTS = {scatter: drawScatter, curve: drawCurves, bars: drawPlotBars, violins: drawViolins, matrix: drawPlotMatrix,
  maps: drawPlotMaps, table: drawPlotTable};
const MOST_NUMBERED = 8, MOST_FIGURES = 6;  // columns with numbers in a matrix; figures shown at first
const MOST_BESIDE = {matrix: 16, maps: 6, table: 4};  // the most columns of a plot that shares a line
const shortNumber = (value) =>
  typeof value === "number" ? minus(String(Number(value.toPrecision(3)))) : "–";
const isNumber = (value) => typeof value === "number";

function drawTrials(made, payload, state) {
  const ids = trialIds(payload.trials);
  payload.trials.forEach((trial, index) => {
    const folded = make("details", "trial", trialLine(trial), trialBody(trial, ids[index], state));
    folded.id = ids[index];
    folded.open = payload.kind === "trial";
    made.append(folded);
  });
}

// The same trial of several attentions is numbered.
function trialIds(trials) {
  const seen = new Map();
  return trials.map(({name}) => {
    const word = idWord(name), count = (seen.get(word) ?? 0) + 1;
    seen.set(word, count);
    return `attlas-trial-${word}${count > 1 ? `-${count}` : ""}`;
  });
}

// A trial on one line: what it found, and its first figure as a small plot.
function trialLine({name, sentence, figures}) {
  const [first] = figures, line = make("summary", "trial-line", make("h3", "", visible(name)), make("span", "quiet found", visible(sentence)));
  if (!first) return line;
  const {span, marks} = trialScale([first]), plot = track([{figure: first.figure, family: "W"}], span, marks(first));
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${visible(first.name)} ${trialFigure(first.figure, first.ceiling)}`);
  line.append(make("span", "small-plot", make("span", "end"), plot, make("span", "end")),
    make("span", "mono figure", reportNumber(first.figure.value, figureDigits(first.figure, first.ceiling))));
  line.title = visible(first.name);
  return line;
}

function trialBody(trial, id, state) {
  const lines = trialLines(trial.figures);
  const plots = trial.plots.map((plot, index) => plotFigure(plot, state, `${id}-plot-${index + 1}`));
  const figures = make("div", "", make("ul", "standings", ...lines.slice(0, MOST_FIGURES)));
  if (lines.length > MOST_FIGURES) {
    figures.append(make("details", "", make("summary", "", `${lines.length - MOST_FIGURES} more figures`),
      make("ul", "standings", ...lines.slice(MOST_FIGURES))));
  }
  const found = make("div", "", make("p", "lead", visible(trial.sentence)),
    make("p", "hint quiet", `Which attention: ${visible(trial.scope)}`));
  if (lines.length) found.append(saveable(figures, `${id}-figures`, () => [["name", "value", "low", "high", "texts", "ceiling"],
    ...trial.figures.map(({name, figure, ceiling}) => [name, ...figureCells(figure), ceiling])]));
  found.append(...doesNotShow([trial.does_not_show]));
  const besides = plots.length === 1 && !plots[0].classList.contains("wide");
  return make("div", `trial-body${besides ? " pair" : ""}`, found, make("div", "plots", ...plots));
}

// All figures of a trial on one scale.
function trialLines(figures) {
  const {span, marks} = trialScale(figures);
  return figures.map((each) => make("li", "", make("span", "who", visible(each.name)),
    track([{figure: each.figure, family: "W"}], span, marks(each)),
    make("span", "mono figure", trialFigure(each.figure, each.ceiling))));
}

function trialScale(figures) {
  const known = figures.flatMap(({figure, ceiling}) => [figure.value, figure.low, figure.high, ceiling]).filter(isNumber);
  const marks = ({ceiling}) => (isNumber(ceiling) ? [{at: 0}, {at: ceiling}] : [{at: 0}]);
  return {span: [Math.min(0, ...known), Math.max(0, ...known) || 1], marks};
}

// Small figures have a third decimal.
const figureDigits = (figure, ceiling) => (Math.max(Math.abs(figure.value ?? 0), Math.abs(ceiling ?? 0)) < 0.1 ? 3 : 2);

function trialFigure(figure, ceiling) {
  const digits = figureDigits(figure, ceiling);
  const end = isNumber(ceiling) ? ` of ${reportNumber(ceiling, digits)}` : "";
  return `${reportNumber(figure.value, digits)} (${reportInterval(figure, digits)})${end}`;
}

function plotFigure(given, state, id) {
  const plot = withoutFillers(given);
  const wide = plot.columns?.length > MOST_BESIDE[plot.kind];
  const box = make("figure", `plot plot-${plot.kind}${wide ? " wide" : ""}`,
    make("figcaption", "", visible(plot.title)));
  PLOTS[plot.kind](box, plot, state);
  box.append(make("p", "reads quiet", visible(plot.reading)));
  return saveable(box, id, () => PLOT_ROWS[plot.kind](plot));
}

// Texts that shared a batch were filled up with tokens of no text: an older report may hold these.
function withoutFillers(plot) {
  if (plot.kind !== "maps") return plot;
  const places = (names) => names.map((_, place) => place).filter((place) => names[place] !== "");
  const [down, across] = [places(plot.rows), places(plot.columns)];
  return {...plot, rows: down.map((y) => plot.rows[y]), columns: across.map((x) => plot.columns[x]),
    maps: plot.maps.map((each) => ({...each, values: down.map((y) => across.map((x) => each.values[y][x]))}))};
}

const PLOT_ROWS = {
  scatter: ({groups, x_label: x, y_label: y}) => [["group", x, y],
    ...groups.flatMap((each) => each.x.map((across, place) => [each.name, across, each.y[place]]))],
  curve: ({lines, x, x_label: across, y_label: up}) => [["line", across, up, "low", "high"],
    ...lines.flatMap((line) => x.map((at, place) => [line.name, at, line.y[place], line.low?.[place], line.high?.[place]]))],
  bars: ({bars, x_label: label}) => [["name", label, "low", "high"], ...bars.map((bar) => [bar.name, bar.value, bar.low, bar.high])],
  violins: ({groups}) => [["group", "count", "5 %", "25 %", "median", "75 %", "95 %"],
    ...groups.map((each) => [each.name, each.count, ...each.marks])],
  matrix: ({rows, columns, values, x_label: x, y_label: y}) => [[y, x, "value"],
    ...rows.flatMap((row, down) => columns.map((column, across) => [row, column, values[down][across]]))],
  maps: ({rows, columns, maps}) => [["map", "query", "key", "weight"], ...maps.flatMap(({name, values}) =>
    rows.flatMap((row, y) => columns.map((column, x) => [name, row, column, values[y][x]])))],
  table: ({columns, rows}) => [columns, ...rows],
};

const spanOf = (values) => {
  const known = values.filter(isNumber);
  if (!known.length) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), room = 0.04 * (high - low || Math.abs(high) || 1);
  return [low >= 0 && low <= 0.5 * high ? 0 : low - room, high + room];
};

// The frame of a chart: rules at round numbers, axis labels, and the place of a point.
function plotFrame(plot, xs, ys, ticks = niceTicks(spanOf(xs))) {
  const {width, height, left, right, top, bottom} = PLOT, [across, up] = [spanOf(xs), spanOf(ys)];
  const x = (value) => left + (width - left - right) * (value - across[0]) / (across[1] - across[0]);
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
