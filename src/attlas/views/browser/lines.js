// Heads as lines between the tokens that attend and those attended to.

// Eight colours for heads, then the same with another pattern of dashes: head 9 looks like head 1, but dashed.
const HEAD_COLOURS = {
  light: [[12, 92, 94], [196, 88, 0], [98, 70, 168], [24, 110, 190], [176, 48, 96], [84, 118, 20], [134, 100, 0], [92, 92, 100]],
  dark: [[126, 211, 203], [240, 150, 60], [182, 156, 240], [110, 178, 245], [240, 134, 170], [170, 204, 96], [226, 190, 84], [178, 178, 186]],
};
const HEAD_DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const ROW = 20;  // pixels from one token to the next
const MOST_ROWS = 400;  // tokens drawn at once

/** @param {number} number @param {Theme} theme */
const headColour = (number, theme) => HEAD_COLOURS[theme][number % 8];
/** @param {number} number */
const headDashes = (number) => HEAD_DASHES[Math.floor(number / 8) % HEAD_DASHES.length];
/** @param {State} state @param {MapSite} site */
const headsIn = (state, site) => (state.heads === null ? [state.head] : state.heads.split(",").map(Number))
  .filter((head) => head < site.shape[0]);

/** @param {HTMLElement} element @param {MappedPayload} payload @param {State} state */
function drawLines(element, payload, state) {
  const readout = make("p", "readout mono"), body = make("div", "lines"), key = make("div", "legend");
  const pages = make("div", "tools");
  readout.setAttribute("aria-live", "polite");
  element.append(make("p", "quiet", "On the left the tokens that attend, on the right those attended to; the stronger a line, " +
    "the larger the weight. Point at a token for its lines alone. Arrow keys move among tokens, left and right among heads, " +
    "Page Up and Page Down among layers."), lineControls(payload, state), readout, pages, body, key);
  /** @type {LinesView} */
  const view = {body, canvas: make("canvas", ""), columns: {query: make("div"), key: make("div")}, left: [], right: [],
    first: 0, most: 0, over: null, marked: [], width: 0, height: 0, sharp: 1};
  const redraw = () => { if (state.view === "lines") paintLines(view, payload, state, readout, key); };
  const build = () => {
    if (state.view !== "lines") return;
    layOutLines(view, payload, state, redraw);
    turnPages(pages, view, build);
    redraw();
  };
  state.on(["layer", "width", "view", "between"], build);
  state.on(["head", "heads", "theme", "hidden", "row"], redraw);
  state.on(["token", "unit"], redraw);
  // Before the tokens see the key: left and right move among tokens elsewhere.
  element.addEventListener("keydown", (event) => steerHeads(event, payload, state), true);
  build();
}

/** @param {MappedPayload} payload @param {State} state */
function lineControls(payload, state) {
  const {sites} = payload.maps, chips = make("div", "chips"), box = make("div", "controls", ...(sites.length > 1
    ? [listOf("layer", sites.map((site, layer) => [String(layer), layerName(site, sites).replace("layer ", "")]), () => String(state.layer),
      (value) => openLayer(payload, state, Number(value)), (mark) => state.on(["layer"], mark))] : []), chips);
  chips.setAttribute("role", "group");
  chips.setAttribute("aria-label", "Heads whose lines are drawn");
  const build = () => {
    const site = sites[state.layer], chosen = headsIn(state, site), all = Array.from({length: site.shape[0]}, (_, i) => i);
    const focused = [...chips.children].findIndex((each) => each.matches(":focus"));
    /** @param {number} head */
    const chip = (head) => headChip(site, head, chosen, state);
    const every = button(chosen.length === all.length ? "one" : "all", "", () =>
      state.set({heads: chosen.length === all.length ? null : all.join(",")}));
    chips.replaceChildren(...(isWhole(site) ? [] : [...all.map(chip), ...(all.length > 1 ? [every] : [])]));
    focusOn(chips, focused);
  };
  state.on(["layer", "head", "heads", "theme"], build);
  build();
  const pairs = segmentPairs(payload);
  if (pairs.length > 1) box.append(betweenList(pairs, state));
  return box;
}

