// SPDX-License-Identifier: MIT
// One job in a dialog, past jobs, storages and mounts.

import { drawn, paragraph, plainButton, table } from "./dom.js";
import { BOTTOM, LEFT, TOP, drawAxes } from "./axes.js";
import { axisTime, counted, duration, instant, nameOf, part, plainSeconds, rate,
  userName, volume } from "./format.js";
import { getJson } from "./server.js";

const MOST_OPERATIONS = 20;
// How often an open dialog asks for its job (s).
const FOLLOW_S = 2;
// Size of the drawing of a job (pixels).
const [WIDTH, HEIGHT] = [700, 110];

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
    // When the daemon was asked last (s); null: it is being asked.
    this.askedS = null;
    // The bandwidth whose units all amounts have.
    this.shared = undefined;
  }

  // Follow the job while the dialog is open.
  update(status) {
    this.shared = status.bandwidth ?? undefined;
    this.mode = status.mode;
    this.users = status.users;
    const isDue = this.askedS !== null && status.time - this.askedS >= FOLLOW_S;
    if (this.dialog.open && isDue) this.refresh(status.time);
  }

  // `joined`: when a past run began (s since 1970); 0: the job that runs, or the last run.
  async open(key, joined = 0) {
    Object.assign(this, { key, joined });
    this.title.textContent = nameOf(key);
    this.body.replaceChildren(paragraph("Asking the daemon ..."));
    if (!this.dialog.open) this.dialog.showModal();
    await this.refresh(Date.now() / 1000);
  }

  async refresh(nowS) {
    const { key, joined } = this;
    this.askedS = null;
    let parts;
    try {
      const which = joined ? `?joined=${joined}` : "";
      const answer = await getJson(`api/jobs/${encodeURIComponent(key)}${which}`);
      parts = jobParts(answer, this);
    } catch (error) {
      parts = [paragraph(error.message, "bad")];
    }
    // The reader may have opened another one meanwhile.
    const isSame = this.key === key && this.joined === joined;
    if (isSame) this.body.replaceChildren(...parts);
    this.askedS = nowS;
  }
}

function jobParts(answer, { shared, mode, users }) {
  const parts = [paragraph(answer.explanation)];
  if (answer.job) parts.push(facts(nowOf(answer.job, { shared, mode, users })));
  if (answer.report) parts.push(...reportParts(answer.report, shared, users));
  else parts.push(paragraph(answer.report_note, "muted"));
  return parts;
}

function nowOf(line, { shared, mode, users }) {
  const pairs = [
    ["moved",
      `${volume(line.moved, shared)} in ${counted(line.operations, "operation")}`],
    mode === "dry-run" ? ["would wait", plainSeconds(line.would_hold_up)] :
      ["held up", plainSeconds(line.held_up)],
    ["lost", `${plainSeconds(line.lost)} of ${plainSeconds(line.age)}`],
    ["yield", line.progress_yield.toFixed(3)],
    ["nodes", line.nodes.join(", ")],
    ["user", userName(line.user, users)],
  ];
  if (line.active) {
    pairs.unshift(["now", `draws ${rate(line.achieved, shared)}, ` +
      `${volume(line.remaining, shared)} of ${volume(line.volume, shared)} remain`]);
  }
  if (line.limit !== null) pairs.push(["limit", rate(line.limit, shared)]);
  if (line.uncontrolled) {
    pairs.push(["without control", volume(line.uncontrolled, shared)]);
  }
  return pairs;
}

// The name of a job that held up another; with its user if jobs of several users have it.
function delayName(delay, report, users) {
  if (!delay.job) return "jobs of other users";
  const isShared = [report.job, ...report.delays].some(
    (each) => each.job === delay.job && each.user !== delay.user);
  return isShared ? `${users?.[delay.user] ?? delay.user}:${delay.job}` : delay.job;
}

function reportParts(report, shared, users) {
  const heading = document.createElement("h3");
  heading.textContent = "What it did";
  const parts = [heading, drawing(report.operations, shared)];
  if (report.job.policies.length > 1) parts.push(policyTable(report.job.policies));
  if (report.delays.length) {
    parts.push(table([
      ["waited for", "lost", "moved meanwhile"],
      ...report.delays.map((delay) => [
        delayName(delay, report, users), duration(delay.lost),
        volume(delay.moved, shared),
      ]),
    ], "Who held it up"));
  }
  const last = report.operations.slice(-MOST_OPERATIONS).reverse();
  parts.push(table([
    ["begin", "took", "moved", "rate", "lost", "policy"],
    ...last.map((each) => [
      instant(each.begin), duration(each.end - each.begin), volume(each.moved, shared),
      rate(speed(each), shared), duration(each.lost), each.policy,
    ]),
  ], `The last ${last.length} of ${counted(report.operation_count, "operation")}`));
  return parts;
}

function policyTable(spans) {
  return table([
    ["policy", "from", "for"],
    ...spans.map(({ policy, begin, end }) => [
      policy, instant(begin), end === null ? "up to now" : duration(end - begin)]),
  ], "The policies that it saw");
}

function speed(operation) {
  const length = operation.end - operation.begin;
  return length > 0 ? operation.moved / length : 0;
}

// Operations over time: as wide as they took, as high as they were fast.
function drawing(operations, shared) {
  const made = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  if (!operations.length) {
    made.setAttribute("aria-label", "no operation has ended");
    return made;
  }
  const [from, to] = [operations[0].begin, operations.at(-1).end];
  const fastest = Math.max(...operations.map(speed), 1);
  made.setAttribute("aria-label", `${counted(operations.length, "operation")} from ` +
    `${instant(from)} to ${instant(to)}, at most ${rate(fastest)}`);
  const spanS = Math.max(to - from, 1e-3);
  const scale = {
    most: fastest, from, spanS,
    x: (time) => LEFT + ((time - from) / spanS) * (WIDTH - LEFT),
    y: (value) => HEIGHT - BOTTOM - (value / fastest) * (HEIGHT - BOTTOM - TOP),
  };
  drawAxes(made, scale, { width: WIDTH, height: HEIGHT, amount: rate, bandwidth: shared,
    time: axisTime });
  for (const each of operations) {
    const [x, y] = [scale.x(each.begin), scale.y(speed(each))];
    drawn("rect", { class: "operation", x, y, height: scale.y(0) - y,
      width: Math.max(scale.x(each.end) - x, 0.7) }, made);
  }
  const figure = document.createElement("figure");
  figure.className = "picture still";
  figure.append(made);
  return figure;
}

// --- Past jobs ------------------------------------------------------------------------

// The policies that a job saw, each once, the first one first.
function policyNames(job) {
  const names = new Set(job.policies.map(({ policy }) => policy));
  return [...names].join(", ") || job.policy;
}

// `shared`: the bandwidth whose units all amounts have.
export async function showPast(box, open, shared) {
  let answer;
  try {
    answer = await getJson("api/history");
  } catch (error) {
    box.replaceChildren(paragraph(error.message, "bad"));
    return;
  }
  // Jobs that run are above, with what their operations under way have lost.
  const ended = answer.jobs.reverse().filter((job) => job.left !== null);
  const rows = ended.map((job) => [
    plainButton(job.job, () => open(`${job.user}:${job.job}`, job.joined)),
    instant(job.joined), duration(job.left - job.joined),
    volume(job.moved, shared), duration(job.lost), job.progress_yield.toFixed(3), policyNames(job),
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
    String(storage.active_jobs), storage.doing || "-", load,
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
