// The whole matrix: the output goes down, the input across.

/** @param {HTMLElement} element @param {TextPayload} payload @param {WrittenState} state */
function drawTable(element, payload, state) {
  const made = section(element, "Output × input", "whole");
  const readout = make("p", "readout mono"), scroll = make("div", "scroll");
  readout.setAttribute("aria-live", "polite");
  const key = make("div", "legend");
  made.append(make("p", "quiet", "Each row is a unit of the output, each column a unit before " +
    "it; all rows share one scale."), readout, scroll, key);
  /** @type {ScoreTable | null} */
  let shown = null;
  const build = () => {
    const table = shown = tableOf(payload, state, scroll.clientWidth);
    scroll.replaceChildren(table.element);
    key.replaceChildren(scaleOf(table.limit, payload.signed, state.theme,
      (score) => figure(score, table.limit, payload.signed)));
    listenTable(table, readout, payload, state);
    lightTable(table, payload, state);
  };
  state.on(["unit", "theme", "leftOut", "width"], build);
  state.on(["token", "scores"], () => shown && lightTable(shown, payload, state));
  build();
}

/** @param {TextPayload} payload @param {WrittenState} state @param {number} width */
function tableOf(payload, state, width) {
  const columns = unitsOf(payload, state);
  const rows = columns.filter((unit) => rowsOf(unit, state).length);
  const values = rows.map((row) => {
    const scores = meanOf(rowsOf(row, state), payload, state);
    return columns.map(({positions}) => positions.reduce((sum, place) => sum + scores[place], 0));
  });
  const limit = values.reduce((most, row) => Math.max(most, limitOf(
    columns.map((unit, i) => ({special: unit.special, score: row[i]})))), 0);
  const longest = columns.reduce((most, unit) => Math.max(most, visible(unit.text).length), 0);
  const margin = Math.min(width < 480 ? 80 : 144, 16 + 7 * longest);
  const cell = Math.max(16, Math.min(28, Math.floor((width - margin) / columns.length)));
  const table = {rows, columns, values, limit, cell, at: null, bands: [],
    head: {queries: rows.length, keys: columns.length}};
  return Object.assign(table, tableElements(table, margin, payload, state));
}

/**
 * @param {Omit<ScoreTable, "element" | "plot" | "canvas" | "down" | "across">} table
 * @param {number} margin
 * @param {TextPayload} payload
 * @param {WrittenState} state
 */
function tableElements(table, margin, payload, state) {
  /** @param {Unit[]} units @param {string} side */
  const labels = (units, side) => units.map((unit) => {
    const label = make("bdi", `axis ${side}`, visible(unit.text));
    label.title = visible(unit.text);
    return label;
  });
  const down = labels(table.rows, "down"), across = labels(table.columns, "across");
  const canvas = tableCanvas(table, payload, state);
  const plot = make("div", "plot", canvas);
  const element = make("div", "table", make("div", "corner"), make("div", "top", ...across),
    make("div", "side", ...down), plot);
  element.style.setProperty("--margin", `${margin}px`);
  element.style.setProperty("--cell", `${table.cell}px`);
  return {element, plot, canvas, down, across};
}

/**
 * @param {Pick<ScoreTable, "rows" | "columns" | "values" | "limit" | "cell">} given
 * @param {TextPayload} payload
 * @param {WrittenState} state
 */
function tableCanvas({rows, columns, values, limit, cell}, payload, state) {
  const canvas = make("canvas", "");
  [canvas.width, canvas.height] = [columns.length, rows.length];
  canvas.style.width = `${columns.length * cell}px`;
  canvas.style.height = `${rows.length * cell}px`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Scores of ${rows.length} outputs by ${columns.length} inputs. ` +
    "The arrow keys move, Enter chooses a row.");
  if (!rows.length) return canvas;
  const image = new ImageData(columns.length, rows.length);
  values.flat().forEach((value, i) =>
    image.data.set([...background(strength(value, limit), payload.signed, state.theme), 255], 4 * i));
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {ScoreTable} table @param {TextPayload} payload @param {WrittenState} state */
function lightTable(table, payload, state) {
  for (const each of table.bands) each.remove();
  const lit = new Set(litPositions(payload, state)), shown = new Set(rowsShown(state));
  /** @param {Placed} unit */
  const isShown = (unit) => shown.size < state.matrix.rows
    && rowsOf(unit, state).some((row) => shown.has(row));
  /** @param {Placed} unit */
  const isLit = (unit) => unit.positions.some((position) => lit.has(position));
  table.bands = [];
  table.rows.forEach((unit, i) => {
    table.down[i].classList.toggle("lit", isShown(unit) || table.at?.[0] === i);
    if (isShown(unit)) table.bands.push(band(table, "chosen-row", i, null));
  });
  table.columns.forEach((unit, i) => {
    table.across[i].classList.toggle("lit", isLit(unit));
    if (isLit(unit)) table.bands.push(band(table, "hover", null, i));
  });
  if (table.at) table.bands.push(band(table, "cell", ...table.at));
  table.plot.append(...table.bands);
}

/** @param {ScoreTable} table @param {HTMLElement} readout @param {TextPayload} payload @param {WrittenState} state */
function listenTable(table, readout, payload, state) {
  const {canvas, cell, rows, columns} = table;
  /** @param {number} row @param {number} column */
  const point = (row, column) => {
    const same = table.at?.[0] === row && table.at?.[1] === column;
    if (same || !rows[row] || !columns[column]) return;
    table.at = [row, column];
    const value = figure(table.values[row][column], table.limit, payload.signed);
    readout.replaceChildren(make("bdi", "", visible(rows[row].text)), " ← ",
      make("bdi", "", visible(columns[column].text)), " ", make("b", "", value));
    const token = columns[column].positions[0];
    if (state.token === token) lightTable(table, payload, state);
    else state.set({token, tip: null});
  };
  const rest = "Point at a cell to read its score.";
  const leave = () => {
    table.at = null;
    readout.textContent = rest;
    if (state.token === null) lightTable(table, payload, state);
    else state.set({token: null});
  };
  const pick = () => {
    if (!table.at) return;
    const chosen = rowsOf(rows[table.at[0]], state);
    state.set({picked: String(state.picked) === String(chosen) ? null : chosen});
  };
  canvas.addEventListener("pointermove", (event) =>
    point(Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell)));
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("click", pick);
  canvas.addEventListener("keydown", (event) => steer(event, table, point, pick));
  readout.textContent = rest;
}
