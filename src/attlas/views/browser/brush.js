// A part of a matrix: chosen with a rectangle, by buttons or by keys.

const LEAST_DRAG = 4;  // pixels: less is a click

/** @param {HeadPart} given */
const partText = ({top, bottom, left, right}) => [top, bottom, left, right].join(",");

// A drag draws a rectangle and opens it; a click picks a row. A finger scrolls the page instead.
/** @param {LargeMatrix} matrix @param {State} state @param {() => void} pick */
function brush(matrix, state, pick) {
  const {canvas, element, part, cell} = matrix;
  /** @type {number[] | null} */
  let from = null;
  /** @type {HTMLElement | null} */
  let box = null;
  const drop = () => { box?.remove(); from = box = null; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && event.button === 0) from = [event.offsetX, event.offsetY];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x, y] = [event.offsetX, event.offsetY];
    if (!box && Math.hypot(x - from[0], y - from[1]) < LEAST_DRAG) return;
    if (!box) {
      box = make("div", "band brush");
      element.append(box);
      canvas.setPointerCapture(event.pointerId);
    }
    const place = {left: Math.min(x, from[0]), top: Math.min(y, from[1]),
      width: Math.abs(x - from[0]), height: Math.abs(y - from[1])};
    for (const [name, value] of Object.entries(place)) box.style.setProperty(`--${name}`, `${value}px`);
  });
  canvas.addEventListener("pointerup", (event) => {
    const start = from, dragged = box;
    drop();
    if (!dragged || !start) return void pick();
    /** @param {number} a @param {number} b @param {number} low @param {number} high */
    const ends = (a, b, low, high) => [Math.max(low, low + Math.floor(Math.min(a, b) / cell)),
      Math.min(high, low + Math.floor(Math.max(a, b) / cell) + 1)];
    const [left, right] = ends(start[0], event.offsetX, part.left, part.right);
    const [top, bottom] = ends(start[1], event.offsetY, part.top, part.bottom);
    if (left < right && top < bottom) state.set({part: partText({top, bottom, left, right})});
  });
  canvas.addEventListener("pointercancel", drop);
}

// Show half as much, or twice as much, around the cell pointed at or else the middle.
/** @param {LargeMatrix} matrix @param {State} state @param {number} factor */
function zoomPart(matrix, state, factor) {
  const {head, part, at} = matrix;
  /** @param {number} low @param {number} high @param {number} most @param {number} middle */
  const span = (low, high, most, middle) => {
    const size = Math.max(Math.min(4, most), Math.min(most, Math.round((high - low) * factor)));
    const start = Math.max(0, Math.min(most - size, Math.round(middle - size / 2)));
    return [start, start + size];
  };
  const [top, bottom] = span(part.top, part.bottom, head.queries, at ? at[0] + 0.5 : (part.top + part.bottom) / 2);
  const [left, right] = span(part.left, part.right, head.keys, at ? at[1] + 0.5 : (part.left + part.right) / 2);
  const whole = bottom - top === head.queries && right - left === head.keys;
  state.set({part: whole ? null : partText({top, bottom, left, right})});
}

/** @param {State} state */
function matrixTools(state) {
  /** @type {LargeMatrix | null} */
  let shown = null;
  /** @param {string} label @param {string} name @param {(matrix: LargeMatrix) => void} work */
  const named = (label, name, work) => {
    const made = button(label, "", () => shown && work(shown));
    made.setAttribute("aria-label", name);
    return made;
  };
  const whole = named("whole", "show the whole matrix", () => state.set({part: null}));
  const element = make("div", "tools", named("−", "zoom out", (matrix) => zoomPart(matrix, state, 2)),
    named("+", "zoom in", (matrix) => zoomPart(matrix, state, 0.5)), whole);
  /** @param {LargeMatrix} matrix */
  const follow = (matrix) => {
    shown = matrix;
    const {part, head} = matrix;
    whole.disabled = part.bottom - part.top === head.queries && part.right - part.left === head.keys;
  };
  return {element, follow};
}
