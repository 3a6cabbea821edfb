// One table of all slices and windows of a metric: a row for each, with the value of every variant
// side by side. It is sorted by a click on a heading, and searched by the field above it; the server
// sorts and searches what it left out.

import { h } from "/assets/elements.js";
import { axisOf, intervalBar } from "/assets/interval_bar.js";
import { count, name, span, value } from "/assets/printed.js";
import { ariaSort, arrow, ordered } from "/assets/sorting.js";
import { countedAs, countOf, data, doubt, PLACES, positionOf, read, scaleOfRows, sliceName, variantOf } from "/assets/tables.js";

export const MOST = 200; // rows of one table

/** How a table is sorted and searched, until the user changes it. `by`: a column, null for the order
 * of the answer; `down`: the greatest first; `view`: null for the first. */
export const AT_FIRST = { by: null, down: false, find: "", view: null };

/** The variants of these rows in the order of the columns. */
export const variantsIn = (rows, who) => [...new Set(rows.map((row) => row.slice.variant))]
  .sort((a, b) => (b === who.control) - (a === who.control) || who.place(a) - who.place(b));

/** The table of these rows. `who`: the position of a variant, and which is the control. `cut`: of an
 * answer without some slices, the numbers of slices, all views, and whether its rows are as searched. */
export function slicesTable(rows, { by, down, find, view }, who, label, cut = null) {
  const given = [...new Set(rows.map((row) => row.view))];
  const views = cut?.views ?? given;
  const shown = rows.filter((row) => row.view === (given.includes(view) ? view : given[0]));
  const variants = variantsIn(shown, who);
  const windows = new Set(shown.map((row) => row.window.start_ms)).size > 1;
  const names = new Set(shown.flatMap((row) => Object.keys(row.slice)).filter((key) => key !== "variant"));
  const only = names.size === 1 && !windows ? [...names][0] : null; // the one name, which is the heading
  const all = [...Map.groupBy(shown, keyOf).values()].map((mine) => lineOf(mine, variants, windows, only));
  const text = cut?.searched ? "" : find.trim().toLowerCase();
  const found = all.filter((one) => one.label.toLowerCase().includes(text));
  const order = by ?? (cut ? 0 : null);
  if (order !== null) found.sort((a, b) => ordered(sortKey(a, order), sortKey(b, order), down ? -1 : 1));
  const [whole, matching] = cut && !text ? [cut.slices.all, cut.slices.found] : [cut?.slices.all ?? all.length, found.length];
  const headings = [only !== null ? name(only) : windows ? "Slice and window" : "Slice", ...variants.map((one) => headOf(one, shown, who)), "", countedAs(shown)];
  const sortable = headings.map((_, i) => i !== headings.length - 2);
  const scale = scaleOfRows(shown);
  const table = h("table", { class: "slices" },
    h("caption", {}, `${label}: ${matching === whole ? "" : `${count(matching)} of `}${count(whole)} slices`),
    h("thead", {}, h("tr", {}, ...headings.map((text, i) =>
      h("th", { scope: "col", "aria-sort": ariaSort(by === i, down) },
        sortable[i] ? h("button", { type: "button", class: "sort", "data-sort": i }, text, arrow(by === i, down))
          : [h("span", { class: "hidden" }, "Drawn"), axisOf(scale, true)])))),
    h("tbody", {}, ...found.slice(0, MOST).map((one) => rowOf(one, scale, who))));
  const rest = matching - Math.min(found.length, MOST);
  return [
    h("div", { class: "slice-tools" },
      h("label", {}, h("span", {}, "Search the slices"),
        h("input", { type: "search", class: "slice-find", value: find, autocomplete: "off" })),
      views.length > 1 ? h("label", {}, h("span", {}, "Value"), h("select", { class: "slice-view" },
        ...views.map((one) => h("option", { value: one, selected: one === shown[0].view }, name(one))))) : null),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label }, table),
    rest > 0 ? h("p", { class: "note" }, `${count(rest)} more slices: search for them.`) : null,
    h("p", { class: "note" }, "Intervals are below the values", doubt(shown), ". Many slices are looked at here: some differ by chance alone."),
  ];
}

const keyOf = (row) => JSON.stringify([row.window.start_ms, row.window.end_ms, sliceName(row.slice)]);

function lineOf(mine, variants, windows, only) {
  const { window, slice } = mine[0];
  const parts = [only === null ? sliceName(slice) : name(slice[only]), windows ? `${span(window)}${window.start_ms === null ? "" : `, ${window.state}`}` : ""];
  const rows = variants.map((variant) => mine.find((row) => row.slice.variant === variant) ?? null);
  const counted = rows.reduce((sum, row) => sum + (row === null ? 0 : countOf(row)), 0);
  return { label: parts.filter(Boolean).join("; ") || "all rows", rows, counted };
}

function headOf(variant, shown, who) {
  return variantOf(shown.find((row) => row.slice.variant === variant), who);
}

/** What a line is sorted by in this column: its name, the value of a variant, or its rows. */
function sortKey(one, by) {
  if (by === 0) return one.label;
  return by <= one.rows.length ? value(one.rows[by - 1]?.value ?? null) : one.counted;
}

function rowOf({ label, rows, counted }, scale, who) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, label),
    ...rows.map((row) => (row === null ? h("td", { class: "number" }, "—") : cellOf(row))),
    h("td", { class: "drawn" }, ...rows.filter((row) => row !== null).map((row) =>
      h("span", { "data-place": (positionOf(row, who) ?? 0) % PLACES }, intervalBar({ ...scale, axis: [] }, read(row))))),
    h("td", { class: "number" }, count(counted)),
  );
}

function cellOf(row) {
  const { text } = row;
  return h("td", { class: "number", title: text.reason || null },
    h("span", { class: "value" }, data(row.value, text.value)),
    h("small", {}, text.value === "—" ? text.reason : text.interval));
}
