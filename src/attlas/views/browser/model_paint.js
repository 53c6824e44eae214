// How the whole model is painted: a small picture of each head, a sharper one where it is near, figures where it is nearest.

const LEAST_FIGURE = [38, 18];  // pixels of a weight that has room for its figure
const LEAST_LABEL = 12;
const LABEL_ROOM = 84;
const MOST_NEAR = 192;  // sharp pictures that are kept
const FRAME_WORK = 8;  // milliseconds of a frame in which sharp pictures are made
const MOST_ENLARGED = 2.5;  // times that the picture of the whole model is enlarged

const INK_NAMES = /** @type {const} */ (["paper", "quiet", "line", "mark", "mono"]);

// The whole model is one picture, made head by head while the page stays alive.
/** @param {ModelView} view */
function fillTiles(view) {
  const {payload, state, slots, pitch, tile} = view, look = getComputedStyle(view.canvas);
  for (const name of INK_NAMES) view.ink[name] = look.getPropertyValue(`--${name}`);
  view.stop();
  view.near.clear();
  view.drawn = 0;
  view.tiles = Object.assign(document.createElement("canvas"), {width: view.columns * pitch + 1, height: view.rows * pitch + 1});
  const context = penOf(view.tiles);
  context.fillStyle = view.ink.line;
  view.stop = inTurn(slots, (slot) => {
    const head = shownHead(payload, state, slot.layer, slot.head), [x, y] = [slot.column * pitch + 1, slot.row * pitch + 1];
    const image = imageOf(head, wholeOf(head), tile, tile, payload.maps.signed, state.theme);
    context.fillRect(x - 1, y - 1, tile + 2, tile + 2);  // a frame
    context.putImageData(image, x, y);
    view.drawn++;
    if (view.drawn % view.columns === 0 || view.drawn === slots.length) view.ask();
  });
}

/** @param {Head} head @param {number} size @param {MappedPayload} payload @param {State} state */
function pictureOfHead(head, size, payload, state) {
  const canvas = document.createElement("canvas");
  fillCanvas(canvas, head, size, payload.maps.signed, state.theme);
  return canvas;
}

// A sharp picture, if it is there or if this frame has time to make it; otherwise the next frame makes it.
/** @param {ModelView} view @param {HeadSlot} slot */
function nearPicture(view, slot) {
  const {near, payload, state} = view;
  const kept = near.get(slot);
  if (!kept && performance.now() > view.until) {
    view.ask();
    return null;
  }
  const found = kept ?? pictureOfHead(shownHead(payload, state, slot.layer, slot.head), SHARP, payload, state);
  near.delete(slot);  // the last used goes to the end
  near.set(slot, found);
  for (const oldest of near.keys()) {
    if (near.size <= MOST_NEAR) break;
    near.delete(oldest);
  }
  return found;
}

/** @param {ModelView} view */
function paintModel(view) {
  const {canvas, width, height, left} = view, top = edgeTop(view), context = penOf(canvas);
  context.setTransform(view.sharp, 0, 0, view.sharp, 0, 0);
  context.fillStyle = view.ink.paper;
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(left - 2, top - 2, width - left + 2, height - top + 2);
  context.clip();
  context.imageSmoothingEnabled = false;
  view.until = performance.now() + FRAME_WORK;
  const size = view.scale * view.filled, chosen = slotOf(view), isFar = isOnePicture(view, size);
  const seen = isFar ? [] : view.slots.filter((slot) => isSeen(view, slot, size));
  const pixel = view.scale / view.pitch, {tiles} = view;
  if (isFar) context.drawImage(tiles, view.x - pixel, view.y - pixel, tiles.width * pixel, tiles.height * pixel);
  for (const slot of seen) paintHead(context, view, slot, size);
  for (const slot of isFar ? [chosen] : seen) frameHead(context, view, slot, size, slot === chosen);
  if (view.ordered && size >= 44) for (const slot of view.slots) nameHead(context, view, slot);
  context.restore();
  const middle = slotAt(view, centreX(view), centreY(view))?.slot ?? chosen;
  paintEdges(context, view, middle && isSeen(view, middle, size) ? middle : null, size);
  canvas.dataset.scale = (view.scale / view.fitted).toFixed(3);
  canvas.dataset.drawn = String(view.drawn);
}

