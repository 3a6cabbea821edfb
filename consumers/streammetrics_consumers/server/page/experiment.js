// The experiment: one recommendation, and below it what it rests on.

import { byId, h, put } from "/assets/elements.js";
import { chance, count, evidence, name, value } from "/assets/printed.js";
import { effects } from "/assets/tables.js";
import { ACTION_SYMBOLS, ACTION_TONES, standing, symbol, toneOf } from "/assets/verdicts.js";

const MOST = 40; // comparisons that are shown here; each metric's card has its own

let mark = "";

/** Show the body of /api/experiment; nothing where none is declared. Whether its advice changed. */
export function show(body) {
  const section = byId("experiment");
  const advice = body.recommendation;
  section.hidden = advice === null;
  section.dataset.state = body.state;
  const next = JSON.stringify(body);
  if (next === mark) return false;
  mark = next;
  if (section.hidden) return false;
  section.dataset.tone = toneOf(advice, body.contamination);
  const changed = section.dataset.action !== advice.action;
  section.dataset.action = advice.action;
  const rows = body.comparisons.slice(0, MOST);
  const rest = body.comparisons.length - rows.length;
  const said = standing(body.state, body.sentence, body.contamination, advice);
  const sentences = rows.map((one) => one.sentence);
  put(
    byId("experiment-body"),
    h(
      "p",
      { class: "sentence", "data-tone": ACTION_TONES[advice.action] },
      symbol(ACTION_SYMBOLS[advice.action]),
      h("span", { id: "sentence" }, ...advised(advice.sentence, body.contamination)),
    ),
    ...(said ? [h("p", { id: "standing" }, said)] : []),
    ...(rows.length ? [effects(rows, "Effects since the start", true)] : []),
    ...(rest > 0 ? [h("p", {}, `${count(rest)} more comparisons stand with their metrics.`)] : []),
    ...[sampleRatio(body.srm)].filter(Boolean),
    ...body.notes.filter((note) => !sentences.includes(note)).map((note) => h("p", { class: "note" }, note)),
  );
  return changed;
}

/** A sentence, in which what is said of units of several variants is amber. */
function advised(sentence, contamination) {
  const said = contamination?.sentence.replace(/\.$/, "");
  const at = said ? sentence.indexOf(said) : -1;
  if (at < 0) return [h("span", {}, sentence)];
  return [
    h("span", {}, sentence.slice(0, at)),
    h("span", { class: "attention" }, said),
    h("span", {}, sentence.slice(at + said.length)),
  ];
}

function sampleRatio(srm) {
  if (!srm) return null;
  const arms = Object.entries(srm.counts).map(([arm, n]) => `${name(arm)} ${count(n)}`);
  const said = srm.reason
    ? ""
    : `; as planned: p ${chance(value(srm.pvalue))}, e-value ${evidence(value(srm.e_value))}`;
  return h("p", { class: "note" }, `Units: ${arms.join(", ") || "not counted"}${said}`);
}
