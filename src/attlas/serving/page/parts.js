// Small things that several panels use.

import {button, make} from "./views.js";

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} id @param {string} text */
export function title(id, text) {
  const made = make("h2", "", text);
  made.id = id;
  return made;
}

// A list to choose from; `groups` is [value, text, group].
/** @param {string} label @param {(string | null)[][]} options @param {string} value @param {(value: string) => void} choose */
export function listBox(label, options, value, choose) {
  const list = make("select", "");
  /** @type {Map<string, HTMLOptGroupElement>} */
  const groups = new Map();
  for (const [each, text, group] of options) {
    const option = Object.assign(make("option", "", text ?? ""), {value: each ?? ""});
    if (!group) { list.append(option); continue; }
    const held = groups.get(group) ?? Object.assign(make("optgroup", ""), {label: group});
    if (!groups.has(group)) { groups.set(group, held); list.append(held); }
    held.append(option);
  }
  list.value = value;
  list.addEventListener("change", () => choose(list.value));
  return make("label", "pick", make("span", "quiet", label), list);
}

// Buttons of which one is pressed.
/** @param {string} label @param {string[][]} options @param {string} value @param {(value: string) => void} choose */
export function pressed(label, options, value, choose) {
  const box = make("div", "choice inline");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  for (const [each, text, about] of options) {
    const made = button(text, "", () => choose(each));
    made.setAttribute("aria-pressed", String(each === value));
    if (about) made.title = about;
    box.append(made);
  }
  return box;
}

// One calm line where something did not work; an empty one is hidden.
/** @param {HTMLElement} element @param {string} words */
export function tellTrouble(element, words) {
  element.textContent = words;
  element.hidden = !words;
}

/** @param {string} className */
export function troubleLine(className = "") {
  const made = make("p", `trouble ${className}`);
  made.setAttribute("role", "alert");
  made.hidden = true;
  return made;
}

/** @param {LabProgress | null} progress @param {string} state */
export function progressLine(progress, state) {
  const bar = make("progress", "");
  if (progress?.total) [bar.max, bar.value] = [progress.total, progress.done];
  bar.setAttribute("aria-label", "progress");
  const count = progress?.total ? `${progress.done} of ${progress.total}` : "";
  const words = state === "queued" ? "waits for its turn" : [progress?.what, count].filter(Boolean).join(" · ") || "begins";
  return make("div", "progress-line", bar, make("span", "quiet", words));
}

/** @param {number | null | undefined} value */
export const probability = (value) => (typeof value === "number" ? value.toFixed(value > 0.9995 || Math.abs(value) >= 10 ? 2 : 3) : "–");

// Once, a moment after the last call.
/** @param {() => void} work @param {number} [wait] */
export function soon(work, wait = 120) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}
