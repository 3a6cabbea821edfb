// The events of hooks of an experiment: what was sent to whom, and how that ended.

import { byId, h, put } from "/assets/elements.js";
import { count, name, time } from "/assets/printed.js";

const TITLES = ["Time (UTC)", "Event", "About", "Receiver", "State", "Attempts", "Last answer"];
const WORDS = {
  guardrail_broken: "guardrail broken", worse: "worse", sample_ratio: "sample ratio",
  recommendation: "recommendation", store_stalled: "store stalled",
};
const TONES = { sent: "good", waiting: "warn", failed: "bad", held: "bad", dropped: "neutral" };

/** Show the events of hooks in the body of /api/experiment, if there are any. */
export function show({ hooks = [] }) {
  const section = byId("hooks");
  section.hidden = hooks.length === 0;
  if (section.hidden) return;
  const caption = "The newest first. An event is sent until its receiver has it, always with the same content.";
  put(byId("hooks-body"),
    h("p", { class: "note" }, caption),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Events of hooks" },
      h("table", { "aria-label": "Events of hooks" },
        h("thead", {}, h("tr", {}, ...TITLES.map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, ...hooks.map(line)))));
}

function line(one) {
  const about = [one.metric, one.arm].filter(Boolean).map((text) => name(text)).join(", ");
  const receiver = one.host ? `${name(one.name)} (${name(one.host, 60)})` : name(one.name);
  const answered = one.answered_ms === null ? "" : ` at ${time(one.answered_ms)}`;
  const cells = [WORDS[one.event] ?? name(one.event), about, receiver];
  return h("tr", {}, h("th", { scope: "row" }, h("data", { value: one.created_ms }, time(one.created_ms))),
    ...cells.map((text) => h("td", {}, text)),
    h("td", { class: "count", "data-tone": TONES[one.state] }, one.state),
    h("td", {}, h("data", { value: one.attempts }, count(one.attempts))),
    h("td", {}, one.answer ? `${name(one.answer, 80)}${answered}` : ""));
}
