// SPDX-License-Identifier: MIT
// The stacked picture of who had which share, as SVG.
//
// It can be dragged, and moved with the arrow keys; End is now. What was before the last
// hour is asked from the archive. The words below it say the same as the picture, at the
// pointer or at its right end.

import { getJson } from "./details.js";
import { clock, nameOf, rate } from "./format.js";
import { pointsOf } from "./samples.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_SERIES = 10;
const MOST_POINTS = 500;
const PAUSE_MS = 250;
const EMPTY = { times: [], bandwidth: [], series: [], others: [] };
const LEFT = 64;
const BOTTOM = 18;
const TOP = 6;
// Safe for colour-blind readers: Paul Tol's muted set, and lighter ones on black.
const LIGHT = ["#332288", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#117733",
  "#AA4499", "#999933", "#882255", "#0072B2"];
const DARK = ["#9A90F0", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#5DBB75",
  "#C97BC9", "#B9B957", "#CF6A9C", "#5EA9DD"];
const OTHERS = "others";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

// Gives each job a colour, which it keeps while it is drawn.
class Palette {
  constructor() {
    this.places = new Map();
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
  }

  assign(keys) {
    for (const key of this.places.keys()) {
      if (!keys.includes(key)) this.places.delete(key);
    }
    const taken = new Set(this.places.values());
    for (const key of keys) {
      if (this.places.has(key)) continue;
      const free = LIGHT.findIndex((_, place) => !taken.has(place));
      taken.add(free);
      this.places.set(key, free);
    }
  }

  colour(key) {
    return (this.dark.matches ? DARK : LIGHT)[this.places.get(key)];
  }
}

export class Picture {
  constructor(samples, { box, words, legend, live, buttons }) {
    Object.assign(this, { samples, box, words, legend, live });
    this.palette = new Palette();
    this.spanS = 300;
    // Right end of the picture (s); null: now.
    this.end = null;
    this.pointerX = null;
    this.drawnKeys = new Set();
    this.listen(buttons);
  }

