// A value with its certain bound and its interval as a bar: marks in a row of a table, on the scale
// that its rows share. The same numbers are beside it as text, so it is hidden from screen readers.

import { h } from "/assets/elements.js";

/** The scale that holds all these numbers, with a little room; null if there are none. */
export function scaleOf(numbers, holdsZero = false) {
  const finite = numbers.filter(Number.isFinite);
  if (holdsZero) finite.push(0);
  if (finite.length === 0) return null;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  return { low: low - room, high: high + room, holdsZero };
}

/** The bar of {value, low, high, lower, upper, margin}; undefined ones are not drawn. margin: the
 * effect at which a guardrail is broken. */
export function intervalBar(scale, { value, low, high, lower, upper, margin }) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  if (scale === null) return bar;
  if (scale.holdsZero) mark(bar, scale, "bar-zero", 0, 0);
  mark(bar, scale, "bar-interval", lower, upper);
  if (low < high) mark(bar, scale, "bar-bound", low, high);
  if (margin !== undefined) mark(bar, scale, "bar-margin", margin, margin);
  mark(bar, scale, "bar-value", value, value);
  return bar;
}

function mark(bar, scale, kind, from, to) {
  if (Number.isNaN(from) || Number.isNaN(to)) return;
  const share = (x) =>
    100 * Math.min(Math.max((x - scale.low) / (scale.high - scale.low), 0), 1);
  const one = h("span", { class: kind });
  one.style.left = `${share(from)}%`;
  one.style.width = `${share(to) - share(from)}%`;
  bar.append(one);
}
