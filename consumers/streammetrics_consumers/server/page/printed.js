// Names and numbers as a person reads them: the rules of the command line's tables, so that both
// print the same text. The exact bits stand beside, in the `value` of a `<data>` element.

const PLACES = 100; // decimals by which a tie is told from what only looks like one

/** A name without control characters, line ends or direction marks, cut to `limit`. */
export function name(text, limit = 40) {
  if (text === null || text === undefined) return "null";
  const letters = [...String(text)];
  const shown = letters.slice(0, limit + 1).map(printable).join("");
  if (letters.length <= limit && [...shown].length <= 2 * limit) return shown || "''";
  return [...shown].slice(0, limit - 3).join("") + "...";
}

function printable(letter) {
  if (letter === " " || !/[\p{C}\p{Z}]/u.test(letter)) return letter;
  const code = letter.codePointAt(0);
  const escape = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  if (escape) return escape;
  const hex = code.toString(16);
  if (code < 0x100) return "\\x" + hex.padStart(2, "0");
  return code < 0x10000 ? "\\u" + hex.padStart(4, "0") : "\\U" + hex.padStart(8, "0");
}

/** A number of an answer: null is undefined (nan), infinities come as texts. */
export function value(found) {
  if (typeof found === "number") return found;
  if (found === "inf") return Infinity;
  return found === "-inf" ? -Infinity : NaN;
}

/** A whole number with its thousands apart. */
export const count = (n) => thousands(String(n));

/** How many decimals show four digits of the smallest of these values, and never over 10. */
export function decimalsFor(values) {
  const sizes = values.map(Math.abs).filter((size) => Number.isFinite(size) && size !== 0);
  let least = 0;
  if (sizes.length === 0 || Math.max(...sizes) <= 1) least = 4;
  else if (sizes.every(Number.isInteger)) return 0;
  const smallest = sizes.length ? Math.min(...sizes) : 1;
  return Math.min(Math.max(3 - Math.floor(Math.log10(smallest)), least), 10);
}

/** A value, rounded to the nearest. */
export const number = (x, decimals, signed = false) => rounded(x, decimals, "even", signed);

/** A p-value, which is never 0: what a number holds as 0 is only too small for it. */
export const chance = (x) => (x < 0.0001 ? "<0.0001" : number(x, 4));

/** An e-value, of which more than four digits say no more. */
export function evidence(x) {
  if (x > 1e6) return "above 1,000,000";
  return x < 0.0001 ? "<0.0001" : number(x, decimalsFor([x]));
}

/** Certain bounds, rounded outward: what is shown still contains the exact value. */
export const bounds = (low, high, decimals) =>
  `[${rounded(low, decimals, "floor")}, ${rounded(high, decimals, "ceiling")}]`;

/** The ends of a statistical interval. */
export const between = (lower, upper, decimals, signed = false) =>
  `${number(lower, decimals, signed)} to ${number(upper, decimals, signed)}`;

function rounded(x, decimals, mode, signed = false) {
  if (Number.isNaN(x)) return "undefined";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (Math.abs(x) >= 1e15) return x.toExponential(6);
  const negative = x < 0 || Object.is(x, -0);
  const [whole, fraction] = Math.abs(x).toFixed(PLACES).split(".");
  // What is so small that these places do not show it is still not nothing.
  const rest = fraction.slice(decimals) + (x !== 0 && Math.abs(x) < 1e-90 ? "1" : "");
  let kept = BigInt(whole + fraction.slice(0, decimals));
  if (isUp(mode, negative, rest, kept)) kept += 1n;
  const digits = kept.toString().padStart(decimals + 1, "0");
  const at = digits.length - decimals;
  const text = thousands(digits.slice(0, at)) + (decimals ? "." + digits.slice(at) : "");
  if (negative && (signed || kept !== 0n)) return "-" + text;
  return signed ? "+" + text : text;
}

function isUp(mode, negative, rest, kept) {
  if (mode !== "even") return (mode === "floor") === negative && /[1-9]/.test(rest);
  if (rest[0] !== "5" || /[1-9]/.test(rest.slice(1))) return rest[0] >= "5";
  return kept % 2n === 1n;
}

const thousands = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

/** A time in UTC, to the second, without its date where that is today's. */
export function time(ms) {
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** A window by its ends, as short as they allow. */
export function span(window) {
  if (window.start_ms === null) return "Since the start";
  const [start, end] = [window.start_ms, window.end_ms].map((ms) => new Date(ms).toISOString());
  const days = start.endsWith("T00:00:00.000Z") && end.endsWith("T00:00:00.000Z");
  if (days && window.end_ms - window.start_ms === 86_400_000) return start.slice(0, 10);
  if (days) return `${start.slice(0, 10)} to ${end.slice(0, 10)}`;
  const until = end.slice(0, 10) === start.slice(0, 10) ? end.slice(11, 16) : minutes(end);
  return `${minutes(start)} to ${until}`;
}

const minutes = (iso) => `${iso.slice(0, 10)} ${iso.slice(11, 16)}`;

/** A duration in the largest unit that keeps it above one. */
export function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}
