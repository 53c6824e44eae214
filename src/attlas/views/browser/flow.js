// @ts-nocheck
// Flow: ribbons between the layers, tokens down and layers across. Of attention, it shows the part of each
// token that reaches one token at the top (rollout); of what has a sign, which edges lead there (a tree).

const RESIDUAL = 0.5;  // the share of a layer that bypasses attention
const RIBBONS = 24;  // between two layers, in full; as many more are faint
const FLOW_ROWS = 48;  // tokens that are drawn
const TREE_SHARE = 0.4;  // of the strongest edge of a layer, which an edge of the tree exceeds

function drawFlow(element, payload, state) {
  const stacks = stacksOf(payload);
  if (!stacks.length) return;
  const fold = make("details", "flow-fold"), pane = make("div", "");
  fold.append(make("summary", "", "Flow through the layers"), pane);
  element.append(make("section", "flowing", fold));
  const builds = stacks.map((stack) => drawStack(pane, stack, stacks.length > 1, payload, state));
  fold.addEventListener("toggle", () => fold.open && builds.forEach((build) => build()));
}

// The stacks of layers in which every token reads the same tokens; a map over the whole model is none.
function stacksOf(payload) {
  if (payload.kind === "tree") return payload.edges.length ? [treeStack(payload)] : [];
  const kinds = new Map();
  for (const site of payload.maps?.sites ?? []) kinds.set(site.kind, [...(kinds.get(site.kind) ?? []), site]);
  return [...kinds].filter(([kind, sites]) => kind !== "all" && sites.length > 1 && sites.every((site) =>
    String(site.queries) === String(sites[0].keys) && String(site.keys) === String(sites[0].keys)))
    .map(([kind, sites]) => ({kind, sites, positions: sites[0].keys, names: sites.map((site) => `layer ${site.layer}`),
      signed: payload.maps.signed, shows: payload.maps.shows, tables: null}));
}

function treeStack(payload) {
  const inside = new Set([payload.root, ...payload.edges.map((edge) => edge.child)]);
  const positions = [...inside].sort((a, b) => a - b), rowOf = new Map(positions.map((position, row) => [position, row]));
  const edges = payload.edges.map(({layer, parent, child, attribution}) =>
    ({layer, to: rowOf.get(parent), from: rowOf.get(child), value: attribution}));
  return {kind: "tree", positions, signed: true, edges, shows: "attribution of attention",
    names: Array.from({length: payload.layers}, (_, layer) => `layer ${layer}`)};
}

// One table for a layer: the mean of its heads with the residual, or the sum where weights have a sign.
function headsTogether(site, {signed, shows}) {
  const [heads, size] = site.shape, table = new Float64Array(size * size);
  for (let head = 0; head < heads; head++) {
    const {codes, shares, limit} = headOf(site, head);
    for (let i = 0; i < table.length; i++) table[i] += shares[codes[i]] * limit;
  }
  if (signed) return table;
  for (let row = 0; row < size; row++) {
    const own = table.subarray(row * size, (row + 1) * size), sum = own.reduce((total, each) => total + each, 0);
    const whole = shows === "attention" ? heads : sum;  // a sink may have taken a part of attention
    const mixed = RESIDUAL + (1 - RESIDUAL) * (sum > 0 ? sum / whole : 0);
    for (let i = 0; i < size; i++) own[i] = sum > 0 ? (1 - RESIDUAL) * own[i] / whole / mixed : 0;
    own[row] += RESIDUAL / mixed;
  }
  return table;
}

// The row that the flow leads to: the chosen token, or the one that the prediction is read from, as far as known.
function topRow(stack, payload, state) {
  const at = (position) => stack.positions.indexOf(position ?? -1);
  if (payload.kind === "tree") return at(payload.root);
  const known = [at(state.row), at(payload.target?.position)].find((row) => row >= 0);
  const isWritten = payload.task === "causal lm" || stack.kind === "decoder";
  return known ?? (isWritten ? stack.positions.length - 1 : 0);
}

// How much each token holds, at each level, of what reaches the top; the last level is the top.
function reachOf(stack, top) {
  const size = stack.positions.length, levels = stack.tables.length;
  const reach = Array.from({length: levels + 1}, () => new Float64Array(size));
  reach[levels][top] = 1;
  for (let layer = levels - 1; layer >= 0; layer--) {
    for (let to = 0; to < size; to++) {
      const held = reach[layer + 1][to];
      if (held) for (let from = 0; from < size; from++) reach[layer][from] += held * stack.tables[layer][to * size + from];
    }
  }
  return reach;
}

