// SPDX-License-Identifier: MIT
// Makes elements of the page. Texts are never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Make an element of a drawing.
export function drawn(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

export function paragraph(text, name = "") {
  const made = document.createElement("p");
  made.textContent = text;
  made.className = name;
  return made;
}

// A button that looks like a link.
export function plainButton(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = text;
  button.addEventListener("click", act);
  return button;
}

// A table of texts or elements; the first row is the head.
export function table(rows, caption) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  rows.forEach((cells, at) => {
    const row = (at ? made.tBodies[0] ?? made.createTBody() : made.createTHead())
      .insertRow();
    cells.forEach((cell, column) => {
      const isHead = !at || !column;
      const place = document.createElement(isHead ? "th" : "td");
      if (isHead) place.scope = at ? "row" : "col";
      place.append(cell);
      row.append(place);
    });
  });
  const box = document.createElement("div");
  box.className = "scroll";
  box.append(made);
  return box;
}
