// How lines are painted, marked at their ends, and told in words.

const FAINTEST = 0.04;  // of the strongest weight: lines below are left out unless a token is chosen

// Which tokens have their lines shown: the one pointed at, here or in another view, or else the chosen row.
/** @param {LinesView} view @param {MappedPayload} payload @param {State} state @returns {LineFocus | null} */
function lineFocus(view, payload, state) {
  if (view.over) return {side: view.over.side, places: new Set([view.over.index])};
  const positions = state.token !== null ? litPositions(payload, state) : state.row !== null ? [state.row] : [];
  const places = view.left.flatMap(({position}, i) => (positions.includes(position) ? [i] : []));
  return places.length ? {side: "query", places: new Set(places)} : null;
}

/**
 * @param {LinesView} view
 * @param {MappedPayload} payload
 * @param {State} state
 * @param {HTMLElement} readout
 * @param {HTMLElement} key
 */
function paintLines(view, payload, state, readout, key) {
  const {signed} = payload.maps, site = payload.maps.sites[state.layer], numbers = headsIn(state, site);
  const heads = numbers.map((head) => ({head: shownHead(payload, state, state.layer, head), number: headNumber(site, head)}));
  const limit = heads.reduce((most, {head}) => Math.max(most, head.limit), 0);
  const focus = lineFocus(view, payload, state), context = penOf(view.canvas);
  context.setTransform(view.sharp, 0, 0, view.sharp, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  for (const each of heads) strokeHead(context, view, each, limit, focus, signed, state.theme);
  markTokens(view, heads, limit, focus, signed, state.theme);
  tellLines(readout, view, heads, focus, payload, signed);
  const names = heads.map(({number}) => number).join(", ");
  view.canvas.setAttribute("aria-label", `Lines of ${layerName(site, payload.maps.sites)}, heads ${names}: ${view.left.length} tokens to ${view.right.length}`);
  key.replaceChildren(...(heads.length ? [thicknessScale(limit, signed)] : [make("span", "", "No head is chosen.")]));
}

// Lines of about the same strength are drawn together: a page may have a hundred thousand.
/**
 * @param {CanvasRenderingContext2D} context
 * @param {LinesView} view
 * @param {LineHead} given
 * @param {number} limit
 * @param {LineFocus | null} focus
 * @param {boolean} signed
 * @param {Theme} theme
 */
function strokeHead(context, view, {head, number}, limit, focus, signed, theme) {
  const steps = 12, groups = new Map();
  view.left.forEach(({place: row}, i) => {
    if (focus?.side === "query" && !focus.places.has(i)) return;
    view.right.forEach(({place: column}, j) => {
      if (focus?.side === "key" && !focus.places.has(j)) return;
      const weight = head.value(row, column), share = strength(Math.abs(weight), limit);
      if (share < (focus ? 0.002 : FAINTEST)) return;
      const group = Math.ceil(share * steps) * (weight < 0 ? -1 : 1);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([i, j]);
    });
  });
  context.setLineDash(headDashes(number));
  for (const [group, lines] of groups) {
    const share = Math.abs(group) / steps;
    context.strokeStyle = css(signed ? pole(group, true, theme) : headColour(number, theme));
    context.globalAlpha = focus ? 0.1 + 0.9 * share : 0.06 + 0.74 * share;
    context.lineWidth = 0.5 + 3 * share;
    context.beginPath();
    for (const [i, j] of lines) curve(context, view.width, (i + 0.5) * ROW, (j + 0.5) * ROW);
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} context @param {number} width @param {number} from @param {number} to */
function curve(context, width, from, to) {
  context.moveTo(0, from);
  context.bezierCurveTo(width * 0.4, from, width * 0.6, to, width, to);
}

/** @param {LinesView} view @param {LineSide} side @param {number} place */
const tokenAt = (view, side, place) => /** @type {HTMLElement} */ (view.columns[side].children[place]);

// The tokens at the other end carry a strip of each head's colour, as strong as its weight.
/**
 * @param {LinesView} view
 * @param {LineHead[]} heads
 * @param {number} limit
 * @param {LineFocus | null} focus
 * @param {boolean} signed
 * @param {Theme} theme
 */
function markTokens(view, heads, limit, focus, signed, theme) {
  for (const element of view.marked) {
    element.style.backgroundImage = "";
    element.classList.remove("lit");
  }
  view.marked = [];
  if (!focus) return;
  const ends = focus.side === "query" ? "key" : "query";
  for (const place of focus.places) {
    const own = tokenAt(view, focus.side, place);
    own.classList.add("lit");
    view.marked.push(own);
  }
  const others = focus.side === "query" ? view.right : view.left;
  others.forEach((_, other) => {
    const strips = heads.map(({head, number}) => {
      const weight = endWeight(view, head, focus, other), colour = signed ? pole(weight, true, theme) : headColour(number, theme);
      return `rgb(${colour.join(" ")} / ${(0.6 * strength(Math.abs(weight), limit)).toFixed(3)})`;
    });
    const element = tokenAt(view, ends, other), width = 100 / Math.max(1, heads.length);
    element.style.backgroundImage = `linear-gradient(to right, ${strips.map((colour, i) =>
      `${colour} ${i * width}% ${(i + 1) * width}%`).join(", ")})`;
    view.marked.push(element);
  });
}

// The weight between the tokens in focus and one at the other end; of several, the strongest.
/** @param {LinesView} view @param {Head} head @param {LineFocus} focus @param {number} other */
function endWeight(view, head, focus, other) {
  let found = 0;
  for (const place of focus.places) {
    const [i, j] = focus.side === "query" ? [place, other] : [other, place];
    const weight = head.value(view.left[i].place, view.right[j].place);
    if (Math.abs(weight) > Math.abs(found)) found = weight;
  }
  return found;
}

// The strongest ends of the lines, in words.
/**
 * @param {HTMLElement} readout
 * @param {LinesView} view
 * @param {LineHead[]} heads
 * @param {LineFocus | null} focus
 * @param {MappedPayload} payload
 * @param {boolean} signed
 */
function tellLines(readout, view, heads, focus, payload, signed) {
  if (!focus) return void (readout.textContent = "Point at a token to read its weights.");
  /** @param {LinePlace[]} side @param {number} i */
  const name = (side, i) => make("bdi", "", visible(payload.tokens[side[i].position].label));
  const [own, others] = focus.side === "query" ? [view.left, view.right] : [view.right, view.left];
  const ends = heads.flatMap(({head, number}) => others.map((_, other) => ({head, number, other, weight: endWeight(view, head, focus, other)})));
  ends.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  readout.replaceChildren(...[...focus.places].flatMap((place) => [name(own, place), " "]), focus.side === "query" ? "→ " : "← ",
    ...ends.slice(0, 5).filter(({weight}) => weight).flatMap(({head, number, other, weight}, i) => [i ? " · " : "", name(others, other), " ",
      make("b", "", weightFigure(weight, head, signed)), heads.length > 1 ? ` (head ${number})` : ""]));
}

/** @param {number} limit @param {boolean} signed */
function thicknessScale(limit, signed) {
  const canvas = make("canvas", "stroke wedge"), context = penOf(canvas);
  Object.assign(canvas, {width: 128, height: 16});
  context.fillStyle = "#888";
  context.beginPath();
  for (const [x, y] of [[0, 7], [128, 4], [128, 12], [0, 9]]) context.lineTo(x, y);
  context.fill();
  /** @param {number} weight */
  const number = (weight) => make("span", "mono", figure(weight, limit, false));
  return make("span", "scale", number(0), canvas, number(limit), signed ? " orange for the target, blue against" : "");
}
