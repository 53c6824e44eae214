// Maps: attention, or what else a method finds for every two tokens. Three views of the same heads, one shown at a time.

VIEWS.maps = [drawHeader, drawPicture, drawText, drawMaps, drawFlow, drawFoot, drawTip];

/** @type {Record<string, (element: HTMLElement, payload: MappedPayload, state: State) => void>} */
const MAP_VIEWS = {matrix: drawMatrixView, lines: drawLines, model: drawModel};

// The head with the largest weight of all.
/** @param {Payload} payload */
function strongestHead(payload) {
  let found = {layer: 0, head: 0}, most = -1;
  (payload.maps?.sites ?? []).forEach((site, layer) => site.limits.forEach((limit, head) => {
    if (limit > most) [found, most] = [{layer, head}, limit];
  }));
  return found;
}

// One map over the whole model has neither layers nor heads.
/** @param {MapSite} site */
const isWhole = (site) => site.kind === "all";
/** @param {MapSite} site @param {number} head */
const headNumber = (site, head) => site.numbers?.[head] ?? head;
// A layer by its number; among several kinds of sites by its full name.
/** @param {MapSite} site @param {MapSite[]} sites */
const layerName = (site, sites) =>
  isWhole(site) || sites.some(({kind}) => kind !== site.kind) ? visible(site.name) : `layer ${site.layer}`;
// The same for the keys of sites, `encoder.3`, where no maps are.
/** @param {string[]} keys @returns {Map<string, string>} */
const layerNames = (keys) => {
  const alone = new Set(keys.map((key) => key.split(".")[0])).size === 1;
  return new Map(keys.map((key) => [key, alone && key.includes(".") ? `layer ${key.split(".")[1]}` : visible(key)]));
};
/** @param {string | undefined} layer @param {number | string} head */
const headOfLayer = (layer, head) => `${layer} · head ${head}`;
/** @param {MapSite} site @param {number} head @param {MapSite[]} sites */
const mapName = (site, head, sites) =>
  isWhole(site) ? "the whole model" : headOfLayer(layerName(site, sites), headNumber(site, head));

// The layer with the most heads.
/** @param {MapSite[]} sites */
const widestOf = (sites) => sites.reduce((most, site) => (site.shape[0] > most.shape[0] ? site : most));

// The views that a payload allows; one map over the whole model has no heads to set beside one another.
/** @param {Payload} payload */
function mapViewsOf(payload) {
  const sites = payload.maps?.sites ?? [];
  if (!sites.length) return [];
  return sites.length === 1 && isWhole(sites[0]) ? ["matrix", "lines"] : Object.keys(MAP_VIEWS);
}

/** @param {TextPayload} payload @returns {payload is MappedPayload} */
const isMapped = (payload) => (payload.maps?.sites ?? []).length > 0;

/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawMaps(element, payload, state) {
  if (!isMapped(payload)) return;
  const made = section(element, `Maps of ${visible(payload.maps.shows)}`, "maps");
  made.append(make("div", "controls", viewChoice(state, mapViewsOf(payload)),
    ...hideSwitch(payload, state)));
  // Only what is looked at is drawn, and what was drawn stays.
  /** @type {Map<string, HTMLElement>} */
  const panels = new Map();
  const show = () => {
    const name = state.view;
    panels.forEach((panel, each) => (panel.hidden = each !== name));
    if (panels.has(name)) return;
    const panel = make("div", `map-panel ${name}-view`);
    panels.set(name, panel);
    made.append(panel);
    MAP_VIEWS[name](panel, payload, state);
  };
  state.on(["view"], show);
  show();
}

/** @param {State} state @param {string[]} names */
function viewChoice(state, names) {
  const box = choice("View", "view", names, state);
  box.classList.add("inline");
  return box;
}

