// What flows where: the layers as tables, what reaches the top through them, and the edges that are drawn.

const RESIDUAL = 0.5;  // the share of a layer that bypasses attention
const TREE_SHARE = 0.4;  // of the strongest edge of a layer, which an edge of the tree exceeds

// The stacks of layers in which every token reads the same tokens; a map over the whole model is none.
/** @param {TextPayload} payload @returns {Stack[]} */
function stacksOf(payload) {
  const {maps} = payload;
  if (isTree(payload)) return payload.edges.length ? [treeStack(payload)] : [];
  if (!maps) return [];
  /** @type {Map<string, MapSite[]>} */
  const kinds = new Map();
  for (const site of maps.sites) kinds.set(site.kind, [...(kinds.get(site.kind) ?? []), site]);
  return [...kinds].filter(([kind, sites]) => kind !== "all" && sites.length > 1 && sites.every((site) =>
    String(site.queries) === String(sites[0].keys) && String(site.keys) === String(sites[0].keys)))
    .map(([kind, sites]) => ({kind, sites, positions: sites[0].keys, names: sites.map((site) => `layer ${site.layer}`),
      signed: maps.signed, shows: maps.shows, tables: [], edges: null}));
}

/** @param {TextPayload} payload @returns {payload is TreePayload} */
const isTree = (payload) => payload.kind === "tree";

/** @param {TreePayload} payload @returns {Stack} */
function treeStack(payload) {
  const inside = new Set([payload.root, ...payload.edges.map((edge) => edge.child)]);
  const positions = [...inside].sort((a, b) => a - b);
  const edges = payload.edges.map(({layer, parent, child, attribution}) =>
    ({layer, to: positions.indexOf(parent), from: positions.indexOf(child), value: attribution}));
  return {kind: "tree", positions, signed: true, edges, sites: [], tables: [], shows: "attribution of attention",
    names: Array.from({length: payload.layers}, (_, layer) => `layer ${layer}`)};
}

// One table for a layer: the mean of its heads with the residual, or the sum where weights have a sign.
/** @param {MapSite} site @param {Stack} given */
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
/** @param {Stack} stack @param {TextPayload} payload @param {State} state */
function topRow(stack, payload, state) {
  /** @param {number | null | undefined} position */
  const at = (position) => stack.positions.indexOf(position ?? -1);
  if (isTree(payload)) return at(payload.root);
  const known = [at(state.row), at(payload.target?.position)].find((row) => row >= 0);
  const isWritten = payload.task === "causal lm" || stack.kind === "decoder";
  return known ?? (isWritten ? stack.positions.length - 1 : 0);
}

// How much each token holds, at each level, of what reaches the top; the last level is the top.
/** @param {Stack} stack @param {number} top */
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
/** @param {Stack} stack @param {number} token */
function spreadOf(stack, token) {
  const size = stack.positions.length, spread = [new Float64Array(size)];
  spread[0][token] = 1;
  for (const table of stack.tables) {
    const below = spread[spread.length - 1];
    spread.push(Float64Array.from({length: size}, (_, to) => {
      let sum = 0;
      for (let from = 0; from < size; from++) sum += table[to * size + from] * below[from];
      return sum;
    }));
  }
  return spread;
}

// The edges between some rows; of one token, only what comes from it.
/** @param {Stack} stack @param {Pick<FlowPlan, "reach" | "shown">} given @param {number | null} token */
function flowEdges(stack, {reach, shown}, token) {
  const size = stack.positions.length, spread = token === null ? null : spreadOf(stack, token);
  return stack.tables.flatMap((table, layer) => shown.flatMap((to) => shown.map((from) => ({layer, to, from,
    value: reach[layer + 1][to] * table[to * size + from] * (spread ? spread[layer][from] : 1)}))
    .filter((edge) => edge.value > 1e-6)));
}

// The tree from the top down: a token joins by its strongest edge, if that is strong for its layer.
/** @param {Stack} stack @param {number} top */
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
/** @param {Stack} stack @param {number[]} shown */
function signedEdges(stack, shown) {
  const size = stack.positions.length;
  return stack.tables.flatMap((table, layer) => shown.flatMap((to) => shown.map((from) =>
    ({layer, to, from, value: table[to * size + from]})).filter((edge) => edge.value && edge.to !== edge.from)));
}
