// The middle of the page: attention by layers and heads, its flow, comparisons, and two attentions side by side.

import {button, draw, drawFlow, drawMaps, drawTip, headNumber, keptIn, make} from "./views.js";
import {byId, pressed, title} from "./parts.js";
import {drawComparison} from "./compare.js";
import {drawTwo} from "./two.js";
import {methodOf} from "./store.js";

const TABS = [["heads", "Heads"], ["flow", "Flow"], ["compare", "Compare"], ["two", "Two attentions"]];
// Of the state of the maps, what the address keeps.
const KEPT = ["layer", "head", "heads", "view", "order", "hidden", "row"];

/**
 * @param {LabStore} store
 * @param {{openPlace: (picked: Picked, payload: MappedPayload, from: Element | null) => void, pointed: (token: number | null) => void}} steps
 */
export function drawWindows(store, steps) {
  const box = byId("views"), tabs = make("div", "panel-tools"), body = make("div", "views-body"), tools = make("div", "panel-tools maps-tools");
  const compared = make("div", ""), two = make("div", "");
  box.append(title("views-title", "Attention"), make("div", "views-tools", tabs, tools), body, compared, two);
  const comparison = drawComparison(compared, store);
  drawTwo(two, store);
  /** @type {{state: State, payload: Payload, stop: () => void} | null} */
  let shown = null;
  const keep = () => {
    if (!shown) return;
    const kept = keptIn(shown.state), {unit} = store.state.view;
    const view = Object.fromEntries(KEPT.map((name) => [name, /** @type {any} */ (kept)[name]]).filter(([, value]) => value !== null && value !== false));
    store.state.view = unit ? {...view, unit} : view;
    store.set({view: {...store.state.view}});
  };
  const build = () => {
    const {state} = store, {tab} = state, maps = mapsShown(state), isMaps = tab === "heads" || tab === "flow";
    const wasFocused = body.contains(document.activeElement) || document.activeElement === document.body && body.dataset.held === "true";
    shown?.stop();
    shown = null;
    compared.hidden = tab !== "compare";
    two.hidden = tab !== "two";
    body.hidden = tools.hidden = !isMaps || !maps;
    if (!isMaps) return;
    if (!maps) return;
    const payload = /** @type {MappedPayload} */ (maps);
    shown = draw(body, payload, {...startOf(state, payload), ...state.view, scheme: state.scheme},
      tab === "heads" ? [drawMaps, drawTip] : [drawFlow, drawTip]);
    const fold = body.querySelector("details");
    if (fold) fold.open = true;
    const {state: own} = shown;
    own.on(["token"], () => steps.pointed(own.token));
    own.on(/** @type {any} */ (KEPT), keep);
    own.on(["layer", "head"], () => drawTools(tools, store, payload, own, steps.openPlace));
    drawTools(tools, store, payload, own, steps.openPlace);
    if (wasFocused) /** @type {HTMLElement | null} */ (body.querySelector('.thumb[aria-pressed="true"]'))?.focus({preventScroll: true});
  };
  body.addEventListener("attlas-pick", (event) => {
    const picked = /** @type {CustomEvent<Picked>} */ (event).detail;
    const isOpening = picked.head !== undefined && picked.row === undefined && picked.column === undefined && !picked.again;
    const maps = mapsShown(store.state);
    if (!maps || isOpening || store.state.shown === "method") return;
    steps.openPlace(picked, /** @type {MappedPayload} */ (maps), document.activeElement);
  });
  const drawTabs = () => {
    const {state} = store;
    const able = TABS.filter(([name]) => name !== "two" || state.search !== null || state.tab === "two");
    tabs.replaceChildren(pressed("What is shown", able, state.tab, (tab) => store.set({tab})));
    if (state.tab === "compare") comparison.refresh();
  };
  store.on(["tab", "search"], drawTabs);
  store.on(["tab", "intervened", "shown", "explanation"], build);
  store.on(["scheme"], () => shown?.state.set({scheme: store.state.scheme}));
  drawTabs();
  build();
  return {point: (/** @type {number | null} */ token) => shown?.state.set({token, tip: null})};
}

// The last layer's first head, if nothing else was chosen.
/** @param {LabState} state @param {MappedPayload} payload */
function startOf(state, payload) {
  return state.view.layer === undefined ? {view: "matrix"} : {layer: Math.min(Number(state.view.layer), payload.maps.sites.length - 1)};
}

/** @param {LabState} state @returns {Payload | null} */
export function mapsShown(state) {
  const {shown, intervened, explanation} = state;
  if (shown === "method" && explanation?.maps) return {...explanation, kind: "maps"};
  const maps = intervened?.maps;
  if (!maps) return null;
  return shown === "before" ? maps.before : maps.after;
}

/**
 * @param {HTMLElement} element
 * @param {LabStore} store
 * @param {MappedPayload} payload
 * @param {State} own
 * @param {(picked: Picked, payload: MappedPayload, from: Element | null) => void} openPlace
 */
function drawTools(element, store, payload, own, openPlace) {
  const {state} = store, method = methodOf(state), site = payload.maps.sites[own.layer];
  const choices = [["now", state.items.length ? "as changed" : "attention"], ...(state.items.length ? [["before", "original"]] : []),
    ...(method?.maps ? [["method", `what ${method.name} finds`]] : [])];
  const now = choices.some(([name]) => name === state.shown) ? state.shown : "now";
  const parts = choices.length > 1 ? [pressed("Which maps", choices, now, (shown) => store.set({shown}))] : [];
  if (state.shown !== "method") {
    /** @param {string} words @param {Partial<PickedPlace>} place */
    const change = (words, place) => {
      const made = button(words, "change", () => openPlace({site, ...place, box: made.getBoundingClientRect()}, payload, made));
      made.setAttribute("aria-haspopup", "dialog");
      return made;
    };
    parts.push(make("div", "changes", make("span", "quiet", "change "), change(`layer ${site.layer} ▾`, {}),
      change(`head ${site.layer}·${headNumber(site, own.head)} ▾`, {head: own.head})));
  }
  const focused = [...element.querySelectorAll("button")].findIndex((each) => each === document.activeElement);
  element.replaceChildren(...parts);
  element.querySelectorAll("button")[focused]?.focus();
}
