// The live laboratory: one state, panels that draw it, and the questions that follow from its changes.

import {make} from "./views.js";
import {get, lastOnly, wordsOf} from "./api.js";
import {readAddress, writeAddress} from "./address.js";
import {drawAsk} from "./ask.js";
import {drawActions} from "./exporting.js";
import {drawInterventions} from "./interventions.js";
import {drawJobs} from "./jobs.js";
import {followMarks, keptMarks, markedBefore} from "./marks.js";
import {makeMenu} from "./menu.js";
import {byId, soon, tellTrouble, troubleLine} from "./parts.js";
import {drawPrediction} from "./prediction.js";
import {drawRemoval} from "./removal.js";
import {editsOf, isAsked, makeStore, methodOf, questionOf} from "./store.js";
import {drawTokens} from "./tokens.js";
import {drawTour} from "./tour.js";
import {drawWelcome} from "./welcome.js";
import {drawWindows} from "./windows.js";

/** @param {LabCatalogue} catalogue @returns {LabKept} */
function startOf(catalogue) {
  const usable = catalogue.models.filter((each) => !each.error);
  const model = usable.find((each) => each.key === catalogue.default.model) ?? usable[0] ?? catalogue.models[0];
  return {model: model.key, input: {}, target: null, position: null, method: catalogue.default.method, items: [], removed: [],
    removal: catalogue.removals.includes("mask") ? "mask" : catalogue.removals[0], mode: "remove", tab: "heads", shown: "now", view: {},
    against: null, tour: null, scheme: null};
}

/** @param {LabStore} store */
function questions(store) {
  const trouble = byId("trouble"), own = troubleLine(), askExplain = lastOnly(), askIntervene = lastOnly();
  const explain = async () => {
    const {state} = store;
    if (!isAsked(state)) return void store.set({explanation: null, intervened: null, without: null});
    store.set({busy: true});
    tellTrouble(trouble, "");
    try {
      const maps = state.shown === "method" && Boolean(methodOf(state)?.maps);
      const found = await askExplain("api/explain", {...questionOf(state), method: state.method, maps});
      if (!found) return;
      store.set({explanation: found.explanation});
      store.set({marked: markedBefore(state)});
    } catch (problem) {
      store.set({explanation: null});
      tellTrouble(trouble, wordsOf(problem));
      if (own.textContent === trouble.textContent) tellTrouble(own, "");  // once is enough
    }
    store.set({busy: false});
  };
  const intervene = async () => {
    const {state} = store;
    if (!isAsked(state)) return;
    try {
      const found = await askIntervene("api/intervene", {...questionOf(state), edits: editsOf(state), maps: true});
      if (!found) return;
      tellTrouble(own, "");
      store.set({intervened: found});
    } catch (problem) {
      if (!state.items.length) store.set({intervened: null});
      if (wordsOf(problem) !== trouble.textContent) tellTrouble(own, wordsOf(problem));
    }
  };
  return {explain, intervene, own};
}

/** @param {LabCatalogue} catalogue */
function begin(catalogue) {
  const start = startOf(catalogue);
  const store = makeStore({...start, ...readAddress(location.hash, catalogue), catalogue, explanation: null, intervened: null, without: null,
    marked: [], marks: keptMarks(), busy: false, search: null});
  const {explain, intervene, own} = questions(store);
  // A new text or model has nothing removed and nothing changed.
  /** @param {Partial<LabKept>} question */
  const ask = (question) => {
    const isNew = question.model !== undefined || question.input !== undefined;
    if (isNew) store.forget();
    const clean = isNew ? {items: [], removed: [], without: null, marked: [], search: null, intervened: null,
      tab: store.state.tab === "two" ? "heads" : store.state.tab, view: question.model === undefined ? store.state.view : {}} : {};
    const input = question.model !== undefined && question.input === undefined ? {input: exampleOf(catalogue, question.model)} : {};
    store.set({...clean, ...input, ...question});
    void explain();
    if (isNew || "target" in question) void intervene();
  };
  /** @param {Partial<LabKept>} state */
  const go = (state) => {
    store.forget();
    store.set({...start, against: null, scheme: store.state.scheme, search: null, without: null, intervened: null, ...state});
    void explain();
    void intervene();
  };
  const write = soon(() => writeAddress(store.state, start));
  const kept = /** @type {(keyof LabState)[]} */ (Object.keys(start));
  store.on(kept, write);
  store.on(["items"], () => void intervene());
  store.on(["shown"], () => { if (store.state.shown === "method" && !store.state.explanation?.maps) void explain(); });
  store.on(["busy"], () => byId("laboratory").classList.toggle("busy", store.state.busy));
  addEventListener("hashchange", () => go(readAddress(location.hash, catalogue)));
  draw(store, ask, go, own, () => writeAddress(store.state, start));
  if (!isAsked(store.state)) store.state.input = {};
  void explain();
  void intervene();
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();  // the address is for the state
    byId("tokens").focus();
  });
}

/** @param {LabCatalogue} catalogue @param {string} key */
const exampleOf = (catalogue, key) => catalogue.models.find((each) => each.key === key)?.examples[0] ?? {};

/**
 * @param {LabStore} store
 * @param {(question: Partial<LabKept>) => void} ask
 * @param {(state: Partial<LabKept>) => void} go
 * @param {HTMLElement} trouble
 * @param {() => void} flush
 */
function draw(store, ask, go, trouble, flush) {
  const menu = makeMenu(store);
  drawAsk(store, ask);
  drawPrediction(store);
  // Point at a token in one panel and it lights up in the other.
  let pointing = false;
  /** @param {() => void} work */
  const once = (work) => { if (!pointing) { pointing = true; work(); pointing = false; } };
  const tokens = drawTokens(store, {pointed: (token) => once(() => windows.point(token)), openToken: (chip, positions, label) => {
    const maps = store.state.intervened?.maps;
    if (maps) menu.openToken(chip, positions, label, maps.after);
  }});
  const windows = drawWindows(store, {openPlace: menu.openPlace, pointed: (token) => once(() => tokens.point(token))});
  drawRemoval(store);
  followMarks(store);
  drawInterventions(store, trouble);
  drawJobs(store, (job) => openJob(job, store, go));
  const tour = drawTour(store, go);
  drawWelcome(store, tour.start);
  drawActions(store, {flush, startTour: tour.start});
}

// A job of the list is shown where it belongs, with the question that it was asked.
/** @param {LabJob} job @param {LabStore} store @param {(state: Partial<LabKept>) => void} go */
function openJob(job, store, go) {
  const {model, input, target} = /** @type {any} */ (job.request);
  if (job.job === "prune") {
    if (model !== store.state.model) go({model, input: exampleOf(store.state.catalogue, model)});
    document.querySelector("#interventions .prune")?.dispatchEvent(new CustomEvent("attlas-open", {detail: job}));
    return void document.querySelector("#interventions .prune")?.scrollIntoView({block: "nearest"});
  }
  go({model, input, target: target ?? null, tab: "two"});
  store.set({search: job});
}

get("api/models").then(begin).catch((problem) => {
  byId("laboratory").append(make("p", "trouble", wordsOf(problem)));
});
