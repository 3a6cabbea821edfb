// The page: it requests the view in the address from the server, again when something changed.

import { addressOf, asked, go, onView, question } from "/assets/address.js";
import { answer, NoAnswer } from "/assets/answers.js";
import * as cards from "/assets/cards.js";
import { announce, byId, say } from "/assets/elements.js";
import { listen } from "/assets/events.js";
import * as experiment from "/assets/experiment.js";
import * as index from "/assets/experiment_index.js";
import * as exposed from "/assets/exposed.js";
import * as exposures from "/assets/exposures.js";
import * as filters from "/assets/filters.js";
import * as health from "/assets/health.js";
import * as hooks from "/assets/hooks.js";
import * as joined from "/assets/joined.js";
import * as lateAndRefused from "/assets/late_and_refused.js";
import * as matrix from "/assets/matrix.js";
import * as notice from "/assets/notice.js";
import * as overlaps from "/assets/overlaps.js";
import { onPrint } from "/assets/print.js";
import { count } from "/assets/printed.js";
import { doubtsOf } from "/assets/tables.js";
import { onTheme } from "/assets/theme.js";

const MOST_DOUBTS = 10; // caveats that are listed
const MOST_SLICES = { one: 200, many: 50 }; // of a metric, beside no and beside other metrics
const CONNECT_MS = 500; // how long the first requests wait for the events
const [NOTHING, LOOKS, ALL] = [0, 1, 2]; // what has changed
const EVERYTHING = {
  experiment: null, window: "total", by: null, where: [], metric: null, generation: null,
  chart: "history", find: "", search: "", sort: null, order: null, unfold: [],
};

let store = null;
let outlines = 0; // how often the windows or names of the store have changed
let storeMark = ""; // the one that `store` is of, and what it was asked
let moves = 0; // how often anything of the store has changed
let experiments = { mark: "", answer: null }; // the index, and when it was asked for
let back = EVERYTHING; // the view of the index that was shown last
let experimentShown; // the name of the experiment whose page is shown, null of the index
let shownAtMs = null; // when the answer that is shown arrived
let running = null; // the requests in progress
let due = NOTHING; // what has changed since they were sent
let lastMoved = null; // the last `moved` event of the server
let shown = null; // the view and the results of the cards
let latest = { words: null, results: null };
const connected = Promise.withResolvers();

/** Request the view in the address, and show it. One at a time; changes meanwhile are requested after. */
async function refresh({ restart = false, moved = ALL } = {}) {
  due = Math.max(due, moved);
  if (running && !restart) return;
  running?.abort();
  const mine = (running = new AbortController());
  try {
    await showView(mine.signal);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  } finally {
    if (running === mine) {
      running = null;
      if (due !== NOTHING) refresh({ moved: due });
    }
  }
}

async function showView(signal) {
  const view = asked();
  const asking = JSON.stringify([outlines, view.experiment, view.generation]); // a change meanwhile is requested after
  if (storeMark !== asking) {
    store = await answer("/api/store", question(view, ["experiment", "generation"]), signal);
    storeMark = asking;
    notice.title({ store: store.name });
  }
  view.by ??= grouping(store);
  const words = wordsOf(view, { texts: "tables" });
  // The server sends the state of the store at once. Requests after that need no repeat.
  if (lastMoved === null) await Promise.race([connected.promise, pause(CONNECT_MS)]);
  signal.throwIfAborted();
  const same = due === LOOKS && words === latest.words && view.window !== "all";
  due = NOTHING;
  const [counted, found, all] = await Promise.all([
    same ? latest.results : resultsOf(view, words, signal),
    answer("/api/experiment", question(view, ["experiment", "generation"], { texts: "tables" }), signal),
    indexOf(view, signal),
  ]);
  signal.throwIfAborted();
  const results = same ? looked(counted, view, found) : counted;
  latest = { words, results };
  performance.clearMarks(); // of the last update: the page may be open for weeks
  performance.clearMeasures();
  performance.mark("answered");
  shownAtMs = Date.now();
  filters.learn(results.results);
  filters.show(store, view, change);
  if (experiment.show(found)) announce(found.recommendation.sentence);
  hooks.show(found);
  exposed.show(found.exposed);
  showIndex(all, view);
  matrix.show(store, view, results, cards.variantsOf(store, results.results));
  joined.show(results.join);
  exposures.show(results.exposures);
  notice.incomplete(results);
  footnotes(results.results);
  notice.notes(results.notes.filter((note) => found.recommendation === null || !found.notes.includes(note)));
  shown = { view, results };
  const many = showCards();
  byId("as-text").href = `/results.txt?${question(view, ["experiment", "window", "by", "where", "metric", "generation"])}`;
  byId("as-json").href = `/api/results?${wordsOf(view)}`;
  if (many === 0 && view.find === "") notice.empty(isFiltered(view), addressOf({ ...EVERYTHING, experiment: view.experiment }), view.experiment);
  else notice.ready();
  performance.mark("shown");
  performance.measure("update", "answered", "shown");
}

/** The index of experiments, requested once after each change; null if none has a name. */
async function indexOf(view, signal) {
  if (store.experiments === undefined) return null;
  const mark = JSON.stringify([moves, view.generation]); // a change meanwhile is requested after
  if (experiments.mark !== mark) {
    const words = question(view, ["generation"], { texts: "tables" });
    experiments = { mark, answer: await answer("/api/experiments", words, signal) };
  }
  return experiments.answer;
}