/** @param {Element} parent @param {number} place */
function focusOn(parent, place) {
  const child = parent.children[place];
  if (child instanceof HTMLElement) child.focus();
}

/** @param {MapSite} site @param {number} head @param {number[]} chosen @param {State} state */
function headChip(site, head, chosen, state) {
  const number = headNumber(site, head), made = button("", "chip", (event) => {
    const others = chosen.filter((each) => each !== head), added = others.length === chosen.length;
    const alone = event.altKey || (!added && chosen.length === 1);
    const heads = alone ? [head] : (added ? [...chosen, head] : others).sort((a, b) => a - b);
    state.set({heads: heads.length > 1 ? heads.join(",") : null, head: heads.includes(head) ? head : heads[0]});
  });
  made.append(swatchOf(number, state.theme), String(number));
  made.setAttribute("aria-pressed", String(chosen.includes(head)));
  made.setAttribute("aria-label", `head ${number}`);
  return made;
}

/** @param {number} number @param {Theme} theme */
function swatchOf(number, theme) {
  const canvas = make("canvas", "stroke"), context = penOf(canvas);
  Object.assign(canvas, {width: 40, height: 8});
  context.strokeStyle = css(headColour(number, theme));
  context.lineWidth = 4;
  context.setLineDash(headDashes(number).map((each) => 2 * each));
  context.beginPath();
  context.moveTo(0, 4);
  context.lineTo(40, 4);
  context.stroke();
  return canvas;
}

/**
 * @param {string} label
 * @param {string[][]} options
 * @param {() => string} value
 * @param {(value: string) => void} choose
 * @param {(mark: () => void) => void} follow
 */
function listOf(label, options, value, choose, follow) {
  const list = make("select", "", ...options.map(([each, text]) => Object.assign(make("option", "", text), {value: each})));
  const mark = () => (list.value = value());
  list.addEventListener("change", () => choose(list.value));
  follow(mark);
  mark();
  return make("label", "list", `${label} `, list);
}

// Every two segments, from and to, as JSON.
/** @param {Payload} payload */
function segmentPairs(payload) {
  const segments = [...new Set(payload.tokens.map((token) => token.segment))];
  return segments.flatMap((from) => segments.map((to) => JSON.stringify([from, to])));
}

/** @param {string[]} pairs @param {State} state */
const betweenList = (pairs, state) => listOf("from and to", [["", "all tokens"], ...pairs.map((pair) =>
  [pair, JSON.parse(pair).map(visible).join(" → ")])], () => state.between ?? "",
(value) => state.set({between: value || null}), (mark) => state.on(["between"], mark));

/** @param {MappedPayload} payload @param {State} state @param {number} layer */
function openLayer(payload, state, layer) {
  const most = payload.maps.sites[layer].shape[0], head = Math.min(state.head, most - 1);
  const heads = headsIn(state, payload.maps.sites[layer]);
  state.set({layer, head, heads: heads.length > 1 ? heads.join(",") : null});
}

// The rows and columns of the site whose tokens are shown.
/** @param {MapSite} site @param {MappedPayload} payload @param {State} state */
function linePlaces(site, payload, state) {
  const [from, to] = state.between ? JSON.parse(state.between) : [null, null];
  /** @param {number[]} positions @param {string | null} segment */
  const places = (positions, segment) => positions.map((position, place) => ({position, place}))
    .filter(({position}) => segment === null || payload.tokens[position].segment === segment);
  return {left: places(site.queries, from), right: places(site.keys, to)};
}

