// What a model wrote: choose some of it, and each token is coloured by what the choice owes to it.
// `picked` holds the chosen rows of the matrix; before a choice, `over` holds those pointed at.

VIEWS.generation = [
  drawHeader, drawReading, beside([drawWriting, drawPicture], [drawBars, drawSum, drawMightHave]), drawTable,
  drawNotes, drawFoot, drawTip
];

/** @param {Payload} payload @returns {payload is GenerationPayload} */
const isGeneration = (payload) => payload.kind === "generation";

/** @param {Payload} payload @returns {ScoreMatrix | null} */
function matrixIn(payload) {
  if (!isGeneration(payload)) return null;
  const bytes = bytesIn(payload.data);
  const view = new DataView(bytes.buffer);
  const values = Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true));
  const rowAt = new Map(payload.outputs.map((position, row) => /** @type {const} */ ([position, row])));
  return {rows: payload.shape[0], columns: payload.shape[1], values, rowAt};
}

/** @param {WrittenState} state */
const allRows = (state) => Array.from({length: state.matrix.rows}, (_, row) => row);
/** @param {WrittenState} state */
const rowsShown = (state) => state.picked ?? state.over ?? allRows(state);
/** @param {{positions: number[]}} unit @param {WrittenState} state @returns {number[]} */
const rowsOf = (unit, state) => unit.positions.map((position) => state.matrix.rowAt.get(position))
  .filter((row) => row !== undefined);

// The mean of some rows: one score for each token.
/** @param {number[]} rows @param {Payload} payload @param {WrittenState} state */
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
/** @param {WrittenState} state */
const isSummed = (state) => state.together === TOGETHER[1];
/** @param {Payload} payload @param {WrittenState} state */
function writtenScores(payload, state) {
  const rows = rowsShown(state), mean = meanOf(rows, payload, state);
  return isSummed(state) ? mean.map((score) => score * rows.length) : mean;
}

/** @param {HTMLElement} element @param {GenerationPayload} payload @param {WrittenState} state */
function drawWriting(element, payload, state) {
  const choose = chooser(state);
  /** @type {Map<Element, number[]>} */
  const rowsAt = new Map();
  const made = drawText(element, payload, state, (chip, unit) => {
    rowsAt.set(chip, rowsOf(unit, state));
    return dressWritten(chip, unit, payload, state, choose);
  });
  const told = make("p", "told one-line");
  const rows = made?.querySelector(".rows");
  if (!made || !rows) return;
  rows.before(make("p", "hint quiet", "Point at the output to see what a word of it owes to each " +
    "token before it, and click to keep it; shift-click, drag or shift with the arrow keys for several, " +
    `${payload.sentences?.length ? "double-click or S for a whole sentence, " : ""}Escape for all.`));
  rows.after(make("div", "with-choice", told, choice("Several outputs together", "together", TOGETHER, state)));
  const tell = () => told.replaceChildren(...whatIsShown(payload, state));
  state.on(["scores"], tell);
  tell();
  made.addEventListener("keydown", (event) => writtenKeys(event, rowsAt, payload, state, choose));
  made.addEventListener("dblclick", (event) => chooseSentence(rowsIn(rowsAt, hitBy(event).closest(".unit")), payload, state));
  state.on(["unit"], () => state.set({picked: null, over: null}));
}

/** @param {Map<Element, number[]>} rowsAt @param {Element | null} chip */
const rowsIn = (rowsAt, chip) => (chip && rowsAt.get(chip)) ?? [];

/**
 * @param {KeyboardEvent} event
 * @param {Map<Element, number[]>} rowsAt
 * @param {GenerationPayload} payload
 * @param {WrittenState} state
 * @param {Chooser} choose
 */
