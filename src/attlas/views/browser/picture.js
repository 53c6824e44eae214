// The patches of a picture, drawn over the picture if there is one.

const PIECE = 16;  // pixels of a patch that is named beside its picture
const PNG = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/;

// The pictures beside one another, on one scale; a picture without a grid is shown as it is.
/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawPicture(element, payload, state) {
  /** @type {PatchedPicture[]} */
  const pictures = (payload.pictures ?? []).map((picture) =>
    ({...picture, patches: patchesOf(payload, picture)}));
  const patches = pictures.flatMap((picture) => picture.patches);
  const shownOnes = pictures.filter((picture) => picture.patches.length || pictureOf(picture));
  if (!shownOnes.length) return;
  const told = make("p", "told"), key = make("div", "legend"), elementsAt = new Map();
  const cellsOf = new Map(), over = make("div", "pictures");
  for (const picture of shownOnes) {
    const cells = picture.patches.map((unit) =>
      stand(make("span", "patch"), unit, payload, state, elementsAt));
    picture.patches.forEach((unit, i) => cellsOf.set(unit, cells[i]));
    const frame = frameOf(picture, cells);
    over.append(make("figure", "", frame, ...captionOf(picture, shownOnes)));
    rove(frame, ".patch");
  }
  const seen = shownOnes.some((picture) => patches.length && pictureOf(picture));
  const made = section(element, titleOf(shownOnes));
  const hints = linkHint(patches, payload);
  made.append(over, ...(seen ? [opacity(over, shownOnes.every(isSound) ? "sound" : "picture")] : []), told, key, ...hints);
  told.classList.toggle("kept", hints[0]?.dataset.linked === "true");
  const outlines = seen && !shownOnes.some(isSound) ? contourChoice(made, over, shownOnes, state) : () => {};
  let before = "";
  const colour = () => {
    const shown = patchScores(patches, payload, state);
    before = shown.link;
    outlines(new Map(patches.map((patch, i) => [patch, strength(shown.scores[i], shown.limit)])), shown.signed);
    told.replaceChildren(...shown.told);
    patches.forEach((patch, i) => {
      const cell = cellsOf.get(patch);
      patch.weight = shown.told.length ? shown.scores[i] : undefined;
      nameUnit(cell, patch, payload, state);
      const share = strength(shown.scores[i], shown.limit);
      cell.style.setProperty("--share", String(Math.abs(share)));
      paint(cell, share, shown.signed, state.theme);
    });
    const segments = new Set(pictures.map((picture) => picture.segment));
    const units = unitsOf(payload, state).filter((unit) => segments.has(unit.segment));
    const hasKey = patches.length && !shown.told.length;
    key.classList.toggle("held", !hasKey);  // it keeps its room, so that nothing moves under the pointer
    if (hasKey) key.replaceChildren(...legend(units, shown.limit, payload, state));
  };
  state.on(["theme", "scores", "unit", "row", "layer", "head"], colour);
  state.on(["token"], () => linkOf(patches, payload, state).key !== before && colour());
  colour();
  lightUp(payload, state, () => elementsAt);
}

/** @param {Picture} picture */
const isSound = (picture) => picture.segment === "sound";

// The name of one of several pictures; under a sound, its seconds.
/** @param {PatchedPicture} picture @param {Picture[]} pictures */
function captionOf(picture, pictures) {
  if (isSound(picture) && picture.patches.length) {
    const ends = [picture.patches[0], picture.patches[picture.patches.length - 1]].map((unit) => unit.text.split(",")[0]);
    const isBanded = (picture.grid?.[0] ?? 1) > 1;  // its patches are counted from the lowest pitch
    const [first, last] = ends.map((text) => make("span", "", visible(text)));
    return [make("figcaption", "quiet ends", first, ...(isBanded ? [make("span", "", "low pitch on top")] : []), last)];
  }
  return pictures.length > 1 ? [make("figcaption", "quiet", visible(picture.segment))] : [];
}

