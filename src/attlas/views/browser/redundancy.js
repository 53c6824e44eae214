// Which heads have similar attention: a heat map of all pairs, and the nearest ones.

VIEWS.redundancy = [drawHeader, drawReading, beside([drawRedundancy], [drawNearest]), drawNotes, drawFoot];

/** @param {HTMLElement} element @param {RedundancyPayload} payload @param {State} state */
function drawRedundancy(element, payload, state) {
  const made = section(element, "Every two heads", "redundancy");
  const told = make("p", "told one-line", "Point at a pair."), canvas = make("canvas", "");
  const room = Math.min(680, state.width - 32), count = payload.heads.length;
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
    told.textContent = `${visible(payload.heads[y])} and ${visible(payload.heads[x])}: ${far}`;
  });
  state.on(["theme"], paintAll);
  paintAll();
  made.append(told, make("div", "scroll", canvas), make("p", "legend", "strong colour: alike · paper: apart"));
}

/** @param {HTMLElement} element @param {RedundancyPayload} payload */
function drawNearest(element, payload) {
  const list = make("ul", "nearest");
  for (const pair of payload.nearest) {
    list.append(make("li", "", make("span", "mono", visible(pair.one)), make("span", "mono", visible(pair.other)),
      make("span", "mono figure", pair.distance.toFixed(4))));
  }
  section(element, "Most alike").append(list);
}
