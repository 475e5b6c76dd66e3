// SPDX-License-Identifier: MIT
// Policies by MinYield and Efficiency. A line joins those that no other policy exceeds in
// both. A press on a policy chooses it; the table beside it does the same for the
// keyboard.

import { drawn } from "./dom.js";

const [LEFT, BOTTOM, TOP, RIGHT] = [52, 34, 28, 12];
// As in `penstock compare --plot`: one policy that is far behind must not squeeze all
// others into a corner. It is drawn as an arrow at the edge.
const LOSS_SHOWN = 3;
// Size of a letter, and of a distance that cannot be seen (pixels).
const LETTER = 6.9;
const NEAR = 2;
// Dots without room for their names that touch have one text with their numbers.
const TOUCHING = 14;
// Distance from the tip of an arrow to its name (pixels).
const ARROW = 14;

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle)]) / 2;
}

// The lowest value that is drawn.
export function lowestShown(values) {
  return Math.max(Math.min(...values), 1 - LOSS_SHOWN * (1 - median(values)));
}

function ticks(low, high) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find(
    (size) => (high - low) / size <= 6) ?? 0.5;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const digits = step < 0.01 ? 3 : 2;
  return Array.from({ length: last - first + 1 },
    (_, at) => [(first + at) * step, ((first + at) * step).toFixed(digits)]);
}

// A linear scale from values to pixels.
function scaleOf(values, begin, end) {
  const low = lowestShown(values);
  const high = Math.max(...values);
  const margin = 0.06 * Math.max(high - low, 0.001);
  const [from, to] = [low - margin, high + margin];
  const place = (value) => begin + ((value - from) / (to - from)) * (end - begin);
  return { low, from, to, place };
}

// Draw `policies` into a box; `chosen` are the names of those that stand out.
export function drawFrontier(box, { policies, bound, chosen, choose }) {
  const width = Math.max(box.clientWidth, 240);
  const height = width < 500 ? 260 : 340;
  const yields = policies.map((each) => each.min_yield);
  const x = scaleOf(bound === null ? yields : [...yields, bound], LEFT, width - RIGHT);
  const y = scaleOf(policies.map((each) => each.efficiency), height - BOTTOM, TOP);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height,
    "aria-hidden": "true" });
  drawAxes(svg, x, y, [width, height]);
  if (bound !== null) drawBound(svg, x.place(bound), height, bound);
  const placed = policies.map((policy) => ({
    policy, x: Math.max(x.place(policy.min_yield), LEFT),
    y: Math.min(y.place(policy.efficiency), height - BOTTOM),
    isOutside: policy.min_yield < x.from || policy.efficiency < y.from,
  }));
  drawLine(svg, placed.filter((each) => each.policy.frontier));
  // The chosen ones last: no other dot covers them.
  const isChosen = ({ policy }) => Number(chosen.includes(policy.policy));
  const order = [...placed].sort((one, other) => isChosen(one) - isChosen(other));
  for (const each of order) drawPolicy(svg, each, chosen, choose);
  drawNames(svg, placed, chosen, { width, height });
  box.replaceChildren(svg);
}

function drawAxes(svg, x, y, [width, height]) {
  for (const [value, text] of ticks(x.from, x.to)) {
    const place = x.place(value);
    drawn("line", { class: "axis", x1: place, x2: place, y1: TOP, y2: height - BOTTOM },
      svg);
    drawn("text", { x: place, y: height - BOTTOM + 14, "text-anchor": "middle" }, svg)
      .textContent = text;
  }
  for (const [value, text] of ticks(y.from, y.to)) {
    const place = y.place(value);
    drawn("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: place, y2: place },
      svg);
    drawn("text", { x: LEFT - 5, y: place + 4, "text-anchor": "end" }, svg)
      .textContent = text;
  }
  drawn("text", { x: width - RIGHT, y: height - 4, "text-anchor": "end" }, svg)
    .textContent = "MinYield: the worst-off application";
  drawn("text", { x: 4, y: 11 }, svg).textContent = "Efficiency: all applications";
}

function drawBound(svg, place, height, bound) {
  drawn("line", { class: "capacity", x1: place, x2: place, y1: TOP, y2: height - BOTTOM },
    svg);
  drawn("text", { x: place - 4, y: height - BOTTOM - 5, "text-anchor": "end" }, svg)
    .textContent = `bound ${bound.toFixed(3)}`;
}

function drawLine(svg, frontier) {
  const sorted = [...frontier].sort((one, other) => one.x - other.x);
  const d = sorted.map((each) => `${each.x.toFixed(1)} ${each.y.toFixed(1)}`).join("L");
  if (d) drawn("path", { class: "frontier", d: `M${d}` }, svg);
}

