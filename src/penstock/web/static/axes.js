// SPDX-License-Identifier: MIT
// The axes of pictures of rates over time.

import { drawn } from "./dom.js";
import { roundSteps } from "./format.js";
import { highest, highestRate, total } from "./stack.js";

// Room beside a picture (pixels).
export const LEFT = 64;
export const BOTTOM = 18;
export const TOP = 12;

// The places of times and rates, for `points` from one instant to another.
export function scaleOf(points, { from, to }, { width, height }) {
  const most = highest(points);
  const rate = highestRate(points);
  const bottom = height - BOTTOM;
  const spanS = Math.max(to - from, 1e-3);
  const within = (part) => Math.min(Math.max(part, 0), 1);
  const scale = {
    most, from, spanS,
    x: (time) => LEFT + within((time - from) / spanS) * (width - LEFT),
    y: (value) => bottom - within(value / (1.05 * most)) * (bottom - TOP),
  };
  // Say how high the rates are that the upper edge cuts off.
  scale.drawCut = (svg, amount) => {
    if (rate <= 1.05 * most) return;
    const { time } = points.find((point) => total(point) === rate);
    const x = scale.x(time);
    const anchor = x < width / 2 ? "start" : "end";
    drawn("text", { class: "cut", x, y: TOP - 2, "text-anchor": anchor }, svg)
      .textContent = `\u2191 up to ${amount(rate)}`;
  };
  return scale;
}

// Draw lines at round rates, and instants below. `amount` and `time` make texts of rates
// and instants; rates have the units of `bandwidth`.
export function drawAxes(svg, scale, { width, height, amount, bandwidth, time }) {
  for (const value of roundSteps(scale.most, bandwidth || scale.most)) {
    const y = scale.y(value);
    drawn("line", { class: "axis", x1: LEFT, x2: width, y1: y, y2: y }, svg);
    drawn("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, svg)
      .textContent = value ? amount(value, bandwidth || value) : "0";
  }
  const places = width < 500 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const part of places) {
    const instant = scale.from + part * scale.spanS;
    const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
    drawn("text", { x: scale.x(instant), y: height - 4, "text-anchor": anchor }, svg)
      .textContent = time(instant, scale.spanS);
  }
}
