// The attention of the model and the other one that a search found, side by side.

import {draw, drawMatrix, drawTip, headNumber, make} from "./views.js";
import {probability, pressed} from "./parts.js";

/** @param {HTMLElement} element @param {LabStore} store */
export function drawTwo(element, store) {
  const head = make("div", "two-head"), columns = make("div", "two");
  element.append(head, columns);
  /** @type {{state: State, stop: () => void}[]} */
  let shown = [];
  let drawnFor = "";
  const build = () => {
    const {search} = store.state, found = /** @type {LabFound | undefined} */ (search?.result ?? undefined);
    if (store.state.tab !== "two") return;
    const key = `${search?.id} ${search?.state}`;
    if (drawnFor === key) return;
    drawnFor = key;
    shown.forEach((each) => each.stop());
    shown = [];
    columns.replaceChildren();
    if (!found?.edits?.length) {
      return void head.replaceChildren(make("p", "quiet", search ? "Both are drawn here when the search has found another attention."
        : "Search for another attention on the right."));
    }
    shown = [["the model's own", found.own], ["the other one", found.other]].map(([name, given]) => {
      const payload = /** @type {MappedPayload} */ (given), panel = make("div", ""), column = make("div", "", make("h3", "", String(name)), panel);
      columns.append(column);
      return draw(panel, payload, {layer: 0, head: 0, scheme: store.state.scheme}, [drawMatrix, drawTip]);
    });
    const [one, other] = shown, site = found.own.maps.sites[0];
    for (const [from, to] of [[one, other], [other, one]]) from.state.on(["token", "row", "head"], () =>
      to.state.set({token: from.state.token, row: from.state.row, head: from.state.head, tip: null}));
    const choose = () => head.replaceChildren(make("p", "", `Distance ${found.distance.toFixed(3)} of at most ${found.largest.toFixed(3)}; ` +
      `the output moves by ${probability(found.change)}.`), pressed("Head", site.limits.map((_, index) =>
      [String(index), `head ${headNumber(site, index)}`]), String(one.state.head), (value) => { one.state.set({head: Number(value)}); choose(); }));
    choose();
  };
  store.on(["search", "tab"], build);
  store.on(["scheme"], () => shown.forEach((each) => each.state.set({scheme: store.state.scheme})));
  build();
}
