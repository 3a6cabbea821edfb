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
  byId("overlaps").hidden = layers.length + pairs.length === 0;
  put(byId("overlaps-body"), ...layers.map(layerOf), ...(pairs.length ? [table(pairs)] : []));
}

/** The alarms of an index, each in a line: units in two of a layer, and arms that are not independent. */
export const alarmsOf = ({ layers, overlaps }) =>
  [...layers, ...overlaps].filter((one) => one.alarm).map(({ sentence }) => h("p", { class: "note attention" }, `▲ ${sentence}`));

function layerOf({ name: own, experiments, alarm, sentence }) {
  const names = experiments.map((one) => name(one)).join(", ");
  return h("p", { class: alarm ? "note attention" : "note" },
    `${alarm ? "▲ " : ""}Layer ${name(own)}: ${names} exclude each other. ${sentence}`.trim());
}

function table(pairs) {
  const sorted = pairs.toSorted((one, other) => other.alarm - one.alarm || ordered(value(one.units), value(other.units), -1));
  const caption = "Pairs of experiments: alarms first, then those with most units in both";
  const head = ["Experiment", "And", "Units in both"].map((title) => h("th", { scope: "col" }, title));
  const rest = sorted.length - MOST;
  return h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...sorted.slice(0, MOST).map(line))),
    rest > 0 ? h("p", { class: "note" }, `${count(rest)} more pairs.`) : null);
}

function line({ experiments: [one, other], units, alarm, sentence }) {
  const many = value(units);
  return h("tr", {}, h("th", { scope: "row" }, name(one)), h("td", {}, name(other)),
    h("td", { "data-tone": alarm ? "warn" : null }, Number.isNaN(many) ? "not known" : count(Math.round(many)),
      alarm ? h("small", {}, ` ▲ ${sentence}`) : null));
}
