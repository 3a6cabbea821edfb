// The experiment: one recommendation, and the comparisons that it rests on below it.

import { byId, h, put } from "/assets/elements.js";
import { title } from "/assets/notice.js";
import { count } from "/assets/printed.js";
import { effects, symbol } from "/assets/tables.js";

const MOST = 40; // comparisons that are shown here; the card of each metric shows its own

let mark = "";

/** Show the body of /api/experiment, if one is declared. Returns whether the recommended action changed. */
export function show(body) {
  const section = byId("experiment");
  const advice = body.recommendation;
  section.hidden = advice === null;
  section.dataset.state = body.state;
  const next = JSON.stringify(body);
  if (next === mark) return false;
  mark = next;
  title({ name: body.name, hypothesis: body.hypothesis, experiment: body.experiment ?? "" });
  if (section.hidden) return false;
  const { text } = body;
  section.dataset.tone = text.worst;
  const changed = section.dataset.action !== advice.action;
  section.dataset.action = advice.action;
  const rows = body.comparisons.slice(0, MOST);
  const rest = body.comparisons.length - rows.length;
  const sentences = rows.map((one) => one.sentence);
  put(
    byId("experiment-body"),
    h("div", { class: "said" },
      h("p", { class: "sentence", "data-tone": text.tone }, symbol(text.symbol),
        h("span", { id: "sentence" }, ...advised(text.advice))),
      h("ul", { id: "arms" }, ...text.arms.map(armLine)),
      text.progress ? h("p", { id: "progress" }, text.progress) : null),
    h("div", { class: "compared" }, ...(rows.length ? [effects(rows, "Effects since the start", true, text.axes)] : []),
      rest > 0 ? h("p", {}, `${count(rest)} more comparisons are shown with their metrics.`) : null),
    h("div", { class: "remarks" },
      text.standing ? h("p", { id: "standing" }, text.standing) : null,
      text.units ? h("p", { class: "note" }, `Units: ${text.units}`) : null,
      ...body.notes.filter((note) => !sentences.includes(note)).map((note) => h("p", { class: "note" }, note))),
  );
  return changed;
}

/** One treatment in one line. */
const armLine = (one) =>
  h("li", { "data-tone": one.tone }, symbol(one.symbol), h("span", {}, h("b", {}, one.variant), `: ${one.line}`));

/** A sentence, with the words about units of several variants in amber. */
const advised = (parts) =>
  parts.map((part, i) => (part || i === 0 ? h("span", { class: i === 1 ? "attention" : null }, part) : null));
