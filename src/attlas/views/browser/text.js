// The text coloured by its scores, and the strongest units as bars.

// `dress` may extend a unit's element; the function it returns is called at every colouring.
/**
 * @param {HTMLElement} element
 * @param {TextPayload} payload
 * @param {State} state
 * @param {(chip: HTMLElement, unit: Unit) => () => void} [dress]
 */
function drawText(element, payload, state, dress = () => () => {}) {
  const patches = new Set(allPatches(payload).map((unit) => unit.positions[0]));
  const segments = new Set((payload.pictures ?? []).map((picture) => picture.segment));
  const unitsShown = () =>
    unitsOf(payload, state).filter((unit) => !patches.has(unit.positions[0]));
  if (!unitsShown().length) return null;
  const hasText = !patches.size || unitsShown().some((unit) => !unit.special);
  const made = section(element, hasText ? "Text" : "Other tokens");
  if (hasText && levelsOf(payload).length > 1) {
    made.firstElementChild?.after(choice("Unit", "unit", levelsOf(payload), state));
  }
  const rows = make("div", "rows"), key = make("div", "legend");
  made.append(rows, key, ...sinkSwitch(payload, state));
  const elementsAt = new Map(), sums = new Map();
  /** @type {{chip: HTMLElement, unit: Unit, dressed: () => void}[]} */
  let chips = [];
  const colour = () => {
    const limit = limitOf(unitsShown());
    writeSums(sums, unitsShown(), limit, payload);
    for (const {chip, unit, dressed} of chips) {
      colourChip(chip, unit, limit, payload, state);
      dressed();
    }
    const texts = unitsShown().filter((unit) => !patches.size || !segments.has(unit.segment));
    key.replaceChildren(...(hasText ? legend(texts, limit, payload, state) : []));
  };
  const build = () => {
    elementsAt.clear();
    chips = [];
    /** @param {HTMLElement} chip @param {Unit} unit */
    const put = (chip, unit) => {
      stand(chip, unit, payload, state, elementsAt);
      chips.push({chip, unit, dressed: dress(chip, unit)});
    };
    rows.replaceChildren(...flows(unitsShown(), payload, put, sums));
    rove(rows, ".unit");
    colour();
  };
  state.on(["unit"], build);
  state.on(["scores", "theme"], colour);
  build();
  lightUp(payload, state, () => elementsAt);
  return made;
}

// If a first token holds most of the score, a switch shows the rest without it.
/** @param {TextPayload} payload @param {State} state */
function sinkSwitch(payload, state) {
  if (!payload.sinks?.length) return [];
  const box = make("input", "");
  box.type = "checkbox";
  box.checked = state.leftOut;
  box.addEventListener("change", () => state.set({leftOut: box.checked}));
  const held = payload.sinks.reduce((sum, sink) => sum + sink.share, 0);
  const tokens = payload.sinks.map((sink) => visible(payload.tokens[sink.position].label));
  return [make("label", "sinks", box, "leave out the first token ",
    make("bdi", "mono", tokens.join(" ")), ` (holds ${Math.round(100 * held)} %)`)];
}

/** @param {Payload} payload @param {State} state @param {number} position */
const isLeftOut = (payload, state, position) =>
  state.leftOut && (payload.sinks ?? []).some((sink) => sink.position === position);

// Beside the name of each segment, what its words hold together; special tokens are left out.
/** @param {Map<string, HTMLElement>} sums @param {Unit[]} units @param {number} limit @param {TextPayload} payload */
function writeSums(sums, units, limit, payload) {
  for (const [segment, element] of sums) {
    const own = units.filter((unit) => unit.segment === segment && !unit.special);
    const total = own.reduce((sum, unit) => sum + unit.score, 0);
    element.textContent = own.length && isScored(payload) ? figure(total, limit, payload.signed) : "";
    element.title = "the sum of its words";
  }
}

/**
 * @param {Unit[]} units
 * @param {TextPayload} payload
 * @param {(chip: HTMLElement, unit: Unit) => void} put
 * @param {Map<string, HTMLElement>} [sums]
 */
