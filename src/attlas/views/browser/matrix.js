// One head, enlarged: all of it, or the part that was chosen with a rectangle.

const LARGEST = 640;  // pixels

/** @param {HTMLElement} element @param {MappedPayload} payload @param {State} state */
function drawMatrix(element, payload, state) {
  const title = make("h3", ""), readout = make("p", "readout mono");
  const scroll = make("div", "scroll"), chosen = make("div", "chosen"), key = make("div", "legend");
  const tools = matrixTools(state);
  readout.setAttribute("aria-live", "polite");
  element.append(make("div", "titled", title, tools.element), readout,
    make("div", "large", make("div", "", scroll, key), chosen));
  const build = () => {
    const site = payload.maps.sites[state.layer], head = shownHead(payload, state), {signed} = payload.maps;
    title.replaceChildren(mapName(site, state.head, payload.maps.sites));
    key.replaceChildren(scaleOf(head.limit, signed, state.theme, (weight) => figure(weight, head.limit, signed)));
    const focused = scroll.querySelector("canvas:focus") !== null;
    const matrix = matrixOf(site, payload, state, element.clientWidth);
    scroll.replaceChildren(matrix.element);
    if (focused) matrix.canvas.focus();
    matrix.listen(readout);
    tools.follow(matrix);
    refresh = () => { matrix.light(); listRow(chosen, matrix, payload, state, elementsAt); };
    refresh();
  };
  let refresh = () => {};
  const elementsAt = new Map();
  lightUp(payload, state, () => elementsAt);
  /** @param {() => void} work */
  const whenShown = (work) => () => { if (state.view === "matrix") work(); };
  state.on(["layer", "head", "theme", "width", "part", "hidden", "view"], whenShown(build));
  state.on(["token", "unit", "row"], whenShown(() => refresh()));
  build();
}

// The part of the head that is shown, in whole rows and columns.
/** @param {State} state @param {Head} head */
function partOf(state, head) {
  const whole = wholeOf(head);
  if (!state.part) return whole;
  const [top, bottom, left, right] = state.part.split(",").map(Number);
  const fits = top >= 0 && left >= 0 && top < bottom && left < right && bottom <= head.queries && right <= head.keys;
  return fits ? {top, bottom, left, right} : whole;
}

/** @param {MapSite} site @param {MappedPayload} payload @param {State} state @param {number} width */
function matrixOf(site, payload, state, width) {
  const head = shownHead(payload, state), part = partOf(state, head);
  const queryPlaces = site.queries.slice(part.top, part.bottom), keyPlaces = site.keys.slice(part.left, part.right);
  /** @param {number[]} positions */
  const names = (positions) => positions.map((position) => visible(payload.tokens[position].label));
  const queries = names(queryPlaces), keys = names(keyPlaces);
  const longest = [...queries, ...keys].reduce((most, name) => Math.max(most, name.length), 0);
  const margin = Math.min(width < 480 ? 72 : 104, 20 + 7 * longest);
  const room = (Math.min(width, LARGEST) - margin - 8) / Math.max(queries.length, keys.length);
  const cell = room < 1 ? room : Math.min(28, Math.floor(room));
  const canvas = largeCanvas(site, head, part, cell, payload, state);
  const element = make("div", "matrix", canvas);
  element.style.setProperty("--margin", `${margin}px`);
  const labels = new Map();
  axis(element, queries, cell, "query", queryPlaces, labels);
  axis(element, keys, cell, "key", keyPlaces, labels);
  element.addEventListener("click", (event) => pickLabel(hitBy(event), site, part, state));
  /** @type {LargeMatrix} */
  const matrix = {site, head, part, cell, canvas, element, labels, bands: [], named: [], at: null,
    light: () => lightMatrix(matrix, payload, state), listen: (readout) => listenMatrix(matrix, readout, payload, state)};
  return matrix;
}

/**
 * @param {MapSite} site
 * @param {Head} head
 * @param {HeadPart} part
 * @param {number} cell
 * @param {MappedPayload} payload
 * @param {State} state
 */
