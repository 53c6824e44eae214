// @ts-nocheck
// One head, enlarged.

function drawMatrix(element, payload, state) {
  const title = make("h3", ""), readout = make("p", "readout mono");
  const scroll = make("div", "scroll"), chosen = make("div", "chosen"), key = make("div", "legend");
  readout.setAttribute("aria-live", "polite");
  element.append(title, readout, make("div", "large", make("div", "", scroll, key), chosen));
  const build = () => {
    const site = payload.maps.sites[state.layer];
    title.replaceChildren(mapName(site, state.head));
    const {signed} = payload.maps, {limit} = headOf(site, state.head);
    key.replaceChildren(scaleOf(limit, signed, state.theme, (weight) => figure(weight, limit, signed)));
    const matrix = matrixOf(site, payload, state, element.clientWidth);
    scroll.replaceChildren(matrix.element);
    matrix.listen(readout);
    refresh = () => { matrix.light(); listRow(chosen, matrix, payload, state, elementsAt); };
    refresh();
  };
  let refresh = null;
  const elementsAt = new Map();
  lightUp(payload, state, () => elementsAt);
  state.on(["layer", "head", "theme", "width"], build);
  state.on(["token", "unit", "row"], () => refresh());
  build();
}

function matrixOf(site, payload, state, width) {
  const head = headOf(site, state.head);
  const names = (positions) => positions.map((position) => visible(payload.tokens[position].label));
  const queries = names(site.queries), keys = names(site.keys);
  const longest = [...queries, ...keys].reduce((most, name) => Math.max(most, name.length), 0);
  const margin = Math.min(width < 480 ? 72 : 104, 20 + 7 * longest);
  const most = Math.max(head.queries, head.keys);
  const cell = Math.max(1, Math.min(28, Math.floor((Math.min(width, 640) - margin - 8) / most)));
  const canvas = largeCanvas(site, head, cell, payload, state);
  const element = make("div", "matrix", canvas);
  element.style.setProperty("--margin", `${margin}px`);
  const labels = new Map();
  axis(element, queries, cell, "query", site.queries, labels);
  axis(element, keys, cell, "key", site.keys, labels);
  const matrix = {site, head, cell, canvas, element, labels, bands: [], named: [], at: null};
  matrix.light = () => lightMatrix(matrix, payload, state);
  matrix.listen = (readout) => listenMatrix(matrix, readout, payload, state);
  return matrix;
}

function largeCanvas(site, head, cell, payload, state) {
  const canvas = make("canvas", "");
  fillCanvas(canvas, head, Infinity, payload.maps.signed, state.theme);
  canvas.style.width = `${head.keys * cell}px`;
  canvas.style.height = `${head.queries * cell}px`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Weights of ${site.name}, head ${state.head}: ${head.queries} ` +
    `queries by ${head.keys} keys. The arrow keys move, Enter chooses a row.`);
  return canvas;
}

// Where cells are too small to label each one, only every n-th is labelled.
function axis(element, names, cell, side, positions, labels) {
  const step = Math.ceil(13 / cell);
  for (let i = 0; i < names.length; i += step) {
    const label = make("bdi", `axis ${side}`, names[i]);
    label.title = names[i];
    label.style.setProperty("--at", `${(i + 0.5) * cell}px`);
    element.append(label);
    labels.set(positions[i], [...(labels.get(positions[i]) ?? []), label]);
  }
}

function band(matrix, className, row, column) {
  const {head, cell} = matrix;
  const made = make("div", `band ${className}`);
  const place = {top: row === null ? 0 : row * cell, height: row === null ? head.queries * cell : cell,
    left: column === null ? 0 : column * cell, width: column === null ? head.keys * cell : cell};
  for (const [name, value] of Object.entries(place)) made.style.setProperty(`--${name}`, `${value}px`);
  return made;
}

function lightMatrix(matrix, payload, state) {
  const {site, labels, element} = matrix;
  for (const each of matrix.bands) each.remove();
  for (const label of matrix.named) label.classList.remove("lit");
  const bands = [];
  const across = (position, className) => {
    const row = site.queries.indexOf(position);
    if (row >= 0) bands.push(band(matrix, className, row, null));
  };
  if (state.row !== null) across(state.row, "chosen-row");
  if (matrix.at) bands.push(band(matrix, "cell", matrix.at[0], matrix.at[1]));
  const positions = litPositions(payload, state);
  for (const position of positions) {
    if (!matrix.at) across(position, "hover");
    const column = site.keys.indexOf(position);
    if (column >= 0) bands.push(band(matrix, "hover", null, column));
  }
  const named = positions.flatMap((position) => labels.get(position) ?? []);
  for (const label of named) label.classList.add("lit");
  element.append(...bands);
  Object.assign(matrix, {bands, named});
}

function listenMatrix(matrix, readout, payload, state) {
  const {canvas, site, cell} = matrix;
  const point = (row, column) => pointAt(matrix, row, column, readout, payload, state);
  const rest = "Point at a cell to read its weight.";
  const leave = () => {
    matrix.at = null;
    readout.textContent = rest;
    if (state.token === null) matrix.light();
    else state.set({token: null});
  };
  const pick = () => {
    const position = matrix.at && site.queries[matrix.at[0]];
    if (position !== null) state.set({row: state.row === position ? null : position});
  };
  canvas.addEventListener("pointermove", (event) =>
    point(Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell)));
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("click", pick);
  canvas.addEventListener("keydown", (event) => steer(event, matrix, point, pick));
  readout.textContent = rest;
}

function pointAt(matrix, row, column, readout, payload, state) {
  const {site, head, at} = matrix;
  const same = at && at[0] === row && at[1] === column;
  if (same || row < 0 || column < 0 || row >= head.queries || column >= head.keys) return;
  matrix.at = [row, column];
  const name = (position) => make("bdi", "", visible(payload.tokens[position].label));
  readout.replaceChildren(name(site.queries[row]), " → ", name(site.keys[column]), " ",
    make("b", "", weightFigure(head.value(row, column), head.limit, payload.maps.signed)));
  const token = site.keys[column];
  if (state.token === token) matrix.light();
  else state.set({token, tip: null});
}

const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

function steer(event, matrix, point, pick) {
  if (event.key === "Enter") pick();
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  if (matrix.at) point(matrix.at[0] + step[0], matrix.at[1] + step[1]);
  else point(0, 0);
}

function listRow(element, matrix, payload, state, elementsAt) {
  const {site, head} = matrix;
  const row = state.row === null ? -1 : site.queries.indexOf(state.row);
  const shown = `${site.name} ${state.head} ${state.theme} ${row}`;
  if (element.dataset.shown === shown) return;
  element.dataset.shown = shown;
  element.replaceChildren();
  elementsAt.clear();
  if (row < 0) return;
  const units = site.keys.map((position, column) => ({...payload.tokens[position],
    text: payload.tokens[position].label, positions: [position], score: head.value(row, column),
    weight: head.value(row, column)}));
  const list = make("ol", "bars");
  const name = visible(payload.tokens[state.row].label);
  const verb = payload.maps.shows === "attention" ? " attends to" : `: ${visible(payload.maps.shows)}`;
  element.append(make("h3", "", make("bdi", "mono", name), verb), list);
  const look = {limit: head.limit, places: placesOf(units), signed: payload.maps.signed, write: weightFigure};
  units.sort((a, b) => Math.abs(b.score) - Math.abs(a.score));
  bars(list, units.filter((unit) => unit.score).slice(0, 8), look, payload, state, elementsAt);
}
