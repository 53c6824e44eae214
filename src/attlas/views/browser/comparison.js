// A comparison: the same words in the colours of each explanation, what every two have in common, their
// difference, and a table. The tokens of the payload are the words; `rows` holds the explanations.

VIEWS.comparison = [
  drawHeader, drawReading, drawSideBySide, beside([drawPairs], [drawDifference], "pair halves"), drawCompared, drawNotes, drawFoot, drawTip
];

/** @param {boolean} signed */
const signWords = (signed) => (signed ? "for and against it" : "strength alone, no sign");
const WORD_ORDERS = ["text order", "strongest", "most different"];

// What is compared: words, or the patches of pictures.
/** @param {ComparisonPayload} payload */
function unitWords(payload) {
  const seen = new Set((payload.pictures ?? []).map((picture) => picture.segment));
  return payload.tokens.every((token) => seen.has(token.segment)) ? "patches" : "words";
}

// The explanations that a payload compares; a payload of another kind has none.
/** @param {Payload} payload */
const comparedIn = (payload) => payload.kind === "comparison" ? /** @type {ComparisonPayload} */ (payload).rows : [];

/** @param {ComparedRow} row @param {number} place */
const shareIn = (row, place) => strength(row.scores[place] ?? 0, row.limit);
/** @param {ComparedRow} row @param {number} place */
const hasWord = (row, place) => row.scores[place] !== null;
/** @param {ComparedRow} row @param {number} place */
const scoreIn = (row, place) => hasWord(row, place) ? figure(row.scores[place] ?? 0, row.limit, row.signed) : "–";

// The words that one explanation has, as they stand in its text; without one, all words.
/** @param {ComparisonPayload} payload @param {ComparedRow | null} row */
function comparedUnits(payload, row) {
  /** @param {number} place */
  const told = (place) => payload.rows.filter((each) => hasWord(each, place)).map((each) =>
    (each.words ? `${visible(each.words[place]?.text ?? "")}: ` : "") +
    `${visible(each.name)} ${scoreIn(each, place)}`).join(" · ");
  return payload.tokens.map((token, place) => ({...token, ...row?.words?.[place],
    text: row?.words?.[place]?.text ?? token.label, positions: [place], told: told(place),
    score: row?.scores[place] ?? 0})).filter((unit) => !row || hasWord(row, unit.positions[0]));
}

// A payload with the text of one explanation.
/** @param {ComparisonPayload} payload @param {ComparedRow} row @returns {ComparisonPayload} */
const withText = (payload, row) => ({...payload, sources: row.sources ?? payload.sources});

/** @param {HTMLElement} element @param {ComparisonPayload} payload @param {State} state */
function drawSideBySide(element, payload, state) {
  const made = section(element, "Side by side", "compared");
  made.append(make("p", "hint quiet", "Each is scaled to its own strongest word. Point at a word to see it in all."));
  const elementsAt = new Map();
  for (const row of payload.rows) {
    const who = make("div", "who", make("h3", "", visible(row.name)),
      make("p", "quiet", make("span", "", "target "), make("b", "", visible(row.target.name)),
        `, ${signWords(row.signed)}`, specialWords(row)));
    const box = make("div", "what"), key = make("div", "legend");
    made.append(make("div", "one", who, make("div", "", box, key)));
    const chips = colouredWords(box, comparedUnits(payload, row), withText(payload, row), state, elementsAt);
    const colour = () => {
      for (const [chip, unit] of chips) {
        const share = shareIn(row, unit.positions[0]);
        chip.style.setProperty("--share", String(Math.abs(share)));
        paint(chip, share, row.signed, state.theme);
        chip.classList.toggle("against", row.signed && share < -0.15);
      }
      key.replaceChildren(scaleOf(row.limit, row.signed, state.theme,
        (score) => figure(score, row.limit, row.signed)));
    };
    state.on(["theme"], colour);
    colour();
  }
  lightUp(payload, state, () => elementsAt);
}

/** @param {ComparedRow} row */
const specialWords = (row) => row.special < 0.005 ? ""
  : ` · ${Math.round(100 * row.special)}\u00a0% on special tokens, left out`;

