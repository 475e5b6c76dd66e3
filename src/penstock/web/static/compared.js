// SPDX-License-Identifier: MIT
// Small pictures of one time, one below the other, with the same colours and scale.

import { drawAxes, drawUnknown, scaleOf } from "./axes.js";
import { drawn } from "./dom.js";
import { axisTime, rate } from "./format.js";
import { pointsOf } from "./samples.js";
import { drawStack, largest, legendItems, thinned } from "./stack.js";

const HEIGHT = 140;

// `pictures` has titles and documents of the server; `palette` the colours of jobs.
export function comparedPictures(pictures, palette) {
  const all = pictures.map(([, picture]) => thinned(pointsOf(picture)));
  const most = largest(all.flat());
  palette.assign(most);
  const keys = palette.inOrder(most);
  const figures = pictures.map(([title, { unknown = [] }], at) => figure(
    title, all[at], { keys, palette, both: all.flat(), unknown }));
  const legend = document.createElement("ul");
  legend.className = "legend";
  legend.append(...legendItems(keys, palette, false));
  return [...figures, legend];
}

// One picture; `both` are the points of all, which have the same scale.
function figure(title, points, { keys, palette, both, unknown }) {
  const [from, to] = [points[0]?.time ?? 0, points.at(-1)?.time ?? 1];
  const width = Math.min(700, 0.86 * document.documentElement.clientWidth);
  const bandwidth = points.findLast((point) => point.bandwidth)?.bandwidth;
  const scale = scaleOf(both, { from, to }, { width, height: HEIGHT });
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  drawAxes(svg, scale, { width, height: HEIGHT, amount: rate, bandwidth,
    time: axisTime });
  drawStack(svg, points, { keys, palette, scale, to, names: false });
  drawUnknown(svg, unknown, scale);
  const made = document.createElement("figure");
  made.className = "picture still";
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  made.append(caption, svg);
  return made;
}
