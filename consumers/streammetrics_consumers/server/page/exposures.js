// The status of the exposures of a stream: what is counted, and what is pending.

import { byId, h, put } from "/assets/elements.js";
import { duration } from "/assets/printed.js";

/** Show the `exposures` of an answer; nothing where the config has none. */
export function show(exposures) {
  const section = byId("exposures");
  section.hidden = exposures === undefined;
  if (section.hidden) return;
  const { text, window_s: window, warnings } = exposures;
  const until = window === null ? "for ever" : `for ${duration(window)}`;
  put(byId("exposures-body"),
    h("p", { id: "exposures-counts" }, text),
    h("p", { class: "note" }, `Events count ${until} after the first exposure of their unit.`),
    ...warnings.map((why) => h("p", { class: "note", "data-attention": true }, `▲ ${why}`)));
}