// The share of a token in every state, level by level.
function spreadOf(stack, token) {
  const size = stack.positions.length, spread = [new Float64Array(size)];
  spread[0][token] = 1;
  for (const table of stack.tables) {
    const below = spread.at(-1);
    spread.push(Float64Array.from({length: size}, (_, to) => {
      let sum = 0;
      for (let from = 0; from < size; from++) sum += table[to * size + from] * below[from];
      return sum;
    }));
  }
  return spread;
}

// The edges between some rows; of one token, only what comes from it.
function flowEdges(stack, {reach, shown}, token) {
  const size = stack.positions.length, spread = token === null ? null : spreadOf(stack, token);
  return stack.tables.flatMap((table, layer) => shown.flatMap((to) => shown.map((from) => ({layer, to, from,
    value: reach[layer + 1][to] * table[to * size + from] * (spread ? spread[layer][from] : 1)}))
    .filter((edge) => edge.value > 1e-6)));
}

// The tree from the top down: a token joins by its strongest edge, if that is strong for its layer.
function grownTree(stack, top) {
  const size = stack.positions.length, inside = new Set([top]), grown = [];
  for (let layer = stack.tables.length - 1; layer >= 0; layer--) {
    const table = stack.tables[layer], least = Math.max(0, TREE_SHARE * table.reduce((most, each) => Math.max(most, each), 0));
    const parents = [...inside];
    for (let from = 0; from < size; from++) {
      if (parents.includes(from)) continue;
      const to = parents.reduce((best, each) => table[each * size + from] > table[best * size + from] ? each : best);
      const value = table[to * size + from];
      if (value > least) {
        inside.add(from);
        grown.push({layer, to, from, value});
      }
    }
  }
  return grown;
}

// What a token attributes to itself stays in its row, and is left out.
function signedEdges(stack, {shown}) {
  const size = stack.positions.length;
  return stack.tables.flatMap((table, layer) => shown.flatMap((to) => shown.map((from) =>
    ({layer, to, from, value: table[to * size + from]})).filter((edge) => edge.value && edge.to !== edge.from)));
}