function drawPolicy(svg, { policy, x, y, isOutside }, chosen, choose) {
  const place = chosen.indexOf(policy.policy);
  const name = `dot ${place < 0 ? "" : `chosen${place}`}`;
  const d = isOutside ? `M${x + 8} ${y - 6}L${x - 2} ${y}L${x + 8} ${y + 6}Z` :
    `M${x - 5.5} ${y}a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0Z`;
  const dot = drawn("path", { class: name, d, "data-policy": policy.policy }, svg);
  dot.addEventListener("click", () => choose(policy.policy));
  drawn("title", {}, dot).textContent = `${policy.policy}: MinYield ` +
    `${policy.min_yield.toFixed(4)}, Efficiency ${policy.efficiency.toFixed(4)}`;
}

// Groups of dots that are nearer to each other than a distance: they have one text.
function joined(groups, distance) {
  const made = [];
  for (const { policies, x, y, isOutside } of groups) {
    const near = made.find((each) => Math.hypot(each.x - x, each.y - y) < distance);
    if (near) near.policies.push(...policies);
    else made.push({ policies: [...policies], x, y, isOutside });
  }
  return made;
}

// Boxes along the line, which names must not cover.
function boxesOf(frontier) {
  const sorted = [...frontier].sort((one, other) => one.x - other.x);
  return sorted.slice(1).flatMap((end, at) => {
    const begin = sorted[at];
    const steps = Math.ceil(Math.hypot(end.x - begin.x, end.y - begin.y) / 4);
    return Array.from({ length: steps }, (_, step) => {
      const x = begin.x + ((end.x - begin.x) * step) / steps;
      const y = begin.y + ((end.y - begin.y) * step) / steps;
      return [x - 1, y - 1, x + 1, y + 1];
    });
  });
}

function overlap(own, other) {
  return own[0] < other[2] && other[0] < own[2] && own[1] < other[3] && other[1] < own[3];
}

// Where a text fits beside a dot: it covers no other text, no dot and no line.
function roomFor(words, { x, y, isOutside }, taken, { width, height }) {
  const length = LETTER * words.length;
  const side = isOutside ? ARROW : 9;
  const places = [[x + side, y + 4, "start"], [x - 9, y + 4, "end"],
    [x, y - 11, "middle"], [x, y + 19, "middle"], [x + 7, y - 9, "start"],
    [x + 7, y + 17, "start"], [x - 7, y - 9, "end"], [x - 7, y + 17, "end"],
    [x - 14, y + 4, "end"], [x + 14, y + 4, "start"], [x, y - 18, "middle"],
    [x, y + 26, "middle"]];
  for (const place of places) {
    const [left, base, anchor] = place;
    const begin = anchor === "start" ? left : anchor === "end" ? left - length :
      left - length / 2;
    const own = [begin, base - 11, begin + length, base + 4];
    if (own[0] >= (isOutside ? 0 : LEFT) && own[2] <= width && own[1] >= 0 &&
        own[3] <= height - BOTTOM && !taken.some((other) => overlap(own, other))) {
      return { place, own };
    }
  }
  return null;
}

// Write names beside the dots. In place of a name without room, write the number of its
// row in the table.
function drawNames(svg, placed, chosen, size) {
  const taken = [
    ...placed.map(({ x, y }) => [x - 7, y - 7, x + 7, y + 7]),
    ...boxesOf(placed.filter((each) => each.policy.frontier)),
    // The name of the axis.
    [0, 0, 29 * LETTER, 14],
  ];
  const rank = ({ policies }) => Math.min(...policies.map((policy) => (
    chosen.includes(policy.policy) ? 0 : policy.frontier ? 1 : 2)));
  const texts = [];
  // Draw a text for each group where it covers nothing of `covered`; return the groups
  // without room.
  const write = (groups, wording, covered) => groups.filter((group) => {
    const words = group.policies.map(wording).join(", ");
    const room = roomFor(words, group, [...covered, ...texts], size);
    if (!room) return true;
    texts.push(room.own);
    const isChosen = group.policies.some((each) => chosen.includes(each.policy));
    const [x, y, anchor] = room.place;
    drawn("text", { class: `name ${isChosen ? "chosen" : ""}`, x, y,
      "text-anchor": anchor }, svg).textContent = words;
    return false;
  });
  const groups = joined(placed.map((each) => ({ ...each, policies: [each.policy] })), NEAR);
  const unnamed = write(groups.sort((one, other) => rank(one) - rank(other)),
    (each) => each.policy, taken);
  const number = (each) => each.number;
  // The last ones may cover dots and lines.
  write(write(joined(unnamed, TOUCHING), number, taken), number, []);
}