/** @param {Picture[]} pictures */
function titleOf(pictures) {
  if (pictures.every(isSound)) return "Sound";
  if (!pictures.some(pictureOf)) return "Patches";
  return pictures.length > 1 ? "Pictures" : "Picture";
}

// The picture and its patches over it, or either alone.
/** @param {Picture} picture @param {HTMLElement[]} cells */
function frameOf(picture, cells) {
  const image = pictureOf(picture);
  const look = `frame${image ? " over" : ""}${isSound(picture) ? " sound" : ""}`;
  const frame = make("div", look, ...(image ? [image] : []));
  if (!cells.length) return frame;
  const [rows, columns] = picture.grid ?? [0, 0];
  const grid = make("div", "patches", ...cells);
  grid.style.setProperty("--columns", String(columns));
  grid.style.setProperty("--rows", String(rows));
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `${rows} by ${columns} patches`);
  frame.append(grid);
  return frame;
}

// The scores of the patches; if a token is chosen or a word pointed at, what the maps say of it and them.
/** @param {Placed[]} patches @param {TextPayload} payload @param {State} state */
function patchScores(patches, payload, state) {
  const {key: link, values, told} = linkOf(patches, payload, state);
  const scores = values ?? patches.map(({positions: [position]}) => state.scores[position]);
  const limit = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
  if (!values) return {scores, limit, signed: payload.signed, told: [], link};
  const words = [make("bdi", "mono strong", told[0]), make("span", "quiet", `${told[1]}; strongest weight `),
    make("span", "mono", figure(limit, limit, false))];
  return {scores, limit, signed: payload.maps?.signed ?? false, told: words, link};
}

// Only a picture inside the payload is shown, since a page loads nothing.
/** @param {Picture} picture */
function pictureOf(picture) {
  if (!picture.image || !PNG.test(picture.image)) return null;
  const image = make("img", "picture");
  image.src = picture.image;
  image.alt = "The picture as the model saw it";
  return image;
}

// The name of a patch, with a small piece of its picture; null for other units.
/** @param {Placed} unit @param {TextPayload} payload */
function patchName(unit, payload) {
  const picture = (payload.pictures ?? []).find((each) => each.segment === unit.segment);
  if (!picture || unit.positions.length > 1) return null;
  const place = patchesOf(payload, picture)
    .findIndex((patch) => patch.positions[0] === unit.positions[0]);
  if (place < 0) return null;
  const grid = picture.grid ?? [0, 0], columns = grid[1], [row, column] = [Math.floor(place / columns), place % columns];
  const which = (payload.pictures ?? []).length > 1 ? visible(picture.segment) : "patch";
  const isNumbered = unit.text === `${row},${column}`;  // other cells have names of their own
  const name = make("bdi", "", isNumbered ? `${which} ${row},${column}` : visible(unit.text));
  const image = pictureOf(picture);
  if (!image) return [name];
  const piece = pieceOf(image, grid, row, column);
  piece.classList.toggle("sound", isSound(picture));
  return [piece, name];
}

/** @param {HTMLImageElement} picture @param {number[]} given @param {number} row @param {number} column */
function pieceOf(picture, [rows, columns], row, column) {
  Object.assign(picture, {alt: "", className: "piece"});
  Object.assign(picture.style, {left: `${-PIECE * column}px`, top: `${-PIECE * row}px`,
    width: `${PIECE * columns}px`, height: `${PIECE * rows}px`});
  return make("span", "crop", picture);
}

// A slider from the picture alone to the scores alone.
/** @param {HTMLElement} frame @param {string} name */
function opacity(frame, name) {
  const slider = make("input", "");
  Object.assign(slider, {type: "range", min: 0, max: 100, value: 60});
  const follow = () => frame.style.setProperty("--scores", String(Number(slider.value) / 100));
  slider.addEventListener("input", follow);
  follow();
  const label = make("label", "opacity", name, slider, "scores");
  slider.setAttribute("aria-label", `Opacity of the scores over the ${name}`);
  return label;
}