// From afar one picture is enough, unless the weights have room for more than its pixels.
/** @param {ModelView} view @param {number} size */
function isOnePicture(view, size) {
  const most = mostTokens(view), enlarged = size * view.sharp / view.tile;
  return enlarged <= (most > view.tile ? MOST_ENLARGED : 1.001) && size / most < LEAST_LABEL;
}

/** @param {ModelView} view @param {HeadSlot} slot */
const cornerOf = (view, slot) => [view.x + slot.column * view.scale, view.y + slot.row * view.scale];

/** @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function isSeen(view, slot, size) {
  const [x, y] = cornerOf(view, slot);
  return x < view.width && y < view.height && x + size > view.left && y + size > view.top;
}

/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function paintHead(context, view, slot, size) {
  const [x, y] = cornerOf(view, slot), [, queries, keys] = slot.site.shape;
  if (size * view.sharp > SHARP * 1.2 && Math.max(queries, keys) > SHARP) return paintPart(context, view, slot, size);
  const {tile, pitch} = view, picture = nearPicture(view, slot);
  if (picture) context.drawImage(picture, x, y, size, size);
  else context.drawImage(view.tiles, slot.column * pitch + 1, slot.row * pitch + 1, tile, tile, x, y, size, size);
  paintFigures(context, view, slot, size);
}

// Of a head that is larger than its pictures, only the part that is seen is drawn.
/** @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function seenPart(view, slot, size) {
  const [x, y] = cornerOf(view, slot), [, queries, keys] = slot.site.shape;
  /** @param {number} from @param {number} start @param {number} end @param {number} count */
  const span = (from, start, end, count) => [Math.max(0, Math.floor((start - from) / size * count)),
    Math.min(count, Math.ceil((end - from) / size * count))];
  const [top, bottom] = span(y, edgeTop(view), view.height, queries), [left, right] = span(x, view.left, view.width, keys);
  return {top, bottom, left, right};
}

/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function paintPart(context, view, slot, size) {
  const {payload, state} = view, part = seenPart(view, slot, size), [x, y] = cornerOf(view, slot);
  const [, queries, keys] = slot.site.shape, [high, wide] = [size / queries, size / keys];
  const rows = part.bottom - part.top, columns = part.right - part.left;
  if (rows <= 0 || columns <= 0) return;
  /** @param {number} count @param {number} pixels */
  const fine = (count, pixels) => Math.max(1, Math.min(count, Math.ceil(count * pixels)));
  const image = imageOf(shownHead(payload, state, slot.layer, slot.head), part, fine(rows, high), fine(columns, wide),
    payload.maps.signed, state.theme);
  Object.assign(view.scrap, {width: image.width, height: image.height});
  penOf(view.scrap).putImageData(image, 0, 0);
  context.drawImage(view.scrap, x + part.left * wide, y + part.top * high, columns * wide, rows * high);
  paintFigures(context, view, slot, size);
}

const inks = new Map();

/** @param {number} share @param {boolean} signed @param {Theme} theme */
function inkOn(share, signed, theme) {
  const key = `${Math.round(64 * share)} ${signed} ${theme}`;
  if (!inks.has(key)) inks.set(key, css(ink(background(Math.round(64 * share) / 64, signed, theme), theme)));
  return inks.get(key);
}

