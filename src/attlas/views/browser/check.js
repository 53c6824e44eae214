// A check of a model: whether it is opened exactly, and which methods can run on it.

VIEWS.check = [drawHeader, drawCheckGuide, beside([drawAnswers], [drawMethods]), drawFoot];

/** @param {HTMLElement} element */
function drawCheckGuide(element) {
  drawGuide(element, "Exactly: with its attention open, the model gives to the bit what it gives in eager attention, " +
    "the kind that shows its weights. The kind that it came with may round otherwise. " +
    "A method that cannot run on this model has the reason beside its name.");
}

/** @param {HTMLElement} element @param {CheckPayload} payload */
function drawAnswers(element, payload) {
  const title = payload.passed ? "Opened exactly" : "NOT opened exactly";
  section(element, title, "check").append(pairList(
    payload.answers.map(({question, answer}) => [question, answer])));
}

/** @param {HTMLElement} element @param {CheckPayload} payload */
function drawMethods(element, payload) {
  const answers = Object.entries(payload.methods).map(([name, reason]) => [name, reason || "yes"]);
  section(element, "Methods that can run", "check").append(pairList(answers));
}

/** @param {string[][]} pairs */
function pairList(pairs) {
  const rows = pairs.map(([name, value]) => {
    const head = make("th", "mono", visible(name));
    head.scope = "row";
    return make("tr", "", head, make("td", "", visible(value)));
  });
  return make("div", "scroll", make("table", "", make("tbody", "", ...rows)));
}
