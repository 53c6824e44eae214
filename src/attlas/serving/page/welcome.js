// What a stranger sees first: what this page is for, and where to begin.

import {button, make} from "./views.js";
import {byId} from "./parts.js";
import {isAsked} from "./store.js";

/** @param {LabStore} store @param {() => void} startTour */
export function drawWelcome(store, startTour) {
  const box = byId("welcome"), bench = byId("bench");
  box.append(make("p", "title", "Does attention explain what the model says?"),
    make("ol", "", make("li", "", "Type a text above and press Enter, or choose an example."),
      make("li", "", "See which words count, and where every head looks."),
      make("li", "", "Change the attention, or take words away, and watch the prediction move.")),
    button("Take the tour: ten steps through the debate →", "go start-tour", startTour));
  const show = () => { box.hidden = isAsked(store.state); bench.hidden = !box.hidden; };
  store.on(["input"], show);
  show();
}
