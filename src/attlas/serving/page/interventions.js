// What was done to the attention: a list, undo and redo, and the searches for another attention.

import {button, make, visible} from "./views.js";
import {byId, title} from "./parts.js";
import {drawPrune} from "./prune.js";
import {drawSearch} from "./search.js";

/** @param {LabStore} store @param {HTMLElement} trouble */
export function drawInterventions(store, trouble) {
  const box = byId("interventions"), list = make("ol", "did"), empty = make("p", "hint quiet"), tools = make("div", "panel-tools steps");
  const search = make("div", "search"), prune = make("div", "prune");
  box.append(title("interventions-title", "Interventions"), empty, list, trouble, tools, search, prune);
  empty.textContent = "Nothing is changed yet. Click a weight, a row, a head or a layer of the attention, and choose what to do with it.";
  const show = () => {
    const {state} = store, focused = document.activeElement;
    const held = focused instanceof HTMLElement && box.contains(focused) ? focused.dataset.step ?? null : null;
    empty.hidden = state.items.length > 0;
    list.hidden = !state.items.length;
    list.replaceChildren(...state.items.map((item, index) => {
      const remove = button("✕", "leave", () => store.act({items: state.items.filter((_, each) => each !== index)}));
      remove.setAttribute("aria-label", `take back ${item.label}`);
      return make("li", "", make("span", "mono number", String(index + 1)), make("bdi", "label", visible(item.label)), remove);
    }));
    /** @param {string} name @param {string} text @param {boolean} able @param {() => void} work */
    const step = (name, text, able, work) => {
      const made = button(text, "", work);
      made.dataset.step = name;
      made.disabled = !able;
      return made;
    };
    tools.replaceChildren(step("undo", "↶ undo", store.canUndo(), () => store.undo()), step("redo", "redo ↷", store.canRedo(), () => store.redo()),
      step("reset", "reset", state.items.length > 0 || state.removed.length > 0, () => store.act({items: [], removed: []})));
    if (held) /** @type {HTMLElement | null} */ (tools.querySelector(`[data-step="${held}"]:enabled`) ?? tools.querySelector("button:enabled"))?.focus();
  };
  store.on(["items", "removed", "explanation"], show);
  show();
  drawSearch(search, store);
  drawPrune(prune, store);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("textarea, input[type=text], input[type=number]");
    if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    if (event.shiftKey) store.redo();
    else store.undo();
  });
}
