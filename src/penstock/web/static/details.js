// SPDX-License-Identifier: MIT
// One job in a dialog, past jobs, storages and mounts.

import { counted, duration, instant, nameOf, rate, volume } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_OPERATIONS = 20;

export async function getJson(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", ...options });
  if (answer.status === 401) location.assign("login");
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.error ?? answer.statusText);
  return document;
}

export function paragraph(text, name = "") {
  const made = document.createElement("p");
  made.textContent = text;
  made.className = name;
  return made;
}

// A table of texts; the first row is the head.
export function table(rows, caption) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  rows.forEach((cells, at) => {
    const row = (at ? made.tBodies[0] ?? made.createTBody() : made.createTHead())
      .insertRow();
    for (const cell of cells) {
      const place = document.createElement(at ? "td" : "th");
      if (!at) place.scope = "col";
      place.append(cell);
      row.append(place);
    }
  });
  const box = document.createElement("div");
  box.className = "scroll";
  box.append(made);
  return box;
}

function facts(pairs) {
  const list = document.createElement("dl");
  for (const [name, text] of pairs) {
    const term = document.createElement("dt");
    const value = document.createElement("dd");
    term.textContent = name;
    value.textContent = text;
    list.append(term, value);
  }
  return list;
}

// --- One job --------------------------------------------------------------------------

export class JobDialog {
  constructor({ dialog, title, body }) {
    Object.assign(this, { dialog, title, body });
    this.key = null;
  }

  async open(key) {
    this.key = key;
    this.title.textContent = nameOf(key);
    this.body.replaceChildren(paragraph("Asking the daemon ..."));
    if (!this.dialog.open) this.dialog.showModal();
    let parts;
    try {
      parts = jobParts(await getJson(`api/jobs/${encodeURIComponent(key)}`));
    } catch (error) {
      parts = [paragraph(error.message, "bad")];
    }
    // The reader may have opened another one meanwhile.
    if (this.key === key) this.body.replaceChildren(...parts);
  }
}

function jobParts(answer) {
  const parts = [paragraph(answer.explanation)];
  if (answer.job) parts.push(facts(nowOf(answer.job)));
  if (answer.report) parts.push(...reportParts(answer.report));
  else parts.push(paragraph(answer.report_note, "muted"));
  return parts;
}

function nowOf(line) {
  const pairs = [
    ["moved", `${volume(line.moved)} in ${counted(line.operations, "operation")}`],
    ["held up", duration(line.held_up)],
    ["lost", `${duration(line.lost)} of ${duration(line.age)}`],
    ["yield", line.progress_yield.toFixed(3)],
    ["nodes", line.nodes.join(", ")],
  ];
  if (line.active) {
    pairs.unshift(["now", `draws ${rate(line.achieved)}, ` +
      `${volume(line.remaining)} of ${volume(line.volume)} remain`]);
  }
  if (line.limit !== null) pairs.push(["limit", rate(line.limit)]);
  if (line.uncontrolled) pairs.push(["without control", volume(line.uncontrolled)]);
  return pairs;
}

function reportParts(report) {
  const heading = document.createElement("h3");
  heading.textContent = "What it did";
  const parts = [heading, drawing(report.operations)];
  if (report.delays.length) {
    parts.push(table([
      ["waited for", "lost", "moved meanwhile"],
      ...report.delays.map((delay) => [
        delay.job || "jobs of other users", duration(delay.lost), volume(delay.moved),
      ]),
    ], "Who held it up"));
  }
  const last = report.operations.slice(-MOST_OPERATIONS).reverse();
  parts.push(table([
    ["begin", "took", "moved", "rate", "lost", "policy"],
    ...last.map((each) => [
      instant(each.begin), duration(each.end - each.begin), volume(each.moved),
      rate(speed(each)), duration(each.lost), each.policy,
    ]),
  ], `The last ${last.length} of ${counted(report.operation_count, "operation")}`));
  return parts;
}