function flows(units, payload, put, sums = new Map()) {
  sums.clear();
  const segments = [...new Set(units.map((unit) => unit.segment))]
    .filter((name) => name !== "filling");  // tiles of a picture that are not there
  return segments.map((segment) => {
    const source = Array.from(payload.sources?.[segment] ?? "");  // offsets count code points
    const flow = make("p", "flow");
    const letter = source.find((sign) => /\p{L}/u.test(sign));
    flow.dir = letter && RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
    let before = null;
    for (const unit of units.filter((each) => each.segment === segment)) {
      if (before) flow.append(...gap(before, unit, source));
      const chip = make("span", unit.special ? "unit special" : "unit", visible(unit.text));
      put(chip, unit);
      flow.append(chip);
      before = unit;
    }
    const row = make("div", "row", flow);
    if (segments.length > 1) {
      const sum = make("span", "mono quiet");
      sums.set(segment, sum);
      row.prepend(make("div", "segment", make("h3", "quiet", visible(segment)), sum));
    }
    return row;
  });
}

/** @param {Placed} before @param {Placed} unit @param {string[]} source */
function gap(before, unit, source) {
  const {end} = before, {start} = unit;
  if (/[\n\u2028\u2029]/.test(before.text)) return [make("br")];
  if (end === null || start === null || before.special || unit.special) return [" "];
  const between = source.slice(end, start);
  if (between.includes("\n")) return [make("br")];
  return between.length ? [" "] : [make("wbr")];
}

/**
 * @param {HTMLElement} element
 * @param {Placed} unit
 * @param {number} limit
 * @param {TextPayload} payload
 * @param {State} state
 */
function colourChip(element, unit, limit, payload, state) {
  nameUnit(element, unit, payload, state);
  if (unit.special) return;
  const share = strength(scoreOf(unit, state), limit);
  paint(element, share, payload.signed, state.theme);
  element.classList.toggle("against", payload.signed && share < -0.15);
}

// The colours from the lowest to the highest score.
/** @param {boolean} signed @param {Theme} theme */
function rampOf(signed, theme) {
  const ramp = make("span", "ramp");
  ramp.setAttribute("aria-hidden", "true");
  for (let step = signed ? -4 : 0; step <= 4; step++) {
    const cell = make("span", "");
    cell.style.backgroundColor = css(background(step / 4, signed, theme));
    ramp.append(cell);
  }
  return ramp;
}

// The same with the scores at its ends; `write` puts a score into words.
/** @param {number} limit @param {boolean} signed @param {Theme} theme @param {(score: number) => string} write */
function scaleOf(limit, signed, theme, write) {
  const ramp = rampOf(signed, theme);
  /** @param {number} score */
  const number = (score) => make("span", "mono", write(score));
  const ends = signed ? ["against ", number(-limit), ramp, number(limit), " for the target"]
    : [number(0), ramp, number(limit)];
  return make("span", "scale", ...ends);
}

/** @param {Unit[]} units @param {number} limit @param {TextPayload} payload @param {State} state */
function legend(units, limit, payload, state) {
  if (!isScored(payload)) return [];
  const scale = scaleOf(limit, payload.signed, state.theme,
    (score) => figure(score, limit, payload.signed));
  const special = units.filter((unit) => unit.special);
  const total = units.reduce((sum, unit) => sum + Math.abs(unit.score), 0);
  if (!special.length || special.length === units.length || !(total > 0)) return [scale];
  const held = special.reduce((sum, unit) => sum + Math.abs(unit.score), 0) / total;
  if (held < 0.005) return [scale];
  return [scale, make("span", "", `Special tokens hold ${Math.round(100 * held)} % of the score; ` +
    "the colours are scaled without them.")];
}

/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawBars(element, payload, state) {
  const made = section(element, "Strongest");
  const list = make("ol", "bars");
  made.append(list);
  const elementsAt = new Map();
  const build = () => {
    elementsAt.clear();
    const units = unitsOf(payload, state);
    const able = plainOnes(units).filter((unit) => unit.score || !state.matrix);  // tokens after the output score zero
    const top = able.sort((a, b) => Math.abs(b.score) - Math.abs(a.score)).slice(0, 12);
    bars(list, top, {limit: limitOf(units), places: placesOf(units)}, payload, state, elementsAt);
  };
  state.on(["unit", "theme", "scores"], build);
  build();
  lightUp(payload, state, () => elementsAt);
}

