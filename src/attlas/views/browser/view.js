// What Attlas shows of one result. Two doors, at the end: `render` for a notebook, `embed` for a
// page. Each view is a function draw(element, payload, state); the state is shared by all of them.
// Text from the payload enters the document as text nodes only.

const VIEWS = {
  explanation: [drawHeader, drawPrediction, drawNotes, drawPicture, drawText, drawBars, drawMaps,
    drawReading, drawFoot, drawTip],
  generation: [drawHeader, drawNotes, drawWriting, drawPicture, drawOwed, drawTable, drawReading,
    drawFoot, drawTip],
  tree: [drawHeader, drawPrediction, drawNotes, drawTree, drawText, drawReading, drawFoot, drawTip],
  judgement: [drawHeader, drawPrediction, drawJudgement, drawNotes, drawText, drawBars, drawReading,
    drawFoot, drawTip],
  triggers: [drawHeader, drawNotes, drawTriggers, drawReading, drawFoot],
  heads: [drawHeader, drawNotes, drawCharts, drawImportances, drawReading, drawFoot],
  redundancy: [drawHeader, drawNotes, drawRedundancy, drawReading, drawFoot],
  report: [drawReport],
  maps: [drawHeader, drawPicture, drawText, drawMaps, drawFoot, drawTip],
};

// Unscored tokens are drawn as tokens that score nothing: on bare paper.
const withScores = (payload) => isScored(payload) ? payload : {...payload, signed: false};

// The scores that are shown: of the tokens themselves, or of what was chosen of the writing.
function followScores(payload, state) {
  const tokenScores = () => payload.tokens.map((token, position) =>
    isLeftOut(payload, state, position) ? 0 : token.score ?? 0);
  const decide = () => state.set({scores: state.matrix ? writtenScores(payload, state) : tokenScores()});
  state.on(["leftOut", "picked", "over"], decide);
  decide();
}

// Print is always on light paper; otherwise the switch decides, and before it the system.
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

function draw(element, given) {
  const payload = withScores(given);
  const state = makeState({layer: 0, head: 0, token: null, row: null, tip: null, chosen: null,
    theme: "light", unit: payload.words?.length ? "words" : "tokens", width: element.clientWidth,
    leftOut: false, picked: null, over: null, matrix: matrixIn(payload)});
  element.classList.add("attlas");
  element.replaceChildren();
  const stops = [followTheme(element, state)];
  followScores(payload, state);
  for (const view of VIEWS[payload.kind]) view(element, payload, state);
  stops.push(followWidth(element, state));
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
