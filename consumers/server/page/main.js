// The page: what the address asks for, asked of the server, and asked again when something moved.

import { addressOf, asked, go, onBack, question } from "/assets/address.js";
import { answer, NoAnswer } from "/assets/answers.js";
import * as cards from "/assets/cards.js";
import { announce, byId, say } from "/assets/elements.js";
import { listen } from "/assets/events.js";
import * as experiment from "/assets/experiment.js";
import * as filters from "/assets/filters.js";
import * as health from "/assets/health.js";
import * as notice from "/assets/notice.js";
import { count } from "/assets/printed.js";
import { onTheme } from "/assets/theme.js";

const EVERYTHING = { window: "total", by: null, where: [], metric: null, chart: "history", generation: null };

let store = null;
let outline = null; // of the store that `store` describes
let shownAtMs = null; // when what is shown was answered
let running = null; // the questions that are waited for
let again = false;

/** Ask for what the address says, and show it. One at a time; what moves meanwhile is asked after. */
async function refresh({ anew = false } = {}) {
  if (running && !anew) {
    again = true;
    return;
  }
  running?.abort();
  const mine = (running = new AbortController());
  try {
    await showView(mine.signal);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  } finally {
    if (running === mine) {
      running = null;
      if (again) {
        again = false;
        refresh();
      }
    }
  }
}

async function showView(signal) {
  const view = asked();
  if (store === null) store = await answer("/api/store", question(view, ["generation"]), signal);
  notice.title(store.name);
  view.by ??= grouping(store);
  const words = question(view, ["window", "by", "where", "metric", "generation"], {
    views: view.metric === null ? "headline" : null,
  });
  const [results, found] = await Promise.all([
    answer("/api/results", words, signal),
    answer("/api/experiment", question(view, ["generation"]), signal),
  ]);
  signal.throwIfAborted();
  performance.mark("answered");
  shownAtMs = Date.now();
  filters.learn(results.results);
  filters.show(store, view, change);
  if (experiment.show(found)) announce(found.sentence);
  const many = cards.show(store, view, results, change);
  say(byId("metrics-title"), many === 1 ? "1 metric" : `${count(many)} metrics`);
  byId("as-text").href = `/results.txt?${question(view, ["window", "by", "where", "metric", "generation"])}`;
  byId("as-json").href = `/api/results?${words}`;
  if (many === 0) notice.empty(isFiltered(view), addressOf(EVERYTHING));
  else notice.ready();
  performance.mark("shown");
  performance.measure("update", "answered", "shown");
}

/** The grouping that is shown unasked: the smallest with variants, else the smallest. */
function grouping({ groupings }) {
  const sizes = [...groupings].sort((a, b) => a.length - b.length);
  return (sizes.find((names) => names.includes("variant")) ?? sizes[0] ?? []).join(",");
}

const isFiltered = (view) =>
  view.window !== "total" || view.where.length > 0 || view.metric !== null;

function failed(error) {
  if (!(error instanceof NoAnswer)) throw error;
  const away = error.status === 0 || error.status === 503;
  if (away && shownAtMs !== null) notice.stale(shownAtMs, sentence(error.message));
  else notice.broken(error, addressOf(EVERYTHING));
  announce(byId("notice").textContent);
}

const sentence = (text) => `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

function change(view) {
  go(view);
  refresh({ anew: true });
}

function lost(why, kind) {
  health.lost(why, kind);
  if (shownAtMs !== null) notice.stale(shownAtMs, why);
}

health.begin();
notice.loading();
onBack(() => refresh({ anew: true }));
onTheme(cards.recolour);
listen({
  moved(data) {
    if (outline !== null && outline !== data.outline) store = null;
    outline = data.outline;
    refresh();
  },
  health: health.show,
  away(came) {
    lost(sentence(came), "broken");
  },
  lost() {
    lost("The server does not answer.", "lost");
  },
});
refresh();
