// How tables are sorted, and the mark that says so in a heading.

import { h } from "/assets/elements.js";

/** The order of two names or numbers; undefined numbers come last. sign: -1 for the greatest first. */
export function ordered(a, b, sign) {
  if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b);
}

/** What a heading says of its order to screen readers. */
export const ariaSort = (isSorted, isDown) => (isSorted ? (isDown ? "descending" : "ascending") : null);

/** The mark beside the title of a column that can be sorted. */
export const arrow = (isSorted, isDown) =>
  h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (isDown ? " ▼" : " ▲") : " ↕");
