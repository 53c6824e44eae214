// Texts and numbers in the same form as in units.py.

const UNSAFE =
  /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
/** @type {Record<string, string>} */
const SHOWN = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡", "\u2028": "⏎", "\u2029": "⏎"};
const RIGHT_TO_LEFT = /[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;

/** @param {string} sign */
function show(sign) {
  const code = sign.codePointAt(0) ?? 0;
  if (sign in SHOWN) return SHOWN[sign];
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

/** @param {string} text */
function visible(text) {
  if (text === "") return "∅";
  return /^ +$/.test(text) ? "␣".repeat(text.length) : text.replace(UNSAFE, show);
}

// A name that is broken, where it must be, behind an underscore.
/** @param {string} name */
function methodName(name) {
  const parts = visible(name).split(/(?<=_)/).flatMap((part) => [make("wbr", ""), part]);
  return make("bdi", "mono", ...parts.slice(1));
}

// First, second, third: which of several equal words one is.
/** @param {number} number */
function ordinal(number) {
  const teen = number % 100 > 10 && number % 100 < 14;
  return `${number}${(!teen && {1: "st", 2: "nd", 3: "rd"}[number % 10]) || "th"}`;
}

/** @param {string} text */
const minus = (text) => text.replace(/^-(?=0(\.0*)?$)/, "").replace("-", "−");

/** @param {number} score @param {number} limit @param {boolean} signed */
function figure(score, limit, signed) {
  const sign = signed && score >= 0 ? "+" : "";
  if ((limit > 0 && limit < 1e-5) || limit >= 1e6) return minus(sign + score.toExponential(2));
  const decimals = limit > 0 ? Math.max(0, 2 - Math.floor(Math.log10(limit))) : 3;
  return minus(sign + score.toFixed(Math.min(decimals, 7)));
}

/** @param {number} score @param {boolean} signed @param {number} [digits] */
const exact = (score, signed, digits = 6) =>
  minus((signed && score >= 0 ? "+" : "") + Number(score.toPrecision(digits)));
