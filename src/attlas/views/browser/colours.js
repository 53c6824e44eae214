// Colours: the same numbers and rules as colours.py. PALETTE is JSON, so that a test can read it.

const PALETTE = {
  "light": {"paper": [252, 251, 248], "favour": [224, 122, 20], "against": [37, 99, 168],
            "plain": [12, 92, 94], "inks": [[28, 27, 25], [255, 255, 255]]},
  "dark": {"paper": [22, 24, 27], "favour": [240, 150, 60], "against": [64, 132, 220],
           "plain": [126, 211, 203], "inks": [[22, 24, 27], [244, 243, 240]]}
};
const READABLE = 4.5;

/** @param {Colour} colour */
const css = (colour) => `rgb(${colour.join(", ")})`;
/** @param {number} score @param {number} limit */
const strength = (score, limit) => (limit > 0 ? Math.max(-1, Math.min(1, score / limit)) : 0);
/** @param {number} channel */
const linear = (channel) =>
  channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;

/** @param {Colour} colour */
function luminance(colour) {
  const [red, green, blue] = colour.map((channel) => linear(channel / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {Colour} one @param {Colour} other */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** @param {number} share @param {boolean} signed @param {Theme} theme */
function pole(share, signed, theme) {
  if (!signed) return PALETTE[theme].plain;
  return share >= 0 ? PALETTE[theme].favour : PALETTE[theme].against;
}

/** @param {number} share @param {boolean} signed @param {Theme} theme */
function background(share, signed, theme) {
  const end = pole(share, signed, theme);
  return PALETTE[theme].paper.map((a, i) => Math.floor(a + (end[i] - a) * Math.abs(share) + 0.5));
}

/** @param {Colour} paper @param {Theme} theme */
function ink(paper, theme) {
  /** @param {Colour[]} inks */
  const better = (inks) => inks.reduce((a, b) => (contrast(b, paper) > contrast(a, paper) ? b : a));
  const best = better(PALETTE[theme].inks);
  return contrast(best, paper) >= READABLE ? best : better([[0, 0, 0], [255, 255, 255]]);
}

/** @param {HTMLElement} element @param {number} share @param {boolean} signed @param {Theme} theme */
function paint(element, share, signed, theme) {
  const paper = background(share, signed, theme);
  element.style.backgroundColor = css(paper);
  element.style.color = css(ink(paper, theme));
}
