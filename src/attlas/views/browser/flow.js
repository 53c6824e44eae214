// Flow: ribbons between the layers, tokens down and layers across. Of attention, it shows the part of each
// token that reaches one token at the top (rollout); of what has a sign, which edges lead there (a tree).

const RIBBONS = 24;  // between two layers, in full; as many more are faint
const FLOW_ROWS = 48;  // tokens that are drawn

/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawFlow(element, payload, state) {
  const stacks = stacksOf(payload);
  if (!stacks.length) return;
  const fold = make("details", "flow-fold"), pane = make("div", "");
  fold.append(make("summary", "", "Flow through the layers"), pane);
  element.append(make("section", "flowing", fold));
  const builds = stacks.map((stack) => drawStack(pane, stack, stacks.length > 1, payload, state));
  fold.addEventListener("toggle", () => fold.open && builds.forEach((build) => build()));
}

/**
 * @param {HTMLElement} element
 * @param {Stack} stack
 * @param {boolean} named
 * @param {TextPayload} payload
 * @param {State} state
 */
function drawStack(element, stack, named, payload, state) {
  const hint = make("p", "hint quiet"), told = make("p", "told"), scroll = make("div", "scroll"), elementsAt = new Map();
  element.append(...(named ? [make("h3", "", visible(stack.kind))] : []), hint, told, scroll);
  /** @type {FlowPlan | null} */
  let plan = null;
  const ribbons = () => {
    if (!plan) return;
    const row = stack.positions.indexOf(state.token ?? -1), lit = row < 0 ? null : row;
    plan.ribbons.replaceChildren(...ribbonsOf(stack, plan, lit, state));
    told.replaceChildren(...(lit === null ? [] : partWords(stack, plan, lit, payload)));
  };
  const build = () => {
    if (!element.clientWidth) return;  // the fold is closed
    if (!stack.tables.length) stack.tables = stack.sites.map((site) => headsTogether(site, stack));
    elementsAt.clear();
    plan = planOf(stack, topRow(stack, payload, state), element.clientWidth, payload);
    scroll.replaceChildren(flowPicture(stack, plan, payload, state, elementsAt));
    rove(scroll, ".flow-token");
    hint.replaceChildren(...flowWords(stack, plan, payload));
    ribbons();
  };
  state.on(["row", "theme", "width"], build);
  state.on(["token"], ribbons);
  lightUp(payload, state, () => elementsAt);
  return build;
}

// Where everything is drawn: of many tokens only those with the largest part.
/**
 * @param {Stack} stack
 * @param {number} top
 * @param {number} width
 * @param {TextPayload} payload
 * @returns {FlowPlan}
 */
function planOf(stack, top, width, payload) {
  const reach = stack.signed ? [] : reachOf(stack, top);
  const grown = stack.edges ?? (stack.signed ? grownTree(stack, top) : []);
  const shown = largestRows(stack, {top, reach, grown});
  const all = stack.edges ?? (stack.signed ? signedEdges(stack, shown) : flowEdges(stack, {reach, shown}, null));
  const longest = Math.max(...shown.map((row) => visible(payload.tokens[stack.positions[row]].label).length));
  const margin = Math.min(width < 480 ? 72 : 120, 16 + 8 * longest), height = shown.length > 24 ? 16 : 22;
  const levels = stack.names.length + 1, wide = Math.max(width - 8, 2 * margin + 56 * (levels - 1));
  return {top, reach, grown, all, shown, margin, height, wide, levels, ribbons: drawn("g", {class: "ribbons"}),
    /** @param {number} level */
    x: (level) => margin + level * (wide - 2 * margin) / (levels - 1),
    /** @param {number} row */
    y: (row) => 28 + (shown.indexOf(row) + 0.5) * height};
}

/** @param {Stack} stack @param {Pick<FlowPlan, "top" | "reach" | "grown">} given */
function largestRows(stack, {top, reach, grown}) {
  const size = stack.positions.length, part = new Float64Array(size);
  /** @param {number} row @param {number} value */
  const count = (row, value) => { part[row] = Math.max(part[row], Math.abs(value)); };
  for (const level of reach) level.forEach((value, row) => count(row, value));
  if (stack.signed) stack.tables.forEach((table) => table.forEach((value, i) => count(i % size, value)));
  for (const row of [top, ...grown.flatMap((edge) => [edge.from, edge.to])]) part[row] = Infinity;
  const rows = Array.from(part, (_, row) => row).sort((a, b) => (part[a] === part[b] ? 0 : part[b] - part[a]));
  return rows.slice(0, FLOW_ROWS).sort((a, b) => a - b);
}

/**
 * @param {Stack} stack
 * @param {FlowPlan} plan
 * @param {TextPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function flowPicture(stack, plan, payload, state, elementsAt) {
  const {wide, height, shown, margin} = plan, tall = 32 + shown.length * height;
  const picture = drawn("svg", {width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "group",
    "aria-label": `Flow through ${stack.names.length} layers`});
  stack.names.forEach((name, layer) => picture.append(drawn("text",
    {class: "level", x: (plan.x(layer) + plan.x(layer + 1)) / 2, y: 14}, plan.levels > 14 ? String(layer) : name)));
  for (let level = 0; level < plan.levels; level++) {
    picture.append(drawn("line", {class: "rule", x1: plan.x(level), x2: plan.x(level), y1: 24, y2: tall - 4}));
  }
  picture.append(plan.ribbons);
  for (const row of shown) {
    const position = stack.positions[row], token = payload.tokens[position];
    for (const side of ["end", "start"]) {
      const isTop = side === "start" && row === plan.top;
      const label = drawn("g", {class: `flow-token${isTop ? " top" : ""}`, "data-position": position},
        drawn("rect", {x: side === "end" ? 0 : wide - margin, y: plan.y(row) - height / 2, width: margin, height}),
        drawn("text", {x: side === "end" ? margin - 8 : wide - margin + 8, y: plan.y(row) + 4, class: side}, shorten(visible(token.label), Math.floor((margin - 10) / 7.8))));
      picture.append(stand(label, {...token, text: token.label, positions: [position]}, payload, state, elementsAt));
    }
  }
  return picture;
}

/** @param {string} text @param {number} most */
const shorten = (text, most) => Array.from(text).length > most ? `${Array.from(text).slice(0, Math.max(1, most - 1)).join("")}…` : text;

