// Where experiments meet: the layers, whose experiments exclude each other, and the pairs that share
// units.

import { byId, h, put } from "/assets/elements.js";
import { count, name, value } from "/assets/printed.js";
import { ordered } from "/assets/sorting.js";

const MOST = 200; // pairs that are shown

/** Show the layers and the pairs of an index, of one experiment if the view names it. */
export function show(answer, { experiment }) {
  const isOf = ({ experiments }) => experiment === null || experiments.includes(experiment);
  const layers = answer?.layers.filter(isOf) ?? [];
  const pairs = answer?.overlaps.filter(isOf) ?? [];
  const interactions = answer?.interactions.filter(isOf) ?? [];
  byId("overlaps").hidden = layers.length + pairs.length + interactions.length === 0;
  put(byId("overlaps-body"), ...layers.map(layerOf), ...(pairs.length ? [table(pairs)] : []),
    ...(interactions.length ? [effects(interactions)] : []));
}

/** The alarms of an index, each in a line: units in two of a layer, arms that are not independent, and
 * effects that differ between the arms of another experiment. */
export const alarmsOf = ({ layers, overlaps, interactions }) =>
  [...layers, ...overlaps, ...interactions].filter((one) => one.alarm || one.differs)
    .map(({ sentence }) => h("p", { class: "note attention" }, `▲ ${sentence}`));

function layerOf({ name: own, experiments, alarm, sentence }) {
  const names = experiments.map((one) => name(one)).join(", ");
  return h("p", { class: alarm ? "note attention" : "note" },
    `${alarm ? "▲ " : ""}Layer ${name(own)}: ${names} exclude each other. ${sentence}`.trim());
}

function table(pairs) {
  const sorted = pairs.toSorted((one, other) => other.alarm - one.alarm || ordered(value(one.units), value(other.units), -1));
  const caption = "Pairs of experiments: alarms first, then those with most units in both";
  return listed(caption, ["Experiment", "And", "Units in both"], sorted.map(line), "pairs");
}

function effects(interactions) {
  const sorted = interactions.toSorted((one, other) => other.differs - one.differs || ordered(value(one.adjusted_p), value(other.adjusted_p), 1));
  const caption = "Effects by the arm of another experiment: those that differ first. " +
    "At all looks together, adjusted for all that are asked";
  return listed(caption, ["Experiment", "Metric", "Arms of", "Effects"], sorted.map(effect), "effects");
}

function listed(caption, titles, lines, what) {
  const head = titles.map((title) => h("th", { scope: "col" }, title));
  const rest = lines.length - MOST;
  return h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...lines.slice(0, MOST))),
    rest > 0 ? h("p", { class: "note" }, `${count(rest)} more ${what}.`) : null);
}

function effect({ experiments: [own, other], metric, variants: [arm, otherArm], adjusted_p: p, differs, sentence }) {
  const words = differs ? "differ" : Number.isNaN(value(p)) ? "not known" : "not shown to differ";
  return h("tr", {}, h("th", { scope: "row" }, `${name(own)} ${name(arm)}`), h("td", {}, name(metric)),
    h("td", {}, `${name(other)} ${name(otherArm)}`),
    h("td", { "data-tone": differs ? "warn" : null }, words,
      differs || words === "not known" ? h("small", {}, ` ${differs ? "▲ " : ""}${sentence}`) : null));
}

function line({ experiments: [one, other], units, alarm, sentence }) {
  const many = value(units);
  return h("tr", {}, h("th", { scope: "row" }, name(one)), h("td", {}, name(other)),
    h("td", { "data-tone": alarm ? "warn" : null }, Number.isNaN(many) ? "not known" : count(Math.round(many)),
      alarm ? h("small", {}, ` ▲ ${sentence}`) : null));
}