function largeCanvas(site, head, part, cell, payload, state) {
  const canvas = make("canvas", ""), rows = part.bottom - part.top, columns = part.right - part.left;
  const sharp = Math.ceil(LARGEST * Math.min(2, devicePixelRatio || 1));
  fillCanvas(canvas, head, cell < 1 ? sharp : Infinity, payload.maps.signed, state.theme, part);
  canvas.style.width = `${columns * cell}px`;
  canvas.style.height = `${rows * cell}px`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Weights of ${mapName(site, state.head, payload.maps.sites)}: ${rows} ` +
    `queries by ${columns} keys. The arrow keys move, Enter chooses a row, plus and minus zoom, Escape shows all.`);
  return canvas;
}

// Where cells are too small to label each one, only every n-th is labelled.
/**
 * @param {HTMLElement} element
 * @param {string[]} names
 * @param {number} cell
 * @param {string} side
 * @param {number[]} positions
 * @param {ElementsAt} labels
 */
function axis(element, names, cell, side, positions, labels) {
  const step = Math.ceil(13 / cell);
  for (let i = 0; i < names.length; i += step) {
    const label = make("bdi", `axis ${side}`, names[i]);
    label.title = names[i];
    label.dataset.place = String(i);
    label.style.setProperty("--at", `${(i + 0.5) * cell}px`);
    element.append(label);
    labels.set(positions[i], [...(labels.get(positions[i]) ?? []), label]);
  }
}

// A name beside the matrix stands for its row, one above it for its column.
/** @param {Element} label @param {MapSite} site @param {HeadPart} part @param {State} state */
function pickLabel(label, site, part, state) {
  if (!(label instanceof HTMLElement) || !label.dataset.place) return;
  const place = Number(label.dataset.place);
  announce(label, {site, head: state.head,
    ...(label.classList.contains("query") ? {row: part.top + place} : {column: part.left + place})});
}

/** @param {Grid} matrix @param {string} className @param {number | null} row @param {number | null} column */
function band(matrix, className, row, column) {
  const {head, cell, part = wholeOf(head)} = matrix;
  const made = make("div", `band ${className}`);
  const place = {top: row === null ? 0 : (row - part.top) * cell, height: row === null ? (part.bottom - part.top) * cell : cell,
    left: column === null ? 0 : (column - part.left) * cell, width: column === null ? (part.right - part.left) * cell : cell};
  for (const [name, value] of Object.entries(place)) made.style.setProperty(`--${name}`, `${value}px`);
  return made;
}

/** @param {LargeMatrix} matrix @param {MappedPayload} payload @param {State} state */
function lightMatrix(matrix, payload, state) {
  const {site, part, labels, element} = matrix;
  /** @param {number | null} row @param {number | null} column */
  const inPart = (row, column) => (row === null || (row >= part.top && row < part.bottom)) &&
    (column === null || (column >= part.left && column < part.right));
  for (const each of matrix.bands) each.remove();
  for (const label of matrix.named) label.classList.remove("lit");
  const bands = [];
  /** @param {number} position @param {string} className */
  const across = (position, className) => {
    const row = site.queries.indexOf(position);
    if (row >= 0 && inPart(row, null)) bands.push(band(matrix, className, row, null));
  };
  if (state.row !== null) across(state.row, "chosen-row");
  if (matrix.at) bands.push(band(matrix, "cell", matrix.at[0], matrix.at[1]));
  const positions = litPositions(payload, state);
  for (const position of positions) {
    if (!matrix.at) across(position, "hover");
    const column = site.keys.indexOf(position);
    if (column >= 0 && inPart(null, column)) bands.push(band(matrix, "hover", null, column));
  }
  const named = positions.flatMap((position) => labels.get(position) ?? []);
  for (const label of named) label.classList.add("lit");
  element.append(...bands);
  Object.assign(matrix, {bands, named});
}

/** @param {LargeMatrix} matrix @param {HTMLElement} readout @param {MappedPayload} payload @param {State} state */
function listenMatrix(matrix, readout, payload, state) {
  const {canvas, site, part, cell} = matrix;
  /** @param {number} row @param {number} column */
  const point = (row, column) => pointAt(matrix, row, column, readout, payload, state);
  const rest = "Point at a cell to read its weight.";
  const leave = () => {
    matrix.at = null;
    readout.textContent = rest;
    if (state.token === null) matrix.light();
    else state.set({token: null});
  };
  const pick = () => {
    if (!matrix.at) return;
    const [row, column] = matrix.at, position = site.queries[row];
    state.set({row: state.row === position ? null : position});
    announce(canvas, {site, head: state.head, row, column}, cellBox(matrix, row, column));
  };
  canvas.addEventListener("pointermove", (event) =>
    point(part.top + Math.floor(event.offsetY / cell), part.left + Math.floor(event.offsetX / cell)));
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  brush(matrix, state, pick);
  canvas.addEventListener("keydown", (event) => {
    zoomByKey(event, matrix, state);
    steer(event, matrix, point, pick);
  });
  readout.textContent = rest;
}

// Where a cell is on the screen.
/** @param {LargeMatrix} matrix @param {number} row @param {number} column */
function cellBox({canvas, part, cell}, row, column) {
  const frame = canvas.getBoundingClientRect();
  const [left, top] = [frame.left + (column - part.left) * cell, frame.top + (row - part.top) * cell];
  return {left, top, right: left + cell, bottom: top + cell};
}

/**
 * @param {LargeMatrix} matrix
 * @param {number} row
 * @param {number} column
 * @param {HTMLElement} readout
 * @param {MappedPayload} payload
 * @param {State} state
 */
function pointAt(matrix, row, column, readout, payload, state) {
  const {site, head, part, at} = matrix;
  const same = at && at[0] === row && at[1] === column;
  if (same || row < part.top || column < part.left || row >= part.bottom || column >= part.right) return;
  matrix.at = [row, column];
  /** @param {number} position */
  const name = (position) => make("bdi", "", visible(payload.tokens[position].label));
  readout.replaceChildren(name(site.queries[row]), " → ", name(site.keys[column]), " ",
    make("b", "", weightFigure(head.value(row, column), head, payload.maps.signed)));
  const token = site.keys[column];
  if (state.token === token) matrix.light();
  else state.set({token, tip: null});
}

/** @type {Record<string, number[]>} */
const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

/**
 * @param {KeyboardEvent} event
 * @param {Grid} grid
 * @param {(row: number, column: number) => void} point
 * @param {() => void} pick
 */
function steer(event, grid, point, pick) {
  if (event.key === "Enter") {
    event.preventDefault();  // what opens now must not take the key for its own
    pick();
  }
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const {at, part} = grid;
  if (at) point(at[0] + step[0], at[1] + step[1]);
  else point(part?.top ?? 0, part?.left ?? 0);
}

/** @param {KeyboardEvent} event @param {LargeMatrix} matrix @param {State} state */
function zoomByKey(event, matrix, state) {
  if (event.key === "Escape") state.set({part: null});
  if ("+=".includes(event.key)) zoomPart(matrix, state, 0.5);
  if ("-−_".includes(event.key)) zoomPart(matrix, state, 2);
}

/**
 * @param {HTMLElement} element
 * @param {LargeMatrix} matrix
 * @param {MappedPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function listRow(element, matrix, payload, state, elementsAt) {
  const {site, head} = matrix;
  const row = site.queries.indexOf(state.row ?? -1);
  const shown = `${site.name} ${state.head} ${state.theme} ${row} ${state.hidden}`;
  if (element.dataset.shown === shown) return;
  element.dataset.shown = shown;
  element.replaceChildren();
  elementsAt.clear();
  if (row < 0) return;
  const units = site.keys.map((position, column) => ({...payload.tokens[position],
    text: payload.tokens[position].label, positions: [position], score: head.value(row, column),
    weight: head.value(row, column)}));
  const list = make("ol", "bars");
  const name = visible(payload.tokens[site.queries[row]].label);
  const verb = payload.maps.shows === "attention" ? " attends to" : `: ${visible(payload.maps.shows)}`;
  element.append(make("h3", "", make("bdi", "mono", name), verb), list);
  const look = {limit: head.limit, places: placesOf(units), signed: payload.maps.signed,
    /** @param {number} weight @param {number} _ @param {boolean} signed */
    write: (weight, _, signed) => weightFigure(weight, head, signed)};
  units.sort((a, b) => Math.abs(b.score) - Math.abs(a.score));
  bars(list, units.filter((unit) => unit.score).slice(0, 8), look, payload, state, elementsAt);
}
