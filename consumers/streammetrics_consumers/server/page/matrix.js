// Every metric of an experiment in the order of the config, with a column for each arm: the value, and
// below it the change against the control with its verdict, where the plan compares it.

import { addressOf } from "/assets/address.js";
import { byId, h, put } from "/assets/elements.js";
import { name, span } from "/assets/printed.js";
import { variantsIn } from "/assets/slices.js";
import { data, METRIC, symbol, variantOf } from "/assets/tables.js";

/** Show the values and comparisons of an answer; nothing without an experiment with a name, of one
 * metric alone, or of several windows. `who`: the position of a variant, and which is the control. */
export function show(store, view, results, who) {
  const rows = results.results.filter((row) => Object.keys(row.slice).join() === "variant");
  const section = byId("matrix");
  section.hidden = view.experiment === null || view.metric !== null || view.window === "all" || rows.length === 0;
  if (section.hidden) return;
  const arms = variantsIn(rows, who);
  const values = Map.groupBy(rows, placeOf);
  const compared = Map.groupBy(results.comparisons, placeOf);
  const lines = store.metrics.flatMap((metric) => viewsOf(metric, values, compared).map((one) =>
    lineOf(metric, one, { view, arms, values, compared })));
  const change = results.exposed?.units === "closed"
    ? "values are of all exposed units; the change below is of units whose window is over, against the control"
    : "the change against the control is below the value";
  const caption = [span(rows[0].window), change].join("; ");
  put(byId("matrix-body"),
    h("p", { class: "note" }, `${caption}.`),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
      h("table", { class: "matrix" },
        h("caption", { class: "hidden" }, caption),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Metric"),
          ...arms.map((arm) => h("th", { scope: "col" }, variantOf({ slice: { variant: arm } }, who))))),
        h("tbody", {}, ...lines))));
}

const placeOf = (one) => `${one.metric}\n${one.view}`;

/** The views of a metric that have a value or a comparison, in its order. */
function viewsOf(metric, values, compared) {
  const order = [...new Set([...metric.headlines, ...metric.views])];
  return order.filter((view) => [values, compared].some((some) => some.has(placeOf({ metric: metric.name, view }))));
}

function lineOf(metric, one, { view, arms, values, compared }) {
  const place = placeOf({ metric: metric.name, view: one });
  const [mine, effects] = [values.get(place) ?? [], compared.get(place) ?? []];
  const rail = effects.find((effect) => effect.guardrail);
  const address = addressOf({ ...view, by: null, metric: metric.name });
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: address, "data-view": true }, name(metric.name, METRIC)),
      metric.headlines.length > 1 || one !== metric.headlines[0] ? h("small", {}, name(one)) : null,
      rail ? h("small", {}, `guardrail, margin ${rail.text.margin}`) : null),
    ...arms.map((arm) => cellOf(mine.find((row) => row.slice.variant === arm),
      effects.find((effect) => effect.treatment_variant === arm))));
}

function cellOf(row, effect) {
  if (row === undefined && effect === undefined) return h("td", { class: "number" }, "—");
  return h("td", { class: "number", title: effect?.sentence ?? null },
    h("span", { class: "value" }, row ? data(row.value, row.text.value) : "—"),
    effect ? h("small", { "data-tone": effect.text.tone }, symbol(effect.text.symbol),
      `${effect.text.lift || effect.text.effect} ${effect.text.verdict}`) : null);
}
