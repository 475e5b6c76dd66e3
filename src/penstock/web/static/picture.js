// SPDX-License-Identifier: MIT
// The stacked picture of who had which share, as SVG.
//
// It can be dragged, and moved with the arrow keys; End is the right end. The words below
// say the same as the picture, at the pointer or at its right end, and so does a table.
// Pictures that share a `TimeWindow` move together.

import { drawn, paragraph, table } from "./dom.js";
import { BOTTOM, LEFT, TOP, drawAxes, drawUnknown, scaleOf } from "./axes.js";
import { labelsOf } from "./format.js";
import { OTHERS, drawStack, largest, legendItems, thinned, total,
  valueOf } from "./stack.js";

const PAUSE_MS = 250;
const EMPTY = { times: [], bandwidth: [], series: [], others: [] };
const TABLE_ROWS = 12;
// A smaller part of all is a rounding error.
const LEAST = 1e-6;

// The time that pictures show.
export class TimeWindow {
  // `spans`: [button, seconds that it shows].
  constructor(spans, back) {
    this.pictures = [];
    // Right end (s); null: the end of what is known.
    this.end = null;
    this.pointerX = null;
    this.back = back;
    for (const [button, spanS] of spans) {
      if (button.getAttribute("aria-pressed") === "true") this.spanS = spanS;
      button.addEventListener("click", () => {
        for (const [each] of spans) each.setAttribute("aria-pressed", each === button);
        this.spanS = spanS;
        this.moveTo(this.end);
      });
    }
    back.addEventListener("click", () => this.moveTo(null));
  }

  // Show the time before `end`; null, or the future: the end of what is known.
  moveTo(end) {
    const [first] = this.pictures;
    const { newest } = first.samples;
    if (newest === null) return;
    const lowest = first.loadPast ? -Infinity : first.samples.oldest + this.spanS;
    const wanted = end === null ? newest : Math.max(end, lowest);
    this.end = wanted >= newest ? null : wanted;
    for (const picture of this.pictures) picture.moved();
  }

  point(x) {
    this.pointerX = x;
    for (const picture of this.pictures) picture.draw();
  }
}

export class Picture {
  // `parts`: box, words, legend, data (details with the table);
  // `palette`: the colours of jobs in all pictures;
  // `time` and `amount` make texts of instants and rates; `axisTime`, if it is given,
  // makes those below the axis; `loadPast` asks for the points before those that are
  // known, if that is possible; `keys`: the jobs to draw, if they are to be the same all
  // the time.
  constructor(samples, timeWindow, parts) {
    Object.assign(this, { loadPast: null, axisTime: parts.time, samples,
      window: timeWindow }, parts);
    this.drawnKeys = new Set();
    timeWindow.pictures.push(this);
    this.listen();
  }

  listen() {
    const { box } = this;
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    box.addEventListener("pointerup", () => { this.grabbed = null; });
    box.addEventListener("pointercancel", () => { this.grabbed = null; });
    box.addEventListener("pointerleave", () => this.window.point(null));
    new ResizeObserver(() => this.draw()).observe(box);
    this.palette.dark.addEventListener("change", () => this.draw());
    this.data.addEventListener("toggle", () => this.fillTable());
  }

  onKey(event) {
    const steps = { ArrowLeft: -0.1, ArrowRight: 0.1, ArrowDown: -0.1, ArrowUp: 0.1,
      PageUp: -1, PageDown: 1 };
    if (event.key in steps) {
      this.window.moveTo(this.to + steps[event.key] * this.window.spanS);
    } else if (event.key === "End") this.window.moveTo(null);
    else return;
    event.preventDefault();
  }

  onDown(event) {
    this.grabbed = { x: event.clientX, to: this.to };
    this.box.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    const x = event.clientX - this.box.getBoundingClientRect().left;
    if (this.grabbed) {
      const perPixel = this.window.spanS / (this.width - LEFT);
      this.window.pointerX = x;
      this.window.moveTo(this.grabbed.to - (event.clientX - this.grabbed.x) * perPixel);
    } else {
      this.window.point(x);
    }
  }

  moved() {
    this.draw();
    this.fillTable();
  }

  get to() {
    return this.window.end ?? this.samples.newest ?? Date.now() / 1000;
  }

  get from() {
    return this.to - this.window.spanS;
  }

  get width() {
    return Math.max(this.box.clientWidth, 200);
  }

