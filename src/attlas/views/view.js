// What Attlas shows of one result. Two doors, at the end: `render` for a notebook, `embed` for a
// page. Each view is a function draw(element, payload, state); the state is shared by all of them.
// Text from the payload enters the document as text nodes only.

// Colours: the same numbers and rules as colours.py. The literal is JSON, so that a test can read it.

const PALETTE = {
  "light": {"paper": [252, 251, 248], "favour": [224, 122, 20], "against": [37, 99, 168],
            "plain": [12, 92, 94], "inks": [[28, 27, 25], [255, 255, 255]]},
  "dark": {"paper": [22, 24, 27], "favour": [240, 150, 60], "against": [64, 132, 220],
           "plain": [126, 211, 203], "inks": [[22, 24, 27], [244, 243, 240]]}
};
const READABLE = 4.5;

const css = (colour) => `rgb(${colour.join(", ")})`;
const strength = (score, limit) => (limit > 0 ? Math.max(-1, Math.min(1, score / limit)) : 0);
const linear = (channel) =>
  channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;

function luminance(colour) {
  const [red, green, blue] = colour.map((channel) => linear(channel / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function pole(share, signed, theme) {
  if (!signed) return PALETTE[theme].plain;
  return share >= 0 ? PALETTE[theme].favour : PALETTE[theme].against;
}

function background(share, signed, theme) {
  const end = pole(share, signed, theme);
  return PALETTE[theme].paper.map((a, i) => Math.floor(a + (end[i] - a) * Math.abs(share) + 0.5));
}

function ink(paper, theme) {
  const better = (inks) => inks.reduce((a, b) => (contrast(b, paper) > contrast(a, paper) ? b : a));
  const best = better(PALETTE[theme].inks);
  return contrast(best, paper) >= READABLE ? best : better([[0, 0, 0], [255, 255, 255]]);
}

function paint(element, share, signed, theme) {
  const paper = background(share, signed, theme);
  element.style.backgroundColor = css(paper);
  element.style.color = css(ink(paper, theme));
}

// Words and numbers, as units.py writes them.

const UNSAFE =
  /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;
const SHOWN = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡", "\u2028": "⏎", "\u2029": "⏎"};
const RIGHT_TO_LEFT = /[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}]/u;

function show(sign) {
  const code = sign.codePointAt(0);
  if (sign in SHOWN) return SHOWN[sign];
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

function visible(text) {
  if (text === "") return "∅";
  return /^ +$/.test(text) ? "␣".repeat(text.length) : text.replace(UNSAFE, show);
}

const minus = (text) => text.replace("-", "−");

function figure(score, limit, signed) {
  const sign = signed && score >= 0 ? "+" : "";
  if ((limit > 0 && limit < 1e-5) || limit >= 1e6) return minus(sign + score.toExponential(2));
  const decimals = limit > 0 ? Math.max(0, 2 - Math.floor(Math.log10(limit))) : 3;
  return minus(sign + score.toFixed(Math.min(decimals, 7)));
}

const exact = (score, signed) =>
  minus((signed && score >= 0 ? "+" : "") + Number(score.toPrecision(6)));

// The document.

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function section(element, title, className) {
  const made = make("section", className, make("h2", "", title));
  element.append(made);
  return made;
}

function button(label, className, onClick) {
  const made = make("button", className, label);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

// One tab stop for many things: the arrow keys, Home and End move among them.
function rove(container, selector) {
  const first = container.querySelector(selector);
  if (first) first.tabIndex = 0;
  container.onkeydown = (event) => {
    const here = event.target.closest(selector);
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!here || !(step || event.key === "Home" || event.key === "End")) return;
    const all = [...container.querySelectorAll(selector)];
    const to = event.key === "Home" ? 0 : event.key === "End" ? -1 : all.indexOf(here) + step;
    const next = step ? all[to] : all.at(to);
    if (!next) return;
    event.preventDefault();
    container.querySelectorAll('[tabindex="0"]').forEach((each) => (each.tabIndex = -1));
    next.tabIndex = 0;
    next.focus();
  };
}

// The state, and what follows from it.

function makeState(values) {
  const listeners = [];
  const state = {
    ...values,
    on(names, listener) { listeners.push([names, listener]); },
    set(change) {
      const changed = Object.keys(change).filter((name) => state[name] !== change[name]);
      Object.assign(state, change);
      for (const [names, listener] of listeners) {
        if (names.some((name) => changed.includes(name))) listener();
      }
    },
  };
  return state;
}

function unitsOf(payload, unit) {
  if (unit === "tokens" || !payload.words?.length) {
    return payload.tokens.map((token, position) => ({...token, text: token.label, positions: [position]}));
  }
  return payload.words.map((word) => {
    const tokens = word.positions.map((position) => payload.tokens[position]);
    const placed = tokens.filter((token) => token.start !== null && token.start !== undefined);
    const start = placed.length ? Math.min(...placed.map((token) => token.start)) : null;
    const end = placed.length ? Math.max(...placed.map((token) => token.end)) : null;
    return {...word, start, end};
  });
}

// Maps alone have tokens, but no scores for them.
const isScored = (payload) => payload.kind !== "maps";

const plainOnes = (units) => {
  const plain = units.filter((unit) => !unit.special);
  return plain.length ? plain : units;
};
const limitOf = (units) =>
  plainOnes(units).reduce((most, unit) => Math.max(most, Math.abs(unit.score)), 0);

function patchesOf(payload) {
  if (!payload.grid) return [];
  const [rows, columns] = payload.grid;
  const found = unitsOf(payload, "tokens")
    .filter((unit) => !unit.special && (unit.start === null || unit.start === undefined));
  return found.length === rows * columns ? found : [];
}

// The token pointed at; in words, all the tokens of its word.
function litPositions(payload, state) {
  if (state.token === null) return [];
  const word = state.unit === "words" && payload.words
    ? payload.words.find((each) => each.positions.includes(state.token)) : null;
  return word ? word.positions : [state.token];
}

function lightUp(payload, state, elementsAt) {
  let lit = [];
  state.on(["token", "unit"], () => {
    for (const element of lit) element.classList.remove("lit");
    lit = litPositions(payload, state).flatMap((position) => elementsAt().get(position) ?? []);
    for (const element of lit) element.classList.add("lit");
  });
}

function describe(payload, unit) {
  const raw = unit.positions.map((position) => visible(payload.tokens[position].text)).join(" ");
  const where = unit.positions.length > 1 ? "positions" : "position";
  const kind = unit.special ? ", special" : "";
  const scored = isScored(payload) ? ` score ${exact(unit.score, payload.signed)},` : "";
  const score = unit.isWeight ? ` weight ${exact(unit.score, payload.maps.signed)},` : scored;
  return `${raw},${score} ${where} ${unit.positions.join(" ")}${kind}`;
}

// An element that stands for a unit: it lights the unit up, tells its score, and picks its row.
function stand(element, unit, payload, state, elementsAt) {
  element.tabIndex = -1;
  element.setAttribute("aria-label", `${visible(unit.text)}: ${describe(payload, unit)}`);
  const enter = () => state.set({token: unit.positions[0], tip: {element, text: describe(payload, unit)}});
  const leave = () => state.set({token: null, tip: null});
  element.addEventListener("pointerenter", enter);
  element.addEventListener("pointerleave", leave);
  element.addEventListener("focus", enter);
  element.addEventListener("blur", leave);
  element.setAttribute("role", payload.maps ? "button" : "img");
  if (payload.maps) pickRow(element, unit.positions[0], state);
  for (const position of unit.positions) {
    elementsAt.set(position, [...(elementsAt.get(position) ?? []), element]);
  }
  return element;
}

function pickRow(element, position, state) {
  const pick = () => state.set({row: state.row === position ? null : position, tip: null});
  element.addEventListener("click", pick);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    pick();
  });
}

// The views.

function drawHeader(element, payload, state) {
  const facts = make("p", "facts");
  const fact = (name, ...values) =>
    facts.append(make("span", "fact", make("span", "quiet", `${name} `), ...values));
  if (payload.method) fact("method", make("b", "mono", visible(payload.method)));
  if (payload.target) fact("target", ...targetWords(payload.target));
  if (payload.task) fact("task", visible(payload.task));
  const theme = button("", "switch", () =>
    state.set({chosen: state.theme === "dark" ? "light" : "dark"}));
  const label = () => (theme.textContent = state.theme === "dark" ? "☀ light" : "☾ dark");
  state.on(["theme"], label);
  label();
  element.append(make("header", "",
    make("div", "", make("p", "brand quiet", "Attlas"), make("h1", "", visible(payload.model ?? "Attention")), facts),
    theme));
}

function targetWords(target) {
  const words = [make("b", "", visible(target.name))];
  if (target.contrast) words.push(` rather than ${visible(target.contrast)}`);
  if (typeof target.value === "number") {
    words.push(make("span", "quiet", ` ${visible(target.quantity)} `),
      make("span", "mono", minus(target.value.toFixed(3))));
  }
  return words;
}

function drawPrediction(element, payload) {
  if (!payload.prediction.length) return;
  const list = make("ul", "prediction");
  for (const row of payload.prediction) {
    const isTarget = row.label === payload.target.name;
    const known = typeof row.probability === "number";
    const value = known ? row.probability : row.value;
    const bar = make("span", known ? "track" : "");
    if (known) {
      bar.append(make("span", "fill"));
      bar.firstChild.style.width = `${100 * row.probability}%`;
    }
    list.append(make("li", isTarget ? "target" : "", make("bdi", "label", visible(row.label)), bar,
      make("span", "mono figure", typeof value === "number" ? minus(value.toFixed(3)) : ""),
      make("span", "tag", isTarget ? "target" : "")));
  }
  section(element, "Prediction").append(list);
}

function drawNotes(element, payload) {
  if (!payload.notes?.length) return;
  const list = make("ul", "notes");
  for (const note of payload.notes) list.append(make("li", "", visible(note)));
  section(element, "Notes").append(list);
}

function drawText(element, payload, state) {
  const patches = new Set(patchesOf(payload).map((unit) => unit.positions[0]));
  const unitsShown = () =>
    unitsOf(payload, state.unit).filter((unit) => !patches.has(unit.positions[0]));
  if (!unitsShown().length) return;
  const made = section(element, patches.size ? "Other tokens" : "Text");
  if (payload.words?.length) made.firstChild.after(drawSwitch(state));
  const rows = make("div", "rows");
  const key = make("div", "legend");
  made.append(rows, key);
  let elementsAt = new Map();
  const build = () => {
    elementsAt = new Map();
    rows.replaceChildren(...flows(unitsShown(), payload, state, elementsAt));
    rove(rows, ".unit");
    key.replaceChildren(...(patches.size ? [] : legend(unitsOf(payload, state.unit), payload, state)));
  };
  state.on(["unit", "theme"], build);
  build();
  lightUp(payload, state, () => elementsAt);
}

function drawSwitch(state) {
  const box = make("div", "choice");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Unit");
  const mark = () => [...box.children].forEach((each) =>
    each.setAttribute("aria-pressed", String(each.textContent === state.unit)));
  for (const unit of ["words", "tokens"]) box.append(button(unit, "", () => state.set({unit})));
  state.on(["unit"], mark);
  mark();
  return box;
}

function flows(units, payload, state, elementsAt) {
  const limit = limitOf(unitsOf(payload, state.unit));
  const segments = [...new Set(units.map((unit) => unit.segment))];
  return segments.map((segment) => {
    const source = Array.from(payload.sources?.[segment] ?? "");  // offsets count code points
    const flow = make("p", "flow");
    const letter = source.find((sign) => /\p{L}/u.test(sign));
    flow.dir = letter && RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
    let before = null;
    for (const unit of units.filter((each) => each.segment === segment)) {
      if (before) flow.append(...gap(before, unit, source));
      flow.append(chip(unit, limit, payload, state, elementsAt));
      before = unit;
    }
    const row = make("div", "row", flow);
    if (segments.length > 1) row.prepend(make("h3", "quiet", visible(segment)));
    return row;
  });
}

function gap(before, unit, source) {
  const known = Number.isInteger(before.end) && Number.isInteger(unit.start);
  if (/[\n\u2028\u2029]/.test(before.text)) return [make("br")];
  if (!known || before.special || unit.special) return [" "];
  const between = source.slice(before.end, unit.start);
  if (between.includes("\n")) return [make("br")];
  return between.length ? [" "] : [make("wbr")];
}

function chip(unit, limit, payload, state, elementsAt) {
  const made = make("span", unit.special ? "unit special" : "unit", visible(unit.text));
  if (!unit.special) {
    const share = strength(unit.score, limit);
    paint(made, share, payload.signed, state.theme);
    if (payload.signed && share < -0.15) made.classList.add("against");
  }
  return stand(made, unit, payload, state, elementsAt);
}

function legend(units, payload, state) {
  if (!isScored(payload)) return [];
  const limit = limitOf(units);
  const ramp = make("span", "ramp");
  ramp.setAttribute("aria-hidden", "true");
  for (let step = payload.signed ? -4 : 0; step <= 4; step++) {
    const cell = make("span", "");
    cell.style.backgroundColor = css(background(step / 4, payload.signed, state.theme));
    ramp.append(cell);
  }
  const number = (score) => make("span", "mono", figure(score, limit, payload.signed));
  const scale = make("span", "scale");
  if (payload.signed) scale.append("against ", number(-limit), ramp, number(limit), " for the target");
  else scale.append(number(0), ramp, number(limit));
  const special = units.filter((unit) => unit.special);
  const total = units.reduce((sum, unit) => sum + Math.abs(unit.score), 0);
  if (!special.length || special.length === units.length || !(total > 0)) return [scale];
  const held = special.reduce((sum, unit) => sum + Math.abs(unit.score), 0) / total;
  return [scale, make("span", "", `Special tokens hold ${Math.round(100 * held)} % of the score; ` +
    "the colours are scaled without them.")];
}

function drawBars(element, payload, state) {
  const made = section(element, "Strongest");
  const list = make("ol", "bars");
  made.append(list);
  let elementsAt = new Map();
  const build = () => {
    elementsAt = new Map();
    const units = unitsOf(payload, state.unit);
    const top = plainOnes(units).sort((a, b) => Math.abs(b.score) - Math.abs(a.score)).slice(0, 12);
    bars(list, top, limitOf(units), payload, state, elementsAt);
  };
  state.on(["unit", "theme"], build);
  build();
  lightUp(payload, state, () => elementsAt);
}

function bars(list, units, limit, payload, state, elementsAt, signed = payload.signed) {
  list.classList.toggle("signed", signed);
  list.replaceChildren(...units.map((unit) => {
    const share = strength(unit.score, limit);
    const fill = make("span", share < 0 ? "fill left" : "fill");
    fill.style.width = `${100 * Math.abs(share) / (signed ? 2 : 1)}%`;
    fill.style.backgroundColor = css(pole(share, signed, state.theme));
    const made = make("li", "unit-row", make("bdi", "label mono", visible(unit.text)),
      make("span", "track", fill), make("span", "mono figure", figure(unit.score, limit, signed)));
    stand(made, unit, payload, state, elementsAt);
    made.setAttribute("role", "listitem");  // the list then says how many there are
    return made;
  }));
  rove(list, ".unit-row");
}

function drawGrid(element, payload, state) {
  const patches = patchesOf(payload);
  if (!patches.length) return;
  const [rows, columns] = payload.grid;
  const grid = make("div", "patches");
  grid.style.setProperty("--columns", columns);
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `${rows} by ${columns} patches`);
  const key = make("div", "legend");
  const elementsAt = new Map();
  const limit = limitOf(patches);
  const cells = patches.map((unit) => stand(make("span", "patch"), unit, payload, state, elementsAt));
  grid.append(...cells);
  section(element, "Patches").append(grid, key);
  const colour = () => {
    cells.forEach((cell, i) =>
      paint(cell, strength(patches[i].score, limit), payload.signed, state.theme));
    key.replaceChildren(...legend(unitsOf(payload, "tokens"), payload, state));
  };
  state.on(["theme"], colour);
  colour();
  rove(grid, ".patch");
  lightUp(payload, state, () => elementsAt);
}

