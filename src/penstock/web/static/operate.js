// SPDX-License-Identifier: MIT
// What operators may change: policy, bandwidth, limits and mode. Every change is asked
// for once more, is logged by the server with its user, and can be undone.

import { comparedPictures } from "./compared.js";
import { paragraph, plainButton, table } from "./dom.js";
import { counted, instant, nameOf } from "./format.js";
import { getJson } from "./server.js";

const MOST_ROWS = 20;
const MODES = { control: "on", "dry-run": "dry run", off: "off" };

export function actWords(act) {
  if (act.act === "policy") return `policy ${act.policy}`;
  if (act.act === "bandwidth") return `shared bandwidth ${act.bandwidth}`;
  if (act.act === "limit") return `limit of ${act.job}: ${act.limit}`;
  return `control ${MODES[act.mode] ?? act.mode}`;
}

function whatIfParts(answer, past) {
  const lowest = (which) => Math.min(...answer.jobs.map((job) => job[which]));
  const rows = answer.jobs.slice(0, MOST_ROWS).map((job) => [
    nameOf(job.job), job.present.toFixed(3), job.policy.toFixed(3),
  ]);
  return [
    paragraph(`Simulated on ${counted(answer.jobs.length, "job")} of the last hour: the ` +
      `lowest yield is ${lowest("present").toFixed(3)} under ${answer.present}, ` +
      `${lowest("policy").toFixed(3)} under ${answer.policy}.`),
    ...comparedPictures([
      ["What was", past], [`Simulated under ${answer.policy}`, answer.picture],
    ]),
    table([["job", `yield, ${answer.present}`, `yield, ${answer.policy}`], ...rows],
      `The worst-off of ${counted(answer.jobs.length, "job")}`),
  ];
}

export class Operations {
  constructor(parts) {
    // section, answer, list; confirm (a dialog), words, whatIf (a button), simulated
    Object.assign(this, parts);
    // What the server wants to hear from its own pages.
    this.pageText = "";
    for (const form of this.section.querySelectorAll("form")) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const fields = Object.fromEntries(new FormData(form));
        this.ask({ act: form.dataset.act, ...fields });
      });
    }
  }

  start(reader) {
    this.pageText = reader.page;
    this.section.hidden = !reader.operator;
    if (reader.operator) this.showActs();
  }

  // Ask whether a change is meant; then carry it out.
  ask(act) {
    this.words.textContent = `New: ${actWords(act)}. It takes effect at once, for all ` +
      "jobs that it concerns, and can be undone here.";
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
      this.simulated.replaceChildren(...whatIfParts(answer, past));
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
      ...(rows.length ? [table([heads, ...rows], "Changes on this page")] : []));
  }

  undoButton(entry) {
    if (!entry.undo) return "";
    return plainButton(`back to ${actWords(entry.undo)}`, () => this.ask(entry.undo));
  }
}
