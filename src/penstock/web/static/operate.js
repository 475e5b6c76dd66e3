// SPDX-License-Identifier: MIT
// What operators may change: policy, bandwidth, limits and mode. Every change is asked
// for once more, is logged by the server with its user, and can be undone.

import { comparedPictures } from "./compared.js";
import { paragraph, plainButton, table } from "./dom.js";
import { counted, instant, nameOf, rate } from "./format.js";
import { getJson } from "./server.js";

const MOST_ROWS = 20;
const MOST_OPTIONS = 200;
const MODES = { control: "on", "dry-run": "dry run", off: "off" };

// A rate as people write it; the server writes those that it restores in bytes.
function plainRate(text) {
  const match = /^([0-9.e+]+) B\/s$/.exec(text);
  return match ? rate(Number(match[1])) : text;
}

export function actWords(act) {
  if (act.act === "policy") return `policy ${act.policy}`;
  if (act.act === "bandwidth") return `shared bandwidth ${plainRate(act.bandwidth)}`;
  if (act.act === "limit") return `limit of ${act.job}: ${plainRate(act.limit)}`;
  if (act.act === "start") {
    return "the daemon began anew: policy, bandwidth and control as in its settings";
  }
  return `control ${MODES[act.mode] ?? act.mode}`;
}

// The shared bandwidth of a status, as an operator writes it.
function bandwidthWords(status) {
  const learns = status.bandwidth === null || status.storages.some((one) => one.learns);
  return learns ? "learn" : rate(status.bandwidth);
}

// The limits that a job has, by its name or key.
function limitWords(status, job) {
  const limits = status.jobs
    .filter((line) => [line.job, `${line.user}:${line.job}`].includes(job))
    .map((line) => (line.limit === null ? "none" : rate(line.limit)));
  return limits.join(", ") || "no such job";
}

// What an act changes: the value of now, and the new one.
export function changeWords(act, status) {
  const arrow = (before, after) => `${before} \u2192 ${after}`;
  if (act.act === "policy") return `Policy: ${arrow(status.policy, act.policy)}`;
  if (act.act === "bandwidth") {
    const before = bandwidthWords(status);
    return `Shared bandwidth: ${arrow(before, plainRate(act.bandwidth))}`;
  }
  if (act.act === "limit") {
    const before = limitWords(status, act.job);
    return `Limit of ${act.job}: ${arrow(before, plainRate(act.limit))}`;
  }
  return `Control: ${arrow(MODES[status.mode], MODES[act.mode] ?? act.mode)}`;
}

function leftOut(keys) {
  if (!keys.length) return "";
  return " Left out, because they have moved nothing in this time: " +
    `${keys.slice(0, MOST_ROWS).map(nameOf).join(", ")}` +
    `${keys.length > MOST_ROWS ? " ..." : ""}.`;
}

function whatIfParts(answer, past, palette) {
  const lowest = (which) => Math.min(...answer.jobs.map((job) => job[which]));
  const rows = answer.jobs.slice(0, MOST_ROWS).map((job) => [
    nameOf(job.job), job.actual.toFixed(3), job.present.toFixed(3),
    job.policy.toFixed(3),
  ]);
  return [
    paragraph(`Simulated on ${counted(answer.jobs.length, "job")} of the last hour: the ` +
      `lowest yield is ${lowest("present").toFixed(3)} under ${answer.present}, ` +
      `${lowest("policy").toFixed(3)} under ${answer.policy}. ` +
      `They really had ${lowest("actual").toFixed(3)}.${leftOut(answer.left_out)}`),
    ...comparedPictures([
      ["What was", past], [`Simulated under ${answer.policy}`, answer.picture],
    ], palette),
    table([["job", "real yield", `yield, ${answer.present}`,
      `yield, ${answer.policy}`], ...rows],
      `The worst-off of ${counted(answer.jobs.length, "job")}`),
  ];
}

// Fill a list of proposals, if it has changed.
function fillOptions(id, texts) {
  const list = document.getElementById(id);
  const wanted = [...new Set(texts)].slice(0, MOST_OPTIONS);
  if (wanted.join("\n") === [...list.options].map((each) => each.value).join("\n")) return;
  list.replaceChildren(...wanted.map((text) => new Option("", text)));
}

