// SPDX-License-Identifier: MIT
// What operators may change: policy, bandwidth, limits and mode. Every change is asked
// for once more, is logged by the server with its user, and can be undone.

import { getJson, paragraph, table } from "./details.js";
import { instant } from "./format.js";

const MODES = { control: "on", "dry-run": "dry run", off: "off" };

export function actWords(act) {
  if (act.act === "policy") return `policy ${act.policy}`;
  if (act.act === "bandwidth") return `shared bandwidth ${act.bandwidth}`;
  if (act.act === "limit") return `limit of ${act.job}: ${act.limit}`;
  return `control ${MODES[act.mode] ?? act.mode}`;
}

export class Operations {
  constructor({ section, answer, list, confirm, words }) {
    Object.assign(this, { section, answer, list, confirm, words });
    // What the server wants to hear from its own pages.
    this.pageText = "";
    for (const form of section.querySelectorAll("form")) {
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
    this.confirm.addEventListener("close", () => {
      if (this.confirm.returnValue === "yes") this.send(act);
    }, { once: true });
    this.confirm.showModal();
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
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = `back to ${actWords(entry.undo)}`;
    button.addEventListener("click", () => this.ask(entry.undo));
    return button;
  }
}
