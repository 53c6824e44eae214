// The whole model: every head as a small map, and a zoom that goes on to one head and to one weight.

const SHARP = 256;  // pixels of a head that is near
const FILLED = 0.92;  // about so much of its place; the rest is a gap
const NEAREST = 96;  // pixels of a weight, at most
const ZOOM_STEP = 1.5;

/** @param {HTMLElement} element @param {MappedPayload} payload @param {State} state */
function drawModel(element, payload, state) {
  const canvas = make("canvas", ""), facts = make("div", "facts-of-head"), frame = make("div", "frame-of-model", canvas);
  facts.setAttribute("aria-live", "polite");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  /** @type {ModelView} */
  const view = {canvas, payload, state, slots: [], columns: 0, rows: 0, ordered: false, x: 0, y: 0, scale: 1, fitted: 0, filled: 1,
    left: 0, top: 0, width: 0, height: 0, sharp: 1, pitch: 0, tile: 0, tiles: make("canvas"), scrap: make("canvas"), drawn: 0,
    until: 0, near: new Map(), at: null, ink: {paper: "", quiet: "", line: "", mark: "", mono: ""}, told: null, later: 0,
    stop: () => {}, ask: onceAFrame(() => { if (state.view === "model") paintModel(view); }), tell: () => tellHead(facts, view)};
  element.append(make("p", "quiet", "Every head of the model, coloured up to its own strongest weight. Plus and minus, Ctrl with the " +
    "wheel, or two fingers zoom, down to the figure of each weight; drag to move. Arrow keys choose a head, Enter or a double " +
    "click opens it, Escape shows all."), modelControls(view), make("div", "model", frame, facts));
  const fit = () => {
    if (state.view !== "model") return;
    const {pitch} = view;
    layOutModel(view);
    if (pitch !== view.pitch) fillTiles(view);
    view.ask();
  };
  const colour = () => { fillTiles(view); view.tell(); };
  state.on(["order"], () => { placeHeads(view); view.at = null; showAll(view); colour(); });
  state.on(["width", "view"], fit);
  state.on(["theme", "hidden"], colour);
  state.on(["layer", "head", "token"], () => { view.ask(); view.tell(); });
  state.on(["zoom"], () => { if (state.zoom !== view.told) { readZoom(view); view.ask(); } });
  placeHeads(view);
  layOutModel(view);
  readZoom(view);
  fillTiles(view);
  listenModel(view);
  view.tell();
}

/** @param {() => void} work */
function onceAFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; work(); });
  };
}

/** @type {Record<string, string>} */
const ORDER_WORDS = {first: "looks at the first token", previous: "looks at the previous token",
  next: "looks at the next token", same: "looks at the token itself", broad: "looks at many tokens"};
/** @param {string} order */
const orderWords = (order) => ORDER_WORDS[order] ?? visible(order);

// The orders that the payload has figures for; each head has a figure in each of them.
/** @param {Payload} payload */
function ordersOf(payload) {
  const sites = payload.maps?.sites ?? [], names = new Set(sites.flatMap((site) => Object.keys(site.patterns ?? {})));
  return ["layer", ...(sites.some((site) => site.importance) ? ["importance"] : []), ...names];
}

/** @param {MapSite} site @param {number} head @param {string} order */
const orderFigure = (site, head, order) => (order === "importance" ? site.importance : site.patterns?.[order])?.[head] ?? null;

// In the order of layers, a layer is a row. In any other, the first head is at the top left.
/** @param {ModelView} view */
function placeHeads(view) {
  const {payload: {maps: {sites}}, state} = view, columns = Math.max(...sites.map((site) => site.shape[0]));
  const slots = sites.flatMap((site, layer) => Array.from({length: site.shape[0]}, (_, head) => ({site, layer, head, row: layer, column: head})));
  view.ordered = state.order !== "layer" && ordersOf(view.payload).includes(state.order);
  if (view.ordered) {
    /** @param {HeadSlot} given */
    const value = ({site, head}) => orderFigure(site, head, state.order) ?? -Infinity;
    slots.sort((a, b) => value(b) - value(a));
  }
  if (view.ordered) slots.forEach((slot, i) => Object.assign(slot, {row: Math.floor(i / columns), column: i % columns}));
  Object.assign(view, {slots, columns, rows: slots[slots.length - 1].row + 1});
}