  draw() {
    this.window.back.hidden = this.window.end === null;
    this.askPast();
    const points = thinned(this.samples.between(this.from, this.to));
    this.bandwidth = points.at(-1)?.bandwidth ?? 0;
    const most = this.keys ?? largest(points);
    this.palette.assign(most);
    const keys = this.keys ?? this.palette.inOrder(most);
    this.drawnKeys = new Set(keys);
    const height = this.width < 500 ? 190 : 256;
    const size = { width: this.width, height };
    const scale = scaleOf(points, { from: this.from, to: this.to }, size);
    const svg = drawn("svg", {
      viewBox: `0 0 ${this.width} ${height}`, width: this.width, height,
      "aria-hidden": "true",
    });
    drawAxes(svg, scale, { ...size, amount: this.amount, bandwidth: this.bandwidth,
      time: this.axisTime });
    drawStack(svg, points, { keys, palette: this.palette, scale, to: this.to });
    drawUnknown(svg, this.samples.unknown(this.from, this.to), scale);
    scale.drawCut(svg, (value) => this.amount(value, this.bandwidth));
    const moment = this.moment();
    if (this.window.pointerX !== null) {
      const x = scale.x(moment);
      drawn("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: height - BOTTOM }, svg);
    }
    this.box.replaceChildren(svg);
    this.describe(moment, keys);
    const hasOthers = points.some(
      (point) => valueOf(point, OTHERS, keys) > LEAST * total(point));
    this.legend.replaceChildren(...legendItems(keys, this.palette, hasOthers));
  }

  // Ask for what is not known, when the reader has stopped to drag.
  askPast() {
    if (!this.loadPast) return;
    clearTimeout(this.asking);
    const unknown = this.samples.unknownPast(this.from, this.to);
    if (unknown === null || this.isAsking) return;
    this.asking = setTimeout(() => this.takePast(...unknown), PAUSE_MS);
  }

  async takePast(from, to) {
    this.isAsking = true;
    try {
      this.samples.setPast(await this.loadPast(from, to), from, to);
    } catch {
      // There is no archive, or it is busy: nothing is known about the time.
      this.samples.setPast({ ...EMPTY, unknown: [[from, to]] }, from, to);
    }
    this.isAsking = false;
    this.moved();
  }

  moment() {
    if (this.window.pointerX === null) return this.to;
    const part = (this.window.pointerX - LEFT) / (this.width - LEFT);
    return this.from + Math.min(Math.max(part, 0), 1) * this.window.spanS;
  }

  describe(moment, keys) {
    const text = this.sentence(moment, keys);
    this.words.textContent = text;
    this.box.setAttribute("aria-valuemin", Math.round(this.samples.oldest ?? 0));
    this.box.setAttribute("aria-valuemax", Math.round(this.samples.newest ?? 0));
    this.box.setAttribute("aria-valuenow", Math.round(this.to));
    // What follows the present must not be read aloud every second.
    const spoken = this.loadPast && this.window.end === null ? "up to now" : text;
    if (this.box.getAttribute("aria-valuetext") !== spoken) {
      this.box.setAttribute("aria-valuetext", spoken);
    }
  }

  sentence(moment, keys) {
    const point = this.samples.at(moment);
    if (!point) return `${this.time(moment)}: nothing is known about this time.`;
    const shares = this.sharesOf(point, keys)
      .filter(([, value]) => value > LEAST * total(point))
      .map(([name, value]) => `${name} ${this.amount(value, this.bandwidth)}`);
    const shared = point.bandwidth === null ? "" :
      ` of ${this.amount(point.bandwidth, this.bandwidth)}`;
    const said = shares.length ? shares.join(", ") : "no job moves data";
    return `${this.time(moment)}: ${this.amount(total(point), this.bandwidth)}${shared}: ` +
      `${said}.`;
  }

  sharesOf(point, keys) {
    const named = labelsOf(keys);
    return [...keys, OTHERS].map((key) => [
      named.get(key) ?? OTHERS, valueOf(point, key, keys)]);
  }

  // The picture as a table, if the reader has opened it.
  fillTable() {
    if (!this.data.open) return;
    const keys = [...this.drawnKeys];
    const rows = [];
    for (let row = 0; row <= TABLE_ROWS; row += 1) {
      const moment = this.from + (row / TABLE_ROWS) * this.window.spanS;
      const point = this.samples.at(moment);
      if (!point) continue;
      const values = this.sharesOf(point, keys).map(([, value]) => value);
      rows.push([this.time(moment), ...[...values, total(point)].map(
        (value) => (value ? this.amount(value, this.bandwidth) : "-"))]);
    }
    const heads = ["time", ...labelsOf(keys).values(), OTHERS, "all"];
    const caption = `Rates from ${this.time(this.from)} to ${this.time(this.to)}`;
    this.data.lastElementChild.replaceChildren(rows.length ?
      table([heads, ...rows], caption) : paragraph("Nothing is known about this time."));
  }
}
