// Around a result: the question, model and target, prediction, notes, and the code that computes it again.

/** @param {HTMLElement} element @param {Payload} payload @param {State} state */
function drawHeader(element, payload, state) {
  const facts = make("p", "facts");
  /** @param {string} name @param {...(Node | string)} values */
  const fact = (name, ...values) =>
    facts.append(make("span", "fact", make("span", "quiet", `${name} `), ...values));
  if (payload.headline && payload.model) fact("model", modelName(payload.model));
  if (payload.method) fact("method", make("b", "mono", visible(payload.method)));
  if (payload.target) fact("target", ...targetWords(payload.target));
  if (payload.true_label) fact("true label", make("b", "", visible(payload.true_label)));
  if (payload.task) fact("task", visible(payload.task));
  element.append(make("header", "",
    make("div", "", make("p", "brand quiet", "Attlas"), make("h1", "", visible(payload.headline ?? payload.model ?? "")), facts),
    themeSwitch(state)));
  if (payload.warning) element.append(make("p", "warning", make("b", "", "Warning: "), visible(payload.warning)));
}

// A model from a folder or a file has the last part of its path; pointing at it shows the whole.
/** @param {string} model */
function modelName(model) {
  const parts = visible(model).split(/[\\/]/).filter(Boolean), isPath = /^([~.]?[\\/]|[A-Za-z]:)/.test(model);
  const name = make("b", "mono", isPath ? parts.at(-1) ?? model : visible(model));
  if (isPath) name.title = visible(model);
  return name;
}

/** @param {State} state */
function themeSwitch(state) {
  const theme = button("", "switch", () =>
    state.set({scheme: state.theme === "dark" ? "light" : "dark"}));
  const label = () => (theme.textContent = state.theme === "dark" ? "☀ light" : "☾ dark");
  state.on(["theme"], label);
  label();
  return theme;
}

/** @param {Target} target */
function targetWords(target) {
  /** @type {(Node | string)[]} */
  const words = [make("b", "", visible(target.name))];
  if (target.contrast) words.push(` rather than ${visible(target.contrast)}`);
  if (typeof target.value === "number") {
    words.push(make("span", "quiet", ` ${visible(target.quantity)} `),
      make("span", "mono", minus(target.value.toFixed(3))));
  }
  return words;
}

/** @param {HTMLElement} element @param {TextPayload} payload */
function drawPrediction(element, payload) {
  if (!payload.prediction?.length) return;
  section(element, "Prediction").append(choices(payload.prediction, payload.target?.name));
}

// The model's most likely answers with their probabilities; the target is marked.
/** @param {Answer[]} rows @param {string | undefined} target */
function choices(rows, target) {
  const list = make("ul", "prediction");
  for (const row of rows) {
    const isTarget = row.label === target;
    const known = typeof row.probability === "number";
    const value = row.probability ?? row.value;
    const bar = make("span", known ? "track" : ""), fill = make("span", "fill");
    fill.style.width = `${100 * (row.probability ?? 0)}%`;
    if (known) bar.append(fill);
    list.append(make("li", isTarget ? "target" : "", make("bdi", "label", visible(row.label)), bar,
      make("span", "mono figure", typeof value === "number" ? minus(value.toFixed(3)) : ""),
      make("span", "tag", isTarget ? "target" : "")));
  }
  return list;
}

/** @param {HTMLElement} element @param {Payload} payload */
function drawNotes(element, payload) {
  if (!payload.notes?.length) return;
  const list = make("ul", "notes");
  for (const note of payload.notes) list.append(make("li", "", visible(note)));
  section(element, "Notes").append(list);
}

// What a score says, and what the colours say.
/** @param {HTMLElement} element @param {Payload} payload */
function drawReading(element, payload) {
  const words = [payload.reading ? visible(payload.reading) : "", colourWords(payload)].filter(Boolean);
  if (words.length) drawGuide(element, words.join(" "));
}

/** @param {HTMLElement} element @param {string} words */
function drawGuide(element, words) {
  section(element, "How to read this", "reading-guide").append(make("p", "", words));
}

/** @param {Payload} payload */
function colourWords(payload) {
  if (!["explanation", "judgement", "generation"].includes(payload.kind)) return "";
  const name = payload.target ? visible(payload.target.name) : "what was written";
  return payload.signed ? `Orange speaks for ${name}, blue against it.` : "The stronger the colour, the more.";
}

/** @param {HTMLElement} element @param {Payload} payload */
function drawFoot(element, payload) {
  const foot = make("footer", "");
  const list = make("dl", "");
  /** @param {unknown} value */
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  /** @param {Record<string, unknown> | undefined} values */
  const pairs = (values) => Object.entries(values ?? {}).filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${written(value)}`).join(" · ");
  const versions = [payload.attlas ? `attlas ${payload.attlas}` : "", pairs(payload.versions)];
  const facts = [["Paper", payload.paper ?? ""], ["Options", pairs(payload.options)],
    ["Versions", versions.filter(Boolean).join(" · ")]];
  for (const [name, value] of facts) {
    if (value) list.append(make("dt", "", name), make("dd", "mono", visible(value)));
  }
  if (list.children.length) foot.append(list);
  if (payload.code) foot.append(codeBox(payload.code));
  element.append(foot);
}

// An option of the command line stays on one line: browsers would break it after its hyphens.
/** @param {string} code */
const unbrokenOptions = (code) =>
  code.split(/(?<!\S)(--[\w-]+)/).map((part, index) => (index % 2 ? make("span", "option", part) : part));

/** @param {string} code @param {string} [label] */
function codeBox(code, label = "copy as Python") {
  const text = make("pre", "mono", ...unbrokenOptions(code));
  const copy = button(label, "copy", async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = "copied";
    } catch {  // without permission in this frame, select the text instead
      getSelection()?.selectAllChildren(text);
      copy.textContent = "selected";
    }
    setTimeout(() => (copy.textContent = label), 1500);
  });
  return make("div", "code", text, copy);
}
