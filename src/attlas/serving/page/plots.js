// A small plot: lines and points in a frame, drawn anew whenever there is more to show.

import {drawn, make, minus} from "./views.js";

const SIZE = {width: 272, height: 176, left: 34, right: 8, top: 22, bottom: 36};

/** @param {LabLine[]} lines @param {LabAxes} axes */
export function plot(lines, axes) {
  const points = lines.flatMap((line) => line.points);
  const low = axes.from ?? [0, 0], high = axes.to ?? [1, 0].map((least, i) => Math.max(least, ...points.map((point) => point[i])) || 1);
  const {width, height, left, right, top, bottom} = SIZE;
  /** @param {number[]} point */
  const at = ([x, y]) => [left + (width - left - right) * (x - low[0]) / (high[0] - low[0] || 1),
    top + (height - top - bottom) * (1 - (y - low[1]) / (high[1] - low[1] || 1))];
  const [x0, y0] = at(low), [x1, y1] = at(high);
  const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": axes.label, class: "plot-picture"},
    drawn("path", {class: "axis-line", d: `M${x0} ${y1}L${x0} ${y0}L${x1} ${y0}`}),
    drawn("text", {class: "end", x: x0 - 4, y: y1 + 8}, short(high[1])), drawn("text", {class: "end", x: x0 - 4, y: y0}, short(low[1])),
    drawn("text", {class: "start", x: x0, y: y0 + 13}, short(low[0])), drawn("text", {class: "end", x: x1, y: y0 + 13}, short(high[0])),
    drawn("text", {class: "middle", x: (x0 + x1) / 2, y: height - 6}, axes.across),
    drawn("text", {class: "start", x: 0, y: 10}, axes.up));
  for (const line of lines) {
    const places = line.points.map(at);
    if (places.length > 1) {
      picture.append(drawn("path", {class: `plot-line ${line.look}`, d: `M${places.map((place) => place.map(round).join(" ")).join("L")}`}));
    }
    if (line.dots) picture.append(...places.map(([cx, cy]) => drawn("circle", {class: `plot-dot ${line.look}`, cx: round(cx), cy: round(cy), r: 3.5})));
  }
  return make("div", "plot-box", picture, keysOf(lines));
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
/** @param {number} value */
const short = (value) => minus(String(Number(value.toPrecision(2))));

/** @param {LabLine[]} lines */
function keysOf(lines) {
  return make("ul", "plot-keys", ...lines.filter((line) => line.name).map((line) => make("li", "",
    drawn("svg", {width: 20, height: 8, "aria-hidden": "true", class: "plot-picture"},
      drawn("path", {class: `plot-line ${line.look}`, d: "M0 4L20 4"}),
      ...(line.dots ? [drawn("circle", {class: `plot-dot ${line.look}`, cx: 10, cy: 4, r: 3})] : [])), line.name)));
}
