// Tables of values: a row for each variant, each value with its certain bound and its interval.

import { h } from "/assets/elements.js";
import { axisOf, intervalBar, scaleOf } from "/assets/interval_bar.js";
import { count, name, span as spanOf, value } from "/assets/printed.js";

const OTHER = "(other)";
export const METRIC = 64; // letters of the longest name that a config gives a metric
export const PLACES = 8; // colours; each variant also has its name and its mark
const SHAPES = 6;

/** The mark of a variant: its colour and shape follow from its position, as in charts. */
function swatch(at) {
  if (at === null) return null;
  const [place, shape] = [at % PLACES, at % SHAPES];
  return h("span", { class: "swatch", "data-place": place, "data-shape": shape, "aria-hidden": "true" });
}

/** A symbol before words that say the same, hidden from screen readers. */
export const symbol = (text) => h("span", { class: "symbol", "aria-hidden": "true" }, text);

/** The name of a slice, without the variant. */
export function sliceName(slice) {
  if (OTHER in slice) return `${OTHER} of ${slice[OTHER].map((one) => name(one)).join(", ")}`;
  const parts = Object.entries(slice).filter(([key]) => key !== "variant");
  return parts.map(([key, one]) => `${name(key)} = ${name(one)}`).join(", ");
}

/** One table: the rows of one metric, window and slice, by view and variant. `who`: the position of a
 * variant, and which is the control. */
export function figures(rows, caption, who) {
  const views = Map.groupBy(rows, (row) => row.view);
  const approximate = rows.some((row) => row.low !== row.high && row.value !== null);
  const intervals = rows.some((row) => row.interval !== null);
  const bands = rows.some((row) => row.text.band !== undefined);
  const table = h("table", { class: "figures" }, h("caption", {}, caption));
  table.append(head(["Variant", "Value", approximate && "Exact within",
    intervals && [`${level(rows)} CI`, doubt(rows), bands ? h("small", {}, "band") : null], "", countedAs(rows)]));
  for (const [view, mine] of views) {
    const body = h("tbody");
    if (views.size > 1) {
      body.append(h("tr", {}, h("th", { scope: "rowgroup", colspan: 6 }, name(view))));
    }
    const scale = scaleOfRows(mine);
    mine.forEach((row, i) =>
      body.append(line(row, { scale, approximate, intervals, who, isLast: i === mine.length - 1 })),
    );
    table.append(body);
  }
  // Without a column of intervals, only an undefined value is a dash.
  return h("div", {}, table, ...whyUndefined(intervals ? rows : rows.filter((row) => row.value === null)));
}

/** What a result counts: its rows; its units where it counts no rows, as a mean per unit. */
export const countOf = ({ counts }) => counts.rows ?? counts.units ?? 0;

/** The heading of what these results count. */
export const countedAs = (rows) =>
  rows.some(({ counts }) => counts.rows === undefined && counts.units !== undefined) ? "Units" : "Rows";

/** The scale that the drawings of these rows share. */
export const scaleOfRows = (rows) =>
  scaleOf(rows.map(read).flatMap((one) => [one.value, one.lower, one.upper]), rows[0].text.axis);

/** A line for each reason why numbers of these rows are dashes. */
function whyUndefined(rows) {
  const missing = rows.filter((row) => row.text.reason);
  return [...Map.groupBy(missing, (row) => row.text.reason)].map(([why, some]) => {
    const views = new Set(rows.map((row) => row.view)).size > 1;
    const names = [...new Set(some.map((row) => (views ? name(row.view) : labelOf(row))))].join(", ");
    return h("p", { class: "note" }, `— of ${names}: ${why}.`);
  });
}

const level = (rows) => rows.find((row) => row.interval !== null)?.text.level;

/** The caveats of the intervals of these rows, such as that users are not known. */
export const doubtsOf = (rows) =>
  [...new Set(rows.filter((row) => !row.text.reason)
    .flatMap((row) => (row.interval?.reason ?? "").split("; ")).filter(Boolean))];

