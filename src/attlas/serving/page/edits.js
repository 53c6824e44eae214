// What can be done to the attention, and how it is said.

/** @typedef {"weight" | "row" | "column" | "head" | "layer" | "token"} Scope */

// What an action does at each place, in the words of the menu.
/** @type {Record<string, Record<string, string>>} */
export const MEANINGS = {
  zero: {weight: "this weight becomes 0; its row shares the rest", row: "the token looks at nothing",
    column: "nobody looks at the token in this head", head: "the head is switched off", layer: "all its heads are switched off",
    token: "nobody looks at the token, in any layer"},
  uniform: {weight: "nothing changes for a single weight", row: "the token looks at all alike",
    column: "its weights are evened out", head: "every token looks at all alike", layer: "all its heads look at all alike",
    token: "the weights on it are evened out"},
  shuffle: {row: "the same weights, on other tokens", head: "each row's weights land on other tokens",
    layer: "each row's weights land on other tokens, in all heads"},
  scale: {weight: "times", row: "all times", column: "all times", head: "all times", layer: "all times", token: "all times"},
  replace: {weight: "set to", row: "look only at", column: "set to", head: "look only at", layer: "look only at", token: "set to"},
};
/** @type {Record<Scope, string[]>} */
export const ACTIONS = {
  weight: ["zero", "scale", "replace"], row: ["zero", "uniform", "shuffle", "scale", "replace"],
  column: ["zero", "scale", "replace"], head: ["zero", "uniform", "shuffle", "scale", "replace"],
  layer: ["zero", "uniform", "shuffle", "scale", "replace"], token: ["zero", "scale", "replace"],
};
export const PATTERNS = ["the token itself", "the first token", "the previous token"];

/** @param {Picked} picked @returns {Scope[]} */
export function scopesOf({head, row, column}) {
  if (head === undefined) return ["layer"];
  if (row !== undefined && column !== undefined) return ["weight", "row", "column", "head", "layer"];
  if (row !== undefined) return ["row", "head", "layer"];
  return column === undefined ? ["head", "layer"] : ["column", "head", "layer"];
}

/** @param {Picked} picked @param {Scope} scope @param {MappedPayload} payload @param {(text: string) => string} visible */
export function placeWords({site, head, row, column}, scope, payload, visible) {
  /** @param {number | undefined} at @param {number[]} positions */
  const name = (at, positions) => visible(payload.tokens[positions[at ?? 0]].label);
  const kinds = new Set(payload.maps.sites.map((each) => each.kind));
  const layer = `${kinds.size > 1 ? `${site.kind} ` : ""}layer ${site.layer}`;
  const number = site.numbers?.[head ?? 0] ?? head;
  const where = `${layer}, head ${number}`;
  if (scope === "layer") return layer;
  if (scope === "head") return where;
  if (scope === "row") return `row ${name(row, site.queries)} · ${where}`;
  if (scope === "column") return `column ${name(column, site.keys)} · ${where}`;
  return `${name(row, site.queries)} → ${name(column, site.keys)} · ${where}`;
}

/** @param {Picked} picked @param {Scope} scope @param {string} action @param {number | string} value @returns {LabEdit} */
export function editOf({site, head, row, column}, scope, action, value) {
  /** @type {LabEdit} */
  const edit = {action, kind: site.kind, layer: site.layer};
  if (scope !== "layer") edit.heads = [site.numbers?.[head ?? 0] ?? head ?? 0];
  if ((scope === "weight" || scope === "row") && row !== undefined) edit.queries = [row];
  if ((scope === "weight" || scope === "column") && column !== undefined) edit.keys = [column];
  if (action === "scale") edit.factor = Number(value);
  if (action === "shuffle") edit.seed = Number(value);
  if (action === "replace") edit.weights = weightsOf(site, scope, row, value);
  return edit;
}

/** @param {MapSite} site @param {Scope} scope @param {number | undefined} row @param {number | string} value */
function weightsOf(site, scope, row, value) {
  if (scope === "weight" || scope === "column") return [Number(value)];
  const [, queries, keys] = site.shape;
  /** @param {number} query */
  const looked = (query) => {
    if (value === PATTERNS[1]) return 0;
    const own = Math.max(0, site.keys.indexOf(site.queries[query]));
    return value === PATTERNS[2] ? Math.max(0, own - 1) : own;
  };
  /** @param {number} query */
  const one = (query) => Array.from({length: keys}, (_, key) => Number(key === looked(query)));
  return scope === "row" ? one(row ?? 0) : Array.from({length: queries}, (_, query) => one(query));
}

// A token is a column of every map that has it, in each kind of layer.
/** @param {number[]} positions @param {MappedPayload} payload @param {string} action @param {number | string} value @returns {LabEdit[]} */
export function tokenEdits(positions, payload, action, value) {
  const kinds = new Map(payload.maps.sites.map((site) => [site.kind, site]));
  return [...kinds.values()].flatMap((site) => {
    const keys = positions.map((position) => site.keys.indexOf(position)).filter((key) => key >= 0);
    if (!keys.length) return [];
    const more = action === "scale" ? {factor: Number(value)} : action === "replace" ? {weights: keys.map(() => Number(value))} : {};
    return [{action, ...(kinds.size > 1 ? {kind: site.kind} : {}), keys, ...more}];
  });
}

/** @param {string} action @param {number | string} value */
export function actionWords(action, value) {
  if (action === "scale") return `times ${value}`;
  if (action === "replace") return typeof value === "number" ? `set to ${value}` : `only ${value}`;
  if (action === "shuffle") return `shuffled (seed ${value})`;
  return action === "zero" ? "zero" : "uniform";
}
