// The attention of the model and the other one that a search found, side by side.

import {draw, drawMatrix, drawTip, headNumber, headOf, make} from "./views.js";
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
    if (!found?.edits?.length) return void head.replaceChildren(make("p", "quiet", waitingWords(search)));
    shown = [["the model's own", found.own], ["the other one", found.other]].map(([name, given]) => {
      const payload = /** @type {MappedPayload} */ (given), panel = make("div", ""), column = make("div", "", make("h3", "", String(name)), panel);
      columns.append(column);
      return draw(panel, payload, {layer: 0, ...mostDifferent(found), scheme: store.state.scheme}, [drawMatrix, drawTip]);
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

/** @param {LabJob | null} search */
function waitingWords(search) {
  if (!search || ["queued", "running"].includes(search.state)) return "Both are drawn here when the search has found another attention.";
  return search.result?.note || "The search has found no other attention.";
}

// The head and the row in which the two differ most.
/** @param {LabFound} found */
function mostDifferent({own, other}) {
  const [one, two] = [own.maps.sites[0], other.maps.sites[0]], [heads, queries, keys] = one.shape;
  let best = {head: 0, row: one.queries[0]}, most = -1;
  for (let head = 0; head < heads; head++) {
    const [a, b] = [headOf(one, head), headOf(two, head)];
    for (let row = 0; row < queries; row++) {
      let sum = 0;
      for (let key = 0; key < keys; key++) sum += Math.abs(a.value(row, key) - b.value(row, key));
      if (sum > most) [best, most] = [{head, row: one.queries[row]}, sum];
    }
  }
  return best;
}
