// Contours: lines of equal score over a picture, instead of colours.

const LOOKS = ["blended", "contours"];
const CONTOURS = [0.25, 0.5, 0.75];  // shares of the strongest patch
const CONTOUR_WORDS = `Lines at ${CONTOURS.map((level) => 100 * level).join(", ")}\u00a0% of the strongest patch: the wider, the more.`;

// A switch between colours and lines; the function returned draws the lines of these shares.
/** @param {HTMLElement} element @param {HTMLElement} over @param {PatchedPicture[]} pictures @param {State} state */
function contourChoice(element, over, pictures, state) {
  element.firstElementChild?.after(choice("Look of the scores", "look", LOOKS, state));
  const key = make("p", "hint quiet levels", CONTOUR_WORDS);
  over.after(key);
  const frames = [...over.querySelectorAll(".frame.over")];
  const drawings = pictures.filter((picture) => pictureOf(picture) && picture.patches.length).map((picture, i) => {
    const [rows, columns] = picture.grid ?? [0, 0];
    const lines = drawn("svg", {class: "contours", viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none",
      "aria-hidden": "true"});
    frames[i].append(lines);
    return {picture, lines};
  });
  /** @type {[Map<Placed, number>, boolean] | null} */
  let last = null;
  const draw = () => {
    over.classList.toggle("contoured", state.look === LOOKS[1]);
    key.hidden = state.look !== LOOKS[1];
    if (!last || state.look !== LOOKS[1]) return;
    for (const {picture, lines} of drawings) lines.replaceChildren(...contourLines(picture, ...last, state));
  };
  state.on(["look"], draw);
  return /** @type {(shares: Map<Placed, number>, signed: boolean) => void} */ ((shares, signed) => {
    last = [shares, signed];
    draw();
  });
}

// Each level has a line in the colour of the score, on a wider one of paper that keeps it readable.
/** @param {PatchedPicture} picture @param {Map<Placed, number>} shares @param {boolean} signed @param {State} state */
function contourLines(picture, shares, signed, state) {
  const [rows, columns] = picture.grid ?? [0, 0], values = picture.patches.map((patch) => shares.get(patch) ?? 0);
  return (signed ? [1, -1] : [1]).flatMap((sign) => CONTOURS.flatMap((level, i) => {
    const d = contourPath(values.map((value) => sign * value), rows, columns, level);
    if (!d) return [];
    /** @param {string} className @param {Colour} colour @param {number} width */
    const line = (className, colour, width) => drawn("path", {class: className, d, stroke: css(colour), "stroke-width": width,
      "data-level": sign * level});
    return [line("halo", PALETTE[state.theme].paper, i + 3.5), line("contour", pole(sign, signed, state.theme), i + 1)];
  }));
}

// The line on which a score, between the centres of patches, has this level; zero lies around the picture.
/** @param {number[]} values @param {number} rows @param {number} columns @param {number} level */
function contourPath(values, rows, columns, level) {
  /** @param {number} row @param {number} column */
  const at = (row, column) => row < 0 || column < 0 || row >= rows || column >= columns ? 0 : values[row * columns + column];
  const pieces = [];
  for (let row = -1; row < rows; row++) {
    for (let column = -1; column < columns; column++) {
      const corners = [at(row, column), at(row, column + 1), at(row + 1, column + 1), at(row + 1, column)];
      for (const [one, other] of crossings(corners, level)) pieces.push([...one, ...other].map((place, i) => place + (i % 2 ? row : column) + 0.5));
    }
  }
  return pieces.map(([x, y, right, down]) => `M${x} ${y}L${right} ${down}`).join("");
}

// The pieces of a line through one square; its corners go round from the upper left.
/** @param {number[]} given @param {number} level @returns {number[][][]} */
function crossings([a, b, c, d], level) {
  /** @param {number} from @param {number} to */
  const share = (from, to) => (level - from) / (to - from);
  const top = [share(a, b), 0], right = [1, share(b, c)], bottom = [share(d, c), 1], left = [0, share(a, d)];
  const crossed = [a >= level !== b >= level ? top : [], b >= level !== c >= level ? right : [],
    d >= level !== c >= level ? bottom : [], a >= level !== d >= level ? left : []].filter((side) => side.length);
  if (crossed.length === 2) return [crossed];
  if (crossed.length < 4) return [];
  const isJoined = (a + b + c + d) / 4 >= level === a >= level;  // the middle is on the side of the upper left
  return isJoined ? [[top, right], [left, bottom]] : [[top, left], [right, bottom]];
}