/** Show the index, or of one experiment the way back to it. */
function showIndex(all, view) {
  const isIndex = view.experiment === null;
  if (isIndex) back = { ...EVERYTHING, ...arrangement(asked()) };
  index.show(isIndex ? all : null, asked());
  overlaps.show(all, view);
  byId("way-back").hidden = isIndex;
  byId("way-back").firstElementChild.href = addressOf({ ...back, generation: view.generation });
  const before = experimentShown;
  experimentShown = view.experiment;
  if (before === undefined || before === experimentShown) return;
  if (isIndex) index.focus(before);
  else byId("store").focus();
}

/** How the index is sorted, searched and unfolded in a view. */
const arrangement = ({ search, sort, order, unfold }) => ({ search, sort, order, unfold });

/** The parameters of the results of a view. */
const wordsOf = (view, more = {}) =>
  question(view, ["experiment", "window", "by", "where", "metric", "generation"],
    { views: view.metric === null ? null : "all", ...more });

/** The results of a view: of a table of slices the first ones, of one view. */
async function resultsOf(view, words, signal) {
  const isTable = view.window === "all" || view.by.split(",").some((one) => one !== "" && one !== "variant");
  if (!isTable) return answer("/api/results", words, signal);
  const most = view.metric === null ? MOST_SLICES.many : MOST_SLICES.one;
  const some = await answer("/api/results", `${words}&most=${most}`, signal);
  // A slice alone is shown with all views.
  return some.slices[view.metric]?.all === 1 ? answer("/api/results", words, signal) : some;
}

/** Show the cards of the last answer; returns how many. */
function showCards() {
  const { view, results } = shown;
  const many = cards.show(store, view, results, change);
  const found = view.find === "" ? "" : ` with “${view.find}”`;
  const none = many === 0 && found === "" && !isFiltered(view); // as long as nothing is counted
  const shows = none ? store.metrics.length : many;
  say(byId("metrics-title"), (shows === 1 ? "1 metric" : `${count(shows)} metrics`) + (none ? " without rows" : found));
  byId("filters").hidden = none;
  return many;
}

/** The caveats of the intervals, to which each † leads. */
function footnotes(rows) {
  const metrics = new Map(); // by caveat: that of one metric names it
  for (const row of rows) {
    for (const one of doubtsOf([row])) metrics.set(one, (metrics.get(one) ?? new Set()).add(row.metric));
  }
  const why = [...metrics].map(([one, of]) => (of.size > 1 ? one : `${[...of][0]}: ${one}`));
  const rest = why.length > MOST_DOUBTS ? `; and ${count(why.length - MOST_DOUBTS)} more` : "";
  say(byId("doubts"), why.length ? `† ${why.slice(0, MOST_DOUBTS).join("; ")}${rest}.` : "");
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Results after another look at the same rows; looks are taken at all rows since the start. */
function looked(results, view, found) {
  const others = results.comparisons.filter((one) => one.window.start_ms !== null);
  if (others.length === results.comparisons.length) return results;
  const mine = found.comparisons.filter((one) => view.metric === null || one.metric === view.metric);
  return { ...results, comparisons: [...mine, ...others] };
}

/** The default grouping: the smallest with variants, else the smallest. */
function grouping({ groupings }) {
  const sizes = [...groupings].sort((a, b) => a.length - b.length);
  return (sizes.find((names) => names.includes("variant")) ?? sizes[0] ?? []).join(",");
}

const isFiltered = (view) =>
  view.window !== "total" || view.where.length > 0 || view.metric !== null;

function failed(error) {
  latest = { words: null, results: null };
  if (!(error instanceof NoAnswer)) throw error;
  const away = error.status === 0 || error.status === 503;
  if (away && shownAtMs !== null) notice.stale(shownAtMs, sentence(error.message));
  else notice.broken(error, addressOf(EVERYTHING));
  announce(byId("notice").textContent);
}

const sentence = (text) => `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

function change(view, { search = false } = {}) {
  go({ ...view, ...arrangement(asked()) }, search);
  if (search && shown !== null) {
    shown = { ...shown, view: { ...shown.view, find: view.find } };
    showCards();
  } else refresh({ restart: true });
}

function lost(why, kind) {
  health.lost(why, kind);
  if (shownAtMs !== null) notice.stale(shownAtMs, why);
}

health.begin();
index.begin();
onPrint(cards.whole);
lateAndRefused.begin();
notice.loading();
onView(() => refresh({ restart: true }));
onTheme(cards.recolour);
listen({
  moved(data) {
    const before = lastMoved;
    lastMoved = data;
    if (JSON.stringify(before) !== JSON.stringify(data)) moves += 1;
    connected.resolve();
    if (before !== null && before.outline !== data.outline) outlines += 1;
    refresh({ moved: before?.moment === data.moment ? LOOKS : ALL });
  },
  health(data) {
    health.show(data);
    notice.warnings(data.warnings);
  },
  away(reason) {
    lost(sentence(reason), "broken");
  },
  lost() {
    lost("The server does not answer.", "lost");
  },
});
refresh();
