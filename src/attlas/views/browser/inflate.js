// Bytes from deflate. A browser unpacks only in the background; here the bytes are there at once.

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
  4097, 6145, 8193, 12289, 16385, 24577];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END = 256;

// For each possible run of the next bits, the symbol that they start with and how many bits it has.
/** @param {number[]} sizes @returns {SymbolTable} */
function symbolTable(sizes) {
  const most = Math.max(1, ...sizes), table = new Uint16Array(1 << most), next = new Uint16Array(17);
  const counts = new Uint16Array(17);
  for (const size of sizes) if (size) counts[size]++;
  for (let size = 1; size < 16; size++) next[size + 1] = (next[size] + counts[size]) << 1;
  sizes.forEach((size, symbol) => {
    if (!size) return;
    let code = next[size]++, turned = 0;
    for (let bit = 0; bit < size; bit++, code >>= 1) turned = (turned << 1) | (code & 1);
    for (let at = turned; at < table.length; at += 1 << size) table[at] = (symbol << 4) | size;
  });
  return {table, mask: table.length - 1};
}

/** @type {() => [SymbolTable, SymbolTable]} */
const fixedTables = () => [
  symbolTable(Array.from({length: 288}, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
  symbolTable(new Array(30).fill(5)),
];

/** Unpack what zlib packed, `size` bytes of it. @param {Uint8Array} packed @param {number} size */
function inflate(packed, size) {
  /** @type {PackedStream} */
  const stream = {packed, at: 2, bits: 0, count: 0, out: new Uint8Array(size), to: 0};  // after zlib's own two bytes
  let last = 0;
  while (!last) {
    last = take(stream, 1);
    const kind = take(stream, 2);
    if (kind === 0) copyStored(stream);
    else unpackBlock(stream, ...(kind === 1 ? fixedTables() : ownTables(stream)));
  }
  return stream.out;
}

/** @param {PackedStream} stream @param {number} count */
function take(stream, count) {
  while (stream.count < count) {
    stream.bits |= stream.packed[stream.at++] << stream.count;
    stream.count += 8;
  }
  const value = stream.bits & ((1 << count) - 1);
  stream.bits >>>= count;
  stream.count -= count;
  return value;
}

/** @param {PackedStream} stream @param {SymbolTable} given */
function takeSymbol(stream, {table, mask}) {
  while (stream.count < 15) {
    stream.bits |= stream.packed[stream.at++] << stream.count;
    stream.count += 8;
  }
  const entry = table[stream.bits & mask];
  stream.bits >>>= entry & 15;
  stream.count -= entry & 15;
  return entry >> 4;
}

/** @param {PackedStream} stream */
function copyStored(stream) {
  stream.at -= stream.count >> 3;  // whole bytes that were read ahead
  stream.bits = stream.count = 0;
  const length = stream.packed[stream.at] | (stream.packed[stream.at + 1] << 8), start = stream.at + 4;
  stream.out.set(stream.packed.subarray(start, start + length), stream.to);
  stream.at = start + length;
  stream.to += length;
}

/** @param {PackedStream} stream @returns {[SymbolTable, SymbolTable]} */
function ownTables(stream) {
  const symbols = take(stream, 5) + 257, distances = take(stream, 5) + 1, codes = take(stream, 4) + 4;
  const sizes = new Array(19).fill(0);
  for (let i = 0; i < codes; i++) sizes[CODE_ORDER[i]] = take(stream, 3);
  const meta = symbolTable(sizes);
  /** @type {number[]} */
  const found = [];
  while (found.length < symbols + distances) {
    const symbol = takeSymbol(stream, meta);
    if (symbol < 16) found.push(symbol);
    else {
      /** @type {[number, number]} */
      const [value, times] = symbol === 16 ? [found.at(-1) ?? 0, 3 + take(stream, 2)]
        : symbol === 17 ? [0, 3 + take(stream, 3)] : [0, 11 + take(stream, 7)];
      for (let i = 0; i < times; i++) found.push(value);
    }
  }
  return [symbolTable(found.slice(0, symbols)), symbolTable(found.slice(symbols))];
}

// The one loop that is written for speed: its variables are its own.
/** @param {PackedStream} stream @param {SymbolTable} given @param {SymbolTable} distances */
function unpackBlock(stream, {table, mask}, distances) {
  const {packed, out} = stream;
  let {at, bits, count, to} = stream;
  for (;;) {
    while (count < 15) {
      bits |= packed[at++] << count;
      count += 8;
    }
    const entry = table[bits & mask];
    bits >>>= entry & 15;
    count -= entry & 15;
    const symbol = entry >> 4;
    if (symbol < END) {
      out[to++] = symbol;
      continue;
    }
    Object.assign(stream, {at, bits, count});
    if (symbol === END) break;
    const length = LENGTHS[symbol - 257] + take(stream, LENGTH_BITS[symbol - 257]);
    const place = takeSymbol(stream, distances);
    const distance = DISTANCES[place] + take(stream, Math.max(0, (place >> 1) - 1));
    if (distance === 1) out.fill(out[to - 1], to, to + length);
    else for (let i = 0; i < length; i++) out[to + i] = out[to + i - distance];
    to += length;
    ({at, bits, count} = stream);
  }
  stream.to = to;
}
