// @ts-nocheck
// The weights of a head, from the codes that a payload carries; each site is unpacked when it is first looked at.

/**
 * One head. `codes` index `shares`, the share of `limit` that each code stands for, and `ranks`, how far it is from zero.
 * @typedef {{codes: Uint8Array, shares: Float64Array, ranks: Uint8Array, queries: number, keys: number, limit: number,
 *   value: (row: number, column: number) => number, step: (weight: number) => number}} Head
 */

const unpacked = new WeakMap();
const WIDTHS = {uint8: 1, int8: 1, float16: 2};

// What each byte stands for: the square root of a share, without a sign or with one.
const ROOTS = Float64Array.from({length: 256}, (_, code) => (code / 255) ** 2);
const SIGNED_ROOTS = Float64Array.from({length: 256}, (_, code) =>
  code < 128 ? (code / 127) ** 2 : -(((256 - code) / 127) ** 2));
const RANKS = Uint8Array.from({length: 256}, (_, code) => code);
const SIGNED_RANKS = Uint8Array.from({length: 256}, (_, code) => (code < 128 ? code : 256 - code));

function siteOf(site) {
  if (!unpacked.has(site)) {
    const size = site.shape.reduce((product, each) => product * each, 1);
    const bytes = size ? inflate(bytesIn(site.data), size * WIDTHS[site.codes]) : new Uint8Array(0);
    unpacked.set(site, {bytes, heads: new Map()});
  }
  return unpacked.get(site);
}

/** The weights of one head as they are in the payload. @returns {Head} */
function headOf(site, head) {
  const {bytes, heads} = siteOf(site);
  if (!heads.has(head)) heads.set(head, makeHead(site, head, bytes));
  return heads.get(head);
}

function makeHead(site, head, bytes) {
  const [, queries, keys] = site.shape, size = queries * keys, limit = site.limits[head];
  if (site.codes === "float16") {
    const halves = new Uint16Array(bytes.buffer, bytes.byteOffset + 2 * head * size, size);
    return headFrom(Float32Array.from(halves, (half) => fromHalf(half) * limit), queries, keys, limit);
  }
  const signed = site.codes === "int8", shares = signed ? SIGNED_ROOTS : ROOTS, top = signed ? 127 : 255;
  const codes = bytes.subarray(head * size, (head + 1) * size);
  return {codes, shares, ranks: signed ? SIGNED_RANKS : RANKS, queries, keys, limit,
    value: (row, column) => shares[codes[row * keys + column]] * limit,
    step: (weight) => Math.sqrt(Math.max(Math.abs(weight), limit / top / top) * limit) / top};
}

// A head from exact weights; the codes are for its colours.
function headFrom(values, queries, keys, limit) {
  const signed = values.some((value) => value < 0), top = signed ? 127 : 255;
  const codes = new Uint8Array(values.length);
  if (limit > 0) {
    for (let i = 0; i < values.length; i++) {
      const root = Math.round(Math.sqrt(Math.min(1, Math.abs(values[i]) / limit)) * top);
      codes[i] = values[i] < 0 ? 256 - root : root;
    }
  }
  return {codes, shares: signed ? SIGNED_ROOTS : ROOTS, ranks: signed ? SIGNED_RANKS : RANKS, queries, keys, limit,
    value: (row, column) => values[row * keys + column], step: (weight) => Math.max(Math.abs(weight), limit / 1e4) / 2048};
}

function fromHalf(half) {
  const power = (half >> 10) & 31, rest = half & 1023;
  const size = power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024);
  return half >> 15 ? -size : size;
}

// The columns of the first token and of special tokens, which often take what a head has no use for.
function sinkColumns(site, payload) {
  const found = site.keys.flatMap((position, column) =>
    (column === 0 || payload.tokens[position].special ? [column] : []));
  return found.length < site.keys.length ? found : [];
}

// A head without its sinks; of attention, what is left of each row is scaled to sum to one.
function withoutSinks(head, site, payload) {
  const {queries, keys, codes, shares} = head, values = new Float32Array(queries * keys);
  const hidden = new Uint8Array(keys), isShared = payload.maps.shows === "attention" && !payload.maps.signed;
  for (const column of sinkColumns(site, payload)) hidden[column] = 1;
  let limit = 0;
  for (let row = 0; row < queries; row++) {
    const start = row * keys;
    let rest = 0;
    for (let i = 0; i < keys; i++) if (!hidden[i]) rest += values[start + i] = shares[codes[start + i]] * head.limit;
    // Of less than a thousandth of a row, the codes hold too little to enlarge it.
    const scale = !isShared ? 1 : rest > 0.001 ? 1 / rest : 0;
    for (let i = 0; i < keys; i++) limit = Math.max(limit, Math.abs(values[start + i] *= scale));
  }
  return headFrom(values, queries, keys, limit);
}

const trimmed = new WeakMap();

/** The head as it is shown: whole, or without its sinks. @returns {Head} */
function shownHead(payload, state, layer = state.layer, number = state.head) {
  const site = payload.maps.sites[layer], head = headOf(site, number);
  if (!state.hidden) return head;
  if (!trimmed.has(head)) trimmed.set(head, withoutSinks(head, site, payload));
  return trimmed.get(head);
}

// A weight with as many decimals as its code holds.
function weightFigure(weight, head, signed) {
  const decimals = head.limit > 0 ? Math.floor(-Math.log10(head.step(weight))) : 2;
  if (decimals > 9 || decimals < 0) return minus(weight.toExponential(1));
  const text = weight.toFixed(Math.min(decimals, 7));
  return Number(text) ? minus((signed && weight > 0 ? "+" : "") + text) : (0).toFixed(Math.min(decimals, 3));
}

const colourTables = new Map();

// The colours of the codes, packed as canvas pixels.
function coloursOf(shares, signed, theme) {
  const key = `${shares === ROOTS} ${signed} ${theme}`;
  if (!colourTables.has(key)) {
    colourTables.set(key, Uint32Array.from(shares, (share) => {
      const [red, green, blue] = background(share, signed, theme);
      return (255 << 24) | (blue << 16) | (green << 8) | red;
    }));
  }
  return colourTables.get(key);
}
