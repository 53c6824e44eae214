// The licence of a heat map: whether its largest scores may be read as the tokens that matter.

const LICENSED = ["removal", "where", "p", "reliability", "which way", "enough alone", "needed"];
const WHICH_WAY = {
  true: "how much has the right sign",
  false: "how much of what is highlighted speaks for the target"
};

/** @param {HTMLElement} element @param {TextPayload} payload */
function drawLicence(element, payload) {
  if (!payload.licence) return;
  const made = section(element, "May this be read as where?", "licence");
  made.append(...licenceParts(payload.licence, payload.tokens.map((token) => token.label)));
}

// The word, why, and a row for each removal; `tokens` are those of the text.
/** @param {Licence} licence @param {string[]} tokens */
function licenceParts(licence, tokens) {
  const word = visible(licence.word);
  const head = make("tr", "", ...LICENSED.map((name) => make("th", "", name)));
  const rows = licence.removals.map((row) => licenceRow(row, tokens));
  return [
    make("p", "", make("b", "", `${word[0].toUpperCase()}${word.slice(1)}.`), ` ${visible(licence.why)}`),
    make("div", "scroll", make("table", "mono", make("thead", "", head), make("tbody", "", ...rows))),
    make("p", "hint quiet", "Where: how much of the best order the largest scores reach; chance is 0. p: how " +
      "often the same scores in another order do as well. Reliability: whether other orders of removal would " +
      `find the same tokens. Which way: ${licence.signed ? WHICH_WAY.true : WHICH_WAY.false}; of all that pulls in brackets. Enough ` +
      "alone: the fewest tokens found that keep the prediction. Needed: the fewest without which it changes.")
  ];
}

// A p-value; it is never zero.
/** @param {number | null} p */
const chanceWords = (p) => (typeof p !== "number" ? "" : p < 0.001 ? "< .001" : p.toFixed(3));

/** @param {LicenceRemoval} row @param {string[]} tokens */
function licenceRow(row, tokens) {
  /** @param {unknown} value */
  const known = (value) => typeof value === "number";
  /** @param {number | null} value */
  const percent = (value) => (known(value) ? minus(`${Math.round(100 * value)} %`) : "");
  /** @param {number[] | null} places */
  const shown = (places) => (places ? places.map((place) => visible(tokens[place])).join(" · ") || "nothing"
    : "none found");
  const way = known(row.right_way) ? `${percent(row.right_way)} (${percent(row.for_target)})` : "";
  const name = make("th", "", visible(row.removal));
  name.scope = "row";
  const cells = [percent(row.share), chanceWords(row.p), known(row.reliability) ? row.reliability.toFixed(2) : "", way,
    shown(row.enough), shown(row.needed)];
  return make("tr", "", name, ...cells.map((cell) => make("td", "", make("bdi", "", cell))));
}
