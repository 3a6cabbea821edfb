// A value with its certain bound and its interval as a bar: marks in a row of a table, on the scale
// that its rows share. The same numbers are beside it as text, so it is hidden from screen readers.

import { h } from "/assets/elements.js";

/** The scale that holds all these numbers and the marks of an axis, with a little room; null if there
 * are none. */
export function scaleOf(numbers, axis, holdsZero = false) {
  const finite = [...numbers, ...axis.map(([at]) => at)].filter(Number.isFinite);
  if (holdsZero) finite.push(0);
  if (finite.length === 0) return null;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  return { low: low - room, high: high + room, holdsZero, axis };
}

const LETTER = 7; // of a label, in percent of the narrowest drawing

/** The labelled marks of a scale, except labels without room. `isLast`: of the rows that share it,
 * below which a table has them; where each row is a card, all have them. */
export function axisOf(scale, isLast) {
  const line = h("span", { class: isLast ? "axis last" : "axis", "aria-hidden": "true" });
  let end = -Infinity; // of the previous label: none covers another
  for (const [at, text] of scale?.axis ?? []) {
    const [middle, half] = [share(scale, at), (text.length * LETTER) / 2];
    if (middle - half < end) continue;
    end = middle + half;
    const one = h("span", {}, text);
    one.style.left = `${middle}%`;
    line.append(one);
  }
  return line;
}

const share = (scale, x) =>
  100 * Math.min(Math.max((x - scale.low) / (scale.high - scale.low), 0), 1);

/** The bar of {value, low, high, lower, upper, margin}; undefined ones are not drawn. margin: the
 * effect at which a guardrail is broken. */
export function intervalBar(scale, { value, low, high, lower, upper, margin }) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  if (scale === null) return bar;
  for (const [at] of scale.axis) mark(bar, scale, "bar-tick", at, at);
  if (scale.holdsZero) mark(bar, scale, "bar-zero", 0, 0);
  mark(bar, scale, "bar-interval", lower, upper);
  if (low < high) mark(bar, scale, "bar-bound", low, high);
  if (margin !== undefined) mark(bar, scale, "bar-margin", margin, margin);
  mark(bar, scale, "bar-value", value, value);
  return bar;
}

function mark(bar, scale, kind, from, to) {
  if (Number.isNaN(from) || Number.isNaN(to) || !(Number.isFinite(from) || Number.isFinite(to))) return;
  const one = h("span", { class: kind });
  one.style.left = `${share(scale, from)}%`;
  one.style.width = `${share(scale, to) - share(scale, from)}%`;
  bar.append(one);
}
