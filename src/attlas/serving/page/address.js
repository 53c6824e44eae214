// The state in the address: a link brings a colleague to the same place. What comes from an address may come from anybody.

const TEXTS = ["model", "method", "removal", "mode", "tab", "shown"];
const INPUTS = ["text", "pair", "prefix"];

/** @param {LabKept} state @param {LabKept} start */
export function writeAddress(state, start) {
  const pairs = new URLSearchParams();
  for (const name of TEXTS) {
    const value = /** @type {any} */ (state)[name];
    if (name === "model" || name === "method" || value !== /** @type {any} */ (start)[name]) pairs.set(name, value);
  }
  for (const name of INPUTS) {
    const value = /** @type {any} */ (state.input)[name];
    if (value) pairs.set(name, value);
  }
  if (state.target !== null) pairs.set("target", state.target);
  if (state.position !== null) pairs.set("position", String(state.position));
  if (state.removed.length) pairs.set("removed", state.removed.map((each) => each.join(".")).join("_"));
  if (state.items.length) pairs.set("did", JSON.stringify(state.items));
  if (state.against) pairs.set("against", JSON.stringify([state.against.what, state.against.value]));
  if (Object.keys(state.view).length) pairs.set("view", JSON.stringify(state.view));
  if (state.tour !== null) pairs.set("tour", String(state.tour + 1));
  if (state.scheme) pairs.set("scheme", state.scheme);
  const hash = pairs.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  history.replaceState(history.state, "", `${location.pathname}#${hash}`);
}

/** @param {string} hash @param {LabCatalogue} catalogue @returns {Partial<LabKept>} */
export function readAddress(hash, catalogue) {
  const pairs = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {any} */
  const found = {};
  for (const name of TEXTS) if (pairs.has(name)) found[name] = String(pairs.get(name)).slice(0, 200);
  if (found.model && !catalogue.models.some((each) => each.key === found.model)) delete found.model;
  if (found.method && !catalogue.methods.some((each) => each.name === found.method)) delete found.method;
  if (found.removal && !catalogue.removals.includes(found.removal)) delete found.removal;
  const input = Object.fromEntries(INPUTS.filter((name) => pairs.has(name)).map((name) => [name, String(pairs.get(name))]));
  if (Object.keys(input).length) found.input = input;
  if (pairs.has("target")) found.target = String(pairs.get("target"));
  if (/^\d{1,6}$/.test(pairs.get("position") ?? "")) found.position = Number(pairs.get("position"));
  const removed = pairs.get("removed") ?? "";
  if (/^\d{1,6}([._]\d{1,6})*$/.test(removed)) found.removed = removed.split("_").map((each) => each.split(".").map(Number));
  const items = parsed(pairs.get("did"));
  if (Array.isArray(items)) found.items = items.flatMap(readItem);
  const against = parsed(pairs.get("against"));
  if (Array.isArray(against) && ["method", "text", "model"].includes(against[0])) {
    found.against = {what: against[0], value: String(against[1])};
  }
  const view = parsed(pairs.get("view"));
  if (view && typeof view === "object" && !Array.isArray(view)) found.view = view;
  if (/^\d{1,2}$/.test(pairs.get("tour") ?? "")) found.tour = Number(pairs.get("tour")) - 1;
  if (["light", "dark"].includes(pairs.get("scheme") ?? "")) found.scheme = pairs.get("scheme");
  return found;
}

/** @param {string | null} text */
function parsed(text) {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

// The server checks edits; here they only need to be what the list can show.
/** @param {any} given @returns {LabItem[]} */
function readItem(given) {
  if (!given || typeof given.label !== "string" || !Array.isArray(given.edits)) return [];
  const edits = given.edits.filter((/** @type {any} */ each) => each && typeof each.action === "string");
  const made = typeof given.made === "string" ? {made: given.made} : {};
  return edits.length ? [{label: given.label.slice(0, 200), edits, ...made}] : [];
}
