// Attention maps.

VIEWS.maps = [drawHeader, drawPicture, drawText, drawMaps, drawFoot, drawTip];

const decoded = new WeakMap();

function bytesOf(site) {
  if (!decoded.has(site)) {
    const text = atob(site.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    decoded.set(site, bytes);
  }
  return decoded.get(site);
}

const valueOf = (site, byte) => site.low + (byte / 255) * (site.high - site.low);

function headOf(site, head) {
  const [, queries, keys] = site.shape;
  const bytes = bytesOf(site).subarray(head * queries * keys, (head + 1) * queries * keys);
  let low = 255, high = 0;
  for (const byte of bytes) { if (byte < low) low = byte; if (byte > high) high = byte; }
  const limit = Math.max(Math.abs(valueOf(site, low)), Math.abs(valueOf(site, high)));
  return {bytes, queries, keys, limit, value: (row, column) => valueOf(site, bytes[row * keys + column])};
}

// The 256 colours that a byte of this site can have, packed as canvas pixels.
function coloursOf(site, limit, signed, theme) {
  const packed = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    const [red, green, blue] = background(strength(valueOf(site, byte), limit), signed, theme);
    packed[byte] = (255 << 24) | (blue << 16) | (green << 8) | red;
  }
  return packed;
}

// Each pixel shows the strongest weight of its block, so that thin lines stay visible.
function pool(site, {bytes, queries, keys}, rows, columns) {
  if (rows === queries && columns === keys) return bytes;
  const size = Float32Array.from({length: 256}, (_, byte) => Math.abs(valueOf(site, byte)));
  const out = new Uint8Array(rows * columns);
  const seen = new Uint8Array(rows * columns);
  const columnOf = Uint32Array.from({length: keys}, (_, key) => Math.floor((key * columns) / keys));
  for (let query = 0; query < queries; query++) {
    const start = Math.floor((query * rows) / queries) * columns;
    for (let key = 0; key < keys; key++) {
      const at = start + columnOf[key], byte = bytes[query * keys + key];
      if (!seen[at] || size[byte] > size[out[at]]) { out[at] = byte; seen[at] = 1; }
    }
  }
  return out;
}

function fillCanvas(canvas, site, head, most, signed, theme) {
  const rows = Math.min(most, head.queries), columns = Math.min(most, head.keys);
  const colours = coloursOf(site, head.limit, signed, theme);
  const bytes = pool(site, head, rows, columns);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colours[bytes[i]];
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function drawMaps(element, payload, state) {
  const sites = payload.maps?.sites ?? [];
  if (!sites.length) return;
  const made = section(element, "Attention maps", "maps");
  const heads = make("div", "heads"), pane = make("div", "pane");
  made.append(make("p", "quiet", "Layers down, heads across. Each row is a token that attends, " +
    "each column one that is attended to; every head is scaled to its own strongest weight. " +
    "Choose a head to enlarge it, and a row or a token to list what it attends to."),
  make("div", "columns", heads, pane));
  drawHeads(heads, payload, state);
  drawMatrix(pane, payload, state);
}

function drawHeads(element, payload, state) {
  const {sites, signed} = payload.maps;
  const severalKinds = new Set(sites.map((site) => site.kind)).size > 1;
  const thumbs = [];
  sites.forEach((site, layer) => {
    const row = make("div", "head-row", make("span", "quiet mono",
      severalKinds ? `${site.kind} ${site.layer}` : `layer ${site.layer}`));
    for (let head = 0; head < site.shape[0]; head++) {
      const canvas = make("canvas", "");
      const thumb = button(canvas, "thumb", () => state.set({layer, head}));
      thumb.setAttribute("aria-label", `${site.name}, head ${head}`);
      thumb.title = `${site.name} · head ${head}`;
      thumbs.push({thumb, canvas, site, layer, head});
      row.append(thumb);
    }
    element.append(row);
  });
  const mark = () => thumbs.forEach(({thumb, layer, head}) =>
    thumb.setAttribute("aria-pressed", String(layer === state.layer && head === state.head)));
  const colour = () => inTurn(thumbs, ({canvas, site, head}) =>
    fillCanvas(canvas, site, headOf(site, head), 48, signed, state.theme));
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
