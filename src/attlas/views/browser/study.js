// A study: the question, every published claim with ours beside it, tables, the paper's figures, and what differs.

VIEWS.study = [drawStudy];

/** @type {{[verdict: string]: string}} */
const CLAIM_MARKS = {reproduced: "✓", partly: "◐", "not reproduced": "✕", "not tested here": "·"};

/** @param {HTMLElement} element @param {StudyPayload} payload @param {State} state */
function drawStudy(element, payload, state) {
  element.classList.add("report");
  drawStudyHeader(element, payload, state);
  drawClaims(section(element, "What was published, and what came out here", "part"), payload);
  if (payload.tables.length) {
    const made = section(element, "Ours beside the published tables", "part");
    const tables = make("div", "study-tables");
    payload.tables.forEach((table, index) => drawStudyTable(tables, table, index));
    made.append(tables);
  }
  if (payload.plots.length) {
    const made = section(element, "The figures", "part part-trials");
    made.append(make("div", "plots", ...payload.plots.map((plot, index) => plotFigure(plot, state, `attlas-study-plot-${index + 1}`))));
  }
  const differs = section(element, "What differs in the set-up", "part");
  differs.append(make("ul", "notes", ...payload.differs.map((each) => make("li", "", visible(each)))));
  drawNotes(element, payload);
  drawStudyFoot(element, payload);
}

/** @param {HTMLElement} element @param {StudyPayload} payload @param {State} state */
function drawStudyHeader(element, payload, state) {
  const facts = make("p", "facts", make("span", "fact", make("span", "quiet", "paper "), visible(payload.paper)));
  if (payload.seeds.length) facts.append(make("span", "fact", make("span", "quiet", "seeds "), payload.seeds.join(", ")));
  element.append(make("header", "", make("div", "", make("p", "brand quiet", `Attlas · study ${visible(payload.name)}`),
    make("h1", "", visible(payload.question)), facts), themeSwitch(state)));
  if (payload.warning) element.append(make("p", "warning", make("b", "", "Quick. "), visible(payload.warning)));
  element.append(make("p", "lead", visible(payload.answer)));
}

/** @param {HTMLElement} made @param {StudyPayload} payload */
function drawClaims(made, payload) {
  const box = make("div", "");
  for (const claim of payload.claims) box.append(claimBox(claim));
  made.append(saveable(box, "attlas-study-claims", () => [["claim", "verdict", "ours", "low", "high", "published", "difference", "rule", "source"],
    ...payload.claims.map((each) => [each.said, each.verdict, each.ours?.value, each.ours?.low, each.ours?.high,
      each.published, each.difference, each.rule, each.source])]));
}

/** @param {StudyClaim} claim */
function claimBox(claim) {
  const figures = [claim.ours ? `ours ${reportNumber(claim.ours.value, 3)}` : "",
    claim.published === null ? "" : `published ${reportNumber(claim.published, 3)}`].filter(Boolean).join(" · ");
  const line = make("summary", "trial-line claim-line", make("h3", "", `${CLAIM_MARKS[claim.verdict] ?? "·"} ${visible(claim.verdict)}`),
    make("span", "claim-said", visible(claim.said)), make("span", "mono claim-figures", figures));
  const facts = [["ours", claim.ours ? oursWords(claim.ours, claim.over) : ""], ["published", reportNumber(claim.published, 3)],
    ["difference", reportNumber(claim.difference, 3)], ["found", claim.found], ["rule", claim.rule], ["source", claim.source]];
  const list = make("dl", "");
  for (const [name, value] of facts) {
    if (value && value !== "–") list.append(make("dt", "", name), make("dd", "", visible(value)));
  }
  return make("details", "trial claim", line, make("div", "trial-body", list));
}

/** @param {Ours} ours @param {string} over */
function oursWords(ours, over) {
  const interval = isNumber(ours.low) && isNumber(ours.high)
    ? ` (${reportNumber(ours.low, 3)} to ${reportNumber(ours.high, 3)} over ${over})` : "";
  return `${reportNumber(ours.value, 3)}${interval}`;
}