  listen(buttons) {
    for (const button of buttons) {
      button.addEventListener("click", () => {
        this.spanS = 60 * Number(button.dataset.minutes);
        for (const each of buttons) each.setAttribute("aria-pressed", each === button);
        this.draw();
      });
    }
    this.live.addEventListener("click", () => this.moveTo(null));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("pointerdown", (event) => this.onDown(event));
    this.box.addEventListener("pointermove", (event) => this.onMove(event));
    this.box.addEventListener("pointerup", () => { this.grabbed = null; });
    this.box.addEventListener("pointerleave", () => {
      this.pointerX = null;
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.palette.dark.addEventListener("change", () => this.draw());
  }

  onKey(event) {
    const steps = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: -1, PageDown: 1 };
    if (event.key in steps) this.moveTo(this.to + steps[event.key] * this.spanS);
    else if (event.key === "End") this.moveTo(null);
    else return;
    event.preventDefault();
  }

  onDown(event) {
    this.grabbed = { x: event.clientX, to: this.to };
    this.box.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    this.pointerX = event.clientX - this.box.getBoundingClientRect().left;
    if (this.grabbed) {
      const perPixel = this.spanS / (this.width - LEFT);
      this.moveTo(this.grabbed.to - (event.clientX - this.grabbed.x) * perPixel);
    } else {
      this.draw();
    }
  }

  // Show the time before `end`; null, or the future: follow what happens now.
  moveTo(end) {
    const { newest } = this.samples;
    if (newest === null) return;
    this.end = end === null || end >= newest ? null : end;
    this.draw();
  }

  get to() {
    return this.end ?? this.samples.newest ?? Date.now() / 1000;
  }

  get width() {
    return Math.max(this.box.clientWidth, 200);
  }

  draw() {
    this.live.hidden = this.end === null;
    const from = this.to - this.spanS;
    this.askPast(from);
    const points = thinned(this.samples.between(from, this.to));
    this.bandwidth = points.at(-1)?.bandwidth ?? 0;
    const keys = largest(points);
    this.palette.assign(keys);
    this.drawnKeys = new Set(keys);
    const height = this.width < 500 ? 190 : 256;
    const scale = this.scaleOf(points, from, height);
    const svg = element("svg", {
      viewBox: `0 0 ${this.width} ${height}`, width: this.width, height,
      "aria-hidden": "true",
    });
    this.drawAxes(svg, scale, from, height);
    this.drawStack(svg, points, keys, scale);
    drawCapacity(svg, points, scale, this.width);
    const moment = this.momentOf(scale, from);
    if (this.pointerX !== null) {
      const x = scale.x(moment);
      element("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: height - BOTTOM },
        svg);
    }
    this.box.replaceChildren(svg);
    this.describe(moment, keys);
    this.drawLegend(keys, points);
  }

  // Ask for what is not known, when the reader has stopped to drag.
  askPast(from) {
    clearTimeout(this.asking);
    const unknown = this.samples.unknownPast(from, this.to);
    if (unknown === null || this.isAsking) return;
    this.asking = setTimeout(() => this.loadPast(...unknown), PAUSE_MS);
  }

  async loadPast(from, to) {
    this.isAsking = true;
    try {
      const picture = await getJson(`api/picture?from=${from}&to=${to}`);
      this.samples.setPast(picture, from, to);
    } catch {
      // There is no archive, or it is busy: the time stays empty.
      this.samples.setPast(EMPTY, from, to);
    }
    this.isAsking = false;
    this.draw();
  }

  scaleOf(points, from, height) {
    const highest = Math.max(1, ...points.map(
      (point) => Math.max(point.bandwidth ?? 0, total(point))));
    const bottom = height - BOTTOM;
    return {
      highest,
      bottom,
      x: (time) => LEFT + Math.min(Math.max((time - from) / this.spanS, 0), 1)
        * (this.width - LEFT),
      y: (value) => bottom - (value / (1.05 * highest)) * (bottom - TOP),
    };
  }

  momentOf(scale, from) {
    if (this.pointerX === null) return this.to;
    const part = (this.pointerX - LEFT) / (this.width - LEFT);
    return from + Math.min(Math.max(part, 0), 1) * this.spanS;
  }

  drawAxes(svg, scale, from, height) {
    for (const part of [0, 0.5, 1]) {
      const y = scale.y(part * scale.highest);
      element("line", { class: "axis", x1: LEFT, x2: this.width, y1: y, y2: y }, svg);
      const text = element("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, svg);
      text.textContent = part ? rate(part * scale.highest, this.bandwidth) : "0";
    }
    const places = this.width < 500 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
    for (const part of places) {
      const time = from + part * this.spanS;
      const anchor = part === 0 ? "start" : part === 1 ? "end" : "middle";
      const text = element("text",
        { x: scale.x(time), y: height - 4, "text-anchor": anchor }, svg);
      text.textContent = clock(time);
    }
  }

  drawStack(svg, points, keys, scale) {
    let below = points.map(() => 0);
    for (const key of [...keys, OTHERS]) {
      const above = points.map((point, at) => below[at] + valueOf(point, key, keys));
      const fill = key === OTHERS ? { class: "others" } : {
        fill: this.palette.colour(key), "data-job": key,
      };
      element("path",
        { d: area(points, below, above, scale, this.to), ...fill }, svg);
      below = above;
    }
  }

  describe(moment, keys) {
    const point = this.samples.at(moment);
    if (!point) {
      this.words.textContent = "Nothing is known about this time.";
      return;
    }
    const shares = [...keys, OTHERS]
      .map((key) => [key === OTHERS ? OTHERS : nameOf(key), valueOf(point, key, keys)])
      .filter(([, value]) => value > 0)
      .map(([name, value]) => `${name} ${rate(value, this.bandwidth)}`);
    const shared = point.bandwidth === null ? "" :
      ` of ${rate(point.bandwidth, this.bandwidth)}`;
    const said = shares.length ? shares.join(", ") : "no job moves data";
    this.words.textContent =
      `${clock(moment)}: ${rate(total(point), this.bandwidth)}${shared}: ${said}.`;
  }

  drawLegend(keys, points) {
    const items = keys.map((key) => this.legendItem(nameOf(key),
      { fill: this.palette.colour(key) }));
    if (points.some((point) => valueOf(point, OTHERS, keys) > 0)) {
      items.push(this.legendItem("all others", { class: "others" }));
    }
    this.legend.replaceChildren(...items);
  }

  legendItem(name, fill) {
    const item = document.createElement("li");
    const mark = element("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" });
    element("rect", { width: 10, height: 10, ...fill }, mark);
    item.append(mark, name);
    return item;
  }
}

// Two pictures of one time, one below the other, with the same colours and scale.
// `pictures` has titles and documents of the server.
export function comparedPictures(pictures) {
  const all = pictures.map(([, picture]) => thinned(pointsOf(picture)));
  const keys = largest(all.flat());
  const palette = new Palette();
  palette.assign(keys);
  const highest = Math.max(1, ...all.flat().map(
    (point) => Math.max(point.bandwidth ?? 0, total(point))));
  const figures = pictures.map(([title], at) => comparedPicture(
    title, all[at], { keys, palette, highest }));
  const legend = document.createElement("p");
  legend.className = "muted";
  legend.append(...keys.flatMap((key) => {
    const mark = element("svg", { viewBox: "0 0 10 10", width: 10, height: 10,
      "aria-hidden": "true" });
    element("rect", { width: 10, height: 10, fill: palette.colour(key) }, mark);
    return [mark, ` ${nameOf(key)}  `];
  }));
  return [...figures, legend];
}

function comparedPicture(title, points, { keys, palette, highest }) {
  const [width, height] = [600, 100];
  const [from, to] = [points[0]?.time ?? 0, points.at(-1)?.time ?? 1];
  const scale = {
    x: (time) => ((time - from) / Math.max(to - from, 1)) * width,
    y: (value) => height - (value / (1.05 * highest)) * height,
  };
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  let below = points.map(() => 0);
  for (const key of [...keys, OTHERS]) {
    const above = points.map((point, at) => below[at] + valueOf(point, key, keys));
    const fill = key === OTHERS ? { class: "others" } : { fill: palette.colour(key) };
    element("path", { d: area(points, below, above, scale, to), ...fill }, svg);
    below = above;
  }
  drawCapacity(svg, points, scale, width);
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  figure.append(caption, svg);
  return figure;
}

// Join neighbours to their mean if there are more points than can be seen.
function thinned(points) {
  const size = Math.ceil(points.length / MOST_POINTS);
  if (size < 2) return points;
  const joined = [];
  for (let begin = 0; begin < points.length; begin += size) {
    joined.push(mean(points.slice(begin, begin + size)));
  }
  return joined;
}

function mean(group) {
  const rates = new Map();
  let others = 0;
  for (const point of group) {
    others += point.others / group.length;
    for (const [key, value] of point.rates) {
      rates.set(key, (rates.get(key) ?? 0) + value / group.length);
    }
  }
  const last = group.at(-1);
  return { time: group[0].time, bandwidth: last.bandwidth, rates, others,
    holds: last.time + last.holds - group[0].time };
}

function total(point) {
  let sum = point.others;
  for (const value of point.rates.values()) sum += value;
  return sum;
}

// The jobs that moved most in these points, the largest first.
function largest(points) {
  const sums = new Map();
  points.forEach((point, at) => {
    const next = points[at + 1];
    const length = next ? next.time - point.time : 1;
    for (const [key, value] of point.rates) {
      sums.set(key, (sums.get(key) ?? 0) + value * length);
    }
  });
  return [...sums].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1))
    .slice(0, MOST_SERIES).map(([key]) => key);
}

function valueOf(point, key, keys) {
  if (key !== OTHERS) return point.rates.get(key) ?? 0;
  return Math.max(total(point) - keys.reduce(
    (sum, each) => sum + (point.rates.get(each) ?? 0), 0), 0);
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

function drawCapacity(svg, points, scale, width) {
  const known = points.filter((point) => point.bandwidth !== null);
  if (!known.length) return;
  const line = known.flatMap((point, at) => {
    const end = known[at + 1] ? scale.x(known[at + 1].time) : width;
    const y = scale.y(point.bandwidth).toFixed(1);
    return [`${scale.x(point.time).toFixed(1)} ${y}`, `${end.toFixed(1)} ${y}`];
  });
  element("path", { class: "capacity", d: `M${line.join("L")}` }, svg);
}
