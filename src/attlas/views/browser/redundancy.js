// Which heads have similar attention: a heat map of all pairs, and the nearest ones.

VIEWS.redundancy = [drawHeader, drawReading, beside([drawRedundancy], [drawNearest]), drawNotes, drawFoot];

const EDGE = 88;  // pixels for the names beside the table

/** @param {HTMLElement} element @param {RedundancyPayload} payload @param {State} state */
function drawRedundancy(element, payload, state) {
  const made = section(element, "Every two heads", "redundancy");
  const told = make("p", "told one-line", "Point at a pair."), canvas = make("canvas", "");
  const named = namedHeads(payload.heads);
  const room = Math.min(600, state.width - 32) - EDGE, count = payload.heads.length;
  const cell = Math.max(3, Math.min(20, Math.floor(room / count)));
  canvas.width = canvas.height = count;
  canvas.style.width = canvas.style.height = `${count * cell}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "How far apart the attention of every two heads is");
  const paintAll = () => {
    const context = penOf(canvas);
    payload.distances.forEach((row, y) => row.forEach((distance, x) => {
      context.fillStyle = css(background(distance === null ? 0 : 1 - distance, false, state.theme));
      context.fillRect(x, y, 1, 1);
    }));
  };
  canvas.addEventListener("pointermove", (event) => {
    /** @param {number} offset */
    const at = (offset) => Math.max(0, Math.min(count - 1, Math.floor(offset / cell)));
    const [x, y] = [at(event.offsetX), at(event.offsetY)], distance = payload.distances[y][x];
    const far = distance === null ? "not compared" : `${distance.toFixed(4)} bits apart`;
    told.textContent = `${named.get(payload.heads[y])} and ${named.get(payload.heads[x])}: ${far}`;
  });
  state.on(["theme"], paintAll);
  paintAll();
  const ramp = make("span", "");
  const colourRamp = () => ramp.replaceChildren(rampOf(false, state.theme));
  state.on(["theme"], colourRamp);
  colourRamp();
  const box = make("div", "every-two", make("span", ""), edgeOf(payload.heads, cell, "across"),
    edgeOf(payload.heads, cell, "down"), canvas);
  made.append(told, make("div", "scroll", box), make("p", "legend", "1 bit apart ", ramp, " 0 bits: alike"));
}

// The sites along a side of the table, each over its heads; where there is no room, the layer alone.
/** @param {string[]} heads @param {number} cell @param {"across" | "down"} way */
function edgeOf(heads, cell, way) {
  const sites = heads.map(siteOfHead), names = layerNames(sites);
  const made = make("div", `edge ${way}`);
  made.setAttribute("aria-hidden", "true");
  for (const site of new Set(sites)) {
    const size = cell * sites.filter((each) => each === site).length;
    const name = names.get(site) ?? "", fits = way === "down" || size >= 8 * name.length;
    const label = make("span", "", fits ? name : visible(site.slice(site.lastIndexOf(".") + 1)));
    label.title = name;
    label.style[way === "down" ? "height" : "width"] = `${size}px`;
    made.append(label);
  }
  return made;
}

// The last part of a head's key is its number.
/** @param {string} head */
const siteOfHead = (head) => head.slice(0, head.lastIndexOf(" "));
/** @param {string[]} heads */
function namedHeads(heads) {
  const names = layerNames(heads.map(siteOfHead));
  return new Map(heads.map((head) => [head, headOfLayer(names.get(siteOfHead(head)), head.slice(head.lastIndexOf(" ") + 1))]));
}

/** @param {HTMLElement} element @param {RedundancyPayload} payload */
function drawNearest(element, payload) {
  const list = make("ul", "nearest");
  list.append(make("li", "head", make("span", "", "one head"), make("span", "", "another"), make("span", "figure", "bits apart")));
  const named = namedHeads(payload.heads);
  for (const pair of payload.nearest) {
    list.append(make("li", "", make("span", "mono", named.get(pair.one) ?? ""), make("span", "mono", named.get(pair.other) ?? ""),
      make("span", "mono figure", pair.distance.toFixed(4))));
  }
  section(element, "Most alike").append(list);
}
