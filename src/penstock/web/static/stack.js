// SPDX-License-Identifier: MIT
// Draws stacked rates over time: the live picture, the picture of a simulation, and the
// small ones of a dry run.
//
// Points are those of `samples.js`. Colours are safe for colour-blind readers; bands have
// edges and, where there is room, names: no reader needs the colours.

import { drawn } from "./dom.js";
import { labelsOf, nameOf } from "./format.js";

const MOST_SERIES = 10;
const MOST_POINTS = 500;
// Paul Tol's muted set, and lighter ones on black.
const LIGHT = ["#332288", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#117733",
  "#AA4499", "#999933", "#882255", "#0072B2"];
const DARK = ["#9A90F0", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#5DBB75",
  "#C97BC9", "#B9B957", "#CF6A9C", "#5EA9DD"];
// Size of the name in a band (pixels).
const LETTER = 6.6;
const LINE = 14;
// Rates above this multiple of the bandwidth are cut off.
const CUT = 1.25;
export const OTHERS = "others";

// The colour that a job gets if no other one has it: a number made of its name.
function wanted(key) {
  let sum = 0;
  for (const letter of nameOf(key)) sum = (31 * sum + letter.codePointAt(0)) % 1_000_003;
  return sum % LIGHT.length;
}

// Gives each job a colour, the same in all pictures that share the palette. A job keeps
// its colour until more jobs than there are colours were drawn after it.
export class Palette {
  constructor(dark = window.matchMedia("(prefers-color-scheme: dark)")) {
    // Job key -> place of its colour; the job that was drawn last is the last one.
    this.places = new Map();
    this.dark = dark;
  }

  assign(keys) {
    for (const key of keys) {
      const place = this.places.get(key);
      this.places.delete(key);
      if (place !== undefined) this.places.set(key, place);
    }
    for (const key of keys) {
      if (!this.places.has(key)) this.places.set(key, this.freePlace(key));
    }
  }

  // The wanted place or the next free one; else that of the job that was drawn first.
  freePlace(key) {
    const taken = new Set(this.places.values());
    for (let step = 0; step < LIGHT.length; step += 1) {
      const place = (wanted(key) + step) % LIGHT.length;
      if (!taken.has(place)) return place;
    }
    const [oldest, place] = this.places.entries().next().value;
    this.places.delete(oldest);
    return place;
  }

  // Jobs in the order of their colours: bands do not change places.
  inOrder(keys) {
    return [...keys].sort((one, other) => this.places.get(one) - this.places.get(other));
  }

  colour(key) {
    return (this.dark.matches ? DARK : LIGHT)[this.places.get(key)];
  }
}