/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function paintFigures(context, view, slot, size) {
  const {payload, state} = view, [, queries, keys] = slot.site.shape, [wide, high] = [size / keys, size / queries];
  if (wide < LEAST_FIGURE[0] || high < LEAST_FIGURE[1]) return;
  const {signed} = payload.maps, head = shownHead(payload, state, slot.layer, slot.head);
  const part = seenPart(view, slot, size), [x, y] = cornerOf(view, slot);
  Object.assign(context, {font: `${Math.min(13, Math.max(10, wide / 5))}px ${view.ink.mono}`, textAlign: "center", textBaseline: "middle"});
  for (let row = part.top; row < part.bottom; row++) {
    for (let column = part.left; column < part.right; column++) {
      const weight = head.value(row, column);
      context.fillStyle = inkOn(strength(weight, head.limit), signed, state.theme);
      context.fillText(weightFigure(weight, head, signed), x + (column + 0.5) * wide, y + (row + 0.5) * high);
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {ModelView} view
 * @param {HeadSlot} slot
 * @param {number} size
 * @param {boolean} chosen
 */
function frameHead(context, view, slot, size, chosen) {
  const [x, y] = cornerOf(view, slot);
  context.lineWidth = chosen ? 2 : 1;
  context.strokeStyle = chosen ? view.ink.mark : view.ink.line;
  context.strokeRect(x - (chosen ? 1 : 0.5), y - (chosen ? 1 : 0.5), size + (chosen ? 2 : 1), size + (chosen ? 2 : 1));
}

/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot} slot */
function nameHead(context, view, slot) {
  const [x, y] = cornerOf(view, slot);
  if (!isSeen(view, slot, view.scale * view.filled)) return;
  const name = `${slot.site.layer}·${headNumber(slot.site, slot.head)}`;
  Object.assign(context, {font: `10px ${view.ink.mono}`, textAlign: "left", textBaseline: "top", fillStyle: view.ink.paper});
  context.fillRect(x, y, 6 * name.length + 5, 13);
  context.fillStyle = view.ink.quiet;
  context.fillText(name, x + 2, y + 2);
}

// Along the edges: layers and heads from afar, the tokens of one head from near.
/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot | null} slot @param {number} size */
function paintEdges(context, view, slot, size) {
  const [, queries, keys] = slot?.site.shape ?? [0, 1, 1];
  Object.assign(context, {font: `11px ${view.ink.mono}`, textBaseline: "middle"});
  if (slot && size / Math.max(queries, keys) >= LEAST_LABEL) return paintTokens(context, view, slot, size);
  if (view.ordered) return;
  context.fillStyle = view.ink.quiet;
  const {sites} = view.payload.maps;
  const step = Math.ceil(14 / view.scale);
  sites.forEach((site, row) => {
    const y = view.y + row * view.scale + size / 2;
    if (row % step || y < view.top || y > view.height) return;
    context.textAlign = "right";
    context.fillText(layerName(site, sites), view.left - 8, y, view.left - 10);
  });
  const widest = widestOf(sites), every = Math.ceil(20 / view.scale);
  context.textAlign = "center";
  for (let column = 0; column < view.columns; column += every) {
    const x = view.x + column * view.scale + size / 2;
    if (x > view.left && x < view.width) context.fillText(String(headNumber(widest, column)), x, view.top / 2);
  }
}

/** @param {CanvasRenderingContext2D} context @param {ModelView} view @param {HeadSlot} slot @param {number} size */
function paintTokens(context, view, slot, size) {
  const {payload, left} = view, [x, y] = cornerOf(view, slot), part = seenPart(view, slot, size);
  const [, queries, keys] = slot.site.shape, [wide, high] = [size / keys, size / queries];
  /** @param {number} position */
  const label = (position) => shortened(visible(payload.tokens[position].label));
  Object.assign(context, {fillStyle: view.ink.quiet, textAlign: "right"});
  const edge = edgeTop(view);
  for (let row = part.top; row < part.bottom; row++) {
    const at = y + (row + 0.5) * high;
    if (at > edge) context.fillText(label(slot.site.queries[row]), left - 8, at, left - 10);
  }
  context.textAlign = "left";
  for (let column = part.left; column < part.right; column++) {
    const at = x + (column + 0.5) * wide;
    if (at < left) continue;
    context.save();
    context.translate(at, edge - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(label(slot.site.keys[column]), 0, 0, edge - 10);
    context.restore();
  }
}

/** @param {string} text */
const shortened = (text) => {
  const signs = Array.from(text);
  return signs.length > 14 ? `${signs.slice(0, 13).join("")}…` : text;
};