/** @param {MappedPayload} payload @param {State} state */
function hideSwitch(payload, state) {
  if (!payload.maps.sites.some((site) => sinkColumns(site, payload).length)) return [];
  const box = make("input", "");
  box.type = "checkbox";
  const scaled = payload.maps.shows === "attention" && !payload.maps.signed;
  const told = make("span", "", scaled ? "(the rest of each row is scaled to sum to one)" : "");
  const mark = () => {
    box.checked = state.hidden;
    told.hidden = !state.hidden;
  };
  box.addEventListener("change", () => state.set({hidden: box.checked}));
  state.on(["hidden"], mark);
  mark();
  return [make("label", "sinks", box, "hide the first and special tokens", told)];
}

/** @param {HTMLElement} element @param {MappedPayload} payload @param {State} state */
function drawMatrixView(element, payload, state) {
  const {sites} = payload.maps, heads = make("div", "heads"), pane = make("div", "pane");
  const whole = sites.every(isWhole);
  element.append(make("p", "quiet", whole
    ? "Each row is a token at the top of the model, each column one of the input. Choose a row or a token to list it; draw a rectangle to enlarge it."
    : "Layers down, heads across. Each row is a token that attends, each column one that is attended to; " +
      "every head is coloured up to its own strongest weight, and the head with the strongest of all is open. " +
      "Choose a head to enlarge it, a row or a token to list it; draw a rectangle to enlarge a part."),
  make("div", "columns", ...(whole && sites.length === 1 ? [] : [heads]), pane));
  drawHeads(heads, payload, state);
  drawMatrix(pane, payload, state);
}

/** @param {HTMLElement} element @param {MappedPayload} payload @param {State} state */
function drawHeads(element, payload, state) {
  const {sites, signed} = payload.maps;
  const widest = widestOf(sites);
  /** @type {{thumb: HTMLElement, canvas: HTMLCanvasElement, layer: number, head: number}[]} */
  const thumbs = [];
  element.append(make("div", "head-row numbers quiet mono", make("span", "", "head"),
    ...Array.from({length: widest.shape[0]}, (_, head) => make("span", "number", String(headNumber(widest, head))))));
  sites.forEach((site, layer) => {
    const name = make("span", "layer-name quiet mono", layerName(site, sites));
    const row = make("div", "head-row", name);
    name.addEventListener("click", () => announce(name, {site}));
    for (let head = 0; head < site.shape[0]; head++) {
      const canvas = make("canvas", "");
      const thumb = button(canvas, "thumb", () => {
        const again = layer === state.layer && head === state.head;
        state.set({layer, head, heads: null});
        announce(thumb, {site, head, again});
      });
      thumb.setAttribute("aria-label", mapName(site, head, sites).replace(" ·", ","));
      thumb.title = mapName(site, head, sites);
      thumbs.push({thumb, canvas, layer, head});
      row.append(thumb);
    }
    element.append(row);
  });
  rove(element, ".thumb", widest.shape[0]);
  // The Tab key stops once, at the open head: a model may have a thousand.
  const mark = () => thumbs.forEach(({thumb, layer, head}) => {
    const isOpen = layer === state.layer && head === state.head;
    thumb.setAttribute("aria-pressed", String(isOpen));
    thumb.tabIndex = isOpen ? 0 : -1;
  });
  const colour = () => inTurn(thumbs, ({canvas, layer, head}) =>
    fillCanvas(canvas, shownHead(payload, state, layer, head), 48, signed, state.theme));
  state.on(["layer", "head"], mark);
  state.on(["theme", "hidden"], colour);
  mark();
  colour();
}

// Work in small steps, so that many large maps never block the page. The function it returns ends the work.
/** @template T @param {T[]} items @param {(item: T) => void} work */
function inTurn(items, work) {
  let next = 0, stopped = false;
  const step = () => {
    const until = performance.now() + 20;
    while (!stopped && next < items.length && performance.now() < until) work(items[next++]);
    if (!stopped && next < items.length) setTimeout(step);
  };
  step();
  return () => (stopped = true);
}
