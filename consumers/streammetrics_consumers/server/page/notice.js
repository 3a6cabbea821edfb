// The state of the page as a whole: loading, ready, empty, stale or broken. It is `data-state` of the
// document, by which the style sheet draws it.

import { byId, h, put, say } from "/assets/elements.js";
import { count, name, time } from "/assets/printed.js";

const MOST_LOGS = 10; // that are named
const MOST_NOTES = 10;
const STATES = ["loading", "ready", "empty", "stale", "broken"];

/** Set the state, and its text. */
function set(state, title, ...parts) {
  console.assert(STATES.includes(state));
  document.documentElement.dataset.state = state;
  const lines = parts.filter((part) => part !== null);
  const mark = [state, title, ...lines.map((line) => line.textContent ?? line)].join("\n");
  const notice = byId("notice");
  if (notice.dataset.mark === mark) return;
  notice.dataset.mark = mark;
  notice.replaceChildren(
    ...(title ? [h("h2", {}, title), ...lines.map((line) => h("p", {}, line))] : []),
  );
}

/** No answer has arrived yet. */
export const loading = () => set("loading", "Loading the results…");

/** The results are shown, and are up to date. */
export const ready = () => set("ready", "");

/** There is nothing to show: nothing was counted, of the experiment if one is named, or nothing passes
 * the filters. */
export function empty(filtered, everything, experiment) {
  if (!filtered) {
    const hint = "The page fills by itself as soon as the first events are committed.";
    set("empty", `No events${experiment === null ? "" : " of this experiment"} are counted yet`, hint);
    return;
  }
  set("empty", "No results pass the filters", h("a", { href: everything }, "Show everything"));
}

/** The results shown are old: since when, and why. */
export function stale(sinceMs, why) {
  set("stale", "Not up to date", `${why} The results shown are from ${time(sinceMs)} UTC.`);
}

/** The request has no answer, and nothing is shown in its place. */
export function broken(error, everything) {
  const { expected, got, where, hint } = error.parts;
  const titles = {
    0: "The server does not answer",
    400: "This address asks for something that does not exist",
    401: "This page needs its token",
    503: "The store cannot be read",
  };
  set(
    "broken",
    titles[error.status] ?? "Something went wrong",
    expected ? `Expected ${expected}; got ${got}.` : `Got: ${got}.`,
    where ? `Where: ${where}.` : null,
    error.status === 401 ? "Open the address that the server printed when it started." : null,
    hint ? `What to do: ${hint}.` : null,
    error.status === 400 ? h("a", { href: everything }, "Show everything") : null,
  );
}

/** Show which logs are counted less far than before, in the words of `Results.incomplete_text`. */
export function incomplete({ incomplete: logs, offsets }) {
  const named = Object.entries(logs).map(
    ([log, known]) => `${name(log, 200)} is counted up to ${offsets[log] ?? "nothing"}, previously up to ${known}`,
  );
  const many = named.length > MOST_LOGS ? `, and ${named.length - MOST_LOGS} more logs` : "";
  const said = `The store went back, and the lost records are counted again: ${named.slice(0, MOST_LOGS).join(", ")}${many}`;
  put(byId("incomplete"), ...(named.length ? [h("h2", {}, "Results are incomplete"), h("p", {}, said)] : []));
}

/** Show the warnings about the stream, such as that most events are refused. */
export function warnings(some) {
  const mark = some.join("\n");
  const box = byId("warnings");
  if (box.dataset.mark === mark) return;
  box.dataset.mark = mark;
  const lines = some.map((text) => h("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`));
  put(box, ...(lines.length ? [h("h2", {}, "Most events are not counted"), ...lines,
    h("p", {}, h("a", { href: "#refused" }, "Refused events"))] : []));
}

/** Show the notes on the metrics, such as alarms and drifts that are not computed. */
export function notes(some) {
  const rest = some.length - MOST_NOTES;
  const lines = rest > 0 ? [...some.slice(0, MOST_NOTES), `and ${count(rest)} more notes`] : some;
  put(byId("notes"), ...lines.map((note) =>
    h("p", { class: note.includes(": alarm: ") ? "note attention" : "note" }, name(note, 400))));
}

const titles = { name: "", hypothesis: "", experiment: "", store: "" };

/** Show the declared name and hypothesis of the experiment, or its name in the config, else the name of
 * the store; also as the title of the tab. */
export function title(some) {
  Object.assign(titles, some);
  const { name: declared, hypothesis, experiment, store } = titles;
  const own = experiment === "" ? "" : name(experiment, 64);
  const first = declared ? name(declared, 200) : own || store;
  say(byId("store"), first);
  say(byId("hypothesis"), hypothesis ? name(hypothesis, 1000) : "");
  say(byId("file"), [own, store].filter((one) => one !== "" && one !== first).join(" · "));
  document.title = `${declared ? name(declared, 80) : first} - streammetrics`;
}
