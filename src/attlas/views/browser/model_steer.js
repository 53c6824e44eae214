// How the whole model is moved about: mouse, fingers and keys; and what is told of the head pointed at.

/** @param {ModelView} view */
function listenModel(view) {
  const {canvas, state} = view;
  /** @type {Map<number, number[]>} */
  const fingers = new Map();
  let dragged = 0;
  /** @param {MouseEvent} event @returns {[number, number]} */
  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("wheel", (event) => {
    const mine = event.ctrlKey || event.metaKey || canvas.matches(":focus");
    if (!mine) return;  // the page scrolls
    event.preventDefault();
    const lines = event.deltaMode ? 16 : 1;
    zoomAt(view, Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) / 300), ...place(event));
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, place(event));
    dragged = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (fingers.has(event.pointerId)) dragged += drag(view, fingers, event.pointerId, place(event));
    else pointAtHead(view, slotAt(view, ...place(event)));
  });
  /** @param {PointerEvent} event */
  const lift = (event) => fingers.delete(event.pointerId);
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => pointAtHead(view, null));
  canvas.addEventListener("click", (event) => {
    const found = dragged < LEAST_DRAG ? slotAt(view, ...place(event)) : null;
    if (!found) return;
    const {slot: {site, layer, head}, query, key} = found, again = layer === state.layer && head === state.head;
    state.set({layer, head, heads: null});
    const [left, top] = [event.clientX, event.clientY];
    announce(canvas, {site, head, again, ...(query === null || key === null ? {} : {row: query, column: key})},
      {left, top, right: left, bottom: top});
  });
  canvas.addEventListener("dblclick", (event) => {
    const found = slotAt(view, ...place(event));
    if (found) openHead(view, found.slot);
  });
  canvas.addEventListener("keydown", (event) => steerModel(event, view));
}

// One finger moves the model, two change its scale. Returns how far the finger went.
/** @param {ModelView} view @param {Map<number, number[]>} fingers @param {number} finger @param {number[]} to */
function drag(view, fingers, finger, to) {
  const from = fingers.get(finger) ?? to, way = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const other = [...fingers].find(([each]) => each !== finger)?.[1];
  fingers.set(finger, to);
  if (other) {
    /** @param {number[]} each */
    const apart = (each) => Math.max(8, Math.hypot(each[0] - other[0], each[1] - other[1]));
    zoomAt(view, apart(to) / apart(from), (to[0] + other[0]) / 2, (to[1] + other[1]) / 2);
  } else {
    view.x += to[0] - from[0];
    view.y += to[1] - from[1];
    moved(view);
  }
  return way;
}

/** @param {ModelView} view @param {SlotPoint | null} found */
function pointAtHead(view, found) {
  const same = view.at?.slot === found?.slot && view.at?.query === found?.query && view.at?.key === found?.key;
  if (same) return;
  view.at = found;
  view.state.set({token: !found || found.key === null ? null : found.slot.site.keys[found.key], tip: null});
  view.tell();
}

/** @param {KeyboardEvent} event @param {ModelView} view */
function steerModel(event, view) {
  const step = STEPS[event.key], chosen = slotOf(view), zoomed = view.scale > view.fitted * 1.01;
  if (step && event.shiftKey) {
    view.x -= 64 * step[1];
    view.y -= 64 * step[0];
    moved(view);
  } else if (step) {
    const next = view.slots.find((slot) => slot.row === chosen.row + step[0] && slot.column === chosen.column + step[1]);
    if (next) view.state.set({layer: next.layer, head: next.head, heads: null});
    if (next && zoomed) goTo(view, next.column + view.filled / 2, next.row + view.filled / 2, view.scale);
  } else if ("+=".includes(event.key)) zoomAt(view, ZOOM_STEP, ...middleOf(view, chosen));
  else if ("-−_".includes(event.key)) zoomAt(view, 1 / ZOOM_STEP, centreX(view), centreY(view));
  else if (event.key === "Enter") openHead(view, chosen);
  else if (event.key === "Escape") { showAll(view); moved(view); }
  else return;
  event.preventDefault();
}

// From afar, plus goes towards the chosen head; from near, to what is in the middle.
/** @param {ModelView} view @param {HeadSlot} slot @returns {[number, number]} */
function middleOf(view, slot) {
  const size = view.scale * view.filled, [x, y] = cornerOf(view, slot);
  const near = size > (view.height - view.top) / 2 || !isSeen(view, slot, size);
  return near ? [centreX(view), centreY(view)] : [x + size / 2, y + size / 2];
}

/** @param {HTMLElement} element @param {ModelView} view */
function tellHead(element, view) {
  const {payload, state} = view, {slot, query, key} = view.at ?? {slot: slotOf(view), query: null, key: null};
  const {site, head} = slot, shown = shownHead(payload, state, slot.layer, head), {signed} = payload.maps;
  /** @param {number} position */
  const name = (position) => make("bdi", "", visible(payload.tokens[position].label));
  const weight = query === null || key === null ? [] : [name(site.queries[query]), " → ", name(site.keys[key]), " ",
    make("b", "", weightFigure(shown.value(query, key), shown, signed))];
  const rows = ordersOf(payload).flatMap((order) => {
    const value = orderFigure(site, head, order);
    if (value === null) return [];
    const fill = make("span", "fill"), track = make("span", "track", fill);
    fill.style.width = `${100 * Math.max(0, Math.min(1, order === "importance" ? value / mostImportant(payload) : value))}%`;
    return [make("li", order === state.order ? "chosen" : "", make("span", "", orderWords(order)), track,
      make("span", "mono figure", minus(value.toFixed(2))))];
  });
  element.replaceChildren(make("h3", "", mapName(site, head, payload.maps.sites)), make("p", "readout mono", ...weight),
    make("p", "quiet", "strongest weight ", make("span", "mono", figure(shown.limit, shown.limit, false))),
    make("ul", "shares", ...rows));
}

/** @param {MappedPayload} payload */
const mostImportant = (payload) =>
  Math.max(1e-12, ...payload.maps.sites.flatMap((site) => site.importance ?? []).map(Math.abs));
