// The weights of a head, from the codes that a payload carries; each site is unpacked when it is first looked at.

/** @type {WeakMap<MapSite, {bytes: Uint8Array, heads: Map<number, Head>}>} */
const unpacked = new WeakMap();
const WIDTHS = {uint8: 1, int8: 1, float16: 2};

// What each byte stands for: the square root of a share, without a sign or with one.
const ROOTS = Float64Array.from({length: 256}, (_, code) => (code / 255) ** 2);
const SIGNED_ROOTS = Float64Array.from({length: 256}, (_, code) =>
  code < 128 ? (code / 127) ** 2 : -(((256 - code) / 127) ** 2));
const RANKS = Uint8Array.from({length: 256}, (_, code) => code);
const SIGNED_RANKS = Uint8Array.from({length: 256}, (_, code) => (code < 128 ? code : 256 - code));

/** @param {MapSite} site */
function siteOf(site) {
  let found = unpacked.get(site);
  if (!found) {
    const size = site.shape.reduce((product, each) => product * each, 1);
    const bytes = size ? inflate(bytesIn(site.data), size * WIDTHS[site.codes]) : new Uint8Array(0);
    found = {bytes, heads: new Map()};
    unpacked.set(site, found);
  }
  return found;
}

// The weights of one head as they are in the payload.
/** @param {MapSite} site @param {number} head */
function headOf(site, head) {
  const {bytes, heads} = siteOf(site);
  const found = heads.get(head) ?? makeHead(site, head, bytes);
  heads.set(head, found);
  return found;
}

/** @param {MapSite} site @param {number} head @param {Uint8Array} bytes @returns {Head} */
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
/** @param {Float32Array} values @param {number} queries @param {number} keys @param {number} limit @returns {Head} */
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

/** @param {number} half */
function fromHalf(half) {
  const power = (half >> 10) & 31, rest = half & 1023;
  const size = power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024);
  return half >> 15 ? -size : size;
}

// The columns of the first token and of special tokens, which often take what a head has no use for.
/** @param {MapSite} site @param {Payload} payload */
function sinkColumns(site, payload) {
  const found = site.keys.flatMap((position, column) =>
    (column === 0 || payload.tokens[position].special ? [column] : []));
  return found.length < site.keys.length ? found : [];
}

// A head without its sinks; of attention, what is left of each row is scaled to sum to one.
/** @param {Head} head @param {MapSite} site @param {MappedPayload} payload */
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

/** @type {WeakMap<Head, Head>} */
const trimmed = new WeakMap();

// The head as it is shown: whole, or without its sinks.
/** @param {MappedPayload} payload @param {State} state @param {number} [layer] @param {number} [number] */
function shownHead(payload, state, layer = state.layer, number = state.head) {
  const site = payload.maps.sites[layer], head = headOf(site, number);
  if (!state.hidden) return head;
  const found = trimmed.get(head) ?? withoutSinks(head, site, payload);
  trimmed.set(head, found);
  return found;
}

// A weight with as many decimals as its code holds.
/** @param {number} weight @param {Head} head @param {boolean} signed */
function weightFigure(weight, head, signed) {
  const decimals = head.limit > 0 ? Math.floor(-Math.log10(head.step(weight))) : 2;
  if (decimals > 9 || decimals < 0) return minus(weight.toExponential(1));
  const text = weight.toFixed(Math.min(decimals, 7));
  return Number(text) ? minus((signed && weight > 0 ? "+" : "") + text) : (0).toFixed(Math.min(decimals, 3));
}

/** @type {Map<string, Uint32Array>} */
const colourTables = new Map();

// The colours of the codes, packed as canvas pixels.
/** @param {Float64Array} shares @param {boolean} signed @param {Theme} theme */
function coloursOf(shares, signed, theme) {
  const key = `${shares === ROOTS} ${signed} ${theme}`;
  const found = colourTables.get(key) ?? Uint32Array.from(shares, (share) => {
    const [red, green, blue] = background(share, signed, theme);
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
  colourTables.set(key, found);
  return found;
}
