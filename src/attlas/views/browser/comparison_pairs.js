// Every two explanations of a comparison: how far they agree, and where they differ.

/** @param {ComparisonPayload} payload @param {number} one @param {number} other */
const pairOf = (payload, one, other) => /** @type {ComparedPair} */ (payload.pairs.find((pair) =>
  pair.one === Math.min(one, other) && pair.other === Math.max(one, other)));
/** @param {ComparedPair} pair */
const tauText = (pair) => pair.tau === null ? "none" : minus((pair.tau >= 0 ? "+" : "") + pair.tau.toFixed(2));

// Ties at the border of the strongest count in part.
/** @param {number} count */
const inBoth = (count) => Number(count.toFixed(1)).toString();

// Every two explanations, if there are more than two: choose a pair to see its difference.
/** @param {HTMLElement} element @param {ComparisonPayload} payload @param {State} state */
function drawPairs(element, payload, state) {
  if (payload.rows.length < 3) return;
  const made = section(element, "How far they agree", "agreement");
  made.append(make("p", "hint quiet", "Kendall's τ of every two, and below it how many of the " +
    `${payload.top} strongest words both have. Choose a pair to see where it differs.`));
  const names = payload.rows.map((row) => visible(row.name));
  /** @type {{cell: HTMLElement, one: number, other: number, pair: ComparedPair}[]} */
  const cells = [];
  /** @param {number} one */
  const line = (one) => {
    const head = make("th", "", names[one]);
    head.scope = "row";
    return make("tr", "", head, ...names.map((_, other) => {
      if (one === other) return make("td", "", "");
      const pair = pairOf(payload, one, other);
      const cell = button(make("b", "", tauText(pair)), "pair-cell mono", () => state.set({one, other}));
      cell.append(make("span", "", `${inBoth(payload.top * pair.overlap)} of ${payload.top}`));
      cell.setAttribute("aria-label", `${names[one]} and ${names[other]}: ${pairWords(payload, pair)}`);
      cell.title = pairWords(payload, pair);
      cells.push({cell, one, other, pair});
      return make("td", "", cell);
    }));
  };
  const columns = names.map((name) => {
    const head = make("th", "", name);
    head.scope = "col";
    return head;
  });
  const table = make("table", "", make("thead", "", make("tr", "", make("td", ""), ...columns)),
    make("tbody", "", ...names.map((_, one) => line(one))));
  made.append(make("div", "scroll", table));
  const mark = () => cells.forEach(({cell, one, other, pair}) => {
    paint(cell, strength(pair.tau ?? 0, 1), true, state.theme);
    cell.setAttribute("aria-pressed", String(one === state.one && other === state.other));
  });
  state.on(["one", "other", "theme"], mark);
  mark();
}

/** @param {ComparisonPayload} payload @param {ComparedPair} pair */
function pairWords(payload, pair) {
  /** @param {number} share */
  const of = (share) => inBoth(payload.top * share);
  const by = pair.by === "strength" ? " Compared by strength, since only one of the two has a sign." : "";
  if (!pair.words) return "The two texts have no word in common.";
  return `τ ${tauText(pair)} over ${pair.words} ${unitWords(payload)}; ${of(pair.overlap)} of the ` +
    `${payload.top} strongest in both (${of(pair.chance)} by chance).${by}${heldWords(payload, pair)}`;
}

// How many words of two texts can be compared, if not all.
/** @param {ComparisonPayload} payload @param {ComparedPair} pair */
function heldWords(payload, pair) {
  const [one, other] = [pair.one, pair.other].map((place) =>
    payload.rows[place].scores.filter((score) => score !== null).length);
  if (pair.words === one && one === other) return "";
  return ` The texts have ${one} and ${other} words; those without a partner, in grey, are not compared.`;
}

// Where two differ: the share of the one less that of the other.
/** @param {ComparisonPayload} payload @param {number} one @param {number} other */
function differencesOf(payload, one, other) {
  const [first, second] = [payload.rows[one], payload.rows[other]];
  /** @param {number} share */
  const size = (share) => (first.signed === second.signed ? share : Math.abs(share));
  return payload.tokens.map((_, place) => hasWord(first, place) && hasWord(second, place)
    ? size(shareIn(first, place)) - size(shareIn(second, place)) : null);
}

/** @param {HTMLElement} element @param {ComparisonPayload} payload @param {State} state */
function drawDifference(element, payload, state) {
  const made = section(element, "Difference", "difference");
  const told = make("p", "told"), box = make("div", "what"), key = make("div", "legend");
  const names = payload.rows.map((row) => visible(row.name));
  made.append(make("p", "picks", picker("one", names, state), " less ", picker("other", names, state)), told, box, key);
  const elementsAt = new Map();
  /** @type {[HTMLElement, Unit][]} */
  let chips = [];
  const build = () => {
    const row = payload.rows[state.one];
    elementsAt.clear();
    box.replaceChildren();
    chips = colouredWords(box, comparedUnits(payload, row.words ? row : null), withText(payload, row), state, elementsAt);
  };
  const colour = () => {
    const {one, other} = state;
    const differences = one === other ? payload.tokens.map(() => 0) : differencesOf(payload, one, other);
    for (const [chip, unit] of chips) {
      const difference = differences[unit.positions[0]];
      const share = strength(difference ?? 0, 1);
      chip.style.setProperty("--share", String(Math.abs(share)));
      paint(chip, share, true, state.theme);
      if (difference === null) Object.assign(chip.style, {color: "", backgroundColor: ""});
      chip.classList.toggle("against", share < -0.15);
      chip.classList.toggle("unpaired", difference === null);
      chip.dataset.difference = difference === null ? "" : difference.toFixed(4);
    }
    told.textContent = one === other ? "Choose two that are not the same." : pairWords(payload, pairOf(payload, one, other));
    key.replaceChildren(differenceScale(names[one], names[other], state.theme));
  };
  if (payload.rows.some((row) => row.words)) state.on(["one"], build);
  state.on(["one", "other", "theme"], colour);
  build();
  colour();
  lightUp(payload, state, () => elementsAt);
}

/** @param {"one" | "other"} name @param {string[]} names @param {State} state */
function picker(name, names, state) {
  const select = make("select", "", ...names.map((text, index) => {
    const option = make("option", "", text);
    option.value = String(index);
    return option;
  }));
  select.setAttribute("aria-label", name === "one" ? "One explanation" : "The other explanation");
  const follow = () => (select.value = String(state[name]));
  select.addEventListener("change", () => state.set({[name]: Number(select.value)}));
  state.on([name], follow);
  follow();
  return select;
}

/** @param {string} one @param {string} other @param {Theme} theme */
function differenceScale(one, other, theme) {
  return make("span", "scale", `more in ${other}`, rampOf(true, theme),
    `more in ${one}; the full colour is as much as a strongest word.`);
}
