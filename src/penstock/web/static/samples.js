// SPDX-License-Identifier: MIT
// Rates over time: those of the last hour, as far as this browser has got them, and of a
// time before that it has asked the archive for; or all those of a simulation.

const KEPT_S = 3600;
// Jobs of one point that are kept one by one; all others are added up.
const MOST = 12;
// How long a status holds if no other one follows (s).
const HOLDS_S = 5;
// Two instants that differ by less are the same (s).
const SAME_S = 1e-6;
// Points of the archive for so many times the time that is shown are too coarse.
const COARSE = 2;

// Put empty points where nothing is known: a rate must not be drawn over a gap.
function withGaps(points) {
  return points.flatMap((point, at) => {
    const end = point.time + point.holds;
    const next = points[at + 1];
    if (!next || next.time <= end + SAME_S) return [point];
    const empty = { time: end, bandwidth: null, rates: new Map(), others: 0,
      holds: next.time - end };
    return [point, empty];
  });
}

// The points of a picture. In one with an `end`, a rate holds until the next instant, or
// until the end; in any other one there may be gaps.
export function pointsOf(picture) {
  const [first, second] = picture.times;
  const usual = Math.max(1.5 * ((second ?? first) - first), HOLDS_S);
  return picture.times.map((time, at) => {
    const next = picture.times[at + 1] ?? picture.end;
    const holds = picture.end === undefined ? usual : next - time;
    const rates = new Map();
    for (const series of picture.series) {
      if (series.rates[at] > 0) rates.set(series.job, series.rates[at]);
    }
    return { time, bandwidth: picture.bandwidth[at], rates, others: picture.others[at],
      holds };
  });
}

export class Samples {
  // Points that are older than `keptS` are dropped.
  constructor(keptS = KEPT_S) {
    this.keptS = keptS;
    // Each point: time (s), bandwidth (bytes/s or null), rates (job key -> bytes/s),
    // others (bytes/s), holds (s): how long it holds at most. Oldest first.
    this.points = [];
    // When a complete picture ends (s).
    this.end = null;
    // Points of the archive, and the time that they cover.
    this.past = [];
    this.pastFrom = Infinity;
    this.pastTo = -Infinity;
    // Pairs of instants between which the archive knows nothing: no daemon ran.
    this.pastUnknown = [];
  }

  // Take a picture of the archive.
  setPast(picture, from, to) {
    this.past = pointsOf(picture);
    this.pastFrom = from;
    this.pastTo = to;
    this.pastUnknown = picture.unknown ?? [];
  }

  // The parts of an interval about which nothing is known: pairs of instants.
  unknown(from, to) {
    const end = this.oldest ?? Infinity;
    const gaps = this.points.flatMap((point, at) => {
      const next = this.points[at + 1];
      const known = point.time + point.holds;
      return next && next.time > known + SAME_S ? [[known, next.time]] : [];
    });
    const before = this.pastUnknown.map(([begin, last]) => [begin, Math.min(last, end)]);
    return [...before, ...gaps]
      .map(([begin, last]) => [Math.max(begin, from), Math.min(last, to)])
      .filter(([begin, last]) => begin < last);
  }

  // The interval that must be asked from the archive; null if it is known. What is known
  // of a much longer time is too coarse.
  unknownPast(from, to) {
    const end = Math.min(to, this.oldest ?? to);
    const isFine = this.pastTo - this.pastFrom <= COARSE * (to - from);
    const isKnown = isFine && from >= this.pastFrom && end <= this.pastTo;
    return from >= end || isKnown ? null : [from, to];
  }

  get all() {
    const { oldest } = this;
    const before = this.past.filter((point) => oldest === null || point.time < oldest);
    return [...before, ...this.points];
  }

  // Take a picture of the server: what this browser has missed, or all there is.
  addPicture(picture) {
    if (picture.reset) this.points = [];
    for (const point of pointsOf(picture)) this.push(point);
  }

  // Take a picture that is complete, e.g. of a simulation, in place of all points.
  replace(picture) {
    this.points = pointsOf(picture);
    this.end = picture.end;
  }

  // Take a status; jobs that are drawn now are kept one by one.
  addStatus(status, drawnKeys) {
    const moving = Object.entries(status.rates);
    moving.sort(([, one], [, other]) => other - one);
    const rates = new Map();
    let others = 0;
    moving.forEach(([key, rate], place) => {
      if (place < MOST || drawnKeys.has(key)) rates.set(key, rate);
      else others += rate;
    });
    this.push({ time: status.time, bandwidth: status.bandwidth, rates, others,
      holds: HOLDS_S });
  }

  push(point) {
    const last = this.points.at(-1);
    if (last && point.time <= last.time) return;
    this.points.push(point);
    const oldest = point.time - this.keptS;
    let old = 0;
    while (this.points[old].time < oldest) old += 1;
    if (old) this.points.splice(0, old);
  }

  // The points of an interval, with one before it: rates hold until the next point.
  between(from, to) {
    const points = withGaps(this.all);
    const begin = points.findIndex((point) => point.time >= from);
    if (begin < 0) return points.slice(-1);
    return points.slice(Math.max(begin - 1, 0)).filter((point) => point.time <= to);
  }

  at(time) {
    if (this.unknown(time - SAME_S, time + SAME_S).length) return null;
    let found = null;
    for (const point of this.all) {
      if (point.time > time) break;
      found = point;
    }
    return found && time <= found.time + found.holds + SAME_S ? found : null;
  }

  get oldest() {
    return this.points.length ? this.points[0].time : null;
  }

  get newest() {
    return this.end ?? this.points.at(-1)?.time ?? null;
  }
}
