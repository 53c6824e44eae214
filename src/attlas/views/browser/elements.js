// Elements of the document, and how they react.

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function section(element, title, className) {
  const made = make("section", className, make("h2", "", title));
  element.append(made);
  return made;
}

// Two columns of views where there is room, otherwise one below the other.
function beside(left, right, look = "pair") {
  return (element, payload, state) => {
    const columns = [left, right].map((parts) => {
      const column = make("div", "");
      for (const part of parts) part(column, payload, state);
      return column;
    });
    element.append(make("div", look, ...columns.filter((column) => column.children.length)));
  };
}

// A box that is wider than the page says so, and fades where it goes on.
function followScroll(element) {
  const stops = [...element.querySelectorAll(".scroll, .heads")].map((box) => {
    const mark = () => {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
      box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    };
    const sizes = new ResizeObserver(mark), contents = new MutationObserver(mark);
    sizes.observe(box);
    contents.observe(box, {childList: true});
    box.addEventListener("scroll", mark);
    return () => { sizes.disconnect(); contents.disconnect(); };
  });
  return () => stops.forEach((stop) => stop());
}

// A group of buttons; the pressed one is the value of `state[name]`.
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

function button(label, className, onClick) {
  const made = make("button", className, label);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

// One tab stop for many elements; the arrow keys, Home and End move among them.
function rove(container, selector) {
  const first = container.querySelector(selector);
  if (first) first.tabIndex = 0;
  container.onkeydown = (event) => {
    const here = event.target.closest(selector);
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!here || !(step || event.key === "Home" || event.key === "End")) return;
    const all = [...container.querySelectorAll(selector)];
    const to = event.key === "Home" ? 0 : event.key === "End" ? -1 : all.indexOf(here) + step;
    const next = step ? all[to] : all.at(to);
    if (!next) return;
    event.preventDefault();
    container.querySelectorAll('[tabindex="0"]').forEach((each) => (each.tabIndex = -1));
    next.tabIndex = 0;
    next.focus();
  };
}

// A floating tip with the exact score of the unit pointed at.
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