/** @param {HTMLElement} made @param {StudyTable} table @param {number} index */
function drawStudyTable(made, table, index) {
  const known = table.cells[0].map((_, place) => place < 2 || table.cells.slice(1).some((row) => row[place] !== "–"));
  const [head, ...rows] = table.cells.map((row) => row.filter((_, place) => known[place]));
  /** @param {"th" | "td"} tag @param {string[]} cells */
  const line = (tag, cells) => make("tr", "", ...cells.map((cell, place) => make(tag, place ? "" : "word", visible(cell) || " ")));
  const box = make("figure", "plot plot-table wide", make("figcaption", "", visible(table.title)),
    make("div", "scroll wide", make("table", "plain mono", make("thead", "", line("th", head)),
      make("tbody", "", ...rows.map((row) => line("td", row))))), make("p", "reads quiet", visible(table.reading)));
  made.append(saveable(box, `attlas-study-table-${index + 1}`, () => [["name", "ours", "low", "high", "published"],
    ...table.rows.map(({name, ours, published}) => [name, ours.value, ours.low, ours.high, published])]));
}

/** @param {HTMLElement} element @param {StudyPayload} payload */
function drawStudyFoot(element, payload) {
  const foot = make("footer", ""), list = make("dl", "");
  /** @param {unknown} value */
  const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const facts = [["time", reportSeconds(payload.seconds)], ["machine", payload.machine], ...Object.entries(payload.settings),
    ["versions", Object.entries(payload.versions).map((pair) => pair.join(" ")).join(" · ")]];
  for (const [name, value] of facts) {
    if (value !== "") list.append(make("dt", "", visible(name)), make("dd", "mono", visible(written(value))));
  }
  foot.append(make("h2", "", "Settings"), codeBox(payload.code), list);
  element.append(foot);
}

const NAME_LETTER = 6.1;  // width of a letter below a violin

// Outlines of the spread of each group, with a box from quartile to quartile and a mark at the median. Names that do not fit
// below them are numbers there, and a list.
/** @param {HTMLElement} box @param {ViolinsPlot} plot */
function drawViolins(box, plot) {
  const known = plot.groups.filter((each) => each.count);
  const {picture, x, y} = plotFrame({...plot, x_label: ""}, [], known.flatMap((each) => [...each.places, ...each.marks]), []);
  const pitch = 1 / Math.max(1, plot.groups.length), longest = Math.max(0, ...plot.groups.map((each) => visible(each.name).length));
  const isMany = plot.groups.length > 4 || NAME_LETTER * (longest + 1) > x(pitch) - x(0);
  plot.groups.forEach((group, index) => {
    const middle = (index + 0.5) * pitch, half = 0.42 * pitch, made = drawn("g", {class: `curve marked tint-${index % 6}`});
    const name = drawn("text", {x: x(middle), y: PLOT.height - PLOT.bottom + 16}, isMany ? String(index + 1) : visible(group.name));
    if (group.count) {
      /** @param {number} sign */
      const side = (sign) => group.places.map((at, slice) => `${x(middle + sign * half * group.widths[slice]).toFixed(1)} ${y(at).toFixed(1)}`);
      const [low, first, median, last, high] = group.marks;
      made.append(drawn("path", {class: "spread", d: `M${[...side(1), ...side(-1).reverse()].join("L")}Z`}),
        drawn("path", {class: "line", d: `M${x(middle)} ${y(low)}V${y(high)}`}),
        drawn("path", {class: "spread", d: `M${x(middle - 0.2 * half)} ${y(first)}H${x(middle + 0.2 * half)}V${y(last)}H${x(middle - 0.2 * half)}Z`}),
        drawn("path", {class: "line", d: `M${x(middle - 0.3 * half)} ${y(median)}H${x(middle + 0.3 * half)}`}));
    }
    made.append(drawn("title", {}, `${visible(group.name)}: median ${shortNumber(group.marks[2])}, ${group.count} values`));
    picture.append(made, name);
  });
  box.append(upwards(plot), picture);
  if (plot.x_label) box.append(make("p", "up quiet", visible(plot.x_label)));
  if (isMany) box.append(make("ol", "violin-names", ...plot.groups.map((group) => make("li", "", visible(group.name)))));
}
