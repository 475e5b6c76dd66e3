// SPDX-License-Identifier: MIT
// Asks the server of the page.

export async function getJson(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", ...options });
  if (answer.status === 401) location.assign("login");
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.error ?? answer.statusText);
  return document;
}
