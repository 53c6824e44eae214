// Elements of the document, and how they react.

// A page carries bytes as base64, a notebook as a buffer of their own. The bytes returned have a buffer to themselves.
/** @param {string | DataView} data */
function bytesIn(data) {
  if (typeof data !== "string") return new Uint8Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(data);
  const signs = atob(data), bytes = new Uint8Array(signs.length);
  for (let i = 0; i < signs.length; i++) bytes[i] = signs.charCodeAt(i);
  return bytes;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {...(Node | string)} children
 */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** @param {HTMLElement} element @param {string} title @param {string} [className] */
function section(element, title, className) {
  const made = make("section", className, make("h2", "", title));
  element.append(made);
  return made;
}

// What a canvas is drawn with; every browser has it.
/** @param {HTMLCanvasElement} canvas */
const penOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

// The element that something happened to.
/** @param {Event} event */
const hitBy = (event) => /** @type {Element} */ (event.target);

// Two columns of views where there is room, otherwise one below the other.
/** @param {Draw[]} left @param {Draw[]} right @param {string} [look] */
function beside(left, right, look = "pair") {
  return /** @type {Draw} */ ((element, payload, state) => {
    const columns = [left, right].map((parts) => {
      const column = make("div", "");
      for (const part of parts) part(column, payload, state);
      return column;
    });
    element.append(make("div", look, ...columns.filter((column) => column.children.length)));
  });
}

// What the Tab key stops at, except what is left to the arrow keys.
const TAB_STOPS = 'a[href], button, input, summary, [tabindex="0"]';

// A box that is wider than the page says so, and fades where it goes on. If the Tab key would stop at nothing in
// it, it stops at the box, so that the arrow keys can move what it shows.
/** @param {HTMLElement} element */
function followScroll(element) {
  const stops = [...element.querySelectorAll(".scroll, .heads")].map((box) => {
    const mark = () => {
      const isWide = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("wide", isWide);
      if (isWide && !box.querySelector(TAB_STOPS)) box.setAttribute("tabindex", "0");
      else box.removeAttribute("tabindex");
      box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.closest("section")?.querySelector("h2")?.textContent ?? "more to the side");
    const sizes = new ResizeObserver(mark), contents = new MutationObserver(mark);
    sizes.observe(box);
    contents.observe(box, {childList: true});
    box.addEventListener("scroll", mark);
    return () => { sizes.disconnect(); contents.disconnect(); };
  });
  return () => stops.forEach((stop) => stop());
}

// A group of buttons; the pressed one is the value of `state[name]`.
/** @param {string} label @param {ChoiceName} name @param {string[]} values @param {State} state */
function choice(label, name, values, state) {
  const box = make("div", "choice");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  const mark = () => [...box.children].forEach((each) =>
    each.setAttribute("aria-pressed", String(each.textContent === state[name])));
  for (const value of values) box.append(button(value, "", () => state.set({[name]: value})));
  state.on([name], mark);
  mark();
  return box;
}

/** @param {string | Node} label @param {string} className @param {(event: MouseEvent) => void} onClick */
function button(label, className, onClick) {
  const made = make("button", className, label);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

// What was clicked of the maps: the page around the views may offer more to do with it.
/** @param {Element} element @param {PickedPlace} place @param {Box} [box] */
function announce(element, place, box = element.getBoundingClientRect()) {
  element.dispatchEvent(new CustomEvent("attlas-pick", {bubbles: true, detail: {...place, box}}));
}

const ARROW_STEPS = new Map([["ArrowRight", 1], ["ArrowDown", 1], ["ArrowLeft", -1], ["ArrowUp", -1]]);

// One tab stop for many elements; the arrow keys, Home and End move among them, up and down by the columns of a grid.
/** @param {HTMLElement | SVGElement} container @param {string} selector @param {number} [columns] */
function rove(container, selector, columns = 1) {
  /** @param {string} wanted @returns {NodeListOf<HTMLElement | SVGElement>} */
  const all = (wanted) => container.querySelectorAll(wanted);
  const [first] = all(selector);
  if (first) first.tabIndex = 0;
  container.onkeydown = (event) => {
    const ours = [...all(selector)];
    const here = ours.findIndex((each) => event.target instanceof Node && each.contains(event.target));
    const step = (ARROW_STEPS.get(event.key) ?? 0) * (/Up|Down/.test(event.key) ? columns : 1);
    if (here < 0 || !(step || event.key === "Home" || event.key === "End")) return;
    const to = event.key === "Home" ? 0 : event.key === "End" ? -1 : here + step;
    const next = step ? ours[to] : ours.at(to);
    if (!next) return;
    event.preventDefault();
    for (const each of all('[tabindex="0"]')) each.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

// A floating tip with the exact score of the unit pointed at.
/** @param {HTMLElement} element @param {TextPayload} payload @param {State} state */
function drawTip(element, payload, state) {
  const tip = make("div", "tip mono");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  element.append(tip);
  state.on(["tip", "scores"], () => {
    tip.hidden = !state.tip;
    if (!state.tip) return;
    tip.textContent = describe(payload, state.tip.unit, state);
    const frame = element.getBoundingClientRect();
    const at = (state.tip.element.getClientRects()[0] ?? frame);
    const left = Math.min(at.left - frame.left, element.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, at.top - frame.top - tip.offsetHeight - 6)}px`;
  });
}
