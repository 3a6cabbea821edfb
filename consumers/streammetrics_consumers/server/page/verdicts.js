// Verdicts and recommendations as a person reads them: a word, a symbol beside it, and a tone, which
// the style sheet colours. The tables are those of consumers/streammetrics_consumers/render/verdict_words.py.

import { h } from "/assets/elements.js";
import { value } from "/assets/printed.js";

export const TONES = {
  better: "good",
  worse: "bad",
  higher: "neutral",
  lower: "neutral",
  faded: "neutral",
  no_difference_yet: "neutral",
  kept: "good",
  broken: "bad",
  open: "neutral",
  disbelieved: "warn",
  not_started: "neutral",
};
export const SYMBOLS = {
  better: "✓",
  worse: "✕",
  higher: "↑",
  lower: "↓",
  faded: "~",
  no_difference_yet: "○",
  kept: "✓",
  broken: "✕",
  open: "○",
  disbelieved: "!",
  not_started: "…",
};
export const ACTION_TONES = {
  ship: "good",
  do_not_ship: "bad",
  decide: "neutral",
  wait: "neutral",
  check_setup: "warn",
};
export const ACTION_SYMBOLS = { ship: "✓", do_not_ship: "✕", decide: "◆", wait: "…", check_setup: "!" };

/** A verdict in words. */
export const words = (verdict) => verdict.replaceAll("_", " ");

/** The symbol for those who see it, before words that all have. */
export const symbol = (text) => h("span", { class: "symbol", "aria-hidden": "true" }, text);

/** The tone of a recommendation: amber where units of several variants are too many, unless there is
 * worse. */
export function toneOf(recommendation, contamination) {
  const tone = ACTION_TONES[recommendation.action];
  return contamination?.warning && tone !== "bad" ? "warn" : tone;
}

/** The title of a column of p-values, and the values: as `p_column` of the command line. */
export function pColumn(comparisons) {
  const adjusted = comparisons.every((one) => one.guardrail || one.holm_pvalue !== null);
  const of = (one) => (adjusted ? one.holm_pvalue : one.anytime_pvalue);
  return [
    adjusted ? "p (Holm)" : "p (not adjusted)",
    comparisons.map((one) => (one.guardrail || one.anytime_reason ? NaN : value(of(one)))),
  ];
}

/** What stands below the recommendation: as `standing` of the command line. */
export function standing(state, sentence, contamination, recommendation) {
  if (["waiting", "distrusted", "early"].includes(state)) return "";
  const said = contamination?.sentence;
  const rest = said ? sentence.replaceAll(said, "").trim() : sentence;
  const sentences = rest.split(/(?<=[.]) (?=[A-Z])/);
  return sentences.filter((one) => !recommendation.sentence.includes(one)).join(" ");
}