/** A mark with these caveats, which leads to the foot of the page, where they are; null without any. */
export function doubt(rows) {
  const why = doubtsOf(rows).join("; ");
  return why ? h("a", { class: "doubt", href: "#doubts", title: why, "aria-label": `Caveat: ${why}` }, "†") : null;
}

/** The numbers of a row that its drawing shows. */
export function read(row) {
  return {
    value: value(row.value),
    low: value(row.low),
    high: value(row.high),
    lower: row.interval ? value(row.interval.lower) : NaN,
    upper: row.interval ? value(row.interval.upper) : NaN,
  };
}

function labelOf(row) {
  if (OTHER in row.slice) return OTHER;
  return row.slice.variant === undefined ? "all rows" : name(row.slice.variant, 24);
}

/** The position of the variant of a row, for its colour; null without variants. */
export const positionOf = (row, who) =>
  row.slice.variant === undefined && !(OTHER in row.slice) ? null : who.place(row.slice.variant);

/** The name of the variant of a row with its mark; the control is marked as such. */
export function variantOf(row, who) {
  const label = labelOf(row);
  const marked = who.control !== undefined && row.slice.variant === who.control && label !== "control";
  return h("span", { class: "who" }, swatch(positionOf(row, who)),
    h("span", {}, label, marked ? h("small", {}, " control") : null));
}

function line(row, { scale, approximate, intervals, who, isLast }) {
  const at = positionOf(row, who);
  const { text } = row;
  return h(
    "tr",
    { "data-place": at === null ? null : at % PLACES, "data-control": row.slice.variant === who.control },
    h("th", { scope: "row" }, variantOf(row, who)),
    h("td", { class: "number value" }, data(row.value, text.value)),
    approximate ? h("td", { class: "number" }, text.certain || (row.low === null ? "" : "exact")) : null,
    intervals
      ? h("td", { class: "number" }, text.interval || "none", text.band ? h("small", {}, text.band) : null)
      : null,
    h("td", { class: "drawn" }, intervalBar(scale, read(row)), isLast ? axisOf(scale, true) : null),
    h("td", { class: "number" }, count(countOf(row))),
  );
}

/** The effects of comparisons against zero, and of guardrails against their margin, with the verdict
 * on each. `named`: with the metric in front; else with the window if there are several. `axes`: of
 * views whose metrics have the same unit. On a phone each row is a card, whose cells have their
 * `data-label`. */
