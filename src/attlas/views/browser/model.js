// @ts-nocheck
// The whole model: every head as a small map, and a zoom that goes on to one head and to one weight.

const SHARP = 256;  // pixels of a head that is near
const FILLED = 0.92;  // about so much of its place; the rest is a gap
const NEAREST = 96;  // pixels of a weight, at most
const ZOOM_STEP = 1.5;

function drawModel(element, payload, state) {
  const canvas = make("canvas", ""), facts = make("div", "facts-of-head"), frame = make("div", "frame-of-model", canvas);
  facts.setAttribute("aria-live", "polite");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  const view = {canvas, payload, state, x: 0, y: 0, scale: 1, tiles: null, near: new Map(), at: null, stop: () => {}};
  element.append(make("p", "quiet", "Every head of the model, coloured up to its own strongest weight. Plus and minus, Ctrl with the " +
    "wheel, or two fingers zoom, down to the figure of each weight; drag to move. Arrow keys choose a head, Enter or a double " +
    "click opens it, Escape shows all."), modelControls(view), make("div", "model", frame, facts));
  view.ask = onceAFrame(() => { if (state.view === "model") paintModel(view); });
  view.tell = () => tellHead(facts, view);
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

function onceAFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; work(); });
  };
}

// The orders that the payload has figures for; each head has a figure in each of them.
function ordersOf(payload) {
  const sites = payload.maps?.sites ?? [], names = new Set(sites.flatMap((site) => Object.keys(site.patterns ?? {})));
  return ["layer", ...(sites.some((site) => site.importance) ? ["importance"] : []), ...names];
}

const orderFigure = (site, head, order) => (order === "importance" ? site.importance : site.patterns?.[order])?.[head] ?? null;

// In the order of layers, a layer is a row. In any other, the first head is at the top left.
function placeHeads(view) {
  const {payload: {maps: {sites}}, state} = view, columns = Math.max(...sites.map((site) => site.shape[0]));
  const slots = sites.flatMap((site, layer) => Array.from({length: site.shape[0]}, (_, head) => ({site, layer, head})));
  view.ordered = state.order !== "layer" && ordersOf(view.payload).includes(state.order);
  if (view.ordered) {
    const value = ({site, head}) => orderFigure(site, head, state.order) ?? -Infinity;
    slots.sort((a, b) => value(b) - value(a));
  }
  slots.forEach((slot, i) => Object.assign(slot, view.ordered
    ? {row: Math.floor(i / columns), column: i % columns} : {row: slot.layer, column: slot.head}));
  Object.assign(view, {slots, columns, rows: slots.at(-1).row + 1});
}

function layOutModel(view) {
  const {canvas, columns, rows} = view, width = canvas.parentNode.clientWidth, narrow = width < 480;
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

function showAll(view) {
  Object.assign(view, {scale: view.fitted, x: view.left, y: view.height});
  keepInside(view);
}

const mostTokens = (view) => Math.max(...view.payload.maps.sites.flatMap((site) => site.shape.slice(1)));

// The names of tokens need more room at the top than the numbers of heads; it grows as they come near.
function edgeTop(view, scale = view.scale) {
  const near = (scale * view.filled / mostTokens(view) - LEAST_LABEL + 4) / 4;
  return view.top + (LABEL_ROOM - view.top) * Math.max(0, Math.min(1, near));
}

// What is in the middle stays a part of the model.
function keepInside(view) {
  const {left, width, height, columns, rows} = view, furthest = NEAREST * mostTokens(view) / view.filled;
  view.scale = Math.max(view.fitted, Math.min(Math.max(furthest, view.fitted), view.scale));
  const hold = (at, start, room, size) => (size <= room ? start : Math.min(start, Math.max(start + room - size, at)));
  const top = edgeTop(view);
  view.x = hold(view.x, left, width - left, columns * view.scale);
  view.y = hold(view.y, top, height - top, rows * view.scale);
  view.canvas.style.touchAction = view.scale > view.fitted * 1.01 ? "none" : "pan-y";
}

// Change the scale so that the point stays where it is.
function zoomAt(view, factor, x, y) {
  const before = view.scale;
  const [inX, inY] = [(x - view.x) / before, (y - view.y) / before];
  view.scale *= factor;
  keepInside(view);
  Object.assign(view, {x: x - inX * view.scale, y: y - inY * view.scale});
  moved(view);
}

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

const centreX = (view) => (view.left + view.width) / 2;
const centreY = (view) => (view.top + view.height) / 2;

function readZoom(view) {
  const [x, y, scale] = (view.state.zoom ?? "").split(",").map(Number);
  view.told = view.state.zoom;
  if (!(scale >= 1)) return void showAll(view);
  view.scale = scale * view.fitted;
  Object.assign(view, {x: centreX(view) - x * view.scale, y: centreY(view) - y * view.scale});
  keepInside(view);
}

// Bring a place of the model, in heads, to the middle; in small steps unless no motion is wanted.
function goTo(view, x, y, scale) {
  const from = {x: (centreX(view) - view.x) / view.scale, y: (centreY(view) - view.y) / view.scale, scale: view.scale};
  const started = performance.now(), length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 150;
  const step = (now) => {
    const share = length ? Math.min(1, Math.max(0, now - started) / length) : 1;
    const mix = (a, b) => a + (b - a) * share;
    view.scale = from.scale * (scale / from.scale) ** share;
    view.x = centreX(view) - mix(from.x, x) * view.scale;
    view.y = centreY(view) - mix(from.y, y) * view.scale;
    moved(view);
    if (share < 1) requestAnimationFrame(step);
  };
  step(started + (length ? 0 : 1));
}

function openHead(view, slot) {
  const {width, height, left, top} = view, sized = (edge) => (Math.min(width - left, height - edge) - 8) / view.filled;
  const edge = edgeTop(view, sized(top)), scale = sized(edge);
  view.state.set({layer: slot.layer, head: slot.head, heads: null});
  // The middle of the head is to be in the middle of what is below the names.
  goTo(view, slot.column + view.filled / 2, slot.row + view.filled / 2 - (edge - top) / 2 / scale, scale);
}

// The head at a point of the canvas, and if its weights are large enough to point at, which one.
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

const slotOf = (view) => view.slots.find(({layer, head}) => layer === view.state.layer && head === view.state.head);

function modelControls(view) {
  const {payload, state} = view, named = (label, name, work) => {
    const made = button(label, "", work);
    made.setAttribute("aria-label", name);
    return made;
  };
  const zoom = (factor) => () => zoomAt(view, factor, centreX(view), centreY(view));
  const words = {first: "looks at the first token", previous: "looks at the previous token", next: "looks at the next token",
    same: "looks at the token itself", broad: "looks at many tokens", importance: "importance", layer: "layer"};
  const orders = ordersOf(payload);
  return make("div", "controls", ...(orders.length > 1 ? [listOf("heads by", orders.map((name) => [name, words[name] ?? visible(name)]),
    () => state.order, (order) => state.set({order}), (mark) => state.on(["order"], mark))] : []),
  make("div", "tools", named("−", "zoom out", zoom(1 / ZOOM_STEP)), named("+", "zoom in", zoom(ZOOM_STEP)),
    named("whole", "show the whole model", () => { showAll(view); moved(view); })));
}
