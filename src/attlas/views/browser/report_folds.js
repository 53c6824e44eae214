// @ts-nocheck
// What opens and closes in a report, the list of its contents, and the address of each part.

const WIDE_ENOUGH = 1000;  // pixels: the contents stand beside the text

function foldedPart(element, name, title, told) {
  const made = make("div", "part-body");
  const part = make("details", `part part-${name}`,
    make("summary", "part-line", make("h2", "", title), make("span", "quiet teaser", told)), made);
  part.id = sectionId(name);
  part.open = name === "trials";  // its trials are folded themselves
  element.append(part);
  return made;
}

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

// Beside the text where there is room, folded above it where there is none.
function placeContents(element, state) {
  const place = () => {
    const isWide = state.width >= WIDE_ENOUGH;
    if (element.classList.contains("beside") === isWide) return;
    element.classList.toggle("beside", isWide);
    element.querySelector(".contents > details").open = isWide;
  };
  state.on(["width"], place);
  place();
}

// An address with the name of a part or figure opens whatever holds it.
function followPlaces(element) {
  const show = (name) => {
    const found = name && element.querySelector(`#${CSS.escape(name)}`);
    if (!found) return;
    for (let each = found; each && each !== element; each = each.parentElement) {
      if (each.tagName === "DETAILS") each.open = true;
    }
    found.scrollIntoView();
  };
  const follow = () => {
    if (element.isConnected) show(readAddress().place);
    else removeEventListener("hashchange", follow);
  };
  addEventListener("hashchange", follow);
  element.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (link && link.hash === `#${readAddress().place}`) show(readAddress().place);
  });
  requestAnimationFrame(follow);
}

// On paper everything is open.
function followPrint(element) {
  const print = matchMedia("print");
  let opened = [];
  const open = () => {
    opened.push(...element.querySelectorAll("details:not([open])"));
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
