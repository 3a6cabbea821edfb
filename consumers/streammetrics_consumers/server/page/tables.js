// Tables of values: a row for each variant, each value with its certain bound and its interval.

import { h } from "/assets/elements.js";
import { intervalBar, scaleOf } from "/assets/interval_bar.js";
import { name, value } from "/assets/printed.js";

const OTHER = "(other)";
const PLACES = 8; // colours; each variant also has its name and its mark
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

/** One table: the rows of one metric, window and slice, by view and variant. */
export function figures(rows, caption, place) {
  const views = Map.groupBy(rows, (row) => row.view);
  const approximate = rows.some((row) => row.low !== row.high);
  const intervals = rows.some((row) => row.interval !== null);
  const table = h("table", { class: "figures" }, h("caption", {}, caption));
  table.append(head(["Variant", "Value", approximate && "Certain bound",
    intervals && [`${level(rows)} interval`, doubt(rows)], "", "Rows"]));
  for (const [view, mine] of views) {
    const body = h("tbody");
    if (views.size > 1) {
      body.append(h("tr", {}, h("th", { scope: "rowgroup", colspan: 6 }, name(view))));
    }
    const found = mine.map(read);
    const scale = scaleOf(found.flatMap((one) => [one.value, one.lower, one.upper]));
    mine.forEach((row, i) =>
      body.append(line(row, found[i], { scale, approximate, intervals, place })),
    );
    table.append(body);
  }
  return table;
}

const level = (rows) => rows.find((row) => row.interval !== null)?.text.level;

/** A mark with the caveats of the intervals, such as that users are not known; null without any. */
function doubt(rows) {
  const why = [...new Set(rows.map((row) => row.interval?.reason).filter(Boolean))].join("; ");
  if (!why) return null;
  return h("abbr", { class: "doubt", title: why }, h("span", { "aria-hidden": "true" }, "†"),
    h("span", { class: "hidden" }, `, ${why}`));
}

function read(row) {
  return {
    value: value(row.value),
    low: value(row.low),
    high: value(row.high),
    lower: row.interval ? value(row.interval.lower) : NaN,
    upper: row.interval ? value(row.interval.upper) : NaN,
  };
}

function line(row, found, { scale, approximate, intervals, place }) {
  const variant = row.slice.variant;
  const at = variant === undefined && !(OTHER in row.slice) ? null : place(variant);
  const label = OTHER in row.slice ? OTHER : variant === undefined ? "all rows" : name(variant, 24);
  const { text } = row;
  return h(
    "tr",
    { "data-place": at === null ? null : at % PLACES },
    h("th", { scope: "row" }, h("span", { class: "who" }, swatch(at), h("span", {}, label))),
    h("td", { class: "number value" }, data(row.value, text.value)),
    approximate ? h("td", { class: "number" }, text.certain || "exact") : null,
    intervals ? h("td", { class: "number" }, text.interval || "none") : null,
    h("td", { class: "drawn" }, intervalBar(scale, found)),
    h("td", { class: "number" }, text.rows || "0"),
  );
}

/** The effects of comparisons against zero, and of guardrails against their margin, with the verdict
 * on each. `named`: with the metric in front. */
export function effects(comparisons, caption, named) {
  const always = comparisons.some((one) => !one.anytime_reason);
  const pTitle = comparisons[0].text.p_title;
  const pairs = new Set(comparisons.map(armsOf));
  const apart = !named || pairs.size > 1; // else all rows compare the same two, named in the caption
  const title = apart ? caption : `${caption}, ${[...pairs][0]}`;
  const table = h("table", { class: "effects" }, h("caption", {}, title));
  table.append(head([named && "Metric", apart && "Variant", "Verdict", "Effect",
    always ? "Always-valid interval" : "Interval of one look", "", always ? pTitle : "p of one look"]));
  const body = h("tbody");
  const scales = new Map();
  for (const [metric, mine] of Map.groupBy(comparisons, keyOf)) {
    const numbers = mine.flatMap((one) => [...span(one, always), value(one.effect_size), value(one.margin)]);
    scales.set(metric, scaleOf(numbers, true));
  }
  for (const one of comparisons) {
    const [lower, upper] = span(one, always);
    const [effect, margin] = [value(one.effect_size), value(one.margin)];
    const { text } = one;
    const rail = one.guardrail ? h("small", {}, ` guardrail, margin ${text.margin}`) : null;
    body.append(
      h(
        "tr",
        { "data-verdict": one.verdict, title: one.sentence },
        named ? h("th", { scope: "row" }, name(one.metric), rail) : null,
        apart
          ? h(named ? "td" : "th", named ? {} : { scope: "row" }, armsOf(one), named ? null : rail)
          : null,
        h("td", { class: "verdict", "data-tone": text.tone },
          symbol(text.symbol), h("span", {}, text.verdict)),
        h("td", { class: "number value" }, data(one.effect_size, text.effect)),
        h("td", { class: "number" }, always ? text.always : text.once),
        h("td", { class: "drawn" },
          intervalBar(scales.get(keyOf(one)), { value: effect, lower, upper, margin })),
        h("td", { class: "number" }, always ? text.p : text.p_once),
      ),
    );
  }
  table.append(body);
  const reasons = new Set(comparisons.map((one) => one.anytime_reason).filter(Boolean));
  const notes = [...reasons].map((why) => h("p", { class: "note" }, `Not always valid: ${why}.`));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table, ...notes);
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
const data = (exact, text) => h("data", { value: String(exact) }, text);

function head(labels) {
  const cells = labels
    .filter((label) => label !== false)
    .map((label) => h("th", { scope: "col" }, ...[label || h("span", { class: "hidden" }, "Drawn")].flat()));
  return h("thead", {}, h("tr", {}, ...cells));
}