// `look` has the limit of the scale, the places of equal words, and how to write a score if it is a weight.
/**
 * @param {HTMLElement} list
 * @param {Unit[]} units
 * @param {Look} look
 * @param {TextPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function bars(list, units, look, payload, state, elementsAt) {
  const {limit, places = new Map(), signed = payload.signed, write = figure} = look;
  // Zero is on the left where nothing is below it; for what was written it stays, as the scores change.
  const isHalved = signed && (isWritten(state) || units.some((unit) => unit.score < 0));
  list.classList.toggle("signed", isHalved);
  list.replaceChildren(...units.map((unit) => {
    const share = strength(unit.score, limit);
    const fill = make("span", share < 0 ? "fill left" : "fill");
    fill.style.width = `${100 * Math.abs(share) / (isHalved ? 2 : 1)}%`;
    fill.style.backgroundColor = css(pole(share, signed, state.theme));
    const made = make("li", "unit-row", barLabel(unit, places, payload), make("span", "track", fill),
      make("span", "mono figure", write(unit.score, limit, signed)));
    stand(made, unit, payload, state, elementsAt);
    made.setAttribute("role", "listitem");  // so that a screen reader counts the items
    return made;
  }));
  rove(list, ".unit-row");
}

/** @param {Placed} unit @param {Map<number, string>} places @param {TextPayload} payload */
function barLabel(unit, places, payload) {
  const place = places.get(unit.positions[0]);
  return make("span", "label mono", ...(patchName(unit, payload) ?? [make("bdi", "", visible(unit.text))]),
    ...(place ? [make("span", "place quiet", ` ${place}`)] : []));
}

// How the scores add up to the target: from a base value, or with something that is no token's.
/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawSum(element, payload, state) {
  if (!payload.sum && !payload.sums?.some(Boolean)) return;
  const list = make("ul", "sum");
  section(element, "How the scores add up").append(list);
  const {sum, target, sums = [], targets = []} = payload, special = payload.tokens.filter((token) => token.special);
  /** @returns {number[]} */
  const shown = () => (isWritten(state) ? rowsShown(state) : []);
  const show = () => list.replaceChildren(...(sum && target ? sumRows([sum], [target], special)
    : sumRows(shown().flatMap((row) => sums[row] ?? []), shown().map((row) => targets[row]), special)));
  if (!payload.sum) state.on(["scores"], show);
  show();
}

// The rows of one sum, or of the mean of several; if special tokens have scores of their own, they have a row.
/** @param {ScoreSum[]} sums @param {Target[]} targets @param {Token[]} special */
function sumRows(sums, targets, special) {
  /** @param {number[]} values */
  const mean = (values) => values.reduce((total, each) => total + each, 0) / values.length;
  const {of, rest_of: restOf} = sums[0], base = mean(sums.map((sum) => sum.base ?? 0));
  const scores = mean(sums.map((sum) => sum.scores)), value = mean(targets.map((target) => target.value ?? 0));
  const limit = Math.max(...[base, scores, value].map(Math.abs)), rest = value - base - scores;
  /** @param {string} name @param {number} number @param {string} [words] */
  const row = (name, number, words = "") => make("li", "", make("span", "", name),
    make("span", "mono figure", figure(number, limit, false)), make("span", "quiet", words));
  const missed = restOf || Math.abs(rest) > 0.005 * limit;
  const [target] = targets, one = targets.length === 1, plus = restOf ? "" : "+ ";
  const named = [...new Set(special.map((token) => token.label))];
  const apart = special.some((token) => token.score), held = special.reduce((sum, token) => sum + (token.score ?? 0), 0);
  return [
    ...(restOf ? [] : [row("base value", base, visible(of ?? ""))]),
    ...(apart ? [row(`${plus}scores`, scores - held, "without special tokens"),
      row("+ special tokens", held, named.length > 4 ? `${special.length} of them` : visible(named.join(" ")))]
      : [row(`${plus}all scores`, scores, special.length ? "special tokens included" : "")]),
    ...(missed ? [row(restOf ? "+ the rest" : "+ what they miss", rest, restOf ? visible(restOf) : "")] : []),
    row(`= ${one ? "" : "mean "}${visible(target.quantity)}`, value, one ? visible(target.name) : ""),
  ];
}
