// Level of detail: what a part of a head looks like on fewer pixels than it has weights.

/** @type {WeakMap<Head, HeadLevel[]>} */
const pyramids = new WeakMap();

const LARGE = 2 ** 20;  // weights of a part for which levels are worth their making

// The head at half the size, a quarter and so on: of four weights the strongest, so that thin lines stay visible. What is
// looked at once needs no levels: they are made for a large part that is looked at again, as a zoom does.
/** @param {Head} head @param {HeadPart} part @param {number} wanted @returns {HeadLevel} */
function levelFor(head, part, wanted) {
  const whole = {codes: head.codes, queries: head.queries, keys: head.keys, scale: 1}, levels = pyramids.get(head);
  if (wanted < 2 || (part.bottom - part.top) * (part.right - part.left) < LARGE) return whole;
  if (!levels) pyramids.set(head, [whole]);
  if (!levels) return whole;
  const level = Math.floor(Math.log2(wanted));
  while (levels.length <= level) levels.push(halved(levels[levels.length - 1], head.ranks));
  return levels[level];
}

/** @param {HeadLevel} level @param {Uint8Array} ranks @returns {HeadLevel} */
function halved({codes, queries, keys, scale}, ranks) {
  const rows = Math.ceil(queries / 2), columns = Math.ceil(keys / 2), out = new Uint8Array(rows * columns);
  const plain = ranks === RANKS;
  for (let row = 0; row < rows; row++) {
    const one = 2 * row * keys, other = Math.min(2 * row + 1, queries - 1) * keys;
    for (let column = 0; column < columns; column++) {
      const left = 2 * column, right = Math.min(left + 1, keys - 1);
      const a = codes[one + left], b = codes[one + right], c = codes[other + left], d = codes[other + right];
      const above = plain ? (a > b ? a : b) : ranks[b] > ranks[a] ? b : a;
      const below = plain ? (c > d ? c : d) : ranks[d] > ranks[c] ? d : c;
      out[row * columns + column] = ranks[below] > ranks[above] ? below : above;
    }
  }
  return {codes: out, queries: rows, keys: columns, scale: 2 * scale};
}

// The codes of a window of a head on `rows` by `columns` pixels; each shows the strongest weight of its block.
/** @param {Head} head @param {HeadPart} part @param {number} rows @param {number} columns */
function pooled(head, part, rows, columns) {
  const wanted = Math.min((part.bottom - part.top) / rows, (part.right - part.left) / columns);
  const {codes, queries, keys, scale} = levelFor(head, part, wanted);
  const down = edges(part.top / scale, part.bottom / scale, rows, queries);
  const across = edges(part.left / scale, part.right / scale, columns, keys);
  const out = new Uint8Array(rows * columns), {ranks} = head, strongest = ranks === RANKS ? largestIn : strongestIn;
  for (let y = 0; y < rows; y++) {
    for (let row = down.from[y]; row < down.to[y]; row++) strongest(codes, row * keys, across, out, y * columns, ranks);
  }
  return out;
}

// For each pixel of a line, the largest code of a row; two functions, since a code with a sign is looked up.
/**
 * @param {Uint8Array} codes
 * @param {number} start
 * @param {{from: Int32Array, to: Int32Array}} given
 * @param {Uint8Array} out
 * @param {number} at
 */
function largestIn(codes, start, {from, to}, out, at) {
  for (let x = 0; x < from.length; x++, at++) {
    let best = out[at];
    for (let column = start + from[x], end = start + to[x]; column < end; column++) if (codes[column] > best) best = codes[column];
    out[at] = best;
  }
}

/**
 * @param {Uint8Array} codes
 * @param {number} start
 * @param {{from: Int32Array, to: Int32Array}} given
 * @param {Uint8Array} out
 * @param {number} at
 * @param {Uint8Array} ranks
 */
function strongestIn(codes, start, {from, to}, out, at, ranks) {
  for (let x = 0; x < from.length; x++, at++) {
    let best = out[at];
    for (let column = start + from[x], end = start + to[x]; column < end; column++) {
      if (ranks[codes[column]] > ranks[best]) best = codes[column];
    }
    out[at] = best;
  }
}

// The weights that each of some pixels covers: at least one.
/** @param {number} start @param {number} stop @param {number} count @param {number} most */
function edges(start, stop, count, most) {
  const step = (stop - start) / count, from = new Int32Array(count), to = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    from[i] = Math.min(most - 1, Math.floor(start + i * step + 1e-9));
    to[i] = Math.min(most, Math.max(from[i] + 1, Math.ceil(start + (i + 1) * step - 1e-9)));
  }
  return {from, to};
}

/** @param {{queries: number, keys: number}} head */
const wholeOf = (head) => ({top: 0, bottom: head.queries, left: 0, right: head.keys});

// Draw a window of a head, at most `most` pixels high and wide.
/**
 * @param {HTMLCanvasElement} canvas
 * @param {Head} head
 * @param {number} most
 * @param {boolean} signed
 * @param {Theme} theme
 * @param {HeadPart} [part]
 */
function fillCanvas(canvas, head, most, signed, theme, part = wholeOf(head)) {
  const rows = Math.min(most, Math.ceil(part.bottom - part.top)), columns = Math.min(most, Math.ceil(part.right - part.left));
  canvas.width = columns;
  canvas.height = rows;
  if (rows && columns) canvas.getContext("2d")?.putImageData(imageOf(head, part, rows, columns, signed, theme), 0, 0);
}

/**
 * @param {Head} head
 * @param {HeadPart} part
 * @param {number} rows
 * @param {number} columns
 * @param {boolean} signed
 * @param {Theme} theme
 */
function imageOf(head, part, rows, columns, signed, theme) {
  const colours = coloursOf(head.shares, signed, theme), codes = pooled(head, part, rows, columns);
  const image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colours[codes[i]];
  return image;
}
