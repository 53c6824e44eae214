// A tree: tokens go across in text order, and down by the layer that reads them. Their places are in
// the payload. Pointing at a token shows its path from the root.

VIEWS.tree = [
  drawHeader, drawReading, beside([drawText], [drawPrediction]), drawTree, drawFlow, drawNotes, drawFoot, drawTip
];

const BOX_HEIGHT = 26, STORY = 68;  // as in tree_drawing.py

// An `<svg>` that the browser parsed knows the namespace of all elements of a drawing.
/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Node | string)} children */
function drawn(tag, attributes, ...children) {
  const holder = document.createElement("div");
  holder.innerHTML = "<svg></svg>";
  const space = holder.firstElementChild?.namespaceURI ?? null;
  const element = /** @type {SVGElement} */ (document.createElementNS(space, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {HTMLElement} element @param {TreePayload} payload @param {State} state */
function drawTree(element, payload, state) {
  const made = section(element, "Tree", "tree");
  const told = make("p", "told one-line"), elementsAt = new Map();
  const picture = treePicture(payload, state, elementsAt);
  const tell = () => {
    const trace = state.token === null ? [] : pathTo(state.token, payload);
    showTrace(picture, trace);
    told.replaceChildren(...(trace.length ? traceWords(trace, payload) : keptWords(payload)));
  };
  made.append(told, make("div", "scroll", picture), ...segmentKey(payload));
  rove(picture, ".node");
  lightUp(payload, state, () => elementsAt);
  state.on(["token"], tell);
  tell();
}

/** @param {TreePayload} payload */
const segmentsOf = (payload) => [...new Set(payload.tokens.map((token) => token.segment))];
/** @param {string} segment @param {TreePayload} payload */
const isSecond = (segment, payload) => segmentsOf(payload).indexOf(segment) % 2 === 1;

/** @param {TreePayload} payload @param {State} state @param {ElementsAt} elementsAt */
function treePicture(payload, state, elementsAt) {
  const {width, height, layers, boxes} = payload.drawing;
  const picture = drawn("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": "Tree"});
  picture.style.minWidth = `${0.9 * width}px`;
  for (const {layer, y} of layers.filter((row) => row.layer !== payload.layers)) {
    picture.append(drawn("text", {class: "level", x: 12, y: y + 4}, `layer ${layer}`));
  }
  const boxAt = new Map(boxes.map((box) => [box.position, box]));
  const top = Math.max(...payload.edges.map((edge) => edge.attribution));
  for (const edge of payload.edges) {
    const from = boxAt.get(edge.parent), to = boxAt.get(edge.child);
    if (!from || !to) continue;
    const [y, below] = [from.y + BOX_HEIGHT / 2, to.y - BOX_HEIGHT / 2];
    const turn = Math.min(y + STORY - BOX_HEIGHT, below), middle = (y + turn) / 2;
    picture.append(drawn("path", {"data-child": edge.child,
      d: `M${from.x} ${y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${turn}V${below}`,
      "stroke-width": 1 + 4 * strength(edge.attribution, top)}));
  }
  for (const box of boxes) picture.append(treeNode(box, payload, state, elementsAt));
  return picture;
}

/** @param {TreeBox} box @param {TreePayload} payload @param {State} state @param {ElementsAt} elementsAt */
function treeNode(box, payload, state, elementsAt) {
  const kind = `${box.special ? " special" : ""}${isSecond(box.segment, payload) ? " second" : ""}`;
  const node = drawn("g", {class: `node${kind}`, "data-position": box.position},
    drawn("rect", {x: box.x - box.width / 2, y: box.y - BOX_HEIGHT / 2, width: box.width,
      height: BOX_HEIGHT, rx: 5}),
    drawn("text", {x: box.x, y: box.y + 4.5}, visible(box.label)));
  const token = payload.tokens[box.position];
  return stand(node, {...token, text: token.label, positions: [box.position]}, payload, state,
    elementsAt);
}

// The edges from the root down to a token; empty if it is not in the tree.
/** @param {number} position @param {TreePayload} payload */
function pathTo(position, payload) {
  const above = new Map(payload.edges.map((edge) => [edge.child, edge]));
  const path = [];
  for (let edge = above.get(position); edge; edge = above.get(edge.parent)) path.unshift(edge);
  return path;
}

/** @param {SVGElement} picture @param {TreeEdge[]} trace */
function showTrace(picture, trace) {
  const traced = new Set(trace.flatMap((edge) => [edge.parent, edge.child]));
  const children = new Set(trace.map((edge) => edge.child));
  picture.classList.toggle("tracing", trace.length > 0);
  for (const line of picture.querySelectorAll("path")) {
    line.classList.toggle("traced", children.has(Number(line.dataset.child)));
  }
  for (const node of picture.querySelectorAll(".node")) {
    node.classList.toggle("traced", traced.has(Number(node.getAttribute("data-position"))));
  }
}

/** @param {TreeEdge[]} trace @param {TreePayload} payload */
function traceWords(trace, payload) {
  const labels = new Map(payload.drawing.boxes.map((box) => [box.position, box.label]));
  /** @param {number} position */
  const word = (position) => make("bdi", "mono strong", visible(labels.get(position) ?? payload.tokens[position].label));
  const top = Math.max(...payload.edges.map((edge) => edge.attribution));
  return [word(payload.root), ...trace.flatMap((edge) => [
    make("span", "quiet", " reads "), word(edge.child),
    make("span", "quiet", ` in layer ${edge.layer}, `),
    make("span", "mono", figure(edge.attribution, top, false))])];
}

/** @param {TreePayload} payload */
function keptWords(payload) {
  const count = payload.edges.length;
  const share = `${Math.round(100 * payload.share)} %`;
  return [make("span", "quiet", `${count} ${count === 1 ? "edge" : "edges"}, thicker for more: ` +
    `${share} of the positive attribution between tokens. Point at a token to see its path.`)];
}

/** @param {TreePayload} payload */
function segmentKey(payload) {
  const names = segmentsOf(payload);
  if (names.length < 2) return [];
  return [make("div", "legend", ...names.map((name) => make("span", "",
    make("span", isSecond(name, payload) ? "swatch second" : "swatch"), visible(name))))];
}