// Between every two layers the strongest in full and as many more faintly; the tree is always drawn in full.
/** @param {Stack} stack @param {FlowPlan} plan @param {number | null} lit @param {State} state */
function ribbonsOf(stack, plan, lit, state) {
  /** @param {FlowEdge} edge */
  const keyOf = (edge) => `${edge.layer} ${edge.to} ${edge.from}`;
  const kept = new Set(plan.grown.map(keyOf));
  let edges = lit !== null && !stack.signed ? flowEdges(stack, plan, lit) : plan.all;
  if (lit !== null && stack.signed) edges = edges.filter((edge) => edge.to === lit || edge.from === lit);
  const drawnOnes = stack.names.flatMap((_, layer) => {
    const own = edges.filter((edge) => edge.layer === layer).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    return own.filter((edge, i) => i < 2 * RIBBONS || kept.has(keyOf(edge)))
      .map((edge, i) => ({edge, strong: stack.signed ? kept.has(keyOf(edge)) : i < RIBBONS}));
  });
  const limit = widest(edges);
  return drawnOnes.reverse().map(({edge, strong}) => ribbon(edge, strong, limit, stack, plan, state));
}

// The value of the widest ribbon: the strongest between two tokens, as most of a token stays in its row.
/** @param {FlowEdge[]} edges */
function widest(edges) {
  /** @param {FlowEdge[]} some */
  const most = (some) => some.reduce((found, edge) => Math.max(found, Math.abs(edge.value)), 0);
  return most(edges.filter((edge) => edge.to !== edge.from)) || most(edges);
}

/**
 * @param {FlowEdge} edge
 * @param {boolean} strong
 * @param {number} limit
 * @param {Stack} stack
 * @param {FlowPlan} plan
 * @param {State} state
 */
function ribbon(edge, strong, limit, stack, plan, state) {
  const {layer, from, to, value} = edge, [x, y] = [plan.x(layer), plan.y(from)];
  const [right, up] = [plan.x(layer + 1), plan.y(to)], middle = (x + right) / 2;
  return drawn("path", {class: `ribbon${from === to ? " own" : ""}${strong ? "" : " faint"}`, d: `M${x} ${y}C${middle} ${y} ${middle} ${up} ${right} ${up}`,
    stroke: css(pole(value, stack.signed, state.theme)), "stroke-width": Math.max(0.6, strength(Math.abs(value), limit) * plan.height * 0.9),
    "data-layer": layer, "data-from": stack.positions[from], "data-to": stack.positions[to], "data-value": value.toPrecision(6)});
}

/** @param {number} row @param {Stack} stack @param {TextPayload} payload */
const flowWord = (row, stack, payload) => make("bdi", "mono strong", visible(payload.tokens[stack.positions[row]].label));

// How to read the ribbons.
/** @param {Stack} stack @param {FlowPlan} plan @param {TextPayload} payload */
function flowWords(stack, plan, payload) {
  const top = flowWord(plan.top, stack, payload), shows = visible(stack.shows);
  const few = plan.shown.length < stack.positions.length
    ? ` The ${plan.shown.length} tokens of ${stack.positions.length} with the largest part are drawn.` : "";
  const pick = payload.maps ? ", choose one to make it the top" : "";
  if (stack.edges) return ["The tree that leads to ", top, `: ${plan.grown.length} edges, wider for more ${shows}.`];
  if (stack.signed) {
    return ["The tree that leads to ", top, `: ${plan.grown.length} edges, each with more than ${100 * TREE_SHARE} % of the ` +
      `strongest ${shows} of its layer, heads summed. Other edges are faint; blue is against the target. Point at a token to see ` +
      `its edges${pick}.${few}`];
  }
  return ["What reaches ", top, ` at the top, as rollout counts it: of each layer half comes by ${shows}, heads averaged, and ` +
    "half passes by. Wider is more; what stays in its row is pale and never wider than the row, and weak ribbons are faint. " +
    `Point at a token to see its part${pick}.${few}`];
}

// What one token has to do with it.
/** @param {Stack} stack @param {FlowPlan} plan @param {number} lit @param {TextPayload} payload */
function partWords(stack, plan, lit, payload) {
  /** @param {string} text */
  const quiet = (text) => make("span", "quiet", text);
  /** @param {number} row */
  const word = (row) => flowWord(row, stack, payload);
  if (stack.signed) {
    const own = plan.grown.filter((edge) => edge.from === lit || edge.to === lit);
    return [word(lit), quiet(`: ${own.length} of ${plan.grown.length} edges of the tree`)];
  }
  return [make("b", "mono", `${(100 * plan.reach[0][lit]).toFixed(1)} %`), quiet(" of what reaches "), word(plan.top),
    quiet(" comes from "), word(lit)];
}