function drawReading(element, payload) {
  if (payload.reading) section(element, "How to read this").append(make("p", "", visible(payload.reading)));
}

function drawFoot(element, payload) {
  const foot = make("footer", "");
  const list = make("dl", "");
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const pairs = (values) => Object.entries(values ?? {})
    .map(([name, value]) => `${name} ${written(value)}`).join(" · ");
  const versions = [payload.attlas ? `attlas ${payload.attlas}` : "", pairs(payload.versions)];
  const facts = [["Paper", payload.paper], ["Options", pairs(payload.options)],
    ["Versions", versions.filter(Boolean).join(" · ")]];
  for (const [name, value] of facts) {
    if (value) list.append(make("dt", "", name), make("dd", "mono", visible(value)));
  }
  foot.append(list);
  if (payload.code) foot.append(codeBox(payload.code));
  element.append(foot);
}

function codeBox(code) {
  const text = make("pre", "mono", code);
  const copy = button("copy as Python", "copy", async () => {
    try {
      await navigator.clipboard.writeText(code);
      copy.textContent = "copied";
    } catch {  // no permission in this frame: leave the text selected instead
      getSelection().selectAllChildren(text);
      copy.textContent = "selected";
    }
    setTimeout(() => (copy.textContent = "copy as Python"), 1500);
  });
  return make("div", "code", text, copy);
}