/** @param {LinesView} view @param {MappedPayload} payload @param {State} state @param {() => void} redraw */
function layOutLines(view, payload, state, redraw) {
  const places = linePlaces(payload.maps.sites[state.layer], payload, state);
  view.most = Math.max(places.left.length, places.right.length);
  if (view.first >= view.most) view.first = 0;
  /** @param {LinePlace[]} side */
  const cut = (side) => side.slice(view.first, view.first + MOST_ROWS);
  Object.assign(view, {left: cut(places.left), right: cut(places.right), over: null, marked: []});
  view.canvas = make("canvas", "");
  view.canvas.setAttribute("role", "img");
  /** @param {LinePlace[]} side @param {LineSide} name */
  const column = (side, name) => {
    const made = make("div", `side ${name}`, ...side.map((each, i) => lineToken(view, each, name, i, payload, state, redraw)));
    rove(made, ".token");
    return made;
  };
  const held = view.body.querySelector(":focus"), holder = held?.parentElement;
  const place = [...(holder?.children ?? [])].findIndex((each) => each === held);
  const side = holder?.classList.contains("key") ? "key" : "query";
  view.columns = {query: column(view.left, "query"), key: column(view.right, "key")};
  view.body.replaceChildren(view.columns.query, view.canvas, view.columns.key);
  focusOn(view.columns[side], place);
  const rows = Math.max(view.left.length, view.right.length, 1), width = Math.max(96, view.canvas.clientWidth);
  const sharp = Math.min(2, devicePixelRatio || 1);
  Object.assign(view.canvas, {width: width * sharp, height: rows * ROW * sharp});
  view.canvas.style.height = `${rows * ROW}px`;
  Object.assign(view, {width, height: rows * ROW, sharp});
}

/**
 * @param {LinesView} view
 * @param {LinePlace} given
 * @param {LineSide} side
 * @param {number} index
 * @param {MappedPayload} payload
 * @param {State} state
 * @param {() => void} redraw
 */
function lineToken(view, {position}, side, index, payload, state, redraw) {
  const made = make("bdi", "token mono", visible(payload.tokens[position].label));
  made.tabIndex = -1;
  made.setAttribute("role", "button");
  const enter = () => {
    view.over = {side, index};
    if (state.token === position) redraw();
    else state.set({token: position, tip: null});
  };
  const leave = () => {
    view.over = null;
    state.set({token: null});
  };
  for (const name of ["pointerenter", "focus"]) made.addEventListener(name, enter);
  for (const name of ["pointerleave", "blur"]) made.addEventListener(name, leave);
  pickRow(made, position, state);
  return made;
}

/** @param {HTMLElement} element @param {LinesView} view @param {() => void} build */
function turnPages(element, view, build) {
  const {first, most} = view, last = Math.min(most, first + MOST_ROWS);
  /** @param {string} label @param {number} to @param {boolean} can */
  const turn = (label, to, can) => {
    const made = button(label, "", () => { view.first = to; build(); });
    made.disabled = !can;
    return made;
  };
  element.replaceChildren(...(most <= MOST_ROWS ? [] : [
    turn("← earlier", Math.max(0, first - MOST_ROWS), first > 0),
    make("span", "quiet", `tokens ${first} to ${last - 1} of ${most}`),
    turn("later →", first + MOST_ROWS, last < most)]));
}

const HEAD_STEPS = new Map([["ArrowLeft", -1], ["ArrowRight", 1]]), LAYER_STEPS = new Map([["PageUp", -1], ["PageDown", 1]]);

/** @param {KeyboardEvent} event @param {MappedPayload} payload @param {State} state */
function steerHeads(event, payload, state) {
  if (hitBy(event).closest("select")) return;
  const {sites} = payload.maps, count = sites[state.layer].shape[0];
  const heads = HEAD_STEPS.get(event.key), layers = LAYER_STEPS.get(event.key);
  if (heads && hitBy(event).closest(".token")) {
    const head = (state.head + heads + count) % count;
    state.set({head, heads: null});
  } else if (layers && sites[state.layer + layers]) openLayer(payload, state, state.layer + layers);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
