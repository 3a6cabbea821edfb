// The tooltip of a point of a chart. It is built when the user points at it: building it for every
// point of every chart took half of the time of an update.

import { h } from "/assets/elements.js";

const BOX = "vg-tooltip-element";

/** A specification whose points hold their data, not texts, and the tooltip fields of each layer. */
export function withLazyTooltips(spec) {
  const fieldsOf = {};
  const layer = spec.layer.map((one, i) => {
    const fields = one.encoding?.tooltip;
    if (!Array.isArray(fields)) return one;
    const name = `tooltip${i}`;
    fieldsOf[name] = fields;
    const mark = typeof one.mark === "string" ? { type: one.mark } : one.mark;
    return { ...one, name, mark: { ...mark, tooltip: { content: "data" } },
      encoding: { ...one.encoding, tooltip: undefined } };
  });
  return [{ ...spec, layer }, fieldsOf];
}

/** The handler that Vega calls with the point under the pointer, or with null. */
export function tooltips(fieldsOf) {
  return (_, event, item, datum) => {
    const fields = fieldsOf[nameOf(item)];
    if (datum === null || datum === undefined || !fields) {
      document.getElementById(BOX)?.classList.remove("visible");
      return;
    }
    const rows = fields
      .filter(({ field }) => datum[field] !== undefined && datum[field] !== null)
      .map((one) => h("tr", {}, h("td", { class: "key" }, one.title ?? one.field),
        h("td", { class: "value" }, text(datum[one.field]))));
    const box = document.getElementById(BOX) ?? h("div", { id: BOX, "aria-hidden": "true" });
    box.replaceChildren(h("table", {}, h("tbody", {}, ...rows)));
    if (!box.isConnected) document.body.append(box);
    box.classList.add("visible");
    place(box, event);
  };
}

/** Numbers to six digits, as the specification says. */
const text = (value) => String(typeof value === "number" ? Number(value.toPrecision(6)) : value);

function nameOf(item) {
  for (let at = item?.mark; at; at = at.group?.mark) {
    const found = /tooltip\d+/.exec(at.name ?? "");
    if (found) return found[0];
  }
  return "";
}

/** Put the box beside the pointer, and never beyond the edge. */
function place(box, event) {
  const { width, height } = box.getBoundingClientRect();
  const [x, y] = [event.clientX + 12, event.clientY + 12];
  box.style.left = `${Math.max(0, x + width > innerWidth ? x - width - 24 : x)}px`;
  box.style.top = `${Math.max(0, y + height > innerHeight ? y - height - 24 : y)}px`;
}
