// The units that the state selects: tokens, words, sentences, patches.

// The units shown: tokens, words or sentences, each with the sum of its tokens' scores.
/** @param {TextPayload} payload @param {State} state @param {Level} [level] */
function unitsOf(payload, state, level = state.unit) {
  const groups = level === "tokens" ? null : payload[level];
  const units = groups?.length ? groups.map((group) => placed(group, payload))
    : payload.tokens.map((token, position) => ({...token, text: token.label, positions: [position]}));
  return units.map((unit) => ({...unit, score: scoreOf(unit, state)}));
}

/** @param {Group} group @param {TextPayload} payload */
function placed(group, payload) {
  const tokens = group.positions.map((position) => payload.tokens[position]);
  const worded = tokens.filter((token) => token.label.trim());  // leading spaces do not count
  const spans = (worded.length ? worded : tokens).flatMap(({start, end}) =>
    start === null || end === null ? [] : [{start, end}]);
  const start = spans.length ? Math.min(...spans.map((span) => span.start)) : null;
  const end = spans.length ? Math.max(...spans.map((span) => span.end)) : null;
  return {...group, start, end};
}

// Of the words that occur more than once: which one each is, by its first position.
/** @param {{text: string, special: boolean, positions: number[]}[]} units */
function placesOf(units) {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  /** @type {Map<number, string>} */
  const places = new Map();
  for (const unit of plainOnes(units)) found.set(unit.text, [...(found.get(unit.text) ?? []), unit.positions[0]]);
  for (const positions of found.values()) {
    if (positions.length > 1) positions.forEach((position, i) => places.set(position, ordinal(i + 1)));
  }
  return places;
}

/** @param {Placed} unit @param {State} state */
const scoreOf = (unit, state) =>
  unit.weight ?? unit.positions.reduce((sum, position) => sum + state.scores[position], 0);

/** @type {Level[]} */
const LEVELS = ["tokens", "words", "sentences"];
/** @param {Payload} payload */
const levelsOf = (payload) =>
  LEVELS.filter((level) => level === "tokens" || payload[level]?.length);
// Words, unless there are none, or all that was written is one of them.
/** @param {Payload} payload @returns {Level} */
function levelAtStart({words, outputs}) {
  if (!words?.length) return "tokens";
  const written = words.filter((word) => word.positions.some((position) => outputs?.includes(position)));
  return outputs && outputs.length > 1 && written.length < 2 ? "tokens" : "words";
}

// Maps alone have tokens without scores.
/** @param {Payload} payload */
const isScored = (payload) => payload.kind !== "maps";

/** @template {{special: boolean}} T @param {T[]} units */
const plainOnes = (units) => {
  const plain = units.filter((unit) => !unit.special);
  return plain.length ? plain : units;
};
/** @param {{special: boolean, score: number}[]} units */
const limitOf = (units) =>
  plainOnes(units).reduce((most, unit) => Math.max(most, Math.abs(unit.score)), 0);

// The patches of a picture are the last tokens of its segment, one for each cell of its grid.
/** @param {TextPayload} payload @param {Picture} picture */
function patchesOf(payload, picture) {
  const [rows, columns] = picture.grid ?? [0, 0];
  const found = payload.tokens
    .map((token, position) => ({...token, text: token.label, positions: [position]}))
    .filter((unit) => unit.segment === picture.segment);
  return found.length >= rows * columns ? found.slice(found.length - rows * columns) : [];
}

/** @param {TextPayload} payload */
const allPatches = (payload) =>
  (payload.pictures ?? []).flatMap((picture) => patchesOf(payload, picture));

// The token pointed at; with words or sentences shown, all tokens of its unit.
/** @param {Payload} payload @param {State} state */
function litPositions(payload, state) {
  const {token} = state;
  if (token === null) return [];
  const groups = state.unit === "tokens" ? null : payload[state.unit];
  return groups?.find((each) => each.positions.includes(token))?.positions ?? [token];
}

/** @param {TextPayload} payload @param {State} state @param {() => ElementsAt} elementsAt */
function lightUp(payload, state, elementsAt) {
  /** @type {Element[]} */
  let lit = [];
  state.on(["token", "unit"], () => {
    for (const element of lit) element.classList.remove("lit");
    lit = litPositions(payload, state).flatMap((position) => elementsAt().get(position) ?? []);
    for (const element of lit) element.classList.add("lit");
  });
}

/** @param {TextPayload} payload @param {Placed} unit @param {State} state */
function describe(payload, unit, state) {
  if (unit.told) return unit.told;
  const raw = unit.positions.map((position) => visible(payload.tokens[position].text)).join(" ");
  const where = unit.positions.length > 1 ? "positions" : "position";
  const kind = unit.special ? ", special" : "";
  const weighed = unit.weight !== undefined;
  const signed = weighed ? payload.maps?.signed ?? false : payload.signed;
  const digits = weighed ? 2 : 6;  // a byte holds no more of a weight
  const score = weighed || isScored(payload)
    ? ` ${weighed ? "weight" : "score"} ${exact(scoreOf(unit, state), signed, digits)},` : "";
  return `${raw},${score} ${where} ${unit.positions.join(" ")}${kind}`;
}

// Let an element represent a unit: it highlights the unit, shows its score, and picks its row.
/**
 * @template {HTMLElement | SVGElement} T
 * @param {T} element
 * @param {Placed} unit
 * @param {TextPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function stand(element, unit, payload, state, elementsAt) {
  element.tabIndex = -1;
  const enter = () => state.set({token: unit.positions[0], tip: {element, unit}});
  const leave = () => state.set({token: null, tip: null});
  element.addEventListener("pointerenter", enter);
  element.addEventListener("pointerleave", leave);
  element.addEventListener("focus", enter);
  element.addEventListener("blur", leave);
  element.setAttribute("role", payload.maps ? "button" : "img");
  nameUnit(element, unit, payload, state);
  if (payload.maps) pickRow(element, unit.positions[0], state);
  for (const position of unit.positions) {
    elementsAt.set(position, [...(elementsAt.get(position) ?? []), element]);
  }
  return element;
}

/** @param {Element} element @param {Placed} unit @param {TextPayload} payload @param {State} state */
function nameUnit(element, unit, payload, state) {
  element.setAttribute("aria-label", `${visible(unit.text)}: ${describe(payload, unit, state)}`);
}

/** @param {HTMLElement | SVGElement} element @param {number} position @param {State} state */
function pickRow(element, position, state) {
  const pick = () => state.set({row: state.row === position ? null : position, tip: null});
  element.addEventListener("click", pick);
  element.onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  };
}