/** @param {ModelView} view */
function layOutModel(view) {
  const {canvas, columns, rows} = view, width = canvas.parentElement?.clientWidth ?? 0, narrow = width < 480;
  Object.assign(view, {left: narrow ? 60 : 88, top: 24, sharp: Math.min(2, devicePixelRatio || 1)});
  const least = Math.min((width - view.left - 4) / columns, 640 / rows);
  view.width = width;
  view.height = Math.round(view.top + Math.max(narrow ? 240 : 480, Math.min(640, rows * least)) + 4);
  const before = view.fitted, room = Math.min((width - view.left - 4) / columns, (view.height - view.top - 4) / rows);
  // A head and its gap take whole pixels, so that the whole model is one picture.
  view.pitch = Math.max(4, Math.floor(room * view.sharp));
  view.tile = Math.min(Math.round(view.pitch * FILLED), view.pitch - 2);
  Object.assign(view, {fitted: view.pitch / view.sharp, filled: view.tile / view.pitch});
  view.height += Math.round(edgeTop(view, view.fitted) - view.top);
  Object.assign(canvas, {width: width * view.sharp, height: view.height * view.sharp});
  canvas.style.height = `${view.height}px`;
  canvas.setAttribute("aria-label", `Heads of the model: ${view.payload.maps.sites.length} layers, ${view.slots.length} heads`);
  if (!before || view.scale <= before * 1.001) showAll(view);
}

/** @param {ModelView} view */
function showAll(view) {
  Object.assign(view, {scale: view.fitted, x: view.left, y: view.height});
  keepInside(view);
}

/** @param {ModelView} view */
const mostTokens = (view) => Math.max(...view.payload.maps.sites.flatMap((site) => site.shape.slice(1)));

// The names of tokens need more room at the top than the numbers of heads; it grows as they come near.
/** @param {ModelView} view @param {number} [scale] */
function edgeTop(view, scale = view.scale) {
  const near = (scale * view.filled / mostTokens(view) - LEAST_LABEL + 4) / 4;
  return view.top + (LABEL_ROOM - view.top) * Math.max(0, Math.min(1, near));
}

// What is in the middle stays a part of the model.
/** @param {ModelView} view */
function keepInside(view) {
  const {left, width, height, columns, rows} = view, furthest = NEAREST * mostTokens(view) / view.filled;
  view.scale = Math.max(view.fitted, Math.min(Math.max(furthest, view.fitted), view.scale));
  /** @param {number} at @param {number} start @param {number} room @param {number} size */
  const hold = (at, start, room, size) => (size <= room ? start : Math.min(start, Math.max(start + room - size, at)));
  const top = edgeTop(view);
  view.x = hold(view.x, left, width - left, columns * view.scale);
  view.y = hold(view.y, top, height - top, rows * view.scale);
  view.canvas.style.touchAction = view.scale > view.fitted * 1.01 ? "none" : "pan-y";
}

// Change the scale so that the point stays where it is.
/** @param {ModelView} view @param {number} factor @param {number} x @param {number} y */
function zoomAt(view, factor, x, y) {
  const before = view.scale;
  const [inX, inY] = [(x - view.x) / before, (y - view.y) / before];
  view.scale *= factor;
  keepInside(view);
  Object.assign(view, {x: x - inX * view.scale, y: y - inY * view.scale});
  moved(view);
}

/** @param {ModelView} view */
function moved(view) {
  keepInside(view);
  view.ask();
  clearTimeout(view.later);
  view.later = setTimeout(() => {  // the address of the page need not follow every frame
    const [x, y] = [centreX(view), centreY(view)].map((at, i) => ((at - (i ? view.y : view.x)) / view.scale).toFixed(4));
    view.told = view.scale > view.fitted * 1.001 ? `${x},${y},${(view.scale / view.fitted).toFixed(3)}` : null;
    view.state.set({zoom: view.told});
  }, 200);
}

