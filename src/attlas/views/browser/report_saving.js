// Every figure has an address, and can be saved: its numbers as CSV, what is drawn as SVG.

const FIGURE_HEAD = ["name", "family", "removal", "value", "low", "high", "texts"];
/** @param {Figure} given */
const figureCells = ({value, low, high, n}) => [value, low, high, n];
/** @param {Standing} given */
const standingRow = ({method, family, removal, figure}) => [method, family, removal, ...figureCells(figure)];

// `rows` returns the numbers of the figure, the first row with the names of the columns.
/** @template {HTMLElement} T @param {T} box @param {string} id @param {() => Cell[][]} rows */
function saveable(box, id, rows) {
  box.id = id;
  box.classList.add("saveable");
  const link = make("a", "tool", "link");
  link.href = `#${id}`;
  link.setAttribute("aria-label", "Link to this figure");
  /** @param {string} label @param {string} type @param {() => string} text */
  const save = (label, type, text) => button(label, "tool", () => saveText(`${id}.${label.toLowerCase()}`, type, text()));
  box.append(make("p", "tools", link, save("SVG", "image/svg+xml", () => figureDrawing(box)),
    save("CSV", "text/csv", () => csvOf(rows()))));
  return box;
}

/** @param {string} name */
const idWord = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "other";

/** @param {string} name @param {string} type @param {string} text */
function saveText(name, type, text) {
  const link = make("a", ""), address = URL.createObjectURL(new Blob([text], {type}));
  [link.href, link.download] = [address, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** @param {Cell} cell */
const csvCell = (cell) => {
  const text = cell === null || cell === undefined ? "" : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
/** @param {Cell[][]} rows */
const csvOf = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\n`).join("");

// A drawing of a box as it stands on the page: backgrounds, borders, texts and drawings inside.
/** @param {HTMLElement} box */
function figureDrawing(box) {
  for (const each of box.querySelectorAll(".scroll")) each.scrollLeft = 0;
  const frame = box.getBoundingClientRect(), edge = {right: frame.width, bottom: 0};
  /** @type {Element[]} */
  const parts = [];
  trace(box, {frame, edge, parts});
  const [width, height] = [edge.right + 8, edge.bottom + 8].map(Math.ceil);
  const paper = getComputedStyle(box.closest(".attlas") ?? box).backgroundColor;
  const picture = drawn("svg", {width, height, viewBox: `-8 -8 ${width + 8} ${height + 8}`},
    drawn("rect", {x: -8, y: -8, width: width + 8, height: height + 8, fill: paper}), ...parts);
  return new XMLSerializer().serializeToString(picture);
}

/** @param {Element} element @param {Sheet} sheet */
function trace(element, sheet) {
  const look = getComputedStyle(element);
  if (element.matches(".tools, .told, button") || look.display === "none") return;
  const at = placeOn(sheet, element.getBoundingClientRect());
  if (element instanceof SVGElement) {
    if (at.width) sheet.parts.push(copyOfDrawing(element, at));
    return;
  }
  if (at.width && at.height) sheet.parts.push(...surface(look, at));
  if (element instanceof HTMLCanvasElement && element.width && element.height) {
    sheet.parts.push(drawn("image", {...at, href: element.toDataURL(), preserveAspectRatio: "none", "image-rendering": look.imageRendering}));
  }
  const isFolded = element instanceof HTMLDetailsElement && !element.open;
  for (const child of element.childNodes) {
    if (child instanceof Text) traceText(child, look, sheet);
    else if (child instanceof Element && (!isFolded || child.tagName === "SUMMARY")) trace(child, sheet);
  }
}

/** @param {Sheet} given @param {DOMRect} others */
function placeOn({frame, edge}, {left, top, right, bottom, width, height}) {
  edge.right = Math.max(edge.right, right - frame.left);
  edge.bottom = Math.max(edge.bottom, bottom - frame.top);
  return {x: left - frame.left, y: top - frame.top, width, height};
}

/** @param {string} colour */
const isPainted = (colour) => !/^(transparent|rgba\(.*, 0\))$/.test(colour);

/** @param {CSSStyleDeclaration} look @param {Place} given */
function surface(look, {x, y, width, height}) {
  const parts = [], corners = look.clipPath.match(/polygon\((.*)\)/);
  if (isPainted(look.backgroundColor)) {
    const round = Math.min(parseFloat(look.borderTopLeftRadius) || 0, width / 2);
    const rx = look.borderTopLeftRadius.endsWith("%") ? width / 2 : round;
    const points = corners?.[1].split(",").map((pair) => {
      const [across, down] = pair.trim().split(/\s+/).map((share) => parseFloat(share) / 100);
      return `${x + across * width},${y + down * height}`;
    });
    parts.push(points ? drawn("polygon", {points: points.join(" "), fill: look.backgroundColor})
      : drawn("rect", {x, y, width, height, rx, fill: look.backgroundColor}));
  }
  const sides = {top: [x, y, x + width, y], bottom: [x, y + height, x + width, y + height],
    left: [x, y, x, y + height], right: [x + width, y, x + width, y + height]};
  for (const [side, [x1, y1, x2, y2]] of Object.entries(sides)) {
    const border = ["width", "style", "color"].map((name) => look.getPropertyValue(`border-${side}-${name}`));
    const wide = parseFloat(border[0]);
    if (wide && border[1] !== "none") parts.push(drawn("line", {x1, y1, x2, y2, stroke: border[2], "stroke-width": wide}));
  }
  return parts;
}

// A text may be broken into lines: each line is a text of its own.
/** @param {Text} node @param {CSSStyleDeclaration} look @param {Sheet} sheet */
function traceText(node, look, sheet) {
  if (!node.data.trim()) return;
  const range = document.createRange(), lines = [];
  range.selectNodeContents(node);
  if (range.getClientRects().length < 2) lines.push({text: node.data, at: range.getBoundingClientRect()});
  else {
    let place = 0;
    for (const sign of node.data) {
      range.setStart(node, place);
      range.setEnd(node, place += sign.length);
      const at = range.getBoundingClientRect();
      if (!at.width) continue;
      const last = lines[lines.length - 1];
      if (last && Math.abs(last.at.top - at.top) < 2) last.text += sign;
      else lines.push({text: sign, at});
    }
  }
  for (const {text, at} of lines) {
    if (!at.height) continue;
    const {x, y, width, height} = placeOn(sheet, at), size = parseFloat(look.fontSize);
    const upright = look.writingMode === "vertical-rl" || (look.transform !== "none" && new DOMMatrix(look.transform).b < -0.9);
    /** @type {Record<string, string | number>} */
    const where = upright ? {transform: `translate(${x + width / 2 + 0.35 * size} ${y + height}) rotate(-90)`}
      : {x, y: y + height / 2 + 0.35 * size};
    sheet.parts.push(drawn("text", {...where, "xml:space": "preserve", fill: look.color, "font-size": look.fontSize,
      "font-family": look.fontFamily, "font-weight": look.fontWeight}, text));
  }
}

const COPIED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "text-anchor"];

/** @param {Element} element @param {Place} given */
function copyOfDrawing(element, {x, y, width, height}) {
  const copy = /** @type {SVGElement} */ (element.cloneNode(true));
  /** @param {Element} top */
  const all = (top) => [top, ...top.querySelectorAll("*")];
  const copies = all(copy);
  all(element).forEach((each, index) => {
    const look = getComputedStyle(each);
    for (const name of COPIED) copies[index].setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "aria-label"]) copies[index].removeAttribute(name);
  });
  for (const [name, value] of Object.entries({x, y, width, height})) copy.setAttribute(name, String(value));
  return copy;
}
