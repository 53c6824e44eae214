// Removal by hand beside the method's own order, random orders and the best one.

import {button, make, visible} from "./views.js";
import {lastOnly, wordsOf} from "./api.js";
import {byId, tellTrouble, troubleLine} from "./parts.js";
import {plot} from "./plots.js";
import {isAsked, questionOf} from "./store.js";

/** @param {LabStore} store */
export function drawRemoval(store) {
  const box = byId("removal"), head = make("h3", "", "Removed by hand"), trouble = troubleLine(), body = make("div", ""), ask = lastOnly(), askCurves = lastOnly();
  box.append(head, trouble, body);
  /** @type {LabCurves | null} */
  let curves = null;
  let askedFor = "";

  const hand = async () => {
    const {state} = store, {removed} = state;
    if (!removed.length || !isAsked(state)) return void store.set({without: null});
    const sets = removed.map((_, count) => removed.slice(0, count + 1).flat());
    try {
      const found = await ask("api/remove", {...questionOf(state), removal: state.removal, sets});
      if (found) store.set({without: found});
      if (found) tellTrouble(trouble, "");
    } catch (problem) {
      tellTrouble(trouble, wordsOf(problem));
    }
  };
  const others = async () => {
    const {state} = store, key = JSON.stringify([questionOf(state), state.method, state.removal]);
    if (state.mode !== "remove" || !isAsked(state) || !state.removed.length || key === askedFor) return;
    askedFor = key;
    curves = null;
    show();
    try {
      const found = await askCurves("api/curves", {...questionOf(state), method: state.method, removal: state.removal, seed: 0});
      if (!found) return;
      curves = found;
    } catch (problem) {
      tellTrouble(trouble, wordsOf(problem));
    }
    show();
  };
  const show = () => {
    const {state} = store;
    box.hidden = state.mode !== "remove" || !state.removed.length || !state.explanation;
    if (box.hidden) return;
    body.replaceChildren(picture(state, curves), summary(state, curves), button("put all words back", "", () => store.act({removed: []})));
  };
  store.on(["removed", "removal", "explanation"], () => { void hand(); void others(); show(); });
  store.on(["mode"], () => { void others(); show(); });
  store.on(["without"], show);
  show();
}

/** @param {LabState} state @param {LabCurves | null} curves */
function picture(state, curves) {
  const whole = state.without?.whole.score ?? curves?.curves[0]?.scores[0] ?? 0;
  const steps = state.removed.map((each) => each.length);
  const own = [[0, whole], ...(state.without?.without ?? []).flatMap((each, index) =>
    (each.score === null ? [] : [[steps.slice(0, index + 1).reduce((sum, count) => sum + count, 0), each.score]]))];
  /** @type {LabLine[]} */
  const lines = (curves?.curves ?? []).map((curve) => ({name: curve.name === "best" ? "best order found" : curve.name === "random" ? "random orders" : curve.name,
    look: curve.name === "best" || curve.name === "random" ? curve.name : "method",
    points: curve.scores.flatMap((score, index) => (score === null ? [] : [[curves?.counts[index] ?? index, score]]))}));
  const most = Math.max(...lines.flatMap((line) => line.points.map(([x]) => x)), ...own.map(([x]) => x), 1);
  const values = [...own, ...lines.flatMap((line) => line.points)].map(([, y]) => y);
  const isShare = values.every((value) => value >= 0 && value <= 1);
  return plot([...lines, {name: "your hand", look: "hand", points: own, dots: true}], {across: "tokens removed", up: `score of ${visible(state.without?.target ?? "the target")}`,
    from: [0, isShare ? 0 : Math.min(...values)], to: [most, isShare ? 1 : Math.max(...values)], label: "The score as tokens are removed, by hand and by other orders"});
}

/** @param {LabState} state @param {LabCurves | null} curves */
function summary(state, curves) {
  if (!curves) return make("p", "hint quiet", "The other orders are being worked out …");
  if (curves.standing === null) return make("p", "hint quiet", "No order is better than a random one here.");
  const share = Math.round(100 * curves.standing);
  return make("p", "hint quiet", `${visible(state.method)} comes ${share} % of the way from random orders (0 %) to the best order found (100 %).`);
}
