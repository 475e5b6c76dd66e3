// SPDX-License-Identifier: MIT
// The page of a simulation: `penstock view` writes it with its data.

import { paragraph, plainButton, table } from "./dom.js";
import { counted, duration, part, rate } from "./format.js";
import { drawFrontier } from "./frontier.js";
import { Picture, TimeWindow } from "./picture.js";
import { Samples } from "./samples.js";
import { Palette } from "./stack.js";
import { drawYields, yieldTable } from "./yields.js";

const NONE = "";

const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);
data.policies.forEach((each, at) => { each.number = at + 1; });
const names = data.policies.map((each) => each.policy);
const [first, second, shown] = ["first", "second", "instance"].map(get);
// The time that both pictures show.
let sharedTime = null;

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

// --- The two policies and the instance that are shown ---------------------------------

function chosen() {
  return [first.value, second.value].filter((name) => name !== NONE);
}

function choose(name) {
  if (name !== first.value) second.value = first.value;
  first.value = name;
  show();
}

function show() {
  if (second.value === first.value) second.value = NONE;
  showFrontier();
  showTimelines();
  showYields();
}

// --- Frontier -------------------------------------------------------------------------

function showFrontier() {
  drawFrontier(get("frontier"), {
    policies: data.policies, bound: data.bound, chosen: chosen(), choose });
}

// The number of a policy in the table, and a button with its name.
function numbered({ number, policy }) {
  const cell = document.createElement("span");
  cell.className = "numbered";
  const count = document.createElement("span");
  count.className = "number";
  count.textContent = number;
  cell.append(count, plainButton(policy, () => choose(policy)));
  return cell;
}

function policyTable() {
  const many = data.instances > 1;
  const heads = ["policy", "MinYield", ...(many ? ["10-90 %"] : []), "Efficiency",
    "Utilization", "Stretch", "on the line"];
  const rows = data.policies.map((each) => [
    numbered(each), each.min_yield.toFixed(4),
    ...(many ? [`${each.low.toFixed(3)}-${each.high.toFixed(3)}`] : []),
    each.efficiency.toFixed(4), each.utilization.toFixed(4),
    each.stretch === null ? "infinite" : each.stretch.toFixed(4),
    each.frontier ? "yes" : "",
  ]);
  return table([heads, ...rows],
    "Means over the instances, the highest MinYield first; press a name to show it");
}

// --- Timelines ------------------------------------------------------------------------

const drawable = data.shown.find((each) => Object.keys(each.pictures).length);
const palette = new Palette();
const pictures = drawable ? [0, 1].map((at) => makePicture(at)) : [];

// One of two pictures, which move together, with the same colours in the same order.
function makePicture(at) {
  const [{ times, end, series, bandwidth }] = Object.values(drawable.pictures);
  const section = get(`timeline${at}`);
  const [title, box, words, legend, details] = section.children;
  const picture = new Picture(new Samples(), timeWindow(end - times[0]), {
    box, words, legend, data: details, keys: series.map((each) => each.job), palette,
    // Of a workload without units, e.g. a synthetic one, all bandwidth is 1.
    amount: bandwidth[0] === 1 ? part : rate,
    time: (seconds) => duration(seconds - times[0]),
  });
  return Object.assign(picture, { section, title });
}

function timeWindow(wholeS) {
  const buttons = [...document.querySelectorAll("[data-part]")];
  sharedTime ??= new TimeWindow(
    buttons.map((button) => [button, Number(button.dataset.part) * wholeS]), get("back"));
  return sharedTime;
}

function showTimelines() {
  const instance = data.shown[shown.value];
  const known = chosen().filter((name) => instance.pictures[name]);
  const missing = chosen().filter((name) => !instance.pictures[name]);
  get("timeline-note").textContent = missing.length ?
    `No timeline of ${missing.join(" and ")}: ${instance.note}` : "";
  get("timeline-tools").hidden = !known.length;
  pictures.forEach((picture, at) => {
    const name = known[at];
    picture.section.hidden = name === undefined;
    if (name === undefined) return;
    picture.title.textContent = name;
    picture.samples.replace(instance.pictures[name]);
    picture.moved();
  });
}

// --- Yields ---------------------------------------------------------------------------

function showYields() {
  const instance = data.shown[shown.value];
  const facts = { ...instance, names: chosen() };
  drawYields(get("yields"), facts);
  get("yield-table").replaceChildren(yieldTable(facts));
}

// --- Start ----------------------------------------------------------------------------

const bound = data.bound === null ? "" :
  ` No scheduler exceeds a MinYield of ${data.bound.toFixed(4)}.`;
get("facts").textContent =
  `${names.length === 1 ? "1 policy" : `${names.length} policies`} on ` +
  `${counted(data.instances, "instance")}, I/O pressure ${data.pressure.toFixed(3)}.${bound}`;
get("made").textContent = data.made;
get("policies").replaceChildren(policyTable());
get("policies").classList.toggle("many", data.instances > 1);
fill(first, names.map((name) => [name, name]));
fill(second, [[NONE, "none"], ...names.map((name) => [name, name])]);
fill(shown, data.shown.map((each, at) => [at, each.name]));
get("more").replaceChildren(...(data.instances > data.shown.length ? [paragraph(
  `${data.instances - data.shown.length} more instances are in the means only.`,
  "muted")] : []));
first.value = names.includes(data.recommended) ? data.recommended : names[0];
second.value = names.includes("fair-share") ? "fair-share" : names.at(-1);
for (const select of [first, second, shown]) select.addEventListener("change", show);
new ResizeObserver(() => { showFrontier(); showYields(); }).observe(get("frontier"));
show();
