// The text in colours. A click removes a word, changes the attention on it, or marks it, as the mode says.

import {draw, drawBars, drawPicture, drawText, drawTip, keptIn, make, visible} from "./views.js";
import {byId, listBox, pressed, title} from "./parts.js";
import {methodOf, modelOf} from "./store.js";

const MODES = [["remove", "remove", "A click takes a word away"], ["attention", "attention", "A click changes the attention on a word"],
  ["mark", "mark", "A click marks a word as a reason"]];
/** @type {Record<string, string>} */
const HINTS = {
  remove: "Click words to take them away, and watch the prediction.",
  attention: "Click a word to change how the layers look at it.",
  mark: "Click the words that are a reason for the label; they are kept, and exported as rationales.",
};

/**
 * @param {LabStore} store
 * @param {{openToken: (element: HTMLElement, positions: number[], label: string) => void, pointed: (token: number | null) => void}} steps
 */
export function drawTokens(store, steps) {
  const box = byId("tokens"), tools = make("div", "panel-tools"), hint = make("p", "hint quiet"), body = make("div", "tokens-body");
  const removal = make("div", "");
  removal.id = "removal";
  const strongest = make("div", "tokens-body");
  box.append(title("tokens-title", "Text"), tools, hint, body, removal, strongest);
  const controls = () => {
    const {state} = store;
    const model = modelOf(state);
    tools.replaceChildren(pressed("What a click on a word does", MODES, state.mode, (mode) => store.set({mode})),
      ...(state.mode === "remove" ? [listBox("by", state.catalogue.removals.map((each) => [each, each.replaceAll("_", " ")]),
        state.removal, (name) => store.set({removal: name}))] : []),
      ...(state.mode === "mark" && model.labels.length ? [make("span", "quiet", `${state.marks.length} texts marked`)] : []));
    hint.textContent = HINTS[state.mode] ?? "";
  };
  /** @type {{state: State, stop: () => void} | null} */
  let shown = null;
  /** @type {(() => void)[]} */
  let dressings = [];
  const build = () => {
    const {explanation} = store.state;
    shown?.stop();
    dressings = [];
    strongest.replaceChildren();
    if (!explanation) return void body.replaceChildren();
    const wishes = shown ? {unit: keptIn(shown.state).unit} : {unit: store.state.view.unit ?? "words"};
    /** @param {HTMLElement} chip @param {Unit} unit */
    const dress = (chip, unit) => dressChip(chip, unit, store, steps.openToken);
    /** @type {Draw} */
    const text = (element, payload, state) => drawText(element, payload, state, (chip, unit) => {
      const dressed = dress(chip, unit);
      dressings.push(dressed);
      return dressed;
    });
    shown = draw(body, {...explanation, maps: null}, {...wishes, scheme: store.state.scheme}, [drawPicture, text, readingLine(store),
      (_, payload, state) => drawBars(strongest, payload, state), drawTip]);
    const {state} = shown;
    state.on(["token"], () => steps.pointed(state.token));
    state.on(["unit"], () => store.set({view: {...store.state.view, unit: state.unit}}));
  };
  store.on(["explanation"], build);
  store.on(["scheme"], () => shown?.state.set({scheme: store.state.scheme}));
  store.on(["mode", "removal", "catalogue", "marks", "model"], controls);
  store.on(["removed", "marked", "mode"], () => dressings.forEach((dressed) => dressed()));
  controls();
  build();
  return {point: (/** @type {number | null} */ token) => shown?.state.set({token, tip: null})};
}

// What the colours say, in a line.
/** @param {LabStore} store @returns {Draw} */
const readingLine = (store) => (element, payload) => {
  const name = visible(payload.target?.name ?? "the target"), method = methodOf(store.state);
  element.append(make("p", "reading hint quiet", make("b", "mono", visible(payload.method ?? "")), " ",
    visible(method?.reading ?? ""), payload.signed ? ` Orange speaks for ${name}, blue against it.` : " The stronger the colour, the more."));
};

/**
 * @param {HTMLElement} chip
 * @param {Unit} unit
 * @param {LabStore} store
 * @param {(element: HTMLElement, positions: number[], label: string) => void} openToken
 */
function dressChip(chip, unit, store, openToken) {
  const key = unit.positions.join(".");
  const isRemoved = () => store.state.removed.some((each) => each.some((position) => unit.positions.includes(position)));
  const isMarked = () => unit.positions.some((position) => store.state.marked.includes(position));
  const isAble = () => !unit.special || store.state.mode === "attention";
  const act = () => {
    const {mode, removed, marked} = store.state;
    if (!isAble()) return;
    if (mode === "attention") return void openToken(chip, unit.positions, unit.text);
    if (mode === "mark") {
      const others = marked.filter((position) => !unit.positions.includes(position));
      return void store.set({marked: isMarked() ? others : [...others, ...unit.positions]});
    }
    const others = removed.filter((each) => !each.some((position) => unit.positions.includes(position)));
    store.act({removed: isRemoved() ? others : [...others, unit.positions]});
  };
  chip.dataset.positions = key;
  chip.addEventListener("click", act);
  chip.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return () => {
    const {mode} = store.state, on = mode === "mark" ? isMarked() : mode === "remove" ? isRemoved() : null;
    chip.setAttribute("role", isAble() ? "button" : "img");
    chip.classList.toggle("removed", isRemoved());
    chip.classList.toggle("marked", mode === "mark" && isMarked());
    if (on === null || !isAble()) chip.removeAttribute("aria-pressed");
    else chip.setAttribute("aria-pressed", String(on));
  };
}