/** @param {ModelView} view */
const centreX = (view) => (view.left + view.width) / 2;
/** @param {ModelView} view */
const centreY = (view) => (view.top + view.height) / 2;

/** @param {ModelView} view */
function readZoom(view) {
  const [x, y, scale] = (view.state.zoom ?? "").split(",").map(Number);
  view.told = view.state.zoom;
  if (!(scale >= 1)) return void showAll(view);
  view.scale = scale * view.fitted;
  Object.assign(view, {x: centreX(view) - x * view.scale, y: centreY(view) - y * view.scale});
  keepInside(view);
}

// Bring a place of the model, in heads, to the middle; in small steps unless no motion is wanted.
/** @param {ModelView} view @param {number} x @param {number} y @param {number} scale */
function goTo(view, x, y, scale) {
  const from = {x: (centreX(view) - view.x) / view.scale, y: (centreY(view) - view.y) / view.scale, scale: view.scale};
  const started = performance.now(), length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150;
  /** @param {number} now */
  const step = (now) => {
    const share = length ? Math.min(1, Math.max(0, now - started) / length) : 1;
    /** @param {number} a @param {number} b */
    const mix = (a, b) => a + (b - a) * share;
    view.scale = from.scale * (scale / from.scale) ** share;
    view.x = centreX(view) - mix(from.x, x) * view.scale;
    view.y = centreY(view) - mix(from.y, y) * view.scale;
    moved(view);
    if (share < 1) requestAnimationFrame(step);
  };
  step(started + (length ? 0 : 1));
}

/** @param {ModelView} view @param {HeadSlot} slot */
function openHead(view, slot) {
  const {width, height, left, top} = view;
  /** @param {number} edge */
  const sized = (edge) => (Math.min(width - left, height - edge) - 8) / view.filled;
  const edge = edgeTop(view, sized(top)), scale = sized(edge);
  view.state.set({layer: slot.layer, head: slot.head, heads: null});
  // The middle of the head is to be in the middle of what is below the names.
  goTo(view, slot.column + view.filled / 2, slot.row + view.filled / 2 - (edge - top) / 2 / scale, scale);
}

// The head at a point of the canvas, and if its weights are large enough to point at, which one.
/** @param {ModelView} view @param {number} x @param {number} y @returns {SlotPoint | null} */
function slotAt(view, x, y) {
  if (x < view.left || y < edgeTop(view)) return null;
  const [column, row] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
  const slot = view.slots.find((each) => each.column === Math.floor(column) && each.row === Math.floor(row));
  if (!slot) return null;
  const [inX, inY] = [(column - slot.column) / view.filled, (row - slot.row) / view.filled];
  if (inX >= 1 || inY >= 1) return null;
  const [, queries, keys] = slot.site.shape, isNear = view.scale * view.filled / Math.max(queries, keys) >= 3;
  return {slot, query: isNear ? Math.floor(inY * queries) : null, key: isNear ? Math.floor(inX * keys) : null};
}

/** @param {ModelView} view */
const slotOf = (view) => view.slots.find(({layer, head}) => layer === view.state.layer && head === view.state.head) ?? view.slots[0];

/** @param {ModelView} view */
function modelControls(view) {
  const {payload, state} = view;
  /** @param {string} label @param {string} name @param {() => void} work */
  const named = (label, name, work) => {
    const made = button(label, "", work);
    made.setAttribute("aria-label", name);
    return made;
  };
  /** @param {number} factor */
  const zoom = (factor) => () => zoomAt(view, factor, centreX(view), centreY(view));
  const orders = ordersOf(payload);
  return make("div", "controls", ...(orders.length > 1 ? [listOf("heads by", orders.map((name) => [name, orderWords(name)]),
    () => state.order, (order) => state.set({order}), (mark) => state.on(["order"], mark))] : []),
  make("div", "tools", named("−", "zoom out", zoom(1 / ZOOM_STEP)), named("+", "zoom in", zoom(ZOOM_STEP)),
    named("whole", "show the whole model", () => { showAll(view); moved(view); })));
}
