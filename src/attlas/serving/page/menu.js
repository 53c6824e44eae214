// The small menu at a weight, row, head, layer or word: what to do with its attention.

import {button, headOf, make, minus, rove, visible} from "./views.js";
import {byId, pressed} from "./parts.js";
import {ACTIONS, MEANINGS, PATTERNS, actionWords, editOf, placeWords, scopesOf, tokenEdits} from "./edits.js";

/** @typedef {import("./edits.js").Scope} Scope */

/** @param {LabStore} store */
export function makeMenu(store) {
  const box = byId("menu");
  /** @type {HTMLElement | null} */
  let before = null;
  const close = (back = true) => {
    if (box.hidden) return;
    box.hidden = true;
    if (back && before?.isConnected) before.focus({preventScroll: true});
  };
  /** @param {Box} at @param {Element | null} from */
  const open = (at, from) => {
    before = from instanceof HTMLElement ? from : null;
    box.hidden = false;
    place(box, at);
    /** @type {HTMLElement | null} */ (box.querySelector(".action"))?.focus({preventScroll: true});
  };
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } });
  document.addEventListener("pointerdown", (event) => {
    if (event.target instanceof Node && !box.contains(event.target)) close(false);
  });
  /** @param {LabItem} item */
  const add = (item) => { close(); store.act({items: [...store.state.items, item]}); };

  /** @param {Picked} picked @param {MappedPayload} payload @param {Element | null} from @param {Scope} [first] */
  const openPlace = (picked, payload, from, first) => {
    const scopes = scopesOf(picked);
    /** @param {Scope} scope */
    const fill = (scope) => {
      const words = placeWords(picked, scope, payload, visible);
      /** @param {string} action @param {number | string} value */
      const choose = (action, value) => add({label: `${words}: ${actionWords(action, value)}`, edits: [editOf(picked, scope, action, value)]});
      box.replaceChildren(heading(words, close), ...(scopes.length > 1 ? [pressed("What to change", scopes.map((each) => [each, each]), scope, (each) => {
        fill(/** @type {Scope} */ (each));
        /** @type {HTMLElement | null} */ (box.querySelector('[aria-pressed="true"]'))?.focus();
      })] : []), ...weightNow(picked, scope), actionsOf(scope, choose));
      rove(box, ".action");
    };
    fill(first && scopes.includes(first) ? first : scopes[0]);
    open(picked.box, from);
  };

  /** @param {HTMLElement} chip @param {number[]} positions @param {string} label @param {MappedPayload} payload */
  const openToken = (chip, positions, label, payload) => {
    const words = `word ${visible(label)}`;
    box.replaceChildren(heading(`${words} · all layers`, close), actionsOf("token", (action, value) =>
      add({label: `${words}: ${actionWords(action, value)}`, edits: tokenEdits(positions, payload, action, value)})));
    rove(box, ".action");
    open(chip.getBoundingClientRect(), chip);
  };
  return {openPlace, openToken, close};
}

/** @param {string} words @param {() => void} close */
function heading(words, close) {
  const leave = button("✕", "leave", () => close());
  leave.setAttribute("aria-label", "close");
  return make("div", "menu-head", make("b", "mono", words), leave);
}

/** @param {Picked} picked @param {Scope} scope */
function weightNow({site, head, row, column}, scope) {
  if (scope !== "weight" || row === undefined || column === undefined) return [];
  return [make("p", "quiet", "its weight is ", make("span", "mono", minus(headOf(site, head ?? 0).value(row, column).toFixed(3))))];
}

/** @param {Scope} scope @param {(action: string, value: number | string) => void} choose */
function actionsOf(scope, choose) {
  const list = make("ul", "menu-actions");
  for (const action of ACTIONS[scope]) {
    const value = valueOf(action, scope);
    const made = button(action, "action", () => choose(action, value ? value.read() : action === "shuffle" ? Math.floor(Math.random() * 1000) : 0));
    const meaning = make("span", "quiet", MEANINGS[action][scope] ?? "", ...(value ? [" ", value.element] : []));
    list.append(make("li", "", made, meaning));
  }
  return list;
}

/** @param {string} action @param {Scope} scope @returns {{element: HTMLElement, read: () => number | string} | null} */
function valueOf(action, scope) {
  if (action === "replace" && ["row", "head", "layer"].includes(scope)) {
    const list = make("select", "", ...PATTERNS.map((each) => make("option", "", each)));
    list.setAttribute("aria-label", "what to look at");
    return {element: list, read: () => list.value};
  }
  if (action !== "scale" && action !== "replace") return null;
  const input = make("input", "number mono");
  Object.assign(input, {type: "number", step: "0.1", min: "0", max: "100", value: action === "scale" ? "2" : "0.5"});
  input.setAttribute("aria-label", action === "scale" ? "factor" : "weight");
  return {element: input, read: () => Math.max(0, Math.min(100, Number(input.value) || 0))};
}

// Below what was clicked, or above it, and always on the screen.
/** @param {HTMLElement} box @param {Box} at */
function place(box, at) {
  const {offsetWidth: width, offsetHeight: height} = box, gap = 6;
  const left = Math.max(8, Math.min(innerWidth - width - 8, at.left));
  const isBelow = at.bottom + gap + height < innerHeight || at.top - gap - height < 0;
  const top = isBelow ? Math.min(at.bottom + gap, innerHeight - height - 8) : at.top - gap - height;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${Math.max(8, top) + scrollY}px`;
}
