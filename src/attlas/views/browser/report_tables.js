// The tables of a report: methods by measures, and methods by methods.

/** @param {{kind: string}} column */
const isPlausibility = (column) => column.kind === "plausibility";

// The columns of one kind, each with its position in the rows.
/** @param {ReportPayload} payload @param {(column: PlacedColumn) => boolean} isWanted */
const columnsOf = (payload, isWanted) =>
  payload.table.columns.map((column, index) => ({...column, index})).filter(isWanted);

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawFigures(made, payload) {
  made.append(make("p", "hint quiet", "↑ more is better, ↓ less is better. ★ significantly the best of its " +
    "column. The line below a number is its 95 % interval, on the scale of its column. Controls are grey. " +
    "Point at a cell for its interval, its number of texts and its p-value " +
    "against the same scores shuffled, adjusted for all methods."));
  made.append(savedTable(payload, columnsOf(payload, (column) => !isPlausibility(column)), "attlas-table-figures"));
}

/** @param {HTMLElement} made @param {ReportPayload} payload */
function drawPlausibility(made, payload) {
  const columns = columnsOf(payload, isPlausibility);
  if (columns.length) made.append(savedTable(payload, columns, "attlas-plausibility-figures"));
}

/** @param {ReportPayload} payload @param {PlacedColumn[]} columns @param {string} id */
const savedTable = (payload, columns, id) => saveable(figureTable(payload, columns), id, () => [
  ["method", "family", "measure", "removal", "better", "kind", "value", "low", "high", "n", "best", "p", "note"],
  ...payload.table.rows.flatMap(({method, family, cells}) => columns.map(({measure, removal, better, kind, index}) => {
    const {figure, best, p, note} = cells[index];
    return [method, family, measure, removal, better, kind, ...figureCells(figure), best, p, note];
  }))]);

/** @param {ReportPayload} payload @param {PlacedColumn[]} columns */
function figureTable(payload, columns) {
  /** @param {TableRow} row */
  const rank = (row) => Object.keys(FAMILY_TINTS).indexOf(row.family);
  const rows = [...payload.table.rows].sort((one, other) => rank(one) - rank(other));
  const spans = columns.map((column) => columnSpan(rows, column.index));
  const body = make("tbody", "", ...rows.map((row) => figureRow(row, columns, spans)));
  return make("div", "", make("div", "scroll wide",
    make("table", "grid mono", make("thead", "", ...figureHeads(columns)), body)), noteKey(rows, columns));
}

/** @param {string} note */
const noteSign = (note) => (note.startsWith("circular") ? "c" : "?");

/** @param {TableRow[]} rows @param {PlacedColumn[]} columns */
function noteKey(rows, columns) {
  const notes = new Set(rows.flatMap((row) => columns.map((column) => row.cells[column.index].note)));
  const key = make("p", "legend notes-key");
  for (const note of notes) if (note) key.append(make("span", "", make("sup", "", noteSign(note)), ` ${visible(note)}`));
  return key;
}

/** @param {TableRow[]} rows @param {number} index */
function columnSpan(rows, index) {
  const values = rows.map((row) => row.cells[index].figure).flatMap(({value, low, high}) => [value, low, high])
    .filter((each) => typeof each === "number");
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low < high ? [low, high] : [low - 1, low + 1];
}

// Two rows of headings: the measures, and under each the removals.
/** @param {PlacedColumn[]} columns */
function figureHeads(columns) {
  const top = make("tr", "", make("th", "", "")), below = make("tr", "", make("th", "", "method"));
  columns.forEach((column, place) => {
    const isFirst = place === 0 || columns[place - 1].measure !== column.measure;
    if (isFirst) {
      const head = make("th", "first", `${ARROWS[column.better] ?? ""} ${visible(column.measure)}`);
      head.colSpan = columns.filter((each) => each.measure === column.measure).length;
      head.title = betterWords(column.better);
      head.scope = "colgroup";
      top.append(head);
    }
    below.append(make("th", isFirst ? "first" : "", column.removal ? visible(column.removal) : ""));
  });
  return [top, below];
}

/** @param {TableRow} row @param {PlacedColumn[]} columns @param {Span[]} spans */
function figureRow(row, columns, spans) {
  const head = make("th", "", familyTag(row.family), make("bdi", "", visible(row.method)));
  head.scope = "row";
  const cells = columns.map((column, place) => {
    const isFirst = place === 0 || columns[place - 1].measure !== column.measure;
    const cell = figureCell(row.cells[column.index], row.family, spans[place]);
    if (isFirst) cell.classList.add("first");
    return cell;
  });
  return make("tr", row.family === "control" ? "control" : "", head, ...cells);
}

/** @param {TableCell} given @param {string} family @param {Span} span */
function figureCell({figure, best, p, note}, family, span) {
  const known = typeof figure.value === "number";
  const cell = make("td", best ? "best" : "", known ? `${best ? "★ " : ""}${reportNumber(figure.value)}` : "–");
  const words = known ? [reportFigure(figure), reportTexts(figure),
    typeof p === "number" ? `p ${p < 0.001 ? "< 0.001" : reportNumber(p, 3)}` : ""] : [];
  cell.title = [...words, note ? visible(note) : ""].filter(Boolean).join(", ");
  if (note) cell.append(make("sup", "", noteSign(note)));
  if (known) cell.append(track([{figure, family}], span, []));
  return cell;
}

// What the agreement of a payload is measured by; a payload of another kind has none.
/** @param {Payload} payload */
const likenessesIn = (payload) =>
  payload.kind === "report" ? Object.keys(/** @type {ReportPayload} */ (payload).agreement?.by ?? {}) : [];

/** @param {HTMLElement} made @param {ReportPayload} payload @param {State} state */
function drawAgreement(made, payload, state) {
  if (!payload.agreement) return;
  const {methods, by, sentence} = payload.agreement, names = Object.keys(by);
  if (sentence && !findingsIn(payload, "agreement").length) made.append(make("p", "lead", visible(sentence)));
  if (names.length > 1) made.append(choice("Agreement by", "likeness", names, state));
  const told = make("p", "told one-line", "Point at a pair."), grid = make("div", "scroll wide");
  const show = () => grid.replaceChildren(likenessTable(methods, by[state.likeness ?? names[0]], state, told));
  state.on(["likeness", "theme"], show);
  show();
  const rows = () => [["agreement", "one", "other", "value"], ...names.flatMap((name) => by[name].flatMap((row, y) =>
    row.map((value, x) => [name, methods[y], methods[x], value])))];
  made.append(told, saveable(make("div", "", grid), "attlas-agreement-methods", rows));
}

/** @param {string[]} methods @param {Numbers[]} matrix @param {State} state @param {HTMLElement} told */
function likenessTable(methods, matrix, state, told) {
  const values = matrix.flat().filter((each) => typeof each === "number");
  const signed = values.some((each) => each < 0);
  const head = make("tr", "", make("th", ""), ...methods.map((method) =>
    make("th", "upright", make("span", "", visible(method)))));
  const rows = matrix.map((row, y) => make("tr", "", make("th", "", visible(methods[y])), ...row.map((value, x) => {
    const cell = make("td", "", reportNumber(value).replace(/^(−?)0\./, "$1."));
    if (typeof value === "number") paint(cell, strength(value, 1), signed, state.theme);
    cell.addEventListener("pointerenter", () => (told.textContent =
      `${visible(methods[y])} and ${visible(methods[x])}: ${visible(state.likeness ?? "")} ${reportNumber(value)}`));
    return cell;
  })));
  return make("table", "likeness mono", make("thead", "", head), make("tbody", "", ...rows));
}
