// The experiment in one plain sentence, and below it what the sentence rests on.

import { byId, h, put } from "/assets/elements.js";
import { chance, count, name, number, value } from "/assets/printed.js";
import { effects } from "/assets/tables.js";

const MARKS = { waiting: "…", distrusted: "✕", early: "◔", undecided: "◑", decided: "●" };
const MOST = 40; // comparisons that are shown here; each metric's card has its own

let mark = "";

/** Show the body of /api/experiment; nothing where none is declared. Whether its state changed. */
export function show(body) {
  const section = byId("experiment");
  section.hidden = body.state === "none";
  section.dataset.state = body.state;
  const next = JSON.stringify(body);
  if (next === mark) return false;
  mark = next;
  if (section.hidden) return false;
  const rows = body.comparisons.slice(0, MOST);
  const rest = body.comparisons.length - rows.length;
  const changed = section.dataset.said !== body.state;
  section.dataset.said = body.state;
  put(
    byId("experiment-body"),
    h(
      "p",
      { class: "sentence" },
      h("span", { class: "sentence-mark", "aria-hidden": "true" }, MARKS[body.state] ?? "●"),
      h("span", { id: "sentence" }, body.sentence),
    ),
    ...(rows.length ? [effects(rows, "Effects since the start", true)] : []),
    ...(rest > 0 ? [h("p", {}, `${count(rest)} more comparisons stand with their metrics.`)] : []),
    ...[sampleRatio(body.srm)].filter(Boolean),
    ...body.notes.map((note) => h("p", { class: "note" }, note)),
  );
  return changed;
}

function sampleRatio(srm) {
  if (!srm) return null;
  const arms = Object.entries(srm.counts).map(([arm, n]) => `${name(arm)} ${count(n)}`);
  const said = srm.reason
    ? ""
    : `; as planned: p ${chance(value(srm.pvalue))}, e-value ${number(value(srm.e_value), 4)}`;
  return h("p", { class: "note" }, `Units: ${arms.join(", ") || "not counted"}${said}`);
}
