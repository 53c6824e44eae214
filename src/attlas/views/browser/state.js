// The state that all views of a page share, and what of it is kept: in the address of a page, and in the
// `state` of a widget in a notebook.

/** @param {Omit<State, "on" | "set">} values */
function makeState(values) {
  /** @type {[(keyof State)[], () => void][]} */
  const listeners = [];
  /** @type {State} */
  const state = {
    ...values,
    on(names, listener) { listeners.push([names, listener]); },
    set(change) {
      const names = /** @type {(keyof State)[]} */ (Object.keys(change));
      const changed = names.filter((name) => state[name] !== change[name]);
      Object.assign(state, change);
      for (const [heard, listener] of listeners) {
        if (heard.some((name) => changed.includes(name))) listener();
      }
    },
  };
  return state;
}

// One line for each name that is kept: its value at the start, and how it is read from a text, which may come
// from anybody; `undefined` is what the payload does not allow. Types follow from this table.
/** @satisfies {Record<string, KeptName>} */
const KEPT = {
  layer: {start: (payload) => strongestHead(payload).layer,
    read: (text, payload) => below(payload.maps?.sites.length, text)},
  head: {start: (payload) => strongestHead(payload).head,
    read: (text, payload, state) => below(payload.maps?.sites[state.layer]?.shape[0], text)},
  // The heads whose lines are drawn, as "0,3"; null is the open head alone.
  heads: {start: () => null, read: (text, payload, state) =>
    (allBelow(payload.maps?.sites[state.layer]?.shape[0], text) ? text : undefined)},
  view: {start: () => "matrix", read: (text, payload) => oneOf(mapViewsOf(payload), text)},
  // Of the heads in the whole model.
  order: {start: () => "layer", read: (text, payload) => oneOf(ordersOf(payload), text)},
  // The middle of what is seen of the model, in heads, and the scale; null is all of it.
  zoom: {start: () => null, read: (text) => (/^(-?\d{1,4}(\.\d{1,6})?,){2}\d{1,6}(\.\d{1,6})?$/.test(text) ? text : undefined)},
  // The part of the matrix that is seen: top, bottom, left, right; null is all of it.
  part: {start: () => null, read: (text, payload) =>
    (allBelow(payload.tokens.length + 1, text)?.length === 4 ? text : undefined)},
  // Whether the first and special tokens are left out of the maps.
  hidden: {start: () => false, read: (text, payload) => (payload.maps ? truth(text) : undefined)},
  // The segments that lines join, from and to, as JSON; null for all.
  between: {start: () => null, read: (text, payload) => oneOf(payload.maps ? segmentPairs(payload) : [], text)},
  token: {start: () => null, read: (text, payload) => below(payload.tokens.length, text)},
  row: {start: () => null, read: (text, payload) => below(payload.maps && payload.tokens.length, text)},
  unit: {start: (payload) => levelAtStart(payload), read: (text, payload) => oneOf(levelsOf(payload), text)},
  picked: {start: () => null, read: (text, payload) => allBelow(payload.outputs?.length, text)},
  leftOut: {start: () => false, read: truth},
  ranking: {start: (payload) => payload.importances?.[0]?.by ?? null,
    read: (text, payload) => oneOf((payload.importances ?? []).map((each) => each.by), text)},
  look: {start: () => LOOKS[0], read: (text, payload) => oneOf(payload.pictures?.length ? LOOKS : [], text)},
  together: {start: () => TOGETHER[0], read: (text, payload) => oneOf(payload.outputs ? TOGETHER : [], text)},
  one: {start: () => 0, read: (text, payload) => below(comparedIn(payload).length, text)},
  other: {start: () => 1, read: (text, payload) => below(comparedIn(payload).length, text)},
  wordOrder: {start: () => WORD_ORDERS[0],
    read: (text, payload) => oneOf(comparedIn(payload).length ? WORD_ORDERS : [], text)},
  // What the agreement of a report is measured by.
  likeness: {start: (payload) => likenessesIn(payload)[0] ?? null, read: (text, payload) => oneOf(likenessesIn(payload), text)},
  scheme: {start: () => null, read: (text) => oneOf(THEMES, text)},
};

/** @type {Theme[]} */
const THEMES = ["light", "dark"];
const KEPT_NAMES = /** @type {(keyof Kept)[]} */ (Object.keys(KEPT));

/** @param {number | null | undefined} count @param {string} text */
function below(count, text) {
  return /^\d{1,9}$/.test(text) && Number(text) < (count ?? 0) ? Number(text) : undefined;
}