export function effects(comparisons, caption, named, axes = {}) {
  const always = comparisons.some((one) => !one.anytime_reason);
  const pTitle = comparisons[0].text.p_title;
  const pairs = new Set(comparisons.map(armsOf));
  const apart = !named || pairs.size > 1; // else all rows compare the same two, named in the caption
  const title = apart ? caption : `${caption}, ${[...pairs][0]}`;
  const windows = !named && new Set(comparisons.map((one) => one.window.start_ms)).size > 1;
  const labels = {
    metric: "Metric", arms: windows ? "Window" : "Variant", verdict: "Verdict", effect: "Effect", lift: "Relative",
    interval: always ? "Always-valid interval" : "Interval of one look", p: always ? pTitle : "p of one look",
  };
  const table = h("table", { class: "effects", role: "table" }, h("caption", {}, title));
  table.append(head([named && labels.metric, apart && labels.arms, labels.verdict, labels.effect,
    labels.lift, labels.interval, "", labels.p]));
  const body = h("tbody", { role: "rowgroup" });
  const unitOf = (one) => (named && axes[one.view] ? one.view : keyOf(one));
  const scales = new Map();
  for (const [unit, mine] of Map.groupBy(comparisons, unitOf)) {
    const numbers = mine.flatMap((one) => [...span(one, always), value(one.effect_size), value(one.margin)]);
    scales.set(unit, scaleOf(numbers, axes[unit] ?? mine[0].text.axis, true));
  }
  comparisons.forEach((one, i) => {
    const [lower, upper] = span(one, always);
    const [effect, margin] = [value(one.effect_size), value(one.margin)];
    const { text } = one;
    const following = comparisons[i + 1];
    const scale = scales.get(unitOf(one));
    const isLast = !following || unitOf(following) !== unitOf(one);
    const rail = one.guardrail ? h("small", {}, ` guardrail, margin ${text.margin}`) : null;
    const arms = named ? armsOf(one) : windows ? spanOf(one.window) : name(one.treatment_variant, 24);
    const view = named || text.label === name(one.metric, METRIC) ? null : h("small", {}, ` ${name(one.view)}`);
    const cell = (label, kind, ...parts) =>
      h("td", { class: kind, role: "cell", "data-label": labels[label].replace(" interval", "") }, h("span", {}, ...parts));
    body.append(
      h(
        "tr",
        { "data-verdict": one.verdict, "data-tone": text.tone, role: "row", title: one.sentence },
        named ? h("th", { scope: "row", role: "rowheader" }, text.label, rail) : null,
        apart
          ? h(named ? "td" : "th", named ? { role: "cell" } : { scope: "row", role: "rowheader" },
            arms, view, named ? null : rail)
          : null,
        h("td", { class: "verdict", role: "cell", "data-tone": text.tone },
          symbol(text.symbol), h("span", {}, text.verdict)),
        cell("effect", "number value", data(one.effect_size, text.effect)),
        cell("lift", "number", text.lift),
        cell("interval", "number", always ? text.always : text.once),
        h("td", { class: "drawn", role: "cell" },
          intervalBar(scale, { value: effect, lower, upper, margin }), axisOf(scale, isLast)),
        cell("p", "number", always ? text.p : text.p_once),
      ),
    );
  });
  table.append(body);
  const reasons = Map.groupBy(comparisons.filter((one) => one.text.reason), (one) => one.text.reason);
  const notes = [...reasons].map(([why, some]) => {
    const names = [...new Set(some.map((one) => one.text.label))].join(", ");
    return h("p", { class: "note" }, `—${named ? ` of ${names}` : ""}: ${why}.`);
  });
  const rows = Map.groupBy(comparisons.filter((one) => one.text.rows), (one) => `${one.text.rows}\n${one.rows_per_unit.differ}`);
  for (const some of rows.values()) {
    const names = [...new Set(some.map((one) => one.text.label))].join(", ");
    const said = some[0].rows_per_unit.differ
      ? h("b", { class: "attention" }, `differ (${some[0].text.rows}): an effect on rows, not on units`)
      : some[0].text.rows;
    notes.push(h("p", { class: "note" }, `Rows per unit${named ? ` of ${names}` : ""}: `, said, "."));
  }
  const label = named ? title : `${name(comparisons[0].metric, METRIC)}, ${title}`;
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table, ...notes);
}

const armsOf = (one) => `${name(one.treatment_variant, 20)} − ${name(one.control_variant, 20)}`;

const keyOf = (one) => `${one.metric}\n${one.view}`;

/** The ends of the interval in a row, of the same kind for all rows, which the column names. */
function span(one, always) {
  if (always && one.anytime_reason) return [NaN, NaN];
  const names = always
    ? ["anytime_lower", "anytime_upper"]
    : ["effect_size_ci_lower", "effect_size_ci_upper"];
  return names.map((key) => value(one[key]));
}

/** A rounded number, with the exact one of the answer in its `value`. */
export const data = (exact, text) => h("data", { value: String(exact) }, text);

function head(labels) {
  const cells = labels
    .filter((label) => label !== false)
    .map((label) => h("th", { scope: "col" }, ...[label || h("span", { class: "hidden" }, "Drawn")].flat()));
  return h("thead", {}, h("tr", {}, ...cells));
}