export class Operations {
  constructor(parts) {
    // section, answer, list; confirm (a dialog), words, whatIf (a button), simulated;
    // palette
    Object.assign(this, parts);
    this.status = null;
    // Names of policies; empty: not known.
    this.policies = [];
    // What the server wants to hear from its own pages.
    this.pageText = "";
    for (const form of this.section.querySelectorAll("form")) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const fields = Object.fromEntries(new FormData(form));
        this.askChecked({ act: form.dataset.act, ...fields });
      });
    }
  }

  // Show the values of now in fields that the reader has not changed.
  update(status) {
    this.status = status;
    const now = { policy: status.policy, bandwidth: bandwidthWords(status),
      mode: status.mode };
    for (const [name, value] of Object.entries(now)) {
      const field = this.section.querySelector(`[name="${name}"]`);
      const shown = field.dataset.shown ?? field.defaultValue ?? field.value;
      const isOurs = field.value === shown;
      if (field !== document.activeElement && isOurs && field.value !== value) {
        field.value = value;
      }
      if (field.value === value) field.dataset.shown = value;
    }
    fillOptions("known-jobs", status.jobs.map((line) => line.job));
  }

  start(reader) {
    this.pageText = reader.page;
    this.section.hidden = !reader.operator;
    this.policies = reader.policies ?? [];
    fillOptions("known-policies", this.policies);
    if (reader.operator) this.showActs();
  }

  // Ask for a change of a form, unless its policy does not exist.
  askChecked(act) {
    // Parameters follow a colon; a policy of the site has a dot in its name.
    const [name] = (act.policy ?? "").split(":");
    const isUnknown = act.act === "policy" && this.policies.length &&
      !name.includes(".") && !this.policies.includes(name);
    this.answer.className = isUnknown ? "bad" : "";
    this.answer.textContent = isUnknown ?
      `There is no policy '${name}'. There are: ${this.policies.join(", ")}.` : "";
    if (!isUnknown) this.ask(act);
  }

  // Ask whether a change is meant; then carry it out.
  ask(act) {
    const words = this.status ? changeWords(act, this.status) : actWords(act);
    this.words.textContent = `${words}. It takes effect at ` +
      "once, for all jobs that it concerns, and can be undone here.";
    this.confirm.returnValue = "";
    this.whatIf.hidden = act.act !== "policy";
    this.whatIf.onclick = () => this.simulate(act.policy);
    this.simulated.replaceChildren();
    this.confirm.addEventListener("close", () => {
      if (this.confirm.returnValue === "yes") this.send(act);
    }, { once: true });
    this.confirm.showModal();
  }

  // Show the last hour as it was, and as it would have been under a policy.
  async simulate(policy) {
    this.whatIf.disabled = true;
    this.simulated.replaceChildren(
      paragraph("Simulating; the first time takes longer ..."));
    try {
      const name = encodeURIComponent(policy);
      const answer = await getJson(`api/what-if?policy=${name}`);
      const { times } = answer.picture;
      const [from, to] = [times[0], 2 * times.at(-1) - times.at(-2)];
      const past = await getJson(`api/picture?from=${from}&to=${to}`);
      this.simulated.replaceChildren(...whatIfParts(answer, past, this.palette));
    } catch (error) {
      this.simulated.replaceChildren(paragraph(error.message, "bad"));
    }
    this.whatIf.disabled = false;
  }

  async send(act) {
    this.answer.textContent = `Asking the daemon: ${actWords(act)} ...`;
    try {
      const done = await getJson("api/acts", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Penstock-Page": this.pageText },
        body: JSON.stringify(act),
      });
      this.answer.textContent = done.answer;
      this.answer.className = "";
    } catch (error) {
      this.answer.textContent = error.message;
      this.answer.className = "bad";
    }
    await this.showActs();
  }

  async showActs() {
    let acts;
    try {
      ({ acts } = await getJson("api/acts"));
    } catch (error) {
      this.list.replaceChildren(paragraph(error.message, "bad"));
      return;
    }
    const rows = acts.map((entry) => [
      instant(entry.time), entry.reader, actWords(entry.act), this.undoButton(entry),
    ]);
    const heads = ["when", "who", "what", "undo"];
    this.list.replaceChildren(
      ...(rows.length ? [table([heads, ...rows], "Changes on this page, the latest first")] : []));
  }

  undoButton(entry) {
    if (!entry.undo) return "";
    return plainButton(`back to ${actWords(entry.undo)}`, () => this.ask(entry.undo));
  }
}
