// @ts-nocheck
// What a model wrote: choose some of it, and each token is coloured by what the choice owes to it.
// `picked` holds the chosen rows of the matrix; before a choice, `over` holds those pointed at.

VIEWS.generation = [
  drawHeader, drawReading, beside([drawWriting, drawPicture], [drawBars, drawSum, drawMightHave]), drawTable,
  drawNotes, drawFoot, drawTip
];

function matrixIn(payload) {
  if (payload.kind !== "generation") return null;
  const bytes = bytesIn(payload.data);
  const view = new DataView(bytes.buffer);
  const values = Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true));
  const rowAt = new Map(payload.outputs.map((position, row) => [position, row]));
  return {rows: payload.shape[0], columns: payload.shape[1], values, rowAt};
}

const allRows = (state) => Array.from({length: state.matrix.rows}, (_, row) => row);
const rowsShown = (state) => state.picked ?? state.over ?? allRows(state);
/** @param {Placed} unit @param {WrittenState} state @returns {number[]} */
const rowsOf = (unit, state) => unit.positions.map((position) => state.matrix.rowAt.get(position))
  .filter((row) => row !== undefined);

// The mean of some rows: one score for each token.
function meanOf(rows, payload, state) {
  const {values, columns} = state.matrix;
  const scores = new Float64Array(columns);
  for (const row of rows) {
    for (let column = 0; column < columns; column++) {
      scores[column] += values[row * columns + column] / rows.length;
    }
  }
  return scores.map((score, position) => (isLeftOut(payload, state, position) ? 0 : score));
}

// The scores of all rows that are shown together: their mean, or their sum.
const TOGETHER = ["mean", "sum"];
const isSummed = (state) => state.together === TOGETHER[1];
function writtenScores(payload, state) {
  const rows = rowsShown(state), mean = meanOf(rows, payload, state);
  return isSummed(state) ? mean.map((score) => score * rows.length) : mean;
}

function drawWriting(element, payload, state) {
  const choose = chooser(state), rowsAt = new Map();
  const made = drawText(element, payload, state, (chip, unit) => {
    rowsAt.set(chip, rowsOf(unit, state));
    return dressWritten(chip, unit, payload, state, choose);
  });
  const told = make("p", "told one-line");
  const rows = made.querySelector(".rows");
  rows.before(make("p", "hint quiet", "Point at the output to see what a word of it owes to each " +
    "token before it, and click to keep it; shift-click, drag or shift with the arrow keys for several, " +
    `${payload.sentences?.length ? "double-click or S for a whole sentence, " : ""}Escape for all.`));
  rows.after(make("div", "with-choice", told, choice("Several outputs together", "together", TOGETHER, state)));
  const tell = () => told.replaceChildren(...whatIsShown(payload, state));
  state.on(["scores"], tell);
  tell();
  made.addEventListener("keydown", (event) => writtenKeys(event, rowsAt, payload, state, choose));
  made.addEventListener("dblclick", (event) => chooseSentence(rowsAt.get(event.target.closest(".unit")), payload, state));
  state.on(["unit"], () => state.set({picked: null, over: null}));
}

function writtenKeys(event, rowsAt, payload, state, choose) {
  if (event.key === "Escape") state.set({picked: null});
  if (event.key === "s" || event.key === "S") chooseSentence(rowsAt.get(event.target), payload, state);
  if (!event.shiftKey || !event.key.startsWith("Arrow")) return;
  // The arrow has moved the focus already.
  const [from, to] = [rowsAt.get(event.target), rowsAt.get(document.activeElement)];
  if (!to?.length || !from?.length) return;
  if (!state.picked) choose.begin(from);
  choose.reach(to);
}

// All that was written of the sentence around some rows.
function chooseSentence(rows, payload, state) {
  if (!rows?.length) return;
  const position = payload.outputs[rows[0]];
  const sentence = (payload.sentences ?? []).find((each) => each.positions.includes(position));
  if (sentence) state.set({picked: rowsOf(sentence, state), over: null});
}