// Black or white, whatever is easier to read on a colour.
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map(
    (at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

// --- Points ---------------------------------------------------------------------------

// Join neighbours to their mean if there are more points than can be seen.
export function thinned(points) {
  if (points.length <= MOST_POINTS) return points;
  const wanted = (points.at(-1).time - points[0].time) / MOST_POINTS;
  // Whole seconds, counted from 1970: the same points are joined when time goes on.
  const length = wanted > 1 ? Math.ceil(wanted) : wanted;
  const groups = new Map();
  for (const point of points) {
    const place = Math.floor(point.time / length);
    if (groups.has(place)) groups.get(place).push(point);
    else groups.set(place, [point]);
  }
  const all = [...groups.values()];
  return all.map((group, at) => mean(group, all[at + 1]?.[0]));
}

// The mean of points; each one weighs as much as the time until the next one.
function mean(group, next) {
  const last = group.at(-1);
  const end = next?.time ?? last.time + last.holds;
  const whole = end - group[0].time;
  const rates = new Map();
  let others = 0;
  group.forEach((point, at) => {
    const weight = ((group[at + 1]?.time ?? end) - point.time) / whole;
    others += point.others * weight;
    for (const [key, value] of point.rates) {
      rates.set(key, (rates.get(key) ?? 0) + value * weight);
    }
  });
  return { time: group[0].time, bandwidth: last.bandwidth, rates, others,
    holds: last.time + last.holds - group[0].time };
}

export function total(point) {
  let sum = point.others;
  for (const value of point.rates.values()) sum += value;
  return sum;
}

// The highest rate that is drawn. Rates above the bandwidth are cut off soon: one burst
// must not flatten all others.
export function highest(points) {
  const bandwidth = Math.max(0, ...points.map((point) => point.bandwidth ?? 0));
  const rate = highestRate(points);
  if (!bandwidth) return rate || 1;
  return rate > 1.001 * bandwidth ? Math.min(rate, CUT * bandwidth) : bandwidth;
}

export function highestRate(points) {
  return Math.max(0, ...points.map(total));
}

// The jobs that moved most in these points, the largest first.
export function largest(points) {
  const sums = new Map();
  points.forEach((point, at) => {
    const next = points[at + 1];
    const length = next && next.time > point.time ? next.time - point.time : 1;
    for (const [key, value] of point.rates) {
      sums.set(key, (sums.get(key) ?? 0) + value * length);
    }
  });
  return [...sums].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
    .slice(0, MOST_SERIES).map(([key]) => key);
}

export function valueOf(point, key, keys) {
  if (key !== OTHERS) return point.rates.get(key) ?? 0;
  return Math.max(total(point) - keys.reduce(
    (sum, each) => sum + (point.rates.get(each) ?? 0), 0), 0);
}

// --- Drawing --------------------------------------------------------------------------

// Draw the bands of jobs, the bandwidth, and names where there is room. `scale` has the
// functions x (of a time) and y (of a rate); `to` is the right end.
export function drawStack(svg, points, { keys, palette, scale, to, names = true }) {
  const labels = [];
  const named = labelsOf(keys);
  let below = points.map(() => 0);
  for (const key of [...keys, OTHERS]) {
    const above = points.map((point, at) => below[at] + valueOf(point, key, keys));
    const fill = key === OTHERS ? { class: "others" } : {
      fill: palette.colour(key), "data-job": key,
    };
    drawn("path", { class: "band", d: area(points, below, above, scale, to), ...fill }, svg);
    if (names && key !== OTHERS) {
      labels.push([key, roomFor(named.get(key), points, { below, above, scale, to })]);
    }
    below = above;
  }
  for (const [key, place] of labels) {
    if (!place) continue;
    drawn("text", { class: "name", x: place.x, y: place.y, "text-anchor": "middle",
      fill: inkOn(palette.colour(key)) }, svg).textContent = named.get(key);
  }
  drawCapacity(svg, points, scale, to);
}

// The outline of one job: its rate holds from a point to the next one.
function area(points, below, above, scale, to) {
  const edge = (values) => points.flatMap((point, at) => {
    const end = points[at + 1]?.time ?? to;
    const y = scale.y(values[at]).toFixed(1);
    return [`${scale.x(point.time).toFixed(1)} ${y}`, `${scale.x(end).toFixed(1)} ${y}`];
  });
  if (!points.length) return "";
  return `M${[...edge(above), ...edge(below).reverse()].join("L")}Z`;
}

// Where a name fits into a band: the widest place in which the band is high enough.
function roomFor(name, points, { below, above, scale, to }) {
  const width = LETTER * name.length + 8;
  let best = null;
  let run = null;
  points.forEach((point, at) => {
    const [top, bottom] = [scale.y(above[at]), scale.y(below[at])];
    const [left, right] = [scale.x(point.time), scale.x(points[at + 1]?.time ?? to)];
    const common = run && { left: run.left, right,
      top: Math.max(run.top, top), bottom: Math.min(run.bottom, bottom) };
    const fits = common && common.bottom - common.top >= LINE;
    run = fits ? common : bottom - top >= LINE ? { left, right, top, bottom } : null;
    if (run && run.right - run.left >= width &&
        (!best || run.right - run.left > best.right - best.left)) best = run;
  });
  return best && { x: (best.left + best.right) / 2, y: (best.top + best.bottom) / 2 + 4 };
}

function drawCapacity(svg, points, scale, to) {
  const known = points.filter((point) => point.bandwidth !== null);
  if (!known.length) return;
  const line = known.flatMap((point, at) => {
    const end = scale.x(known[at + 1]?.time ?? to).toFixed(1);
    const y = scale.y(point.bandwidth).toFixed(1);
    return [`${scale.x(point.time).toFixed(1)} ${y}`, `${end} ${y}`];
  });
  drawn("path", { class: "capacity", d: `M${line.join("L")}` }, svg);
}

// Items of a legend, in the order of the bands from below.
export function legendItems(keys, palette, hasOthers) {
  const named = labelsOf(keys);
  const items = keys.map((key) => legendItem(
    named.get(key), { fill: palette.colour(key) }));
  if (hasOthers) items.push(legendItem("all others", { class: "others" }));
  return items;
}

function legendItem(name, fill) {
  const item = document.createElement("li");
  const mark = drawn("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
  drawn("rect", { width: 10, height: 10, ...fill }, mark);
  item.append(mark, name);
  return item;
}
