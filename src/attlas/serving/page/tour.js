// The guided tour: ten states of the page, each with two sentences and a question to answer by trying.

import {button, make} from "./views.js";
import {byId} from "./parts.js";
import {STEPS} from "./steps.js";

/** @param {LabStore} store @param {(state: Partial<LabKept>) => void} go */
export function drawTour(store, go) {
  const box = byId("tour");
  /** @param {number} step */
  const to = (step) => {
    if (step < 0 || step >= STEPS.length) return;
    go({...STEPS[step].state, tour: step});
    box.focus({preventScroll: true});
  };
  const leave = () => store.set({tour: null});
  const show = () => {
    const {tour} = store.state;
    box.hidden = tour === null || !STEPS[tour];
    if (tour === null || box.hidden) return;
    const {title, says, question} = STEPS[tour], isLast = tour === STEPS.length - 1;
    const back = button("← back", "", () => to(tour - 1)), next = button(isLast ? "end" : "next →", "go", () => (isLast ? leave() : to(tour + 1)));
    back.disabled = tour === 0;
    const name = make("h2", "", make("span", "quiet mono", `${tour + 1} / ${STEPS.length}`), " ", title);
    box.replaceChildren(make("div", "tour-words", name, make("p", "", `${says[0]} ${says[1]}`), make("p", "tour-question", make("b", "", "Try: "), question)),
      make("div", "tour-steps", back, next, button("leave the tour", "", leave), make("span", "quiet tour-keys", "← → keys")));
  };
  box.tabIndex = -1;
  document.addEventListener("keydown", (event) => {
    const {tour} = store.state, held = document.activeElement;
    if (tour === null || event.ctrlKey || event.metaKey || event.altKey || (held !== document.body && !box.contains(held))) return;
    if (event.key === "ArrowRight") to(tour + 1);
    else if (event.key === "ArrowLeft") to(tour - 1);
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
  });
  store.on(["tour"], show);
  show();
  return {start: () => to(0)};
}
