// An experiment whose arms are those of exposures: of which exposed units its effects are, what the
// others show, the effects by days since the exposure, and how many units were active and converted.
// None of it is a verdict.

import { byId, h, put } from "/assets/elements.js";
import { axisOf, intervalBar, scaleOf } from "/assets/interval_bar.js";
import { count, name, value } from "/assets/printed.js";
import { data, METRIC } from "/assets/tables.js";

const MOST = 6; // views whose effects by days are shown

/** Show the `exposed` of the body of /api/experiment; nothing of other experiments. */
export function show(exposed) {
  const section = byId("exposed");
  section.hidden = exposed === undefined;
  if (section.hidden) return;
  const views = [...Map.groupBy(exposed.since.flatMap(effectsOf), ({ one }) => `${one.metric}\n${one.view}`).values()];
  const rest = views.length - MOST;
  put(byId("exposed-body"),
    h("p", { id: "exposed-units" }, exposed.sentence),
    exposed.other ? h("p", { class: "note" }, `Beside it: ${exposed.other[0].toLowerCase()}${exposed.other.slice(1)}`) : null,
    exposed.reason ? h("p", { class: "note attention" }, `▲ Not shown: ${exposed.reason}.`) : null,
    h("div", { class: "exposed-tables" },
      exposed.funnel.length ? funnel(exposed.funnel) : null,
      exposed.beside.length ? beside(exposed) : null),
    h("div", { class: "exposed-tables" }, ...views.slice(0, MOST).map(since)),
    rest > 0 ? h("p", { class: "note" }, `The effects by days on ${count(rest)} more views are in the JSON.`) : null);
}

/** The effects of some days since the exposure, each with these days. */
const effectsOf = ({ from_day, to_day, effects }) => effects.map((one) => ({ one, days: daysOf(from_day, to_day) }));

const daysOf = (from, to) => (to - from > 1 ? `${from} to ${to - 1}` : String(from));

/** The units of each arm: exposed, active after it, and with a value above 0. */
function funnel(arms) {
  const metrics = Object.keys(arms[0].converted).slice(0, MOST);
  const titles = ["Variant", "Exposed", "Active", ...metrics.map((one) => `${name(one, METRIC)} above 0`)];
  const line = ({ variant, exposed, active, text }) => h("tr", {},
    h("th", { scope: "row" }, name(variant, 24)),
    h("td", { class: "number" }, data(exposed, text.exposed)),
    h("td", { class: "number" }, data(active, whole(text.active))),
    ...metrics.map((one) => h("td", { class: "number" }, whole(text.converted[one]))));
  return table("Units after their exposure", titles, arms.map(line));
}

/** A text whose per cent stay on one line. */
const whole = (text) => text.replace(" %", "\u00a0%");

const armsOf = (one) => `${name(one.treatment_variant, 20)} − ${name(one.control_variant, 20)}`;

/** The effects on the units that the plan does not decide by. */
function beside({ units, beside: effects }) {
  const closed = units === "so_far"; // then the others are the closed ones
  const caption = `${closed ? "Units whose window is over" : "All exposed units, so far"}: no verdict`;
  const lines = [...Map.groupBy(effects, ({ metric, view }) => `${metric}\n${view}`).values()].flatMap((mine) => {
    const scale = scaleOf(mine.flatMap((one) => [one.effect_size, one.anytime_lower, one.anytime_upper].map(value)),
      [], true);
    return mine.map((one) => h("tr", {},
      h("th", { scope: "row" }, one.text.label, h("small", {}, armsOf(one))),
      h("td", { class: "number" }, one.text.units),
      h("td", { class: "number value" }, data(one.effect_size, one.text.effect)),
      h("td", { class: "number" }, one.text.always),
      h("td", { class: "drawn" }, intervalBar(scale, {
        value: value(one.effect_size), lower: value(one.anytime_lower), upper: value(one.anytime_upper),
      }))));
  });
  return table(caption, ["Metric", "Units", "Effect", "Always-valid interval", ""], lines);
}

/** The effects on one view by days since the exposure, at one look. */
function since(some) {
  const [{ one: first }] = some;
  const arms = Map.groupBy(some, ({ one }) => armsOf(one));
  const ends = ({ one }) => [one.effect_size, one.effect_size_ci_lower, one.effect_size_ci_upper].map(value);
  const scale = scaleOf(some.flatMap(ends), first.text.axis, true);
  const bodies = [...arms].map(([label, mine]) => [
    arms.size > 1 ? h("tr", {}, h("th", { scope: "rowgroup", colspan: 5 }, label)) : null,
    ...mine.map(({ one, days }, i) => {
      const [effect, lower, upper] = ends({ one });
      return h("tr", { title: one.reason || null },
        h("th", { scope: "row" }, days),
        h("td", { class: "number" }, one.text.units),
        h("td", { class: "number value" }, data(one.effect_size, one.text.effect)),
        h("td", { class: "drawn" }, intervalBar(scale, { value: effect, lower, upper }),
          i === mine.length - 1 ? axisOf(scale, true) : null),
        h("td", { class: "number" }, one.text.once));
    }),
  ]);
  const pair = arms.size > 1 ? "" : `: ${armsOf(first)}`;
  return table(`Effect on ${first.text.label} per exposed unit, by days since its exposure${pair}`,
    ["Days", "Units", "Effect", "", `At one look, ${Math.round(1000 * first.level) / 10} %`], ...bodies);
}

/** A table; each further argument is the lines of a body. */
function table(caption, titles, ...bodies) {
  const head = titles.map((title) => h("th", { scope: "col" }, title || h("span", { class: "hidden" }, "Drawn")));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "exposed" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)),
      ...bodies.map((lines) => h("tbody", {}, ...lines))));
}
