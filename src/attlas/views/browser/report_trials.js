// The trials of the attention: the figures and plots of each.

/** @satisfies {{[kind in Plot["kind"]]: (box: HTMLElement, plot: Extract<Plot, {kind: kind}>, state: State) => void}} */
const PLOTS = {scatter: drawScatter, curve: drawCurves, bars: drawPlotBars, violins: drawViolins,
  matrix: drawPlotMatrix, maps: drawPlotMaps, table: drawPlotTable};
const MOST_FIGURES = 6;  // of a trial, shown at first
const MOST_BESIDE = new Map([["matrix", 16], ["maps", 6], ["table", 4]]);  // the most columns of a plot that shares a line
/** @param {number | null | undefined} value */
const shortNumber = (value) =>
  typeof value === "number" ? minus(String(Number(value.toPrecision(3)))) : "–";
/** @param {unknown} value @returns {value is number} */
const isNumber = (value) => typeof value === "number";

/** @param {HTMLElement} made @param {TriedPayload} payload @param {State} state */
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
/** @param {TrialSection[]} trials */
function trialIds(trials) {
  const seen = new Map();
  return trials.map(({name}) => {
    const word = idWord(name), count = (seen.get(word) ?? 0) + 1;
    seen.set(word, count);
    return `attlas-trial-${word}${count > 1 ? `-${count}` : ""}`;
  });
}

// A trial on one line: what it found, and its first figure as a small plot.
/** @param {TrialSection} given */
function trialLine({name, sentence, figures}) {
  // What has a ceiling is what the trial is about.
  const first = figures.find((each) => isNumber(each.ceiling)) ?? figures[0], line = make("summary", "trial-line", make("h3", "", visible(name)), make("span", "quiet found", visible(sentence)));
  if (!first) return line;
  const {span, marks} = trialScale([first]), plot = track([{figure: first.figure, family: "W"}], span, marks(first));
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${visible(first.name)} ${trialFigure(first.figure, first.ceiling)}`);
  line.append(make("span", "small-plot", make("span", "end"), plot, make("span", "end")),
    make("span", "mono figure", reportNumber(first.figure.value, figureDigits(first.figure, first.ceiling))));
  line.title = visible(first.name);
  return line;
}

/** @param {TrialSection} trial @param {string} id @param {State} state */
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

// A figure with a ceiling is drawn up to it; all others are on one scale.
/** @param {TrialFigure[]} figures */
function trialLines(figures) {
  const shared = trialScale(figures.filter((each) => !isNumber(each.ceiling)));
  return figures.map((each) => {
    const {span, marks} = isNumber(each.ceiling) ? trialScale([each]) : shared;
    return make("li", "", make("span", "who", visible(each.name)), track([{figure: each.figure, family: "W"}], span, marks(each)),
      make("span", "mono figure", trialFigure(each.figure, each.ceiling)));
  });
}

/** @param {TrialFigure[]} figures */
function trialScale(figures) {
  const known = figures.flatMap(({figure, ceiling}) => [figure.value, figure.low, figure.high, ceiling]).filter(isNumber);
  /** @param {TrialFigure} given */
  const marks = ({ceiling}) => (isNumber(ceiling) ? [{at: 0}, {at: ceiling}] : [{at: 0}]);
  return {span: [Math.min(0, ...known), Math.max(0, ...known) || 1], marks};
}

// Small figures have a third decimal.
/** @param {Figure} figure @param {number | null} ceiling */
const figureDigits = (figure, ceiling) => (Math.max(Math.abs(figure.value ?? 0), Math.abs(ceiling ?? 0)) < 0.1 ? 3 : 2);

/** @param {Figure} figure @param {number | null} ceiling */
function trialFigure(figure, ceiling) {
  const digits = figureDigits(figure, ceiling);
  const end = isNumber(ceiling) ? ` of ${reportNumber(ceiling, digits)}` : "";
  return `${reportNumber(figure.value, digits)} (${reportInterval(figure, digits)})${end}`;
}

/** @param {Plot} given @param {State} state @param {string} id */
function plotFigure(given, state, id) {
  const plot = withoutFillers(given);
  const wide = "columns" in plot && plot.columns.length > (MOST_BESIDE.get(plot.kind) ?? 0);
  const box = make("figure", `plot plot-${plot.kind}${wide ? " wide" : ""}`,
    make("figcaption", "", visible(plot.title)));
  const draw = /** @type {(box: HTMLElement, plot: Plot, state: State) => void} */ (PLOTS[plot.kind]);
  draw(box, plot, state);
  box.append(make("p", "reads quiet", visible(plot.reading)));
  const rows = /** @type {(plot: Plot) => Cell[][]} */ (PLOT_ROWS[plot.kind]);
  return saveable(box, id, () => rows(plot));
}

// Texts that shared a batch were filled up with tokens of no text: an older report may hold these.
/** @param {Plot} plot @returns {Plot} */
function withoutFillers(plot) {
  if (plot.kind !== "maps") return plot;
  /** @param {string[]} names */
  const places = (names) => names.map((_, place) => place).filter((place) => names[place] !== "");
  const [down, across] = [places(plot.rows), places(plot.columns)];
  return {...plot, rows: down.map((y) => plot.rows[y]), columns: across.map((x) => plot.columns[x]),
    maps: plot.maps.map((each) => ({...each, values: down.map((y) => across.map((x) => each.values[y][x]))}))};
}
