// SPDX-License-Identifier: MIT
// The yields of applications on one instance, under two policies.

import { drawn, table } from "./dom.js";
import { lowestShown } from "./frontier.js";

const [LEFT, RIGHT, ROW, TOP, LINE] = [10, 12, 46, 8, 16];

// Draw one line per policy, with a mark for the yield of each application.
export function drawYields(box, { applications, yields, names, bound }) {
  const width = Math.max(box.clientWidth, 240);
  const height = TOP + ROW * names.length + 18 + (bound === null ? 0 : LINE);
  const all = names.flatMap((name) => yields[name]);
  const low = lowestShown(all);
  const from = low - 0.04 * Math.max(1 - low, 0.01);
  const place = (value) => LEFT + ((Math.max(value, from) - from) / (1 - from)) *
    (width - LEFT - RIGHT);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height,
    "aria-hidden": "true" });
  names.forEach((name, row) => {
    const y = TOP + row * ROW;
    drawn("text", { x: LEFT, y: y + 10 }, svg).textContent =
      `${name}: lowest ${lowestWords(applications, yields[name])}`;
    drawn("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y + 28, y2: y + 28 },
      svg);
    yields[name].forEach((value, at) => {
      const x = place(value);
      const mark = drawn("line", {
        class: `mark chosen${row}`, x1: x, x2: x, y1: y + 18, y2: y + 38 }, svg);
      drawn("title", {}, mark).textContent = `${applications[at]}: ${value.toFixed(3)}`;
    });
  });
  if (bound !== null) {
    const x = place(bound);
    drawn("line", { class: "capacity", x1: x, x2: x, y1: TOP, y2: height - 32 }, svg);
    const anchor = x < width / 2 ? "start" : "end";
    drawn("text", { x, y: height - 20, "text-anchor": anchor }, svg).textContent =
      `bound ${bound.toFixed(3)}`;
  }
  for (const [value, anchor] of [[low, "start"], [1, "end"]]) {
    drawn("text", { x: place(value), y: height - 4, "text-anchor": anchor }, svg)
      .textContent = value === 1 ? "1: never delayed" : value.toFixed(3);
  }
  box.replaceChildren(svg);
}

// The lowest yield and the application that has it.
function lowestWords(applications, values) {
  const lowest = Math.min(...values);
  return `${lowest.toFixed(3)} (${applications[values.indexOf(lowest)]})`;
}

// All applications with their yields, those who are worst off first.
export function yieldTable({ applications, yields, names }) {
  const [first, second] = names;
  const rows = applications.map((application, at) => [application,
    ...names.map((name) => yields[name][at])]);
  rows.sort((one, other) => one[1] - other[1]);
  const heads = ["application", ...names, ...(second ? ["difference"] : [])];
  const lines = rows.map(([application, ...values]) => [
    application, ...values.map((value) => value.toFixed(4)),
    ...(second ? [signed(values[1] - values[0])] : []),
  ]);
  return table([heads, ...lines], `Yields, the lowest under ${first} first`);
}

function signed(difference) {
  const text = Math.abs(difference).toFixed(4);
  return difference < -5e-5 ? `−${text}` : difference > 5e-5 ? `+${text}` : text;
}