/** @param {number | null | undefined} count @param {string} text */
function allBelow(count, text) {
  const texts = text.split(","), found = texts.map((each) => below(count, each) ?? -1);
  return found.includes(-1) ? undefined : found;
}

/** @param {string} text */
function truth(text) {
  return ["true", "false"].includes(text) ? text === "true" : undefined;
}

/** @template {string} T @param {readonly T[]} values @param {string} text */
const oneOf = (values, text) => values.find((each) => each === text);

// The values at the start; a payload may say in `opens` how it opens.
/** @param {Payload} payload */
function startOf(payload) {
  const values = Object.entries(KEPT).map(([name, {start}]) => [name, start(payload)]);
  const first = /** @type {Kept} */ (Object.fromEntries(values));
  return {...first, ...allowed(payload.opens ?? {}, payload, first)};
}

/** @param {Kept} state */
const keptIn = (state) => /** @type {Kept} */ (Object.fromEntries(KEPT_NAMES.map((name) => [name, state[name]])));

// Of what is wished, the change that the payload allows. A name that is empty at the start may be emptied again.
/** @param {Wishes} wishes @param {Payload} payload @param {Kept} state */
function allowed(wishes, payload, state) {
  /** @type {Wishes} */
  const change = {};
  for (const name of KEPT_NAMES) {
    if (!Object.hasOwn(wishes, name)) continue;
    /** @type {KeptName} */
    const {start, read} = KEPT[name];
    const empties = (wishes[name] === null || wishes[name] === "") && start(payload) === null;
    const value = empties ? null : read(String(wishes[name]), payload, {...state, ...change});
    if (value !== undefined && String(value) !== String(state[name])) change[name] = value;
  }
  if ("layer" in change) stayInside(change, payload, {...state, ...change});
  return /** @type {Partial<Kept>} */ (change);
}

// A layer that lacks the heads that were chosen opens with its first.
/** @param {Wishes} change @param {Payload} payload @param {Wishes & {layer: number}} state */
function stayInside(change, payload, state) {
  if (KEPT.head.read(String(state.head), payload, state) === undefined) change.head = 0;
  if (state.heads !== null && KEPT.heads.read(String(state.heads), payload, state) === undefined) change.heads = null;
}

// An address ends in `#place&name=value&name=value`: a place on the page, and what is kept.
function readAddress() {
  const pieces = location.hash.slice(1).split("&");
  const [place = ""] = pieces.filter((piece) => !piece.includes("="));
  const wishes = new URLSearchParams(pieces.filter((piece) => piece.includes("=")).join("&"));
  return {place, wishes: Object.fromEntries(wishes)};
}

/** @param {Payload} payload @param {State} state */
function writeAddress(payload, state) {
  const start = startOf(payload);
  const values = Object.entries(keptIn(state))
    .filter(([name, value]) => String(value) !== String(start[/** @type {keyof Kept} */ (name)]))
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value ?? "")).replaceAll("%2C", ",")}`);
  const hash = [readAddress().place, ...values].filter(Boolean).join("&");
  const [address] = location.href.split("#");
  try {
    history.replaceState(history.state, "", hash ? `${address}#${hash}` : address);
  } catch { /* a frame without an address of its own keeps nothing */ }
}

// Once, a moment after the last call: pointing at tokens changes the state many times a second.
/** @param {() => void} work */
function settled(work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, 150);
  };
}

/** @param {Payload} payload @param {State} state */
function followAddress(payload, state) {
  const write = settled(() => writeAddress(payload, state));
  const hear = () => {
    state.set(allowed(readAddress().wishes, payload, state));
    write();
  };
  state.on(KEPT_NAMES, write);
  addEventListener("hashchange", hear);
  document.getElementById(readAddress().place)?.scrollIntoView();
  return () => removeEventListener("hashchange", hear);
}

// The model of a widget holds the state too: each side hears of the other's changes, and what the payload does
// not allow is put right.
/** @param {WidgetModel} model @param {Payload} payload @param {State} state */
function followModel(model, payload, state) {
  const tell = () => {
    const kept = keptIn(state);
    if (JSON.stringify(kept) === JSON.stringify(model.get("state"))) return;
    model.set("state", kept);
    model.save_changes();
  };
  const tellSoon = settled(tell);
  const hear = () => {
    state.set(allowed(model.get("state") ?? {}, payload, state));
    tellSoon();
  };
  state.on(KEPT_NAMES, tellSoon);
  model.on("change:state", hear);
  tell();
  return () => model.off("change:state", hear);
}
