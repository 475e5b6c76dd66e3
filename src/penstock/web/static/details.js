// SPDX-License-Identifier: MIT
// One job in a dialog, past jobs, storages and mounts.

import { drawn, paragraph, plainButton, table } from "./dom.js";
import { counted, duration, instant, nameOf, part, rate, volume } from "./format.js";
import { getJson } from "./server.js";

const MOST_OPERATIONS = 20;

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
  const made = drawn("svg", { viewBox: "0 0 600 80", role: "img" });
  if (!operations.length) {
    made.setAttribute("aria-label", "no operation has ended");
    return made;
  }
  const [from, to] = [operations[0].begin, operations.at(-1).end];
  const fastest = Math.max(...operations.map(speed), 1);
  made.setAttribute("aria-label", `${counted(operations.length, "operation")} from ` +
    `${instant(from)} to ${instant(to)}, at most ${rate(fastest)}`);
  const scale = 600 / Math.max(to - from, 1e-3);
  for (const each of operations) {
    const height = (78 * speed(each)) / fastest;
    drawn("rect", { class: "operation", x: (each.begin - from) * scale, y: 80 - height,
      width: Math.max((each.end - each.begin) * scale, 0.7), height }, made);
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
    plainButton(job.job, () => open(`${job.user}:${job.job}`)), instant(job.joined),
    duration((job.left ?? Date.now() / 1000) - job.joined),
    volume(job.moved), duration(job.lost), job.progress_yield.toFixed(3), job.policy,
  ]);
  const heads = ["job", "from", "took", "moved", "lost", "yield", "policy"];
  box.replaceChildren(rows.length ? table([heads, ...rows], "The latest first") :
    paragraph("No job has ended yet."));
}

// --- Storages and mounts --------------------------------------------------------------

export function showStorages(box, status) {
  const rows = status.storages.map((storage) => storageRow(storage, status.jobs));
  const heads = ["storage", "bandwidth", "known by", "active jobs", "did last", "load"];
  const parts = rows.length ? [table([heads, ...rows], "Load of the storages")] : [];
  for (const fault of status.faults) parts.push(paragraph(`Fault: ${fault}`, "bad"));
  for (const each of status.throttled) {
    parts.push(paragraph(
      `User ${each.user} on ${each.node}: ${each.what} (${each.times} times).`, "bad"));
  }
  box.replaceChildren(...parts);
}

function storageRow(storage, jobs) {
  const drawnRate = jobs.filter((line) => line.storage === storage.name)
    .reduce((sum, line) => sum + line.achieved, 0);
  const { bandwidth } = storage;
  const shown = bandwidth === null ? rate(drawnRate) :
    `${rate(drawnRate, bandwidth)}, ${part(drawnRate / bandwidth)}`;
  const load = document.createElement("span");
  if (bandwidth !== null) {
    const meter = document.createElement("meter");
    meter.value = Math.min(drawnRate / bandwidth, 1);
    // The text says the same.
    meter.setAttribute("aria-hidden", "true");
    load.append(meter, " ");
  }
  load.append(shown);
  return [
    storage.name || "one for all jobs",
    bandwidth === null ? "not known yet" : rate(bandwidth),
    storage.learns ? "learning" : "setting",
    String(storage.active_jobs), storage.doing, load,
  ];
}

// The nodes with an agent, and the jobs on each.
export function showNodes(box, status) {
  const jobs = new Map(status.agents.map((node) => [node, [0, 0]]));
  for (const line of status.jobs) {
    for (const node of line.nodes) {
      const [all, active] = jobs.get(node) ?? [0, 0];
      jobs.set(node, [all + 1, active + (line.active ? 1 : 0)]);
    }
  }
  const rows = [...jobs].map(([node, [all, active]]) => [
    node, status.agents.includes(node) ? "connected" : "lost", String(all),
    String(active),
  ]);
  box.replaceChildren(rows.length ?
    table([["node", "agent", "jobs", "in I/O"], ...rows], "Nodes and their agents") :
    paragraph("No agent is connected."));
}

export function showMounts(box, mounts) {
  box.replaceChildren(...mounts.flatMap(mountParts));
}

function mountParts(mount) {
  const total = mount.limits.total;
  const head = `${mount.point}: ${total === null ? "no limit" : rate(total)}, ` +
    `${volume(mount.read.bytes + mount.write.bytes, total ?? undefined)} moved, ` +
    `${counted(mount.waiting, "request")} waiting`;
  if (!mount.order) return [paragraph(`${head}. It has no promises.`)];
  const rows = mount.order.applications.map((each) => [
    each.name,
    rate(each.throughput, total ?? undefined), rate(each.bytes_per_s, total ?? undefined),
    duration(each.latency), each.p95_s === null ? "-" : duration(each.p95_s),
    String(each.kept), missed(each.windows - each.kept),
  ]);
  const heads = ["application", "promised", "got", "latency", "95 % within", "kept",
    "missed"];
  const parts = [paragraph(head),
    table([heads, ...rows], "Promises, by windows in which there were answers")];
  if (mount.order.unmet) parts.push(paragraph(mount.order.unmet, "bad"));
  return parts;
}

function missed(windows) {
  const made = document.createElement("span");
  made.textContent = windows;
  made.className = windows ? "bad" : "";
  return made;
}