// The words as text, and the patches of pictures over them; each element with its unit.
/**
 * @param {HTMLElement} box
 * @param {Unit[]} units
 * @param {ComparisonPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function colouredWords(box, units, payload, state, elementsAt) {
  /** @type {[HTMLElement, Unit][]} */
  const chips = [];
  const patches = new Set();
  /** @param {HTMLElement} chip @param {Unit} unit */
  const put = (chip, unit) => {
    stand(chip, unit, payload, state, elementsAt);
    chips.push([chip, unit]);
    return chip;
  };
  for (const picture of payload.pictures ?? []) {
    const own = patchesOf(payload, picture).map((patch) => units[patch.positions[0]]);
    if (!own.length) continue;
    const frame = frameOf(picture, own.map((unit) => put(make("span", "patch"), unit)));
    frame.style.setProperty("--scores", "0.6");
    rove(frame, ".patch");
    box.append(frame);
    own.forEach((unit) => patches.add(unit.positions[0]));
  }
  const words = units.filter((unit) => !patches.has(unit.positions[0]));
  if (!words.length) return chips;
  const lines = make("div", "rows", ...flows(words, payload, put));
  rove(lines, ".unit");
  box.append(lines);
  return chips;
}

// Words down, explanations across, each cell with a small bar.
/** @param {HTMLElement} element @param {ComparisonPayload} payload @param {State} state */
function drawCompared(element, payload, state) {
  const made = section(element, unitWords(payload) === "words" ? "Words" : "Patches", "word-table");
  made.firstElementChild?.after(choice("Order", "wordOrder", WORD_ORDERS, state));
  const body = make("tbody", ""), elementsAt = new Map();
  const heads = payload.rows.map((row) => {
    const head = make("th", "", visible(row.name));
    head.scope = "col";
    return head;
  });
  made.append(make("div", "scroll", make("table", "", make("thead", "", make("tr", "", make("th", "", "word"),
    ...heads)), body)));
  const units = comparedUnits(payload, null), places = placesOf(units);
  const build = () => {
    elementsAt.clear();
    body.replaceChildren(...orderOf(payload, state.wordOrder).map((place) =>
      comparedRow(units[place], places, payload, state, elementsAt)));
    rove(body, "tr");
  };
  state.on(["wordOrder", "theme"], build);
  build();
  lightUp(payload, state, () => elementsAt);
}

/** @param {ComparisonPayload} payload @param {string} order */
function orderOf(payload, order) {
  const places = payload.tokens.map((_, place) => place);
  if (order === WORD_ORDERS[0]) return places;
  const mixed = new Set(payload.rows.map((row) => row.signed)).size > 1;
  const weight = places.map((place) => {
    const shares = payload.rows.filter((row) => hasWord(row, place)).map((row) => shareIn(row, place));
    if (order === WORD_ORDERS[1]) return Math.max(...shares.map(Math.abs));
    const compared = mixed ? shares.map(Math.abs) : shares;
    return Math.max(...compared) - Math.min(...compared);
  });
  return places.sort((a, b) => weight[b] - weight[a]);
}

/**
 * @param {Unit} unit
 * @param {Map<number, string>} places
 * @param {ComparisonPayload} payload
 * @param {State} state
 * @param {ElementsAt} elementsAt
 */
function comparedRow(unit, places, payload, state, elementsAt) {
  const [place] = unit.positions;
  const texts = payload.rows.flatMap((row) => row.words?.[place]?.text ?? []);
  const label = texts.length ? [...new Set(texts)].map(visible).join(" / ") : visible(unit.text);
  const which = places.get(place);
  const head = make("th", "mono", make("bdi", "", label), ...(which ? [make("span", "place quiet", ` ${which}`)] : []));
  head.scope = "row";
  const cells = payload.rows.map((row) => {
    if (!hasWord(row, place)) return make("td", "", make("span", "bar", make("span", ""), make("span", "mono figure quiet", "–")));
    const share = shareIn(row, place), fill = make("span", share < 0 ? "fill left" : "fill");
    fill.style.width = `${100 * Math.abs(share) / (row.signed ? 2 : 1)}%`;
    fill.style.backgroundColor = css(pole(share, row.signed, state.theme));
    return make("td", "", make("span", "bar", make("span", row.signed ? "track signed" : "track", fill),
      make("span", "mono figure", scoreIn(row, place))));
  });
  const made = stand(make("tr", "unit-row", head, ...cells), unit, payload, state, elementsAt);
  made.removeAttribute("role");  // it stays the row of a table
  made.removeAttribute("aria-label");
  return made;
}
