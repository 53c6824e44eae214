// @ts-nocheck
// Heads as lines between the tokens that attend and those attended to.

// Eight colours for heads, then the same with another pattern of dashes: head 9 looks like head 1, but dashed.
const HEAD_COLOURS = {
  light: [[12, 92, 94], [196, 88, 0], [98, 70, 168], [24, 110, 190], [176, 48, 96], [84, 118, 20], [134, 100, 0], [92, 92, 100]],
  dark: [[126, 211, 203], [240, 150, 60], [182, 156, 240], [110, 178, 245], [240, 134, 170], [170, 204, 96], [226, 190, 84], [178, 178, 186]],
};
const HEAD_DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const ROW = 20;  // pixels from one token to the next
const MOST_ROWS = 400;  // tokens drawn at once
const FAINTEST = 0.04;  // of the strongest weight: lines below are left out unless a token is chosen

const headColour = (number, theme) => HEAD_COLOURS[theme][number % 8];
const headDashes = (number) => HEAD_DASHES[Math.floor(number / 8) % HEAD_DASHES.length];
const headsIn = (state, site) => (state.heads === null ? [state.head] : state.heads.split(",").map(Number))
  .filter((head) => head < site.shape[0]);

function drawLines(element, payload, state) {
  const readout = make("p", "readout mono"), body = make("div", "lines"), key = make("div", "legend");
  const pages = make("div", "tools");
  readout.setAttribute("aria-live", "polite");
  element.append(make("p", "quiet", "On the left the tokens that attend, on the right those attended to; the stronger a line, " +
    "the larger the weight. Point at a token for its lines alone. Arrow keys move among tokens, left and right among heads, " +
    "Page Up and Page Down among layers."), lineControls(payload, state), readout, pages, body, key);
  const view = {body, first: 0, over: null, marked: []};
  const redraw = () => { if (state.view === "lines" && view.canvas) paintLines(view, payload, state, readout, key); };
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

function lineControls(payload, state) {
  const {sites} = payload.maps, chips = make("div", "chips"), box = make("div", "controls", ...(sites.length > 1
    ? [listOf("layer", sites.map((site, layer) => [String(layer), visible(site.name)]), () => String(state.layer),
      (value) => openLayer(payload, state, Number(value)), (mark) => state.on(["layer"], mark))] : []), chips);
  chips.setAttribute("role", "group");
  chips.setAttribute("aria-label", "Heads whose lines are drawn");
  const build = () => {
    const site = sites[state.layer], chosen = headsIn(state, site), all = Array.from({length: site.shape[0]}, (_, i) => i);
    const focused = [...chips.children].indexOf(chips.querySelector(":focus"));
    const chip = (head) => headChip(site, head, chosen, state);
    const every = button(chosen.length === all.length ? "one" : "all", "", () =>
      state.set({heads: chosen.length === all.length ? null : all.join(",")}));
    chips.replaceChildren(...(isWhole(site) ? [] : [...all.map(chip), ...(all.length > 1 ? [every] : [])]));
    chips.children[focused]?.focus();
  };
  state.on(["layer", "head", "heads", "theme"], build);
  build();
  const pairs = segmentPairs(payload);
  if (pairs.length > 1) box.append(betweenList(pairs, state));
  return box;
}

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

function swatchOf(number, theme) {
  const canvas = make("canvas", "stroke"), context = canvas.getContext("2d");
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

function listOf(label, options, value, choose, follow) {
  const list = make("select", "", ...options.map(([each, text]) => Object.assign(make("option", "", text), {value: each})));
  const mark = () => (list.value = value());
  list.addEventListener("change", () => choose(list.value));
  follow(mark);
  mark();
  return make("label", "list", `${label} `, list);
}

// Every two segments, from and to, as JSON.
function segmentPairs(payload) {
  const segments = [...new Set(payload.tokens.map((token) => token.segment))];
  return segments.flatMap((from) => segments.map((to) => JSON.stringify([from, to])));
}

const betweenList = (pairs, state) => listOf("from and to", [["", "all tokens"], ...pairs.map((pair) =>
  [pair, JSON.parse(pair).map(visible).join(" → ")])], () => state.between ?? "",
(value) => state.set({between: value || null}), (mark) => state.on(["between"], mark));

function openLayer(payload, state, layer) {
  const most = payload.maps.sites[layer].shape[0], head = Math.min(state.head, most - 1);
  const heads = headsIn(state, payload.maps.sites[layer]);
  state.set({layer, head, heads: heads.length > 1 ? heads.join(",") : null});
}

// The rows and columns of the site whose tokens are shown.
function linePlaces(site, payload, state) {
  const [from, to] = state.between ? JSON.parse(state.between) : [null, null];
  const places = (positions, segment) => positions.map((position, place) => ({position, place}))
    .filter(({position}) => segment === null || payload.tokens[position].segment === segment);
  return {left: places(site.queries, from), right: places(site.keys, to)};
}

function layOutLines(view, payload, state, redraw) {
  const places = linePlaces(payload.maps.sites[state.layer], payload, state);
  view.most = Math.max(places.left.length, places.right.length);
  if (view.first >= view.most) view.first = 0;
  const cut = (side) => side.slice(view.first, view.first + MOST_ROWS);
  Object.assign(view, {left: cut(places.left), right: cut(places.right), over: null, marked: []});
  view.canvas = make("canvas", "");
  view.canvas.setAttribute("role", "img");
  const column = (side, name) => {
    const made = make("div", `side ${name}`, ...side.map((each, i) => lineToken(view, each, name, i, payload, state, redraw)));
    rove(made, ".token");
    return made;
  };
  const held = view.body.querySelector(":focus"), place = held ? [...held.parentNode.children].indexOf(held) : -1;
  const side = held?.parentNode.classList.contains("key") ? "key" : "query";
  view.columns = {query: column(view.left, "query"), key: column(view.right, "key")};
  view.body.replaceChildren(view.columns.query, view.canvas, view.columns.key);
  view.columns[side].children[place]?.focus();
  const rows = Math.max(view.left.length, view.right.length, 1), width = Math.max(96, view.canvas.clientWidth);
  const sharp = Math.min(2, devicePixelRatio || 1);
  Object.assign(view.canvas, {width: width * sharp, height: rows * ROW * sharp});
  view.canvas.style.height = `${rows * ROW}px`;
  Object.assign(view, {width, height: rows * ROW, sharp});
}

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

function turnPages(element, view, build) {
  const {first, most} = view, last = Math.min(most, first + MOST_ROWS);
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

// Which tokens have their lines shown: the one pointed at, here or in another view, or else the chosen row.
function lineFocus(view, payload, state) {
  if (view.over) return {side: view.over.side, places: new Set([view.over.index])};
  const positions = state.token !== null ? litPositions(payload, state) : state.row !== null ? [state.row] : [];
  const places = view.left.flatMap(({position}, i) => (positions.includes(position) ? [i] : []));
  return places.length ? {side: "query", places: new Set(places)} : null;
}

function paintLines(view, payload, state, readout, key) {
  const {signed} = payload.maps, site = payload.maps.sites[state.layer], numbers = headsIn(state, site);
  const heads = numbers.map((head) => ({head: shownHead(payload, state, state.layer, head), number: headNumber(site, head)}));
  const limit = heads.reduce((most, {head}) => Math.max(most, head.limit), 0);
  const focus = lineFocus(view, payload, state), context = view.canvas.getContext("2d");
  context.setTransform(view.sharp, 0, 0, view.sharp, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  for (const each of heads) strokeHead(context, view, each, limit, focus, signed, state.theme);
  markTokens(view, heads, limit, focus, signed, state.theme);
  tellLines(readout, view, heads, focus, payload, signed);
  const names = heads.map(({number}) => number).join(", ");
  view.canvas.setAttribute("aria-label", `Lines of ${site.name}, heads ${names}: ${view.left.length} tokens to ${view.right.length}`);
  key.replaceChildren(...(heads.length ? [thicknessScale(limit, signed)] : [make("span", "", "No head is chosen.")]));
}

// Lines of about the same strength are drawn together: a page may have a hundred thousand.
function strokeHead(context, view, {head, number}, limit, focus, signed, theme) {
  const steps = 12, groups = new Map();
  view.left.forEach(({place: row}, i) => {
    if (focus?.side === "query" && !focus.places.has(i)) return;
    view.right.forEach(({place: column}, j) => {
      if (focus?.side === "key" && !focus.places.has(j)) return;
      const weight = head.value(row, column), share = strength(Math.abs(weight), limit);
      if (share < (focus ? 0.002 : FAINTEST)) return;
      const group = Math.ceil(share * steps) * (weight < 0 ? -1 : 1);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([i, j]);
    });
  });
  context.setLineDash(headDashes(number));
  for (const [group, lines] of groups) {
    const share = Math.abs(group) / steps;
    context.strokeStyle = css(signed ? pole(group, true, theme) : headColour(number, theme));
    context.globalAlpha = focus ? 0.1 + 0.9 * share : 0.06 + 0.74 * share;
    context.lineWidth = 0.5 + 3 * share;
    context.beginPath();
    for (const [i, j] of lines) curve(context, view.width, (i + 0.5) * ROW, (j + 0.5) * ROW);
    context.stroke();
  }
  context.globalAlpha = 1;
}

function curve(context, width, from, to) {
  context.moveTo(0, from);
  context.bezierCurveTo(width * 0.4, from, width * 0.6, to, width, to);
}

// The tokens at the other end carry a strip of each head's colour, as strong as its weight.
function markTokens(view, heads, limit, focus, signed, theme) {
  for (const element of view.marked) {
    element.style.backgroundImage = "";
    element.classList.remove("lit");
  }
  view.marked = [];
  if (!focus) return;
  const ends = focus.side === "query" ? "key" : "query";
  for (const place of focus.places) {
    const own = view.columns[focus.side].children[place];
    own.classList.add("lit");
    view.marked.push(own);
  }
  const others = focus.side === "query" ? view.right : view.left;
  others.forEach((_, other) => {
    const strips = heads.map(({head, number}) => {
      const weight = endWeight(view, head, focus, other), colour = signed ? pole(weight, true, theme) : headColour(number, theme);
      return `rgb(${colour.join(" ")} / ${(0.6 * strength(Math.abs(weight), limit)).toFixed(3)})`;
    });
    const element = view.columns[ends].children[other], width = 100 / Math.max(1, heads.length);
    element.style.backgroundImage = `linear-gradient(to right, ${strips.map((colour, i) =>
      `${colour} ${i * width}% ${(i + 1) * width}%`).join(", ")})`;
    view.marked.push(element);
  });
}

// The weight between the tokens in focus and one at the other end; of several, the strongest.
function endWeight(view, head, focus, other) {
  let found = 0;
  for (const place of focus.places) {
    const [i, j] = focus.side === "query" ? [place, other] : [other, place];
    const weight = head.value(view.left[i].place, view.right[j].place);
    if (Math.abs(weight) > Math.abs(found)) found = weight;
  }
  return found;
}

// The strongest ends of the lines, in words.
function tellLines(readout, view, heads, focus, payload, signed) {
  if (!focus) return void (readout.textContent = "Point at a token to read its weights.");
  const name = (side, i) => make("bdi", "", visible(payload.tokens[side[i].position].label));
  const [own, others] = focus.side === "query" ? [view.left, view.right] : [view.right, view.left];
  const ends = heads.flatMap(({head, number}) => others.map((_, other) => ({head, number, other, weight: endWeight(view, head, focus, other)})));
  ends.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  readout.replaceChildren(...[...focus.places].flatMap((place) => [name(own, place), " "]), focus.side === "query" ? "→ " : "← ",
    ...ends.slice(0, 5).filter(({weight}) => weight).flatMap(({head, number, other, weight}, i) => [i ? " · " : "", name(others, other), " ",
      make("b", "", weightFigure(weight, head, signed)), heads.length > 1 ? ` (head ${number})` : ""]));
}

function thicknessScale(limit, signed) {
  const canvas = make("canvas", "stroke wedge"), context = canvas.getContext("2d");
  Object.assign(canvas, {width: 128, height: 16});
  context.fillStyle = "#888";
  context.beginPath();
  for (const [x, y] of [[0, 7], [128, 4], [128, 12], [0, 9]]) context.lineTo(x, y);
  context.fill();
  const number = (weight) => make("span", "mono", figure(weight, limit, false));
  return make("span", "scale", number(0), canvas, number(limit), signed ? " orange for the target, blue against" : "");
}

function steerHeads(event, payload, state) {
  if (event.target.closest("select")) return;
  const {sites} = payload.maps, count = sites[state.layer].shape[0];
  const heads = {ArrowLeft: -1, ArrowRight: 1}[event.key], layers = {PageUp: -1, PageDown: 1}[event.key];
  if (heads && event.target.closest(".token")) {
    const head = (state.head + heads + count) % count;
    state.set({head, heads: null});
  } else if (layers && sites[state.layer + layers]) openLayer(payload, state, state.layer + layers);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