// Attention maps.

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

// Each pixel shows the strongest weight of its block, so that a thin line does not vanish.
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
  made.append(make("p", "quiet", "Layers down, heads across. Each row is a token that looks, " +
    "each column one that is looked at; every head is scaled to its own strongest weight. " +
    "Choose a head to see it large, and a row or a token to list what it looks at."),
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

// A little work at a time, so that many large maps never hold up the page.
function inTurn(items, work) {
  let next = 0;
  const step = () => {
    const until = performance.now() + 12;
    while (next < items.length && performance.now() < until) work(items[next++]);
    if (next < items.length) setTimeout(step);
  };
  step();
}

function drawMatrix(element, payload, state) {
  const title = make("h3", ""), readout = make("p", "readout mono");
  const scroll = make("div", "scroll"), chosen = make("div", "chosen");
  readout.setAttribute("aria-live", "polite");
  element.append(title, readout, scroll, chosen);
  const build = () => {
    const site = payload.maps.sites[state.layer];
    title.replaceChildren(`${visible(site.name)} · head ${state.head}`);
    const matrix = matrixOf(site, payload, state, element.clientWidth);
    scroll.replaceChildren(matrix.element);
    matrix.listen(readout);
    refresh = () => { matrix.light(); listRow(chosen, matrix, payload, state, elementsAt); };
    refresh();
  };
  let refresh = null;
  const elementsAt = new Map();
  lightUp(payload, state, () => elementsAt);
  state.on(["layer", "head", "theme", "width"], build);
  state.on(["token", "unit", "row"], () => refresh());
  build();
}

function matrixOf(site, payload, state, width) {
  const head = headOf(site, state.head);
  const names = (positions) => positions.map((position) => visible(payload.tokens[position].label));
  const queries = names(site.queries), keys = names(site.keys);
  const longest = [...queries, ...keys].reduce((most, name) => Math.max(most, name.length), 0);
  const margin = Math.min(width < 480 ? 72 : 104, 20 + 7 * longest);
  const most = Math.max(head.queries, head.keys);
  const cell = Math.max(1, Math.min(28, Math.floor((Math.min(width, 640) - margin - 8) / most)));
  const canvas = largeCanvas(site, head, cell, payload, state);
  const element = make("div", "matrix", canvas);
  element.style.setProperty("--margin", `${margin}px`);
  const labels = new Map();
  axis(element, queries, cell, "query", site.queries, labels);
  axis(element, keys, cell, "key", site.keys, labels);
  const matrix = {site, head, cell, canvas, element, labels, bands: [], named: [], at: null};
  matrix.light = () => lightMatrix(matrix, payload, state);
  matrix.listen = (readout) => listenMatrix(matrix, readout, payload, state);
  return matrix;
}

function largeCanvas(site, head, cell, payload, state) {
  const canvas = make("canvas", "");
  fillCanvas(canvas, site, head, Infinity, payload.maps.signed, state.theme);
  canvas.style.width = `${head.keys * cell}px`;
  canvas.style.height = `${head.queries * cell}px`;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Weights of ${site.name}, head ${state.head}: ${head.queries} ` +
    `queries by ${head.keys} keys. The arrow keys move, Enter chooses a row.`);
  return canvas;
}

// Where cells are too small to be named one by one, every so many of them is.
function axis(element, names, cell, side, positions, labels) {
  const step = Math.ceil(13 / cell);
  for (let i = 0; i < names.length; i += step) {
    const label = make("bdi", `axis ${side}`, names[i]);
    label.title = names[i];
    label.style.setProperty("--at", `${(i + 0.5) * cell}px`);
    element.append(label);
    labels.set(positions[i], [...(labels.get(positions[i]) ?? []), label]);
  }
}

function band(matrix, className, row, column) {
  const {head, cell} = matrix;
  const made = make("div", `band ${className}`);
  const place = {top: row === null ? 0 : row * cell, height: row === null ? head.queries * cell : cell,
    left: column === null ? 0 : column * cell, width: column === null ? head.keys * cell : cell};
  for (const [name, value] of Object.entries(place)) made.style.setProperty(`--${name}`, `${value}px`);
  return made;
}

function lightMatrix(matrix, payload, state) {
  const {site, labels, element} = matrix;
  for (const each of matrix.bands) each.remove();
  for (const label of matrix.named) label.classList.remove("lit");
  const bands = [];
  const across = (position, className) => {
    const row = site.queries.indexOf(position);
    if (row >= 0) bands.push(band(matrix, className, row, null));
  };
  if (state.row !== null) across(state.row, "chosen-row");
  if (matrix.at) bands.push(band(matrix, "cell", matrix.at[0], matrix.at[1]));
  const positions = litPositions(payload, state);
  for (const position of positions) {
    if (!matrix.at) across(position, "hover");
    const column = site.keys.indexOf(position);
    if (column >= 0) bands.push(band(matrix, "hover", null, column));
  }
  const named = positions.flatMap((position) => labels.get(position) ?? []);
  for (const label of named) label.classList.add("lit");
  element.append(...bands);
  Object.assign(matrix, {bands, named});
}

function listenMatrix(matrix, readout, payload, state) {
  const {canvas, site, cell} = matrix;
  const point = (row, column) => pointAt(matrix, row, column, readout, payload, state);
  const rest = `strongest weight ${figure(matrix.head.limit, matrix.head.limit, false)}`;
  const leave = () => {
    matrix.at = null;
    readout.textContent = rest;
    if (state.token === null) matrix.light();
    else state.set({token: null});
  };
  const pick = () => {
    const position = matrix.at && site.queries[matrix.at[0]];
    if (position !== null) state.set({row: state.row === position ? null : position});
  };
  canvas.addEventListener("pointermove", (event) =>
    point(Math.floor(event.offsetY / cell), Math.floor(event.offsetX / cell)));
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("click", pick);
  canvas.addEventListener("keydown", (event) => steer(event, matrix, point, pick));
  readout.textContent = rest;
}

function pointAt(matrix, row, column, readout, payload, state) {
  const {site, head, at} = matrix;
  const same = at && at[0] === row && at[1] === column;
  if (same || row < 0 || column < 0 || row >= head.queries || column >= head.keys) return;
  matrix.at = [row, column];
  const name = (position) => make("bdi", "", visible(payload.tokens[position].label));
  readout.replaceChildren(name(site.queries[row]), " → ", name(site.keys[column]), " ",
    make("b", "", figure(head.value(row, column), head.limit, payload.maps.signed)));
  const token = site.keys[column];
  if (state.token === token) matrix.light();
  else state.set({token, tip: null});
}

const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

function steer(event, matrix, point, pick) {
  if (event.key === "Enter") pick();
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  if (matrix.at) point(matrix.at[0] + step[0], matrix.at[1] + step[1]);
  else point(0, 0);
}

function listRow(element, matrix, payload, state, elementsAt) {
  const {site, head} = matrix;
  const row = state.row === null ? -1 : site.queries.indexOf(state.row);
  const shown = `${site.name} ${state.head} ${state.theme} ${row}`;
  if (element.dataset.shown === shown) return;
  element.dataset.shown = shown;
  element.replaceChildren();
  elementsAt.clear();
  if (row < 0) return;
  const units = site.keys.map((position, column) => ({...payload.tokens[position],
    text: payload.tokens[position].label, positions: [position], score: head.value(row, column),
    isWeight: true}));
  units.sort((a, b) => Math.abs(b.score) - Math.abs(a.score));
  const list = make("ol", "bars");
  const name = visible(payload.tokens[state.row].label);
  element.append(make("h3", "", make("bdi", "mono", name), " looks at"), list);
  bars(list, units.slice(0, 8), head.limit, payload, state, elementsAt, payload.maps.signed);
}

// What floats: the exact score of the unit pointed at.
function drawTip(element, payload, state) {
  const tip = make("div", "tip mono");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  element.append(tip);
  state.on(["tip"], () => {
    tip.hidden = !state.tip;
    if (!state.tip) return;
    tip.textContent = state.tip.text;
    const frame = element.getBoundingClientRect();
    const at = (state.tip.element.getClientRects()[0] ?? frame);
    const left = Math.min(at.left - frame.left, element.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, at.top - frame.top - tip.offsetHeight - 6)}px`;
  });
}

