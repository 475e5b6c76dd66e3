// SPDX-License-Identifier: MIT
// The table of jobs, with the columns of `penstock ctl status` and more. Rows are kept
// from one status to the next, so that a button that has the focus keeps it.

import { plainButton } from "./dom.js";
import { plainSeconds, rate, userName, volume } from "./format.js";

const MOST_ROWS = 100;
// Rows keep their order for this long (s), though the numbers change.
const ORDER_S = 10;

function keyOf(line) {
  return `${line.user}:${line.job}`;
}

export function stateOf(line, mode) {
  if (mode === "off") return "off";
  if (!line.active) return "works";
  if (line.granted === 0) return "waits";
  return line.lent ? "lends" : "moves";
}

function grantOf(line, shared) {
  if (!line.active) return "-";
  return line.granted === null ? "free" : rate(line.granted, shared);
}

function delayOf(line, status) {
  return status.mode === "dry-run" ? line.would_hold_up : line.held_up;
}

// Title, text of a cell, what it is sorted by; `wide`: left out on narrow screens.
const COLUMNS = [
  { title: "job", text: (line) => line.job, sort: (line) => line.job },
  { title: "user", text: (line, status) => userName(line.user, status.users),
    sort: (line) => line.user, wide: true },
  { title: "state", text: (line, status) => stateOf(line, status.mode),
    sort: (line) => (line.active ? 1 : 0) },
  { title: "granted", text: (line, status) => grantOf(line, status.bandwidth),
    sort: (line) => (line.active ? line.granted ?? Infinity : -1) },
  { title: "limit", text: (line, status) => (
    line.limit === null ? "-" : rate(line.limit, status.bandwidth)),
    sort: (line) => line.limit ?? Infinity, wide: true },
  { title: "demand", text: (line, status) => rate(line.demanded, status.bandwidth),
    sort: (line) => line.demanded, wide: true },
  { title: "drawn", text: (line, status) => (
    status.mode === "off" ? "-" : rate(line.achieved, status.bandwidth)),
    sort: (line) => line.achieved },
  { title: "yield", text: (line) => line.progress_yield.toFixed(3),
    sort: (line) => line.progress_yield },
  { title: "held up", dryTitle: "would wait",
    text: (line, status) => plainSeconds(delayOf(line, status)), sort: delayOf,
    wide: true },
  { title: "moved", text: (line, status) => volume(line.moved, status.bandwidth),
    sort: (line) => line.moved, wide: true },
  { title: "staged", text: (line, status) => (
    line.staged ? volume(line.staged, status.bandwidth) : "-"),
    sort: (line) => line.staged, wide: true },
  { title: "target", text: (line) => line.storage || "-", sort: (line) => line.storage,
    wide: true },
  { title: "nodes", text: (line) => String(line.nodes.length),
    sort: (line) => line.nodes.length, wide: true },
];

// Change the text of a cell; its text node stays, so that no garbage is left.
function setText(cell, text) {
  if (!cell.firstChild) cell.textContent = text;
  else if (cell.firstChild.data !== text) cell.firstChild.data = text;
}

export class JobTable {
  // `open` is called with the key of a job whose name was pressed.
  constructor({ table, filter, note }, open) {
    Object.assign(this, { table, filter, note, open });
    this.rows = new Map();
    // By name.
    this.sortBy = 0;
    this.rising = true;
    this.status = null;
    // Job key -> its place, and when the places were found (s).
    this.places = new Map();
    this.orderedS = -Infinity;
    this.makeHead();
    filter.addEventListener("input", () => this.update(this.status));
  }

  makeHead() {
    const row = document.createElement("tr");
    this.heads = COLUMNS.map((column, at) => {
      const head = document.createElement("th");
      head.scope = "col";
      if (column.wide) head.className = "wide";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = column.title;
      button.addEventListener("click", () => this.sort(at));
      head.append(button);
      row.append(head);
      return head;
    });
    this.table.tHead.append(row);
  }

  sort(at) {
    this.rising = at === this.sortBy ? !this.rising : at === 0;
    this.sortBy = at;
    this.orderedS = -Infinity;
    this.update(this.status);
  }

  update(status) {
    if (!status) return;
    this.status = status;
    this.heads.forEach((head, at) => {
      if (at !== this.sortBy) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.rising ? "ascending" : "descending");
      const { title, dryTitle = title } = COLUMNS[at];
      head.firstChild.textContent = status.mode === "dry-run" ? dryTitle : title;
    });
    const wanted = this.filter.value.toLowerCase();
    const lines = this.ordered(status)
      .filter((line) => line.job.toLowerCase().includes(wanted));
    const shown = lines.slice(0, MOST_ROWS).map((line) => this.rowOf(line, status));
    this.place(shown);
    this.note.textContent = this.noteOf(status, lines.length);
  }

  // The jobs in the order of their rows; new ones are last until all are sorted anew.
  ordered(status) {
    const lines = [...status.jobs].sort((one, other) => this.compare(one, other, status));
    if (this.sortBy && Math.abs(status.time - this.orderedS) < ORDER_S) {
      const place = (line) => this.places.get(keyOf(line)) ?? lines.length;
      return lines.sort((one, other) => place(one) - place(other));
    }
    this.places = new Map(lines.map((line, at) => [keyOf(line), at]));
    this.orderedS = status.time;
    return lines;
  }

  compare(one, other, status) {
    const { sort } = COLUMNS[this.sortBy];
    const [a, b] = [sort(one, status), sort(other, status)];
    const order = a < b ? -1 : a > b ? 1 : 0;
    if (order) return this.rising ? order : -order;
    // Equal ones keep their order, so that rows do not jump.
    return one.job < other.job ? -1 : one.job > other.job ? 1 : one.user - other.user;
  }

  rowOf(line, status) {
    const key = keyOf(line);
    const row = this.rows.get(key) ?? this.makeRow(key);
    COLUMNS.forEach((column, at) => {
      const holder = at ? row.cells[at] : row.cells[0].firstChild;
      const text = column.text(line, status);
      setText(holder, text);
    });
    row.cells[2].className = stateOf(line, status.mode) === "waits" ? "bad" : "";
    return [key, row];
  }

  makeRow(key) {
    const row = document.createElement("tr");
    COLUMNS.forEach((column, at) => {
      const cell = document.createElement(at ? "td" : "th");
      if (!at) cell.scope = "row";
      if (column.wide) cell.className = "wide";
      row.append(cell);
    });
    row.cells[0].append(plainButton("", () => this.open(key)));
    row.dataset.job = key;
    return row;
  }

  // Put rows in this order; move only those that stand elsewhere.
  place(shown) {
    const body = this.table.tBodies[0];
    const focused = document.activeElement;
    this.rows = new Map(shown);
    for (const row of [...body.rows]) {
      if (this.rows.get(row.dataset.job) !== row) row.remove();
    }
    shown.forEach(([, row], at) => {
      if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] ?? null);
    });
    // A row that was moved has lost the focus.
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  }

  noteOf(status, matching) {
    if (!status.jobs.length) return "There are no jobs.";
    if (!matching) return "No name has these letters.";
    if (matching > MOST_ROWS) {
      return `${matching - MOST_ROWS} more jobs are not shown: look for a name, or sort.`;
    }
    return status.mode === "off" ?
      "Control is off: what jobs read and write is not counted." : "";
  }
}
