// The status of the join: the counts of its events, and the delays of outcomes.

import { byId, h } from "/assets/elements.js";
import { count, duration, name } from "/assets/printed.js";

const BARS = "▁▂▃▄▅▆▇█";

let mark = "";

/** Show the `join` of an answer; nothing if events are not joined. */
export function show(join) {
  const section = byId("joined");
  section.hidden = join === null;
  const next = JSON.stringify(join);
  if (join === null || next === mark) return;
  mark = next;
  byId("joined-body").replaceChildren(
    h("p", { id: "joined-counts" }, join.text),
    outcomes(join),
    ...join.warnings.map((why) => h("p", { class: "note", "data-attention": true }, `▲ ${why}`)),
  );
}

function outcomes(join) {
  const titles = ["Outcome", "Attributed", "Unattributed", "After the window", "Delays"];
  const caption = `Outcomes of closed label windows of ${duration(join.label_window_s)}`;
  const table = h("table", { class: "effects" }, h("caption", {}, caption));
  table.append(
    h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...Object.entries(join.outcomes).map((one) => line(...one, join.label_window_s))),
  );
  const label = { class: "scroll", tabindex: 0, role: "region", "aria-label": caption };
  return h("div", label, table);
}

function line(outcome, one, window) {
  const cell = (...parts) => h("td", { class: "number" }, ...parts);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name(outcome)),
    cell(one.text.attributed),
    cell(one.text.unattributed),
    cell(one.text.after_window),
    h("td", {}, delays(one.delays_s, window)),
  );
}

/** A bar for each power of two in seconds, from the shortest delay to the longest. */
function delays(bins, window) {
  if (bins.length === 0) return null;
  const most = Math.max(...bins.map(([, , n]) => n));
  const counts = new Map(bins.map(([, end, n]) => [end, n]));
  const [first, last] = [bins[0], bins[bins.length - 1]];
  let bars = "";
  for (let end = first[1]; end <= last[1]; end *= 2) {
    const n = counts.get(end) ?? 0;
    bars += n === 0 ? " " : BARS[Math.min(Math.floor((8 * n) / most), 7)];
  }
  const ends = `${duration(first[0])} to ${duration(Math.min(last[1], window))}`;
  const said = bins.map(([start, end, n]) => `${count(n)} in ${start} to ${end} s`).join("; ");
  return h("span", { title: said }, h("span", { "aria-hidden": "true" }, `${bars} `), ends);
}
