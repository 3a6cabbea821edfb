// Names, times and durations as text. Numbers are not formatted here: the server sends the text of
// each. The exact number is beside it, in the `value` of a `<data>` element.

/** A name with control characters, line ends and direction marks escaped, cut to `limit`. */
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

/** A number of an answer: null is undefined (nan), infinities are strings. */
export function value(found) {
  if (typeof found === "number") return found;
  if (found === "inf") return Infinity;
  return found === "-inf" ? -Infinity : NaN;
}

/** The text of a number that only this page counts. */
export const count = (n) => n.toLocaleString("en");

/** A time in UTC with its date, to the second. */
export function time(ms) {
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

/** The start and end of a window, as short as they allow. */
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

/** A duration in whole seconds, minutes, hours or days. */
export function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} days`;
}