const VIEWS = [drawHeader, drawPrediction, drawNotes, drawGrid, drawText, drawBars, drawMaps,
  drawReading, drawFoot, drawTip];
const VIEWS_OF_MAPS = [drawHeader, drawGrid, drawText, drawMaps, drawFoot, drawTip];

// Unscored tokens are drawn as tokens that score nothing: on bare paper.
const withScores = (payload) => isScored(payload) ? payload
  : {...payload, signed: false, tokens: payload.tokens.map((token) => ({...token, score: 0}))};

// Print is always on light paper; otherwise the switch decides, and before it the system.
function followTheme(element, state) {
  const queries = [matchMedia("print"), matchMedia("(prefers-color-scheme: dark)")];
  const decide = () => {
    const wanted = state.chosen ?? (queries[1].matches ? "dark" : "light");
    const theme = queries[0].matches ? "light" : wanted;
    element.dataset.theme = theme;
    state.set({theme});
  };
  state.on(["chosen"], decide);
  for (const query of queries) query.addEventListener("change", decide);
  decide();
  return () => queries.forEach((query) => query.removeEventListener("change", decide));
}

function followWidth(element, state) {
  const observer = new ResizeObserver(() => state.set({width: element.clientWidth}));
  observer.observe(element);
  return () => observer.disconnect();
}

function draw(element, given) {
  const payload = withScores(given);
  const state = makeState({layer: 0, head: 0, token: null, row: null, tip: null, chosen: null,
    theme: "light", unit: payload.words?.length ? "words" : "tokens", width: element.clientWidth});
  element.classList.add("attlas");
  element.replaceChildren();
  const stops = [followTheme(element, state)];
  for (const view of isScored(payload) ? VIEWS : VIEWS_OF_MAPS) view(element, payload, state);
  stops.push(followWidth(element, state));
  return () => stops.forEach((stop) => stop());
}

export default {
  render({ model, el }) {
    let stop = draw(el, model.get("payload"));
    const redraw = () => { stop(); stop = draw(el, model.get("payload")); };
    model.on("change:payload", redraw);
    return () => { model.off("change:payload", redraw); stop(); };
  },
};

export function embed(el, payload) {
  return draw(el, payload);
}
