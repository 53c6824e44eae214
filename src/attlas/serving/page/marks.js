// What a person marked as reasons: kept for each text, and exported as rationales.

import {modelOf} from "./store.js";

const SHELF = "attlas-marks";

/** @returns {LabMark[]} */
export function keptMarks() {
  try {
    const found = JSON.parse(localStorage.getItem(SHELF) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

// The marks of the text that is shown go to those of the others; no marks, no entry.
/** @param {LabStore} store */
export function followMarks(store) {
  store.on(["marked"], () => {
    const {state} = store, own = markOf(state);
    if (!state.explanation || !state.input.text) return;
    const others = state.marks.filter((each) => each.text !== state.input.text || (each.pair ?? "") !== (state.input.pair ?? ""));
    const marks = own ? [...others, own] : others;
    store.set({marks});
    try {
      localStorage.setItem(SHELF, JSON.stringify(marks));
    } catch { /* they last as long as the page */ }
  });
}

/** @param {LabState} state @returns {LabMark | null} */
function markOf(state) {
  const tokens = state.explanation?.tokens ?? [], {text = "", pair} = state.input;
  const segments = [...new Set(tokens.filter((token) => !token.special).map((token) => token.segment))];
  const own = pair ? segments.at(-1) : segments[0];
  const places = state.marked.map((position) => tokens[position]).filter((token) => token && token.segment === own && token.start !== null)
    .map((token) => [Number(token.start), Number(token.end)]).sort((a, b) => a[0] - b[0]);
  if (!places.length) return null;
  /** @type {number[][]} */
  const spans = [];
  for (const [start, end] of places) {
    const last = spans.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else spans.push([start, end]);
  }
  const label = state.target ?? state.explanation?.prediction?.[0]?.label ?? modelOf(state).labels[0] ?? "";
  return {text, ...(pair ? {pair} : {}), label, spans};
}

// The tokens of a text that was marked before.
/** @param {LabState} state */
export function markedBefore(state) {
  const {text, pair = ""} = state.input, tokens = state.explanation?.tokens ?? [];
  const found = state.marks.find((each) => each.text === text && (each.pair ?? "") === pair);
  if (!found) return [];
  const segments = [...new Set(tokens.filter((token) => !token.special).map((token) => token.segment))];
  const own = pair ? segments.at(-1) : segments[0];
  return tokens.flatMap((token, position) => (token.segment === own && token.start !== null &&
    found.spans.some(([start, end]) => Number(token.start) >= start && Number(token.end) <= end && token.end !== token.start) ? [position] : []));
}