function drawStack(element, stack, named, payload, state) {
  const hint = make("p", "hint quiet"), told = make("p", "told"), scroll = make("div", "scroll"), elementsAt = new Map();
  element.append(...(named ? [make("h3", "", visible(stack.kind))] : []), hint, told, scroll);
  let plan = null;
  const ribbons = () => {
    if (!plan) return;
    const row = stack.positions.indexOf(state.token ?? -1), lit = row < 0 ? null : row;
    plan.ribbons.replaceChildren(...ribbonsOf(stack, plan, lit, state));
    told.replaceChildren(...(lit === null ? [] : partWords(stack, plan, lit, payload)));
  };
  const build = () => {
    if (!element.clientWidth) return;  // the fold is closed
    stack.tables ??= stack.sites?.map((site) => headsTogether(site, stack));
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
function planOf(stack, top, width, payload) {
  const reach = stack.signed ? null : reachOf(stack, top);
  const grown = stack.edges ?? (stack.signed ? grownTree(stack, top) : null);
  const shown = largestRows(stack, {top, reach, grown});
  const all = stack.edges ?? (stack.signed ? signedEdges(stack, {shown}) : flowEdges(stack, {reach, shown}, null));
  const longest = Math.max(...shown.map((row) => visible(payload.tokens[stack.positions[row]].label).length));
  const margin = Math.min(width < 480 ? 72 : 120, 16 + 8 * longest), height = shown.length > 24 ? 16 : 22;
  const levels = stack.names.length + 1, wide = Math.max(width - 8, 2 * margin + 56 * (levels - 1));
  return {top, reach, grown, all, shown, margin, height, wide, levels,
    x: (level) => margin + level * (wide - 2 * margin) / (levels - 1),
    y: (row) => 28 + (shown.indexOf(row) + 0.5) * height};
}

function largestRows(stack, {top, reach, grown}) {
  const size = stack.positions.length, part = new Float64Array(size);
  const count = (row, value) => { part[row] = Math.max(part[row], Math.abs(value)); };
  for (const level of reach ?? []) level.forEach((value, row) => count(row, value));
  if (!reach) (stack.tables ?? []).forEach((table) => table.forEach((value, i) => count(i % size, value)));
  for (const row of [top, ...(grown ?? []).flatMap((edge) => [edge.from, edge.to])]) part[row] = Infinity;
  const rows = Array.from(part, (_, row) => row).sort((a, b) => (part[a] < part[b]) - (part[a] > part[b]));
  return rows.slice(0, FLOW_ROWS).sort((a, b) => a - b);
}

function flowPicture(stack, plan, payload, state, elementsAt) {
  const {wide, height, shown, margin} = plan, tall = 32 + shown.length * height;
  const picture = drawn("svg", {width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "group",
    "aria-label": `Flow through ${stack.names.length} layers`});
  stack.names.forEach((name, layer) => picture.append(drawn("text",
    {class: "level", x: (plan.x(layer) + plan.x(layer + 1)) / 2, y: 14}, plan.levels > 14 ? String(layer) : name)));
  for (let level = 0; level < plan.levels; level++) {
    picture.append(drawn("line", {class: "rule", x1: plan.x(level), x2: plan.x(level), y1: 24, y2: tall - 4}));
  }
  plan.ribbons = drawn("g", {class: "ribbons"});
  picture.append(plan.ribbons);
  for (const row of shown) {
    const position = stack.positions[row], token = payload.tokens[position];
    for (const [side, x] of [["end", margin - 8], ["start", wide - margin + 8]]) {
      const isTop = side === "start" && row === plan.top;
      const label = drawn("g", {class: `flow-token${isTop ? " top" : ""}`, "data-position": position},
        drawn("rect", {x: side === "end" ? 0 : wide - margin, y: plan.y(row) - height / 2, width: margin, height}),
        drawn("text", {x, y: plan.y(row) + 4, class: side}, shorten(visible(token.label), Math.floor((margin - 10) / 7.8))));
      picture.append(stand(label, {...token, text: token.label, positions: [position]}, payload, state, elementsAt));
    }
  }
  return picture;
}

const shorten = (text, most) => Array.from(text).length > most ? `${Array.from(text).slice(0, Math.max(1, most - 1)).join("")}…` : text;

// Between every two layers the strongest in full and as many more faintly; the tree is always drawn in full.
function ribbonsOf(stack, plan, lit, state) {
  const keyOf = (edge) => `${edge.layer} ${edge.to} ${edge.from}`;
  const kept = plan.grown && new Set(plan.grown.map(keyOf));
  let edges = lit !== null && !stack.signed ? flowEdges(stack, plan, lit) : plan.all;
  if (lit !== null && stack.signed) edges = edges.filter((edge) => edge.to === lit || edge.from === lit);
  const drawnOnes = stack.names.flatMap((_, layer) => {
    const own = edges.filter((edge) => edge.layer === layer).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    return own.filter((edge, i) => i < 2 * RIBBONS || kept?.has(keyOf(edge)))
      .map((edge, i) => [edge, kept ? kept.has(keyOf(edge)) : i < RIBBONS]);
  });
  const limit = widest(edges);
  return drawnOnes.reverse().map(([edge, strong]) => ribbon(edge, strong, limit, stack, plan, state));
}

// The value of the widest ribbon: the strongest between two tokens, as most of a token stays in its row.
function widest(edges) {
  const most = (some) => some.reduce((found, edge) => Math.max(found, Math.abs(edge.value)), 0);
  return most(edges.filter((edge) => edge.to !== edge.from)) || most(edges);
}

function ribbon(edge, strong, limit, stack, plan, state) {
  const {layer, from, to, value} = edge, [x, y] = [plan.x(layer), plan.y(from)];
  const [right, up] = [plan.x(layer + 1), plan.y(to)], middle = (x + right) / 2;
  return drawn("path", {class: `ribbon${from === to ? " own" : ""}${strong ? "" : " faint"}`, d: `M${x} ${y}C${middle} ${y} ${middle} ${up} ${right} ${up}`,
    stroke: css(pole(value, stack.signed, state.theme)), "stroke-width": Math.max(0.6, strength(Math.abs(value), limit) * plan.height * 0.9),
    "data-layer": layer, "data-from": stack.positions[from], "data-to": stack.positions[to], "data-value": value.toPrecision(6)});
}

const flowWord = (row, stack, payload) => make("bdi", "mono strong", visible(payload.tokens[stack.positions[row]].label));

// How to read the ribbons.
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
function partWords(stack, plan, lit, payload) {
  const quiet = (text) => make("span", "quiet", text), word = (row) => flowWord(row, stack, payload);
  if (stack.signed) {
    const own = plan.grown.filter((edge) => edge.from === lit || edge.to === lit);
    return [word(lit), quiet(`: ${own.length} of ${plan.grown.length} edges of the tree`)];
  }
  return [make("b", "mono", `${(100 * plan.reach[0][lit]).toFixed(1)} %`), quiet(" of what reaches "), word(plan.top),
    quiet(" comes from "), word(lit)];
}
