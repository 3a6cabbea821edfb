// Where experiments meet: the layers, whose experiments exclude each other, and the pairs that share
// units.

import { byId, h, put } from "/assets/elements.js";
import { count, name, value } from "/assets/printed.js";

const MOST = 200; // pairs that are shown

/** Show the layers and the pairs of an index, of one experiment if the view names it. */
export function show(answer, { experiment }) {
  const isOf = ({ experiments }) => experiment === null || experiments.includes(experiment);
  const layers = answer?.layers.filter(isOf) ?? [];
  const pairs = answer?.overlaps.filter(isOf) ?? [];
  byId("overlaps").hidden = layers.length + pairs.length === 0;
  put(byId("overlaps-body"), ...layers.map(layerOf), ...(pairs.length ? [table(pairs)] : []));
}

const layerOf = (layer) =>
  h("p", { class: "note" }, `Layer ${name(layer.name)}: ${layer.experiments.map((one) => name(one)).join(", ")} exclude each other.`);

function table(pairs) {
  const sorted = pairs.toSorted((one, other) => value(other.units) - value(one.units));
  const caption = "Units that are in both of two experiments, the most first";
  const head = ["Experiment", "And", "Units in both"].map((title) => h("th", { scope: "col" }, title));
  const line = ({ experiments: [one, other], units }) =>
    h("tr", {}, h("th", { scope: "row" }, name(one)), h("td", {}, name(other)), h("td", { class: "number" }, count(value(units))));
  const rest = sorted.length - MOST;
  return h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...sorted.slice(0, MOST).map(line))),
    rest > 0 ? h("p", { class: "note" }, `${count(rest)} more pairs.`) : null);
}