function writtenKeys(event, rowsAt, payload, state, choose) {
  if (event.key === "Escape") state.set({picked: null});
  if (event.key === "s" || event.key === "S") chooseSentence(rowsIn(rowsAt, hitBy(event)), payload, state);
  if (!event.shiftKey || !event.key.startsWith("Arrow")) return;
  // The arrow has moved the focus already.
  const [from, to] = [rowsIn(rowsAt, hitBy(event)), rowsIn(rowsAt, document.activeElement)];
  if (!to.length || !from.length) return;
  if (!state.picked) choose.begin(from);
  choose.reach(to);
}

// All that was written of the sentence around some rows.
/** @param {number[]} rows @param {GenerationPayload} payload @param {WrittenState} state */
function chooseSentence(rows, payload, state) {
  if (!rows.length) return;
  const position = payload.outputs[rows[0]];
  const sentence = (payload.sentences ?? []).find((each) => each.positions.includes(position));
  if (sentence) state.set({picked: rowsOf(sentence, state), over: null});
}

// Picking one unit, or a range with the shift key or by dragging.
/** @param {WrittenState} state */
function chooser(state) {
  /** @type {number[]} */
  let anchor = [];
  let dragged = false;
  /** @param {number[]} rows */
  const same = (rows) => state.picked && String(state.picked) === String(rows);
  /** @param {number[]} rows */
  const span = (rows) => {
    const ends = [...anchor, ...rows];
    const [first, last] = [Math.min(...ends), Math.max(...ends)];
    return Array.from({length: last - first + 1}, (_, i) => first + i);
  };
  return {
    /** @param {number[]} rows */
    begin(rows) { anchor = rows; dragged = false; },
    /** @param {number[]} rows */
    reach(rows) { dragged = true; state.set({picked: span(rows), over: null}); },
    /** @param {number[]} rows @param {boolean} extend */
    pick(rows, extend) {
      if (extend && anchor.length) state.set({picked: span(rows), over: null});
      else if (!dragged) {
        anchor = rows;
        state.set({picked: same(rows) ? null : rows, over: null});
      }
    },
  };
}

/**
 * @param {HTMLElement} chip
 * @param {Unit} unit
 * @param {GenerationPayload} payload
 * @param {WrittenState} state
 * @param {Chooser} choose
 */
function dressWritten(chip, unit, payload, state, choose) {
  const rows = rowsOf(unit, state);
  const mark = () => {
    const shown = rowsShown(state);
    const isChosen = rows.some((row) => shown.includes(row));
    const last = payload.outputs[shown[shown.length - 1]];
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

/** @param {GenerationPayload} payload @param {WrittenState} state */
function whatIsShown(payload, state) {
  const rows = rowsShown(state), targets = rows.map((row) => payload.targets[row]);
  if (rows.length === state.matrix.rows && rows.length > 1) {
    return [make("b", "", "All that was written"), make("span", "quiet", isSummed(state) ? ", summed" : ", on average")];
  }
  const value = targets.reduce((sum, target) => sum + (target.value ?? 0), 0) / (isSummed(state) ? 1 : rows.length);
  const text = writtenIn(rows, payload);
  const quantity = `${rows.length > 1 ? (isSummed(state) ? "sum of " : "mean ") : ""}${visible(targets[0].quantity)} `;
  const contrast = targets[0].contrast && rows.length === 1
    ? [` rather than ${visible(targets[0].contrast)}`] : [];
  return [make("bdi", "mono strong", text), ...contrast, make("span", "quiet", ` ${quantity}`),
    make("span", "mono", minus(value.toFixed(3)))];
}

/** @param {number[]} rows @param {GenerationPayload} payload */
function writtenIn(rows, payload) {
  const tokens = rows.map((row) => payload.tokens[payload.outputs[row]]);
  const placed = tokens.filter((token) => token.start !== null);
  if (!placed.length) return tokens.map((token) => visible(token.label)).join(" ");
  const first = placed[0], last = placed[placed.length - 1];
  const source = Array.from(payload.sources?.[first.segment] ?? "");
  return visible(source.slice(first.start ?? 0, last.end ?? 0).join(""));
}

// What else the model might have written.
/** @param {HTMLElement} element @param {GenerationPayload} payload @param {WrittenState} state */
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
