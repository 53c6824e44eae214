// What Attlas shows of one result. It has three entrances, at the end: `render` for a notebook, `embed` for a
// page, whose address keeps the state, and `draw` for parts of a page that keeps its own; page.py exports them. A view is a list of functions draw(element, payload,
// state) that share one state. Text from the payload enters the document as text nodes only.

// The file of each kind of payload adds the functions that draw it, from the top of the page down.
/** @type {Record<string, Draw[]>} */
const VIEWS = {};

// Tokens without scores are drawn like tokens that score zero.
/** @param {Payload} payload */
const withScores = (payload) => isScored(payload) ? payload : {...payload, signed: false};

/** @param {State} state @returns {state is WrittenState} */
const isWritten = (state) => state.matrix !== null;

// The scores shown: those of the tokens, or those of the chosen output.
/** @param {Payload} payload @param {State} state */
function followScores(payload, state) {
  const tokenScores = () => payload.tokens.map((token, position) =>
    isLeftOut(payload, state, position) ? 0 : token.score ?? 0);
  const decide = () => state.set({scores: isWritten(state) ? writtenScores(payload, state) : tokenScores()});
  state.on(["leftOut", "picked", "over", "together"], decide);
  decide();
}

// Print is always light. On a screen the switch decides, and until it is used, the notebook, or the system.
/** @param {HTMLElement} element @param {State} state */
function followTheme(element, state) {
  const queries = [matchMedia("print"), matchMedia("(prefers-color-scheme: dark)")];
  const decide = () => {
    /** @type {Theme} */
    const wanted = state.scheme ?? notebookTheme() ?? (queries[1].matches ? "dark" : "light");
    const theme = queries[0].matches ? "light" : wanted;
    element.dataset.theme = theme;
    state.set({theme});
  };
  state.on(["scheme"], decide);
  for (const query of queries) query.addEventListener("change", decide);
  decide();
  return () => queries.forEach((query) => query.removeEventListener("change", decide));
}

// JupyterLab says on the body whether its theme is a light one.
/** @returns {Theme | null} */
function notebookTheme() {
  const {jpThemeLight} = document.body.dataset;
  return jpThemeLight === undefined ? null : jpThemeLight === "true" ? "light" : "dark";
}

/** @param {HTMLElement} element @param {State} state */
function followWidth(element, state) {
  const observer = new ResizeObserver(() => state.set({width: element.clientWidth}));
  observer.observe(element);
  return () => observer.disconnect();
}

// The functions that draw a payload; an unknown kind is an error that the page shows too.
/** @param {Payload} payload @param {HTMLElement} element */
function viewOf(payload, element) {
  if (Object.hasOwn(VIEWS, payload.kind)) return VIEWS[payload.kind];
  const known = Object.keys(VIEWS).sort().join(", ");
  const message = `unknown kind of payload '${payload.kind}': allowed: ${known}`;
  element.append(make("p", "error", message));
  throw new Error(message);
}

// `wishes` are values of the state, by name, from outside; `parts` is what to draw, from the top down.
/** @param {HTMLElement} element @param {Payload} given @param {Wishes} wishes @param {Draw[]} [parts] */
function draw(element, given, wishes, parts = viewOf(given, element)) {
  element.classList.add("attlas");
  element.replaceChildren();
  const payload = withScores(given), start = startOf(payload);
  const state = makeState({...start, ...allowed(wishes, payload, start), tip: null, theme: "light",
    width: element.clientWidth, over: null, scores: [], matrix: matrixIn(payload)});
  const stops = [followTheme(element, state)];
  followScores(payload, state);
  for (const part of parts) part(element, payload, state);
  stops.push(followWidth(element, state), followScroll(element));
  return {payload, state, stop: () => stops.forEach((stop) => stop())};
}

/** @param {HTMLElement} element @param {Payload} given */
function embed(element, given) {
  const {payload, state, stop} = draw(element, given, readAddress().wishes);
  const leave = followAddress(payload, state);
  return () => { leave(); stop(); };
}

/** @param {{model: WidgetModel, el: HTMLElement}} given */
function render({model, el}) {
  const show = () => {
    const {payload, state, stop} = draw(el, model.get("payload"), model.get("state") ?? {});
    const leave = followModel(model, payload, state);
    return () => { leave(); stop(); };
  };
  let stop = show();
  const redraw = () => { stop(); stop = show(); };
  model.on("change:payload", redraw);
  return () => { model.off("change:payload", redraw); stop(); };
}
