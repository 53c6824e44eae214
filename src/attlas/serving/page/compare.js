// Two explanations side by side: of two methods, two texts or two models.

import {draw, drawDifference, drawPairs, drawSideBySide, drawTip, make} from "./views.js";
import {lastOnly, wordsOf} from "./api.js";
import {listBox, pressed, tellTrouble, troubleLine} from "./parts.js";
import {isAsked, modelOf, questionOf} from "./store.js";

const KINDS = [["method", "another method"], ["text", "another text"], ["model", "another model"]];

/** @param {HTMLElement} element @param {LabStore} store */
export function drawComparison(element, store) {
  const tools = make("div", "panel-tools"), trouble = troubleLine(), body = make("div", "compare-body"), ask = lastOnly();
  element.append(tools, trouble, body);
  /** @type {{state: State, stop: () => void} | null} */
  let shown = null;
  const compare = async () => {
    const {state} = store, {against} = state;
    if (state.tab !== "compare" || !against?.value || !isAsked(state)) return;
    const own = {...questionOf(state), method: state.method}, other = {...own};
    if (against.what === "method") other.method = against.value;
    if (against.what === "model") other.model = against.value;
    if (against.what === "text") other.input = state.input.pair ? {...own.input, pair: against.value} : {...own.input, text: against.value};
    try {
      const found = await ask("api/compare", {explanations: [own, other]});
      if (!found) return;
      tellTrouble(trouble, "");
      shown?.stop();
      shown = draw(body, found.comparison, {scheme: state.scheme}, [drawSideBySide, drawPairs, drawDifference, drawTip]);
    } catch (problem) {
      body.replaceChildren();
      tellTrouble(trouble, wordsOf(problem));
    }
  };
  const controls = () => {
    const {state} = store, against = state.against ?? {what: /** @type {const} */ ("method"), value: ""};
    /** @param {string} value */
    const choose = (value) => store.set({against: {what: against.what, value}});
    const kinds = pressed("Compare with", KINDS, against.what, (what) =>
      store.set({against: {what: /** @type {any} */ (what), value: firstOf(state, what)}}));
    tools.replaceChildren(make("span", "quiet", "beside "), kinds, choiceOf(state, against, choose));
  };
  const refresh = () => {
    const {state} = store;
    if (!state.against) return void store.set({against: {what: "method", value: firstOf(state, "method")}});
    controls();
    void compare();
  };
  store.on(["against"], () => { controls(); void compare(); });
  store.on(["explanation"], () => void compare());
  store.on(["scheme"], () => shown?.state.set({scheme: store.state.scheme}));
  controls();
  return {refresh};
}

// The models that may answer the same text.
/** @param {LabState} state */
const peersOf = (state) => state.catalogue.models.filter((each) =>
  each.key !== state.model && !each.error && each.takes === modelOf(state).takes && each.task === modelOf(state).task);

/** @param {LabState} state @param {string} what */
function firstOf(state, what) {
  if (what === "method") return state.method === "raw_attention" ? "attn_lrp" : "raw_attention";
  return what === "model" ? peersOf(state)[0]?.key ?? "" : state.input.pair ?? state.input.text ?? "";
}

/** @param {LabState} state @param {LabAgainst} against @param {(value: string) => void} choose */
function choiceOf(state, against, choose) {
  if (against.what === "method") {
    return listBox("method", state.catalogue.methods.map((each) => [each.name, each.name, each.family_name]), against.value, choose);
  }
  if (against.what === "model") {
    const peers = peersOf(state);
    return peers.length ? listBox("model", peers.map((each) => [each.key, each.key]), against.value, choose)
      : make("span", "quiet", "No other model here takes the same input.");
  }
  const field = make("input", "other-text");
  Object.assign(field, {type: "text", value: against.value});
  field.setAttribute("aria-label", "the other text, with as many words");
  field.addEventListener("change", () => choose(field.value));
  return field;
}
