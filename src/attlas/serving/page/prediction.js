// The prediction: now, with the original beside it. A flip is said by word and sign.

import {make, minus, visible} from "./views.js";
import {byId, probability, title} from "./parts.js";
import {modelOf} from "./store.js";

/** @param {LabStore} store */
export function drawPrediction(store) {
  const box = byId("prediction"), rows = make("ul", "answers"), told = make("div", "told-now");
  told.setAttribute("role", "status");
  told.setAttribute("aria-live", "polite");
  box.append(title("prediction-title", "Prediction"), make("div", "answers-and-words", rows, told));
  const show = () => {
    const {state} = store;
    box.hidden = !state.intervened && !state.explanation;
    const before = state.intervened?.before.prediction ?? state.explanation?.prediction ?? [];
    const isEdited = state.items.length > 0 && state.intervened !== null;
    const after = isEdited && state.intervened ? state.intervened.after.prediction : before;
    const target = state.intervened?.target ?? state.explanation?.target?.name;
    const left = isEdited ? null : leftOf(state, before), shown = left ?? after, isMoved = isEdited || left !== null;
    rows.replaceChildren(...merged(before, shown).map(({label, was, now}) => answerRow(label, was, now, label === target, isMoved)));
    const words = [wordsNow(state, before, after, isEdited), wordsWithout(state)].filter((each) => each !== null);
    told.replaceChildren(...words);
    box.classList.toggle("flipped", words.some((each) => each.querySelector(".flip")));
  };
  store.on(["explanation", "intervened", "without", "items", "removed"], show);
  show();
}

// Without words, only the target's probability is known, and with it that of the one other choice.
/** @param {LabState} state @param {Answer[]} before @returns {Answer[] | null} */
function leftOf(state, before) {
  const score = state.removed.length ? state.without?.without.at(-1)?.score ?? null : null;
  if (score === null || !before.some((each) => typeof each.probability === "number")) return null;
  return before.flatMap(({label}) => (label === state.without?.target ? [{label, probability: score}]
    : before.length === 2 ? [{label, probability: 1 - score}] : []));
}

/** @param {Answer[]} before @param {Answer[]} after */
function merged(before, after) {
  const labels = [...new Set([...before, ...after].map((each) => each.label))].slice(0, 6);
  /** @param {Answer[]} list @param {string} label */
  const find = (list, label) => list.find((each) => each.label === label);
  return labels.map((label) => ({label, was: find(before, label), now: find(after, label)}));
}

/** @param {string} label @param {Answer | undefined} was @param {Answer | undefined} now @param {boolean} isTarget @param {boolean} isEdited */
function answerRow(label, was, now, isTarget, isEdited) {
  const track = make("span", "track"), fill = make("span", "fill");
  track.setAttribute("aria-hidden", "true");
  fill.style.width = `${100 * Math.max(0, Math.min(1, now?.probability ?? 0))}%`;
  track.append(fill);
  if (isEdited && typeof was?.probability === "number") {
    const mark = make("span", "was-mark");
    mark.style.left = `${100 * was.probability}%`;
    mark.title = `original ${probability(was.probability)}`;
    track.append(mark);
  }
  const value = now?.probability ?? now?.value;
  const old = was?.probability ?? was?.value;
  return make("li", isTarget ? "target" : "", make("bdi", "label", visible(label)), track,
    make("span", "mono figure now", minus(probability(value))),
    make("span", "mono quiet was", isEdited ? `was ${minus(probability(old))}` : isTarget ? "target" : ""));
}

/** @param {string} before @param {string} after */
const flipSign = (before, after) => make("strong", "flip", `⚠ flipped: ${visible(before)} → ${visible(after)}`);

/** @param {LabState} state @param {Answer[]} before @param {Answer[]} after @param {boolean} isEdited */
function wordsNow(state, before, after, isEdited) {
  const [first] = before, [now] = after;
  if (!first) return null;
  if (!isEdited) {
    return make("p", "", make("span", "quiet", modelOf(state).labels.length ? "The model says " : "The model's first choice: "), make("b", "", visible(first.label)),
      ` ${minus(probability(first.probability ?? first.value))}`);
  }
  const line = make("p", "", make("span", "quiet", "original ▸ "), make("b", "", visible(first.label)),
    ` ${minus(probability(first.probability ?? first.value))}`, make("span", "quiet", "  now ▸ "),
    make("b", "now", visible(now?.label ?? "–")), ` ${minus(probability(now?.probability ?? now?.value))} `);
  if (state.intervened?.flipped) line.append(flipSign(first.label, now?.label ?? "–"));
  else line.append(make("span", "same quiet", "the decision stays"));
  return line;
}

/** @param {LabState} state */
function wordsWithout(state) {
  const last = state.without?.without.at(-1);
  if (!state.removed.length || !state.without || !last) return null;
  const words = state.removed.length === 1 ? "1 word" : `${state.removed.length} words`;
  const line = make("p", "without", make("span", "quiet", `without ${words} ▸ `), make("b", "", visible(state.without.target)),
    ` ${minus(probability(last.score))} `, make("span", "quiet", `was ${minus(probability(state.without.whole.score))} `));
  if (last.score === null) line.append(make("span", "quiet", "nothing is left of the text"));
  else if (last.chosen === false && state.without.whole.chosen !== false) {
    line.append(make("strong", "flip", `⚠ flipped: no longer ${visible(state.without.target)}`));
  } else line.append(make("span", "same quiet", "the decision stays"));
  return line;
}
