// SPDX-License-Identifier: MIT
// The axes of pictures of rates over time.

import { drawn } from "./dom.js";
import { roundSteps } from "./format.js";
import { highest, highestRate, total } from "./stack.js";

// Room beside a picture (pixels).
export const LEFT = 64;
export const BOTTOM = 18;
export const TOP = 12;
// What is written into a time about which nothing is known, and the room for it (pixels).
const UNKNOWN = "nothing is known";
const UNKNOWN_WIDTH = 110;
// Width of a letter (pixels).
const LETTER = 6.2;

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

// Hatch times about which nothing is known: pairs of instants.
export function drawUnknown(svg, intervals, scale) {
  if (!intervals.length) return;
  const pattern = drawn("pattern", { id: "hatch", width: 7, height: 7,
    patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
  drawn("defs", {}, svg));
  drawn("rect", { class: "hatch-back", width: 7, height: 7 }, pattern);
  drawn("line", { class: "hatch-line", y2: 7 }, pattern);
  for (const [begin, end] of intervals) {
    const [left, right] = [scale.x(begin), scale.x(end)];
    drawn("rect", { class: "unknown", x: left, y: TOP, width: Math.max(right - left, 1),
      height: scale.y(0) - TOP, fill: "url(#hatch)" }, svg);
    if (right - left < UNKNOWN_WIDTH) continue;
    drawn("text", { class: "unknown-name", x: (left + right) / 2,
      y: (TOP + scale.y(0)) / 2, "text-anchor": "middle" }, svg).textContent = UNKNOWN;
  }
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
  drawInstants(svg, scale, { width, height, time });
}

// Write instants below; one that would touch the one before it, or the last, is left out.
function drawInstants(svg, scale, { width, height, time }) {
  const places = width < 500 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
  const texts = places.map((part) => {
    const instant = scale.from + part * scale.spanS;
    const text = time(instant, scale.spanS);
    const [x, size] = [scale.x(instant), LETTER * text.length];
    return { part, text, x, left: x - part * size, right: x + (1 - part) * size };
  });
  let end = -Infinity;
  for (const { part, text, x, left, right } of texts) {
    if (left < end || (part < 1 && part > 0 && right > texts.at(-1).left)) continue;
    const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
    drawn("text", { x, y: height - 4, "text-anchor": anchor }, svg).textContent = text;
    end = right + LETTER;
  }
}