// Picking one unit, or a range with the shift key or by dragging.
function chooser(state) {
  let anchor = null, dragged = false;
  const same = (rows) => state.picked && String(state.picked) === String(rows);
  const span = (rows) => {
    const ends = [...anchor, ...rows];
    const [first, last] = [Math.min(...ends), Math.max(...ends)];
    return Array.from({length: last - first + 1}, (_, i) => first + i);
  };
  return {
    begin(rows) { anchor = rows; dragged = false; },
    reach(rows) { dragged = true; state.set({picked: span(rows), over: null}); },
    pick(rows, extend) {
      if (extend && anchor) state.set({picked: span(rows), over: null});
      else if (!dragged) {
        anchor = rows;
        state.set({picked: same(rows) ? null : rows, over: null});
      }
    },
  };
}

function dressWritten(chip, unit, payload, state, choose) {
  const rows = rowsOf(unit, state);
  const mark = () => {
    const shown = rowsShown(state);
    const isChosen = rows.some((row) => shown.includes(row));
    const last = payload.outputs[shown.at(-1)];
    chip.classList.toggle("later", !isChosen && unit.positions[0] >= last);
    if (!rows.length) return;
    chip.classList.toggle("chosen", isChosen && shown.length < state.matrix.rows);
    chip.setAttribute("aria-pressed", String(state.picked !== null && isChosen));
  };
  if (!rows.length) return mark;
  chip.classList.add("written");
  chip.setAttribute("role", "button");
  const over = () => state.picked === null && state.set({over: rows, tip: null});
  const leave = () => state.set({over: null});
  chip.addEventListener("pointerenter", (event) => {
    if (event.buttons & 1) choose.reach(rows);
    else over();
  });
  chip.addEventListener("focus", over);
  chip.addEventListener("pointerleave", leave);
  chip.addEventListener("blur", leave);
  chip.addEventListener("pointerdown", (event) => event.shiftKey || choose.begin(rows));
  chip.addEventListener("click", (event) => choose.pick(rows, event.shiftKey));
  chip.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (!event.shiftKey) choose.begin(rows);
    choose.pick(rows, event.shiftKey);
  });
  return mark;
}

function whatIsShown(payload, state) {
  const rows = rowsShown(state), targets = rows.map((row) => payload.targets[row]);
  if (rows.length === state.matrix.rows && rows.length > 1) {
    return [make("b", "", "All that was written"), make("span", "quiet", isSummed(state) ? ", summed" : ", on average")];
  }
  const value = targets.reduce((sum, target) => sum + target.value, 0) / (isSummed(state) ? 1 : rows.length);
  const text = writtenIn(rows, payload);
  const quantity = `${rows.length > 1 ? (isSummed(state) ? "sum of " : "mean ") : ""}${visible(targets[0].quantity)} `;
  const contrast = targets[0].contrast && rows.length === 1
    ? [` rather than ${visible(targets[0].contrast)}`] : [];
  return [make("bdi", "mono strong", text), ...contrast, make("span", "quiet", ` ${quantity}`),
    make("span", "mono", minus(value.toFixed(3)))];
}

function writtenIn(rows, payload) {
  const tokens = rows.map((row) => payload.tokens[payload.outputs[row]]);
  const placed = tokens.filter((token) => Number.isInteger(token.start));
  if (!placed.length) return tokens.map((token) => visible(token.label)).join(" ");
  const source = Array.from(payload.sources?.[placed[0].segment] ?? "");
  return visible(source.slice(placed[0].start, placed.at(-1).end).join(""));
}

// What else the model might have written.
function drawMightHave(element, payload, state) {
  if (!payload.predictions.length) return;
  const made = section(element, "What the model might have written");
  const box = make("div", "");
  made.append(box);
  const build = () => {
    const rows = rowsShown(state);
    const one = rows.length === 1 ? rows[0] : null;
    box.replaceChildren(one === null ? make("p", "quiet", "Choose a single token.")
      : choices(payload.predictions[one], payload.targets[one].name));
  };
  state.on(["scores"], build);
  build();
}
