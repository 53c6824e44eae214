// What opens and closes in a report, the list of its contents, and the address of each part.

const WIDE_ENOUGH = 1000;  // pixels: the contents stand beside the text

/** @param {HTMLElement} element @param {string} name @param {string} title @param {string} told */
function foldedPart(element, name, title, told) {
  const made = make("div", "part-body");
  const part = make("details", `part part-${name}`,
    make("summary", "part-line", make("h2", "", title), make("span", "quiet teaser", told)), made);
  part.id = sectionId(name);
  part.open = name === "trials";  // its trials are folded themselves
  element.append(part);
  return made;
}

/** @param {HTMLElement} body @param {State} state */
function contentsList(body, state) {
  const list = make("ol", "");
  const titled = [["answer", "The answer"], ["findings", "Findings"], ["next", "What to do next"], ["more-findings", "More findings"],
    ...Object.entries(REPORT_SECTIONS).map(([name, [title]]) => [name, title]),
    ["limits", "What this report does not show"], ["left-out", "Rows left out"], ["settings", "Settings"]];
  for (const [name, title] of titled) {
    if (!body.querySelector(`#${sectionId(name)}`)) continue;
    const link = make("a", "", title);
    link.href = `#${sectionId(name)}`;
    list.append(make("li", "", link));
  }
  const folded = make("details", "", make("summary", "", "Contents"), list), nav = make("nav", "contents", folded);
  nav.setAttribute("aria-label", "Contents");
  list.addEventListener("click", () => { if (state.width < WIDE_ENOUGH) folded.open = false; });
  return nav;
}

/** @param {Element} element @param {string} selector @returns {NodeListOf<HTMLDetailsElement>} */
const detailsIn = (element, selector) => element.querySelectorAll(selector);

// Beside the text where there is room, folded above it where there is none.
/** @param {HTMLElement} element @param {State} state */
function placeContents(element, state) {
  const place = () => {
    const isWide = state.width >= WIDE_ENOUGH;
    if (element.classList.contains("beside") === isWide) return;
    element.classList.toggle("beside", isWide);
    for (const folded of detailsIn(element, ".contents > details")) folded.open = isWide;
  };
  state.on(["width"], place);
  place();
}

// An address with the name of a part or figure opens whatever holds it.
/** @param {HTMLElement} element */
function followPlaces(element) {
  /** @param {string} name */
  const show = (name) => {
    const found = name && element.querySelector(`#${CSS.escape(name)}`);
    if (!found) return;
    for (const folded of detailsIn(element, "details")) if (folded.contains(found)) folded.open = true;
    found.scrollIntoView();
  };
  const follow = () => {
    if (element.isConnected) show(readAddress().place);
    else removeEventListener("hashchange", follow);
  };
  addEventListener("hashchange", follow);
  element.addEventListener("click", (event) => {
    const {place} = readAddress();
    if (hitBy(event).closest(`a[href="#${CSS.escape(place)}"]`)) show(place);
  });
  requestAnimationFrame(follow);
}

// On paper everything is open.
/** @param {HTMLElement} element */
function followPrint(element) {
  const print = matchMedia("print");
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  const open = () => {
    opened.push(...detailsIn(element, "details:not([open])"));
    for (const each of opened) each.open = true;
  };
  const close = () => {
    for (const each of opened) each.open = false;
    opened = [];
  };
  const follow = () => {
    if (!element.isConnected) print.removeEventListener("change", follow);
    else if (print.matches) open();
    else close();
  };
  print.addEventListener("change", follow);
  addEventListener("beforeprint", () => element.isConnected && open());
  addEventListener("afterprint", close);
}
