// "Different attention, same prediction" and "other attention, same output": searches that are watched while they run.

import {button, layerNames, make} from "./views.js";
import {wordsOf} from "./api.js";
import {listBox, probability, progressLine, tellTrouble, troubleLine} from "./parts.js";
import {plot} from "./plots.js";
import {begin, cancel, isOver} from "./running.js";
import {isAsked, modelOf, questionOf} from "./store.js";

/** @type {Record<string, {name: string, says: string}>} */
const SEARCHES = {
  adversary: {name: "Different attention, same prediction", says: "searches for attention as far from the model's as it can, with nearly the same prediction"},
  same_output: {name: "Other attention, same output", says: "adds what the values cancel: another attention, and the very same output"},
};

/** @param {HTMLElement} element @param {LabStore} store */
export function drawSearch(element, store) {
  const buttons = make("div", "search-buttons"), trouble = troubleLine(), body = make("div", "search-body");
  element.append(make("h3", "", "Search"), buttons, trouble, body);
  let layer = "-1", leave = () => {};
  /** @param {string} job */
  const start = (job) => {
    const {state} = store;
    leave();
    tellTrouble(trouble, "");
    store.set({tab: "two", search: null});
    const {model, input, target} = questionOf(state);
    const request = {job, model, input, layer: Number(layer), seed: 0, ...(job === "adversary" ? {target, tolerance: 0.01} : {})};
    leave = begin(request, (found) => store.set({search: found}), (words) => tellTrouble(trouble, words));
  };
  const controls = () => {
    const layers = [...new Set(modelOf(store.state).sites.map((site) => site.layer))];
    buttons.replaceChildren(...Object.entries(SEARCHES).map(([job, {name, says}]) => {
      const made = button(name, "search-button", () => start(job));
      made.title = says;
      made.disabled = !isAsked(store.state);
      return made;
    }), ...(layers.length > 1 ? [listBox("of", [["-1", "the last layer"], ...layers.map((each) => [String(each), `layer ${each}`])], layer,
      (value) => (layer = value))] : []));
  };
  const show = () => {
    const job = store.state.search;
    if (!job) return void body.replaceChildren();
    const over = isOver(job);
    /** @type {HTMLElement[]} */
    const parts = [make("p", "search-name", SEARCHES[job.job]?.name ?? job.job)];
    if (!over) parts.push(progressLine(job.progress, job.state), button("cancel", "cancel", () => {
      cancel(job.id).catch((problem) => tellTrouble(trouble, wordsOf(problem)));
    }));
    if (job.points?.length && (!over || job.result?.edits?.length || job.state === "cancelled")) parts.push(pointsPlot(job));
    if (job.state === "cancelled") parts.push(make("p", "quiet", "The search was cancelled."));
    if (job.state === "failed") parts.push(make("p", "trouble", job.error ?? "The search did not succeed."));
    if (job.state === "done") parts.push(...resultOf(job, store));
    body.replaceChildren(...parts);
  };
  store.on(["search"], show);
  store.on(["model", "input", "explanation"], controls);
  controls();
  show();
}

/** @param {LabJob} job */
function pointsPlot(job) {
  const points = (job.points ?? []).map(([distance, change]) => [distance, change]);
  const most = Number(job.result?.largest ?? Math.max(0.7, ...points.map(([x]) => x)));
  const tolerance = Number(job.request.tolerance ?? 0), highest = Math.max(tolerance * 1.5, ...points.map(([, y]) => y), 1e-6);
  /** @type {LabLine[]} */
  const lines = [{name: job.job === "adversary" ? "best so far" : "heads", look: job.job === "adversary" ? "hand" : "dots", points, dots: true}];
  if (tolerance) lines.push({name: "allowed change", look: "random", points: [[0, tolerance], [most, tolerance]]});
  return plot(lines, {across: "distance from the model's attention", up: "change of the output", from: [0, 0], to: [most, highest],
    label: "How far the attention is from the model's, and how much the output changes"});
}

/** @param {LabJob} job @param {LabStore} store */
function resultOf(job, store) {
  const found = /** @type {LabFound} */ (job.result);
  if (!found.edits.length) return [make("p", "quiet", found.note || "There is no other attention here with the same output.")];
  const name = SEARCHES[job.job].name.toLowerCase();
  const layer = layerNames(modelOf(store.state).sites.map((site) => site.name)).get(found.site);
  const putIn = button("put it in", "put-in", () => store.act({items: [...store.state.items, {label: `${layer}: ${name}`, edits: found.edits.map(rounded)}]}));
  const beside = button("side by side", "", () => store.set({tab: "two"}));
  return [make("p", "", `Distance ${found.distance.toFixed(3)} of at most ${found.largest.toFixed(3)}: ` +
    `the prediction goes from ${probability(found.before.score)} to ${probability(found.after.score)}.`), make("div", "panel-tools", putIn, beside)];
}

// Weights with few digits, so that they fit into a link.
/** @param {LabEdit} edit @returns {LabEdit} */
function rounded(edit) {
  /** @param {unknown} value @returns {unknown} */
  const round = (value) => (Array.isArray(value) ? value.map(round) : Number(Number(value).toPrecision(6)));
  return edit.weights ? {...edit, weights: edit.weights.map(round)} : edit;
}
