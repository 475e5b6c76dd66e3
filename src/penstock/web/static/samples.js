// SPDX-License-Identifier: MIT
// The rates of the last hour, as far as this browser has got them.

const KEPT_S = 3600;
// Jobs of one point that are kept one by one; all others are added up.
const MOST = 12;

export class Samples {
  constructor() {
    // Each point: time (s), bandwidth (bytes/s or null), rates (job key -> bytes/s),
    // others (bytes/s). Oldest first.
    this.points = [];
  }

  // Take a picture of the server: what this browser has missed, or all there is.
  addPicture(picture) {
    if (picture.reset) this.points = [];
    picture.times.forEach((time, at) => {
      const rates = new Map();
      for (const series of picture.series) {
        if (series.rates[at] > 0) rates.set(series.job, series.rates[at]);
      }
      this.push({
        time, bandwidth: picture.bandwidth[at], rates, others: picture.others[at],
      });
    });
  }

  // Take a status; jobs that are drawn now are kept one by one.
  addStatus(status, drawnKeys) {
    const drawing = status.jobs.filter((line) => line.achieved > 0);
    drawing.sort((one, other) => other.achieved - one.achieved);
    const rates = new Map();
    let others = 0;
    drawing.forEach((line, place) => {
      const key = `${line.user}:${line.job}`;
      if (place < MOST || drawnKeys.has(key)) rates.set(key, line.achieved);
      else others += line.achieved;
    });
    this.push({ time: status.time, bandwidth: status.bandwidth, rates, others });
  }

  push(point) {
    const last = this.points.at(-1);
    if (last && point.time <= last.time) return;
    this.points.push(point);
    const oldest = point.time - KEPT_S;
    let old = 0;
    while (this.points[old].time < oldest) old += 1;
    if (old) this.points.splice(0, old);
  }

  // The points of an interval, with one before it: rates hold until the next point.
  between(from, to) {
    const begin = this.points.findIndex((point) => point.time >= from);
    if (begin < 0) return this.points.slice(-1);
    return this.points.slice(Math.max(begin - 1, 0))
      .filter((point) => point.time <= to);
  }

  at(time) {
    let found = null;
    for (const point of this.points) {
      if (point.time > time) break;
      found = point;
    }
    return found;
  }

  get oldest() {
    return this.points.length ? this.points[0].time : null;
  }

  get newest() {
    return this.points.length ? this.points.at(-1).time : null;
  }
}