function speed(operation) {
  const length = operation.end - operation.begin;
  return length > 0 ? operation.moved / length : 0;
}

// Operations over time: as wide as they took, as high as they were fast.
function drawing(operations) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("viewBox", "0 0 600 80");
  made.setAttribute("role", "img");
  if (!operations.length) return made;
  const [from, to] = [operations[0].begin, operations.at(-1).end];
  const fastest = Math.max(...operations.map(speed), 1);
  made.setAttribute("aria-label", `${counted(operations.length, "operation")} from ` +
    `${instant(from)} to ${instant(to)}, at most ${rate(fastest)}`);
  for (const each of operations) {
    const box = document.createElementNS(SVG, "rect");
    const height = (78 * speed(each)) / fastest;
    const scale = 600 / Math.max(to - from, 1e-3);
    box.setAttribute("x", (each.begin - from) * scale);
    box.setAttribute("y", 80 - height);
    box.setAttribute("width", Math.max((each.end - each.begin) * scale, 0.7));
    box.setAttribute("height", height);
    box.setAttribute("fill", "#44AA99");
    made.append(box);
  }
  return made;
}

// --- Past jobs ------------------------------------------------------------------------

export async function showPast(box, open) {
  let answer;
  try {
    answer = await getJson("api/history");
  } catch (error) {
    box.replaceChildren(paragraph(error.message, "bad"));
    return;
  }
  const rows = answer.jobs.reverse().map((job) => [
    nameButton(job, open), instant(job.joined),
    duration((job.left ?? Date.now() / 1000) - job.joined),
    volume(job.moved), duration(job.lost), job.progress_yield.toFixed(3), job.policy,
  ]);
  const heads = ["job", "from", "took", "moved", "lost", "yield", "policy"];
  box.replaceChildren(rows.length ? table([heads, ...rows], "The latest first") :
    paragraph("No job has ended yet."));
}

function nameButton(job, open) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = job.job;
  button.addEventListener("click", () => open(`${job.user}:${job.job}`));
  return button;
}

// --- Storages and mounts --------------------------------------------------------------

export function showStorages(box, status) {
  const rows = status.storages.map((storage) => [
    storage.name || "all jobs share one storage",
    storage.bandwidth === null ? "not known yet" : rate(storage.bandwidth),
    storage.learns ? "learnt" : "given",
    String(storage.active_jobs),
    storage.doing,
  ]);
  const heads = ["storage", "bandwidth", "", "active jobs", "last"];
  const parts = rows.length ? [table([heads, ...rows], "Load of the storages")] : [];
  for (const fault of status.faults) parts.push(paragraph(`Fault: ${fault}`, "bad"));
  for (const each of status.throttled) {
    parts.push(paragraph(
      `User ${each.user} on ${each.node}: ${each.what} (${each.times} times).`, "bad"));
  }
  box.replaceChildren(...parts);
}

export function showMounts(box, mounts) {
  box.replaceChildren(...mounts.flatMap(mountParts));
}

function mountParts(mount) {
  const total = mount.limits.total;
  const head = `${mount.point}: ${total === null ? "no limit" : rate(total)}, ` +
    `${volume(mount.read.bytes + mount.write.bytes)} moved, ` +
    `${counted(mount.waiting, "request")} waiting`;
  if (!mount.order) return [paragraph(head)];
  const rows = mount.order.applications.map((each) => [
    each.name,
    rate(each.throughput), rate(each.bytes_per_s),
    duration(each.latency), each.p95_s === null ? "-" : duration(each.p95_s),
    `${each.kept} of ${each.windows}`,
  ]);
  const heads = ["application", "promised", "got", "latency", "95 % within", "kept"];
  const parts = [paragraph(head), table([heads, ...rows], "Promises")];
  if (mount.order.unmet) parts.push(paragraph(mount.order.unmet, "bad"));
  return parts;
}
