// What Attlas shows of one result. It has two entrances, at the end: `render` for a notebook and
// `embed` for a page. A view is a list of functions draw(element, payload, state) that share one
// state. Text from the payload enters the document as text nodes only.

// The file of each kind of payload adds the functions that draw it, from the top of the page down.
const VIEWS = {};

// Tokens without scores are drawn like tokens that score zero.
const withScores = (payload) => isScored(payload) ? payload : {...payload, signed: false};

// The scores shown: those of the tokens, or those of the chosen output.
function followScores(payload, state) {
  const tokenScores = () => payload.tokens.map((token, position) =>
    isLeftOut(payload, state, position) ? 0 : token.score ?? 0);
  const decide = () => state.set({scores: state.matrix ? writtenScores(payload, state) : tokenScores()});
  state.on(["leftOut", "picked", "over"], decide);
  decide();
}

// Print is always light. On a screen the switch decides, and until it is used, the system.
function followTheme(element, state) {
  const queries = [matchMedia("print"), matchMedia("(prefers-color-scheme: dark)")];
  const decide = () => {
    const wanted = state.chosen ?? (queries[1].matches ? "dark" : "light");
    const theme = queries[0].matches ? "light" : wanted;
    element.dataset.theme = theme;
    state.set({theme});
  };
  state.on(["chosen"], decide);
  for (const query of queries) query.addEventListener("change", decide);
  decide();
  return () => queries.forEach((query) => query.removeEventListener("change", decide));
}

function followWidth(element, state) {
  const observer = new ResizeObserver(() => state.set({width: element.clientWidth}));
  observer.observe(element);
  return () => observer.disconnect();
}

// The functions that draw a payload; an unknown kind is an error that the page shows too.
function viewOf(payload, element) {
  if (Object.hasOwn(VIEWS, payload.kind)) return VIEWS[payload.kind];
  const known = Object.keys(VIEWS).sort().join(", ");
  const message = `unknown kind of payload '${payload.kind}': allowed: ${known}`;
  element.append(make("p", "error", message));
  throw new Error(message);
}

function draw(element, given) {
  element.classList.add("attlas");
  element.replaceChildren();
  const parts = viewOf(given, element), payload = withScores(given);
  const state = makeState({...mapState(payload), token: null, row: null, tip: null, chosen: payload.opens?.scheme ?? null,
    theme: "light", unit: payload.words?.length ? "words" : "tokens", width: element.clientWidth,
    leftOut: false, picked: null, over: null, matrix: matrixIn(payload)});
  const stops = [followTheme(element, state)];
  followScores(payload, state);
  for (const part of parts) part(element, payload, state);
  stops.push(followWidth(element, state), followScroll(element));
  return () => stops.forEach((stop) => stop());
}

export default {
  render({ model, el }) {
    let stop = draw(el, model.get("payload"));
    const redraw = () => { stop(); stop = draw(el, model.get("payload")); };
    model.on("change:payload", redraw);
    return () => { model.off("change:payload", redraw); stop(); };
  },
};

export function embed(el, payload) {
  return draw(el, payload);
}
