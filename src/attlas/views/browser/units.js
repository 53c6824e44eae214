// The state that all views share, and the units that it selects.

function makeState(values) {
  const listeners = [];
  const state = {
    ...values,
    on(names, listener) { listeners.push([names, listener]); },
    set(change) {
      const changed = Object.keys(change).filter((name) => state[name] !== change[name]);
      Object.assign(state, change);
      for (const [names, listener] of listeners) {
        if (names.some((name) => changed.includes(name))) listener();
      }
    },
  };
  return state;
}

// The units shown: tokens, words or sentences, each with the sum of its tokens' scores.
function unitsOf(payload, state, level = state.unit) {
  const groups = level === "tokens" ? null : payload[level];
  const units = groups?.length ? groups.map((group) => placed(group, payload))
    : payload.tokens.map((token, position) => ({...token, text: token.label, positions: [position]}));
  return units.map((unit) => ({...unit, score: scoreOf(unit, state)}));
}

function placed(group, payload) {
  const tokens = group.positions.map((position) => payload.tokens[position]);
  const worded = tokens.filter((token) => token.label.trim());  // leading spaces do not count
  const found = (worded.length ? worded : tokens).filter((token) => Number.isInteger(token.start));
  const start = found.length ? Math.min(...found.map((token) => token.start)) : null;
  const end = found.length ? Math.max(...found.map((token) => token.end)) : null;
  return {...group, start, end};
}

// Of the words that occur more than once: which one each is, by its first position.
function placesOf(units) {
  const found = new Map(), places = new Map();
  for (const unit of plainOnes(units)) found.set(unit.text, [...(found.get(unit.text) ?? []), unit.positions[0]]);
  for (const positions of found.values()) {
    if (positions.length > 1) positions.forEach((position, i) => places.set(position, ordinal(i + 1)));
  }
  return places;
}

const scoreOf = (unit, state) =>
  unit.weight ?? unit.positions.reduce((sum, position) => sum + state.scores[position], 0);

const LEVELS = ["tokens", "words", "sentences"];
const levelsOf = (payload) =>
  LEVELS.filter((level) => level === "tokens" || payload[level]?.length);

// Maps alone have tokens without scores.
const isScored = (payload) => payload.kind !== "maps";

const plainOnes = (units) => {
  const plain = units.filter((unit) => !unit.special);
  return plain.length ? plain : units;
};
const limitOf = (units) =>
  plainOnes(units).reduce((most, unit) => Math.max(most, Math.abs(unit.score)), 0);

// The patches of a picture are the last tokens of its segment, one for each cell of its grid.
function patchesOf(payload, picture) {
  const [rows, columns] = picture.grid ?? [0, 0];
  const found = payload.tokens
    .map((token, position) => ({...token, text: token.label, positions: [position]}))
    .filter((unit) => unit.segment === picture.segment);
  return found.length >= rows * columns ? found.slice(found.length - rows * columns) : [];
}

const allPatches = (payload) =>
  (payload.pictures ?? []).flatMap((picture) => patchesOf(payload, picture));

// The token pointed at; with words or sentences shown, all tokens of its unit.
function litPositions(payload, state) {
  if (state.token === null) return [];
  const groups = state.unit === "tokens" ? null : payload[state.unit];
  return groups?.find((each) => each.positions.includes(state.token))?.positions ?? [state.token];
}

function lightUp(payload, state, elementsAt) {
  let lit = [];
  state.on(["token", "unit"], () => {
    for (const element of lit) element.classList.remove("lit");
    lit = litPositions(payload, state).flatMap((position) => elementsAt().get(position) ?? []);
    for (const element of lit) element.classList.add("lit");
  });
}

function describe(payload, unit, state) {
  if (unit.told) return unit.told;
  const raw = unit.positions.map((position) => visible(payload.tokens[position].text)).join(" ");
  const where = unit.positions.length > 1 ? "positions" : "position";
  const kind = unit.special ? ", special" : "";
  const weighed = unit.weight !== undefined;
  const signed = weighed ? payload.maps.signed : payload.signed;
  const digits = weighed ? 2 : 6;  // a byte holds no more of a weight
  const score = weighed || isScored(payload)
    ? ` ${weighed ? "weight" : "score"} ${exact(scoreOf(unit, state), signed, digits)},` : "";
  return `${raw},${score} ${where} ${unit.positions.join(" ")}${kind}`;
}

// Let an element represent a unit: it highlights the unit, shows its score, and picks its row.
function stand(element, unit, payload, state, elementsAt) {
  element.tabIndex = -1;
  const enter = () => state.set({token: unit.positions[0], tip: {element, unit}});
  const leave = () => state.set({token: null, tip: null});
  element.addEventListener("pointerenter", enter);
  element.addEventListener("pointerleave", leave);
  element.addEventListener("focus", enter);
  element.addEventListener("blur", leave);
  element.setAttribute("role", payload.maps ? "button" : "img");
  name(element, unit, payload, state);
  if (payload.maps) pickRow(element, unit.positions[0], state);
  for (const position of unit.positions) {
    elementsAt.set(position, [...(elementsAt.get(position) ?? []), element]);
  }
  return element;
}

function name(element, unit, payload, state) {
  element.setAttribute("aria-label", `${visible(unit.text)}: ${describe(payload, unit, state)}`);
}

function pickRow(element, position, state) {
  const pick = () => state.set({row: state.row === position ? null : position, tip: null});
  element.addEventListener("click", pick);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  });
}
