// Heads switched off, the least important first: a slider, the accuracy on many texts, and the prediction of this one.

import {button, make} from "./views.js";
import {wordsOf} from "./api.js";
import {listBox, progressLine, soon, tellTrouble, troubleLine} from "./parts.js";
import {plot} from "./plots.js";
import {begin, cancel, isOver} from "./running.js";
import {modelOf} from "./store.js";

const TEXTS = 100;

/** @param {HTMLElement} element @param {LabStore} store */
export function drawPrune(element, store) {
  const fold = make("details", ""), controls = make("div", "panel-tools"), trouble = troubleLine(), body = make("div", "");
  fold.append(make("summary", "", "Prune heads by importance"), controls, trouble, body);
  element.append(fold);
  let by = "", data = "", leave = () => {};
  /** @type {LabJob | null} */
  let job = null;
  const start = () => {
    leave();
    tellTrouble(trouble, "");
    leave = begin({job: "prune", model: store.state.model, by, data, count: TEXTS, seed: 0},
      (found) => { job = found; show(); }, (words) => tellTrouble(trouble, words));
  };
  const arrange = () => {
    const model = modelOf(store.state), {rankings} = store.state.catalogue;
    by = rankings.includes(by) ? by : rankings[0] ?? "";
    data = model.data.includes(data) ? data : model.data[0] ?? "";
    element.hidden = !data;
    controls.replaceChildren(listBox("by", rankings.map((each) => [each, each.replaceAll("_", " ")]), by, (value) => (by = value)),
      listBox("on", model.data.map((each) => [each, each]), data, (value) => (data = value)), button("measure", "run-prune", start));
  };
  const show = () => {
    if (!job) return void body.replaceChildren();
    const now = job;
    if (!isOver(now)) {
      return void body.replaceChildren(progressLine(now.progress, now.state), button("cancel", "cancel", () => {
        cancel(now.id).catch((problem) => tellTrouble(trouble, wordsOf(problem)));
      }));
    }
    if (now.state !== "done") return void body.replaceChildren(make("p", "quiet", now.error ?? "It was cancelled."));
    body.replaceChildren(slider(/** @type {LabPruned} */ (now.result), store));
  };
  /** @param {LabJob} found */
  const open = (found) => { job = found; fold.open = true; show(); };
  store.on(["model", "catalogue"], () => { job = null; leave(); arrange(); show(); });
  element.addEventListener("attlas-open", (event) => open(/** @type {CustomEvent<LabJob>} */ (event).detail));
  arrange();
}

/** @param {LabPruned} found @param {LabStore} store */
function slider(found, store) {
  const range = make("input", ""), told = make("p", "pruned-words"), chart = make("div", "");
  Object.assign(range, {type: "range", min: "0", max: String(found.heads), step: "1", value: String(prunedIn(store.state))});
  range.setAttribute("aria-label", "heads switched off");
  const show = () => {
    const count = Number(range.value), point = nearest(found.points, count), chance = nearest(found.random, count);
    told.replaceChildren(make("b", "", `${count} of ${found.heads} heads off`), ": accuracy ", make("span", "mono", point.accuracy.toFixed(3)),
      make("span", "quiet", ` (${point.low.toFixed(2)} to ${point.high.toFixed(2)}; in random order ${chance.accuracy.toFixed(2)}) on ${found.texts} texts`));
    range.setAttribute("aria-valuetext", told.textContent ?? "");
    /** @param {LabPoint[]} points */
    const curve = (points) => points.map((each) => [each.heads, each.accuracy]);
    chart.replaceChildren(plot([{name: `by ${found.by}`, look: "method", points: curve(found.points)},
      {name: "random", look: "random", points: curve(found.random)}, {name: "", look: "hand", points: [[count, point.accuracy]], dots: true}],
    {across: "heads switched off", up: "accuracy", from: [0, 0], to: [found.heads, 1], label: "Accuracy as heads are switched off"}));
  };
  const apply = soon(() => store.act({items: withPruned(store.state.items, found, Number(range.value))}), 150);
  range.addEventListener("input", () => { show(); apply(); });
  show();
  return make("div", "", range, told, chart);
}

/** @param {LabPoint[]} points @param {number} count */
const nearest = (points, count) => points.reduce((best, each) => (Math.abs(each.heads - count) < Math.abs(best.heads - count) ? each : best));

/** @param {LabState} state */
const prunedIn = (state) => state.items.filter((item) => item.made === "prune")
  .flatMap((item) => item.edits).reduce((sum, edit) => sum + (edit.heads?.length ?? 0), 0);

// One line of the list for all heads that are off, with an edit for each layer.
/** @param {LabItem[]} items @param {LabPruned} found @param {number} count @returns {LabItem[]} */
function withPruned(items, found, count) {
  const others = items.filter((item) => item.made !== "prune");
  if (!count) return others;
  /** @type {Map<string, LabEdit & {heads: number[]}>} */
  const edits = new Map();
  for (const {kind, layer, head} of found.order.slice(0, count)) {
    const key = `${kind} ${layer}`, held = edits.get(key) ?? {action: "zero", kind, layer, heads: []};
    held.heads.push(head);
    edits.set(key, held);
  }
  return [...others, {label: `${count} heads off, least important by ${found.by}`, edits: [...edits.values()], made: "prune"}];
}
