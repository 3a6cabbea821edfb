// The health strip, which is never hidden: whether events are counted, the lag, and the counts.

import { byId, h, say } from "/assets/elements.js";
import { duration, time } from "/assets/printed.js";

const MARKS = { live: "●", idle: "◌", stale: "▲", broken: "✕", lost: "✕", unknown: "…" };
const WORDS = {
  live: "Counting",
  idle: "Not counting here",
  stale: "Behind",
  broken: "Broken",
  lost: "No connection",
  unknown: "Asking",
};
const FIELDS = [
  ["lag", "Lag", "Events of the log that are not read yet"],
  ["watermark", "Watermark", "The event time (UTC) up to which all partitions are read"],
  ["read", "Read", "Events read since the start"],
  ["skipped", "Skipped", "Events that the config does not select"],
  ["late", "Late", "Events that came after their window should have been closed: they are counted in it", "late"],
  ["quarantined", "Quarantined", "Events that were refused: they are not counted, and kept to be retried", "refused"],
  ["commit", "Last commit", "When events were last counted"],
];

const fields = {};
let state = null;
let sentence = null;
let last = null; // the body of the last health event, and its time of arrival

/** Build the empty strip. */
export function begin() {
  state = h("span", { class: "health-state" });
  sentence = h("span", { class: "health-sentence" });
  const list = h("dl");
  for (const [key, label, title, target] of FIELDS) {
    fields[key] = h("dd", {}, "…");
    const term = target ? h("a", { href: `#${target}`, title }, label) : label;
    list.append(h("div", { "data-field": key, title }, h("dt", {}, term), fields[key]));
  }
  byId("health").replaceChildren(h("p", {}, state, " ", sentence), list);
  look("unknown", "");
  setInterval(tick, 1000);
}

/** Show the body of /api/health. */
export function show(body) {
  last = { body, atMs: Date.now() };
  look(body.state, body.sentence);
  for (const key of ["lag", "read", "skipped", "late", "quarantined"]) say(fields[key], body.text[key]);
  say(fields.watermark, body.watermark_ms === null ? "none yet" : time(body.watermark_ms));
  fields.skipped.parentElement.hidden = body.skipped === 0; // the config selects every event
  for (const key of ["late", "quarantined"]) {
    fields[key].parentElement.toggleAttribute("data-attention", body[key] > 0);
  }
  fields.read.parentElement.title = `Events read since the start; of these ${body.text.others}`;
  tick();
}

/** Show that the server, or its store, does not answer; the numbers stay. */
export function lost(why, kind = "lost") {
  look(kind, why);
}

function look(kind, why) {
  const known = kind in WORDS ? kind : "unknown";
  byId("health").dataset.state = known;
  say(state, `${MARKS[known]} ${WORDS[known]}`);
  say(sentence, why.replace(/^Counting[.,] ?/, "")); // the word before it says that
}

function tick() {
  if (last === null) return;
  const { committed_s: age, since_s: since } = last.body;
  const passed = (Date.now() - last.atMs) / 1000;
  if (age !== null) say(fields.commit, `${duration(age + passed)} ago`);
  else say(fields.commit, since ? `none in the last ${duration(since + passed)}` : "none seen");
}
