// What is asked: model, method and target in the bar, the text below.

import {button, make, visible} from "./views.js";
import {byId, listBox} from "./parts.js";
import {methodOf, modelOf} from "./store.js";

/** @type {Record<string, string>} */
const TEXT_NAMES = {text: "Text", pair: "First text", prompt: "Prompt", "picture and text": "Text"};

/** @param {LabStore} store @param {(question: Partial<LabKept>) => void} ask */
export function drawAsk(store, ask) {
  store.on(["model", "method", "target", "explanation", "catalogue"], () => drawChoices(store, ask));
  store.on(["model", "input"], () => drawForm(store, ask));
  drawChoices(store, ask);
  drawForm(store, ask);
}

/** @param {LabStore} store @param {(question: Partial<LabKept>) => void} ask */
function drawChoices(store, ask) {
  const {state} = store, {catalogue} = state, model = modelOf(state), box = byId("choices");
  const focused = [...box.querySelectorAll("select, input")].findIndex((each) => each === document.activeElement);
  const models = listBox("model", catalogue.models.map((each) => [each.key, each.key]), state.model,
    (key) => ask({model: key, target: null, position: null}));
  models.title = model.about;
  const methods = listBox("method", catalogue.methods.map((each) => [each.name, each.name, each.family_name]), state.method,
    (method) => ask({method}));
  methods.title = methodOf(state)?.summary ?? "";
  box.replaceChildren(models, methods, targetOf(store, model, ask), ...positionOf(state, model, ask));
  /** @type {NodeListOf<HTMLElement>} */
  const lists = box.querySelectorAll("select, input");
  lists[focused]?.focus();
}

/** @param {LabStore} store @param {LabModel} model @param {(question: Partial<LabKept>) => void} ask */
function targetOf({state}, model, ask) {
  const known = model.labels.length ? model.labels : [...new Set((state.explanation?.prediction ?? []).map((each) => each.label))];
  const options = [["", "what it predicts"], ...known.map((label) => [label, visible(label)])];
  if (state.target !== null && !known.includes(state.target)) options.push([state.target, visible(state.target)]);
  return listBox("target", options, state.target ?? "", (target) => ask({target: target || null}));
}

// Models that label or fill tokens are asked about one of them.
/** @param {LabState} state @param {LabModel} model @param {(question: Partial<LabKept>) => void} ask */
function positionOf(state, model, ask) {
  if (!/token|mask|fill/.test(model.task)) return [];
  const field = make("input", "mono");
  Object.assign(field, {type: "number", min: "0", max: String(model.longest), value: state.position ?? ""});
  field.addEventListener("change", () => ask({position: field.value === "" ? null : Number(field.value)}));
  return [make("label", "pick", make("span", "quiet", "token number"), field)];
}

/** @param {LabStore} store @param {(question: Partial<LabKept>) => void} ask */
function drawForm(store, ask) {
  const {state} = store, model = modelOf(state), form = /** @type {HTMLFormElement} */ (byId("ask"));
  const focused = document.activeElement?.id ?? "";
  const hasText = model.takes !== "picture";
  /** @type {HTMLTextAreaElement[]} */
  const fields = [];
  /** @param {keyof LabInput} name @param {string} label @param {string} hint */
  const field = (name, label, hint) => {
    const area = make("textarea", ""), id = `ask-${name}`;
    Object.assign(area, {id, rows: 1, value: state.input[name] ?? "", placeholder: hint, name, spellcheck: false});
    area.addEventListener("input", () => grow(area));
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    area.dir = "auto";
    fields.push(area);
    const made = make("label", "field", make("span", "quiet", label), area);
    made.htmlFor = id;
    return made;
  };
  const parts = [];
  if (model.takes.includes("picture")) parts.push(pictureField(store));
  if (hasText) parts.push(field("text", TEXT_NAMES[model.takes] ?? "Text", "Type a text, and press Enter"));
  if (model.takes === "pair") parts.push(field("pair", "Second text", "The text that belongs to it"));
  if (model.task === "sequence to sequence") parts.push(field("prefix", "Written so far", "what the model has written, may be empty"));
  const go = make("button", "go", "Explain ", make("kbd", "", "⏎"));
  go.type = "submit";
  const row = make("div", "ask-row", make("div", "fields", ...parts), go);
  form.replaceChildren(row, examplesOf(model, (input) => ask({input, target: null, position: null})));
  form.onsubmit = (event) => {
    event.preventDefault();
    const typed = Object.fromEntries(fields.filter((area) => area.value.trim()).map((area) => [area.name, area.value]));
    const picture = store.state.input.picture && model.takes.includes("picture") ? {picture: store.state.input.picture} : {};
    ask({input: {...typed, ...picture}});
  };
  fields.forEach(grow);
  if (focused.startsWith("ask-")) document.getElementById(focused)?.focus();
}

/** @param {HTMLTextAreaElement} area */
function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(160, area.scrollHeight + 2)}px`;
}

/** @param {LabStore} store */
function pictureField(store) {
  const input = make("input", ""), shown = make("img", "thumbnail");
  Object.assign(input, {type: "file", accept: "image/png,image/jpeg", id: "ask-picture"});
  shown.alt = "the picture to explain";
  const {picture} = store.state.input;
  shown.hidden = !picture;
  if (picture) shown.src = `data:image/png;base64,${picture}`;
  input.addEventListener("change", async () => {
    const [file] = input.files ?? [];
    if (!file) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    store.state.input = {...store.state.input, picture: btoa(text)};
    shown.src = `data:image/png;base64,${store.state.input.picture}`;
    shown.hidden = false;
  });
  const made = make("label", "field", make("span", "quiet", "Picture (PNG or JPEG)"), input, shown);
  made.htmlFor = input.id;
  return made;
}

/** @param {LabModel} model @param {(input: LabInput) => void} choose */
function examplesOf(model, choose) {
  if (!model.examples.length) return make("p", "about quiet", model.about);
  const list = make("ul", "examples", ...model.examples.slice(0, 6).map((each) =>
    make("li", "", button(visible([each.text, each.pair].filter(Boolean).join(" · ")), "", () => choose(each)))));
  const made = make("div", "about", make("span", "quiet", "Examples"), list);
  return made;
}
