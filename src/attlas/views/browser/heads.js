// How important heads are: a heat map, layer by head, of the chosen ranking.

VIEWS.heads = [drawHeader, drawReading, drawCharts, drawImportances, drawNotes, drawFoot];

/** @param {HeadFigure} head @param {Importance} importance */
const headName = (head, importance) =>
  headOfLayer(layerNames(importance.sites.map((site) => site.name)).get(head.site), head.head);

/** @param {HTMLElement} element @param {HeadsPayload} payload @param {State} state */
function drawImportances(element, payload, state) {
  if (!payload.importances.length) return;
  const made = section(element, "Heads", "importance");
  const names = payload.importances.map((each) => each.by);
  if (names.length > 1) made.append(choice("Ranking", "ranking", names, state));
  const told = make("p", "told one-line"), reading = make("p", "hint quiet"), grid = make("div", "scroll");
  const first = make("ol", "first-heads");
  const titles = make("p", "first-heads quiet", ...["head", "", "importance", "95 % interval"].map((each) => make("span", "", each)));
  made.append(make("div", "pair", make("div", "", reading, told, grid), make("div", "", make("h3", "", "Strongest"), titles, first)));
  const show = () => {
    const importance = payload.importances.find((each) => each.by === state.ranking) ?? payload.importances[0];
    const heads = importance.sites.flatMap((site) => site.heads);
    const ranked = [...heads].sort((a, b) => a.rank - b.rank);
    /** @param {HeadFigure} head */
    const tell = (head) => (told.textContent = headWords(head, importance));
    const what = names.length > 1 ? `${visible(importance.reading)} ` : "";
    reading.textContent = `${what}A cell is in per cent of the largest.`;
    grid.replaceChildren(headGrid(importance, heads, state.theme, tell));
    grid.onpointerleave = () => tell(ranked[0]);
    const span = [Math.min(0, ...ranked.map(({low}) => low)), Math.max(...ranked.map(({high}) => high))];
    first.replaceChildren(...ranked.slice(0, 8).map((head) => make("li", "", make("span", "mono", headName(head, importance)),
      track([{figure: {...head, value: head.importance}, family: "W"}], span, [{at: 0}]),
      make("span", "mono figure", headFigure(head.importance)),
      make("span", "mono quiet", `${headFigure(head.low)} to ${headFigure(head.high)}`))));
    rove(grid, ".cell", Math.max(...importance.sites.map((site) => site.heads.length)));
    tell(ranked[0]);
  };
  state.on(["ranking", "theme"], show);
  show();
}

/** @param {number} value */
const headFigure = (value) => {
  const text = value.toPrecision(3);
  return minus(text.includes("e") ? String(Number(text)) : text);
};

/** @param {HeadFigure} head @param {Importance} importance */
const headWords = (head, importance) =>
  `${headName(head, importance)}: ${headFigure(head.importance)} (95 % interval ${headFigure(head.low)} to ` +
  `${headFigure(head.high)}), number ${head.rank} of ${importance.sites.flatMap((site) => site.heads).length}`;

/**
 * @param {Importance} importance
 * @param {HeadFigure[]} heads
 * @param {Theme} theme
 * @param {(head: HeadFigure) => void} tell
 */
function headGrid(importance, heads, theme, tell) {
  const top = Math.max(...heads.map((head) => Math.abs(head.importance)));
  const signed = heads.some((head) => head.importance < 0);
  const most = Math.max(...importance.sites.map((site) => site.heads.length));
  const numbers = Array.from({length: most}, (_, head) => make("span", "mono number", String(head)));
  const grid = make("div", "head-grid", make("div", "head-line quiet", make("span", "mono", "head"), ...numbers));
  const names = layerNames(importance.sites.map((site) => site.name));
  for (const site of importance.sites) {
    const row = make("div", "head-line", make("span", "mono quiet", names.get(site.name) ?? ""));
    for (const head of site.heads) {
      const cell = make("span", "cell mono", minus(String(Math.round(100 * strength(head.importance, top)))));
      cell.tabIndex = -1;
      cell.setAttribute("role", "img");
      cell.setAttribute("aria-label", headWords(head, importance));
      paint(cell, strength(head.importance, top), signed, theme);
      for (const event of ["pointerenter", "focus"]) cell.addEventListener(event, () => tell(head));
      row.append(cell);
    }
    grid.append(row);
  }
  return grid;
}
