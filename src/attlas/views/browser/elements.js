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
