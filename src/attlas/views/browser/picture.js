// The patches of a picture, drawn over the picture if there is one.

const PIECE = 16;  // pixels of a patch that is named beside its picture
const PNG = /^data:image\/png;base64,[A-Za-z0-9+/=]+$/;

function drawPicture(element, payload, state) {
  const patches = patchesOf(payload);
  if (!patches.length) return;
  const [rows, columns] = payload.grid;
  const grid = make("div", "patches");
  grid.style.setProperty("--columns", columns);
  grid.style.setProperty("--rows", rows);
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `${rows} by ${columns} patches`);
  const told = make("p", "told"), key = make("div", "legend"), elementsAt = new Map();
  const cells = patches.map((unit) => stand(make("span", "patch"), unit, payload, state, elementsAt));
  grid.append(...cells);
  const picture = pictureOf(payload);
  const frame = make("div", picture ? "frame over" : "frame", ...(picture ? [picture] : []), grid);
  section(element, picture ? "Picture" : "Patches")
    .append(frame, ...(picture ? [opacity(frame)] : []), told, key);
  const colour = () => {
    const shown = patchScores(patches, payload, state);
    told.replaceChildren(...shown.told);
    cells.forEach((cell, i) => {
      patches[i].weight = shown.told.length ? shown.scores[i] : undefined;
      name(cell, patches[i], payload, state);
      const share = strength(shown.scores[i], shown.limit);
      cell.style.setProperty("--share", Math.abs(share));
      paint(cell, share, shown.signed, state.theme);
    });
    const seen = unitsOf(payload, state).filter((unit) => unit.segment === "image");
    key.replaceChildren(...(shown.told.length ? [] : legend(seen, shown.limit, payload, state)));
  };
  state.on(["theme", "scores", "unit", "row", "layer", "head"], colour);
  colour();
  rove(grid, ".patch");
  lightUp(payload, state, () => elementsAt);
}

// The scores of the patches; if a token of the maps is chosen, its attention to them instead.
function patchScores(patches, payload, state) {
  const site = payload.maps?.sites[state.layer];
  const row = site && state.row !== null ? site.queries.indexOf(state.row) : -1;
  if (row < 0) {
    const scores = patches.map(({positions: [position]}) => state.scores[position]);
    const limit = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
    return {scores, limit, signed: payload.signed, told: []};
  }
  const head = headOf(site, state.head);
  const columnOf = new Map(site.keys.map((position, column) => [position, column]));
  const scores = patches.map(({positions: [position]}) =>
    columnOf.has(position) ? head.value(row, columnOf.get(position)) : 0);
  const limit = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
  const told = [make("bdi", "mono strong", visible(payload.tokens[state.row].label)),
    make("span", "quiet", `: ${visible(payload.maps.shows)} here, ${mapName(site, state.head)}; strongest weight `),
    make("span", "mono", figure(limit, limit, false))];
  return {scores, limit, signed: payload.maps.signed, told};
}

// Only a picture inside the payload is shown, since a page loads nothing.
function pictureOf(payload) {
  if (!PNG.test(payload.picture ?? "")) return null;
  const image = make("img", "picture");
  image.src = payload.picture;
  image.alt = "The picture as the model saw it";
  return image;
}

// The name of a patch, with a small piece of the picture; null for other units.
function patchName(unit, payload) {
  const place = patchesOf(payload).findIndex((patch) => patch.positions[0] === unit.positions[0]);
  if (place < 0 || unit.positions.length > 1) return null;
  const columns = payload.grid[1], [row, column] = [Math.floor(place / columns), place % columns];
  const name = make("bdi", "", `patch ${row},${column}`);
  const picture = pictureOf(payload);
  return picture ? [pieceOf(picture, payload.grid, row, column), name] : [name];
}

function pieceOf(picture, [rows, columns], row, column) {
  Object.assign(picture, {alt: "", className: "piece"});
  Object.assign(picture.style, {left: `${-PIECE * column}px`, top: `${-PIECE * row}px`,
    width: `${PIECE * columns}px`, height: `${PIECE * rows}px`});
  return make("span", "crop", picture);
}

// A slider from the picture alone to the scores alone.
function opacity(frame) {
  const slider = make("input", "");
  Object.assign(slider, {type: "range", min: 0, max: 100, value: 60});
  const follow = () => frame.style.setProperty("--scores", slider.value / 100);
  slider.addEventListener("input", follow);
  follow();
  const label = make("label", "opacity", "picture", slider, "scores");
  slider.setAttribute("aria-label", "Opacity of the scores over the picture");
  return label;
}
