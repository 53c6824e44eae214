// @ts-nocheck
// Maps: attention, or what else a method finds for every two tokens.

VIEWS.maps = [drawHeader, drawPicture, drawText, drawMaps, drawFlow, drawFoot, drawTip];

const decoded = new WeakMap();

// Of each head of a site, the weights as bytes from −127 to 127 of its largest.
function bytesOf(site) {
  if (!decoded.has(site)) decoded.set(site, new Int8Array(bytesIn(site.data).buffer));
  return decoded.get(site);
}

function headOf(site, head) {
  const [, queries, keys] = site.shape, limit = site.limits[head];
  const bytes = bytesOf(site).subarray(head * queries * keys, (head + 1) * queries * keys);
  return {bytes, queries, keys, limit, value: (row, column) => bytes[row * keys + column] / 127 * limit};
}

// A weight with as many decimals as its byte holds.
function weightFigure(weight, limit, signed) {
  const decimals = limit > 0 ? Math.round(-Math.log10(limit / 127)) : 2;
  if (decimals > 7 || decimals < 0) return minus(weight.toExponential(1));
  const text = weight.toFixed(decimals);
  return Number(text) ? minus((signed && weight > 0 ? "+" : "") + text) : (0).toFixed(decimals);
}

// The head with the largest weight of all.
function strongestHead(payload) {
  let found = {layer: 0, head: 0}, most = -1;
  (payload.maps?.sites ?? []).forEach((site, layer) => site.limits.forEach((limit, head) => {
    if (limit > most) [found, most] = [{layer, head}, limit];
  }));
  return found;
}

// The colours of the bytes from −127 to 127, packed as canvas pixels.
function coloursOf(signed, theme) {
  return Uint32Array.from({length: 255}, (_, i) => {
    const [red, green, blue] = background((i - 127) / 127, signed, theme);
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

// Each pixel shows the strongest weight of its block, so that thin lines stay visible.
function pool({bytes, queries, keys}, rows, columns) {
  if (rows === queries && columns === keys) return bytes;
  const out = new Int8Array(rows * columns);
  const columnOf = Uint32Array.from({length: keys}, (_, key) => Math.floor((key * columns) / keys));
  for (let query = 0; query < queries; query++) {
    const start = Math.floor((query * rows) / queries) * columns;
    for (let key = 0; key < keys; key++) {
      const at = start + columnOf[key], byte = bytes[query * keys + key];
      if (Math.abs(byte) > Math.abs(out[at])) out[at] = byte;
    }
  }
  return out;
}

function fillCanvas(canvas, head, most, signed, theme) {
  const rows = Math.min(most, head.queries), columns = Math.min(most, head.keys);
  const colours = coloursOf(signed, theme), bytes = pool(head, rows, columns);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colours[bytes[i] + 127];
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// One map over the whole model has neither layers nor heads.
const isWhole = (site) => site.kind === "all";
const mapName = (site, head) => isWhole(site) ? "the whole model" : `${visible(site.name)} · head ${head}`;

function drawMaps(element, payload, state) {
  const sites = payload.maps?.sites ?? [];
  if (!sites.length) return;
  const made = section(element, `Maps of ${visible(payload.maps.shows)}`, "maps");
  const heads = make("div", "heads"), pane = make("div", "pane");
  const whole = sites.every(isWhole);
  made.append(make("p", "quiet", whole
    ? "Each row is a token at the top of the model, each column one of the input. Choose a row or a token to list it."
    : "Layers down, heads across. Each row is a token that attends, each column one that is attended to; " +
      "every head is coloured up to its own strongest weight, and the head with the strongest of all is open. " +
      "Choose a head to enlarge it, and a row or a token to list it."),
  make("div", "columns", ...(whole && sites.length === 1 ? [] : [heads]), pane));
  drawHeads(heads, payload, state);
  drawMatrix(pane, payload, state);
}

function drawHeads(element, payload, state) {
  const {sites, signed} = payload.maps;
  const severalKinds = new Set(sites.map((site) => site.kind)).size > 1;
  const most = Math.max(...sites.map((site) => site.shape[0]));
  const thumbs = [];
  element.append(make("div", "head-row numbers quiet mono", make("span", "", "head"),
    ...Array.from({length: most}, (_, head) => make("span", "number", String(head)))));
  sites.forEach((site, layer) => {
    const row = make("div", "head-row", make("span", "quiet mono",
      severalKinds ? `${site.kind} ${site.layer}` : `layer ${site.layer}`));
    for (let head = 0; head < site.shape[0]; head++) {
      const canvas = make("canvas", "");
      const thumb = button(canvas, "thumb", () => state.set({layer, head}));
      thumb.setAttribute("aria-label", `${site.name}, head ${head}`);
      thumb.title = mapName(site, head);
      thumbs.push({thumb, canvas, site, layer, head});
      row.append(thumb);
    }
    element.append(row);
  });
  const mark = () => thumbs.forEach(({thumb, layer, head}) =>
    thumb.setAttribute("aria-pressed", String(layer === state.layer && head === state.head)));
  const colour = () => inTurn(thumbs, ({canvas, site, head}) =>
    fillCanvas(canvas, headOf(site, head), 48, signed, state.theme));
  state.on(["layer", "head"], mark);
  state.on(["theme"], colour);
  mark();
  colour();
}

// Work in small steps, so that many large maps never block the page.
function inTurn(items, work) {
  let next = 0;
  const step = () => {
    const until = performance.now() + 12;
    while (next < items.length && performance.now() < until) work(items[next++]);
    if (next < items.length) setTimeout(step);
  };
  step();
}
