// SPDX-License-Identifier: MIT
// Small pictures of one time, one below the other, with the same colours and scale.

import { drawn } from "./dom.js";
import { pointsOf } from "./samples.js";
import { Palette, drawStack, highest, largest, legendItems, thinned } from "./stack.js";

const [WIDTH, HEIGHT] = [600, 100];

// `pictures` has titles and documents of the server.
export function comparedPictures(pictures) {
  const all = pictures.map(([, picture]) => thinned(pointsOf(picture)));
  const keys = largest(all.flat());
  const palette = new Palette();
  palette.assign(keys);
  const most = highest(all.flat());
  const figures = pictures.map(([title], at) => figure(
    title, all[at], { keys, palette, most }));
  const legend = document.createElement("ul");
  legend.className = "legend";
  legend.append(...legendItems(keys, palette, false));
  return [...figures, legend];
}

function figure(title, points, { keys, palette, most }) {
  const [from, to] = [points[0]?.time ?? 0, points.at(-1)?.time ?? 1];
  const scale = {
    x: (time) => ((time - from) / Math.max(to - from, 1)) * WIDTH,
    y: (value) => HEIGHT - (value / (1.05 * most)) * HEIGHT,
  };
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  drawStack(svg, points, { keys, palette, scale, to, names: false });
  const made = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  made.append(caption, svg);
  return made;
}
