// SPDX-License-Identifier: MIT
// The page: takes events of the server and hands them to its parts.

import { JobDialog, showMounts, showNodes, showPast, showStorages } from "./details.js";
import { axisTime, clock, counted, rate } from "./format.js";
import { JobTable } from "./jobs.js";
import { Operations } from "./operate.js";
import { Picture, TimeWindow } from "./picture.js";
import { Samples } from "./samples.js";
import { getJson } from "./server.js";
import { Palette } from "./stack.js";

// Without an event for this long, the page says that it has no news.
const SILENT_S = 4;
// When to connect again if the server refuses.
const AGAIN_MS = 5000;

const get = (id) => document.getElementById(id);
const samples = new Samples();
// A job has the same colour in all pictures.
const palette = new Palette();
const spans = [...document.querySelectorAll("[data-minutes]")].map(
  (button) => [button, 60 * Number(button.dataset.minutes)]);
const shownTime = new TimeWindow(spans, get("live"));
const picture = new Picture(samples, shownTime, {
  box: get("picture"), words: get("picture-words"), legend: get("legend"),
  data: get("picture-data"), palette, time: (seconds) => clock(seconds), axisTime,
  amount: rate,
  loadPast: (from, to) => getJson(`api/picture?from=${from}&to=${to}`),
});
const dialog = new JobDialog({
  dialog: get("job"), title: get("job-title"), body: get("job-body"),
});
const open = (key, joined) => dialog.open(key, joined);
const jobs = new JobTable(
  { table: get("jobs"), filter: get("filter"), note: get("jobs-note") }, open);
const operations = new Operations({
  section: get("operate"), answer: get("act-answer"), list: get("acts"),
  confirm: get("confirm"), words: get("confirm-words"), whatIf: get("what-if"),
  simulated: get("what-if-answer"), palette,
});
get("load-past").addEventListener("click",
  () => showPast(get("past"), open, jobs.status?.bandwidth ?? undefined));

// The instant of the last status by the clock of the server, which is shown, and by that
// of the browser, which may be another one.
let lastNewsS = Date.now() / 1000;
let arrivedMs = performance.now();
let reason = "";
// True if this reader may not look any more.
let hasEnded = false;

function controlWords(status) {
  const modes = { control: "control on", "dry-run": "dry run", off: "control off" };
  const shared = status.bandwidth === null || status.storages.some((one) => one.learns) ?
    "a learnt bandwidth" : rate(status.bandwidth, status.bandwidth);
  return `${modes[status.mode] ?? status.mode}, policy ${status.policy} shares ` +
    `${shared} among ${counted(status.jobs.length, "job")}`;
}

function onStatus(status) {
  lastNewsS = status.time;
  arrivedMs = performance.now();
  [reason, hasEnded] = ["", false];
  samples.addStatus(status, picture.drawnKeys);
  get("control").textContent = controlWords(status);
  jobs.update(status);
  operations.update(status);
  dialog.update(status);
  showStorages(get("storages"), status);
  get("nodes-title").textContent = `Agents on ${counted(status.agents.length, "node")}`;
  if (get("nodes").open) showNodes(get("nodes-body"), status);
  if (!document.hidden && shownTime.end === null) picture.draw();
  sayNews();
}

function onSilence(event) {
  reason = event.reason;
  hasEnded = event.ended;
  if (event.since !== null) lastNewsS = event.since;
  sayNews();
}

// Say since when there is no news. The text is the same every second: a screen reader
// reads it once.
function sayNews() {
  const isSilent = reason || performance.now() - arrivedMs > 1000 * SILENT_S;
  const text = isSilent ? silenceWords() : "";
  const place = get("news");
  if (place.textContent !== text) place.textContent = text;
}

function silenceWords() {
  if (hasEnded) return `${reason}.`;
  return `No news since ${clock(lastNewsS)}. ${reason ? `${reason}. ` : ""}` +
    "The page tries again by itself.";
}

function connect() {
  const source = new EventSource("api/events");
  const on = (name, act) => source.addEventListener(
    name, (event) => act(JSON.parse(event.data)));
  on("status", onStatus);
  on("silence", onSilence);
  on("picture", (missed) => {
    samples.addPicture(missed);
    picture.draw();
  });
  on("mounts", ({ mounts }) => {
    get("mounts-section").hidden = !mounts.length;
    showMounts(get("mounts"), mounts);
  });
  // A server that has started anew wants to hear another text from its pages.
  source.addEventListener("open", () => showReader().catch(() => {}));
  source.addEventListener("error", () => {
    sayNews();
    // The browser itself reconnects unless the server has refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(reconnect, AGAIN_MS);
  });
}

async function reconnect() {
  try {
    // Goes to the login if the login has ended.
    await getJson("api/reader");
  } catch (error) {
    reason = error.message;
    sayNews();
  }
  connect();
}

async function showReader() {
  const reader = await getJson("api/reader");
  get("logout").hidden = !reader.login;
  operations.start(reader);
  get("reader").textContent = reader.operator ? "You see all jobs." :
    `You see the jobs of user ${reader.user}.`;
}

setInterval(sayNews, 1000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) picture.draw();
});
picture.draw();
connect();
