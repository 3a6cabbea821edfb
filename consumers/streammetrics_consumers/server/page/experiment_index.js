// The index of the experiments with names: what each says, how far it is, and what that rests on.
// Those that somebody should look at come first; ended and archived ones are folded. The answer of the
// server holds all of it, so that sorting, searching and unfolding ask for nothing.

import { addressOf, asked, go } from "/assets/address.js";
import { announce, byId, h, put, say } from "/assets/elements.js";
import { COLUMNS, isToStop, orderOf, sorted, sortedBy, taskOf } from "/assets/experiment_order.js";
import { intervalBar, scaleOf } from "/assets/interval_bar.js";
import { alarmsOf } from "/assets/overlaps.js";
import { count, name, value } from "/assets/printed.js";
import { ariaSort, arrow } from "/assets/sorting.js";
import { sparkline } from "/assets/sparkline.js";
import { data, symbol } from "/assets/tables.js";

const FOLDS = ["ended", "archived"];
const TASKS = {
  "to stop": ["bad", "✕"],
  "to check": ["warn", "!"],
  "to ship": ["good", "✓"],
  "to decide": ["neutral", "◆"],
  "to wait for": ["neutral", "…"],
};
const NAME = 64; // letters of the longest name of an experiment
const TITLE = 80;
const MOST = 200; // rows of one table

let shown = null; // the answer

/** Listen to the user, who sorts, searches and unfolds the index. */
export function begin() {
  const section = byId("index");
  section.addEventListener("click", clicked);
  section.addEventListener("input", ({ target }) => {
    if (target.name === "search") again({ search: target.value }, true);
  });
  section.addEventListener("toggle", toggled, true); // which does not bubble
  byId("index-tools").addEventListener("submit", (event) => event.preventDefault());
}

/** Show the body of /api/experiments in a view; null: nothing. */
export function show(answer, view) {
  byId("index").hidden = answer === null;
  shown = answer;
  if (answer === null) return;
  const field = byId("index-tools").elements.search;
  if (field.value !== view.search) field.value = view.search;
  const groups = Map.groupBy(answer.experiments, foldOf);
  const current = groups.get("") ?? [];
  const kind = groups.size === 1 ? "" : "current"; // beside others that are folded
  say(byId("index-title"), found(current, kind, view));
  put(byId("index-summary"), ...summary(current));
  put(byId("index-body"), ...alarmsOf(answer), ...list(current, kind, view),
    ...FOLDS.filter((fold) => groups.has(fold)).map((fold) => folded(groups.get(fold), fold, view)));
}

/** Where an experiment is folded; "" where it is not. */
const foldOf = (one) => (one.archived ? "archived" : one.state === "ended" ? "ended" : "");

const counted = (n, kind) => `${count(n)} ${kind ? `${kind} ` : ""}experiment${n === 1 ? "" : "s"}`;

/** Focus the link of an experiment, from which the user comes back. */
export function focus(experiment) {
  const link = [...byId("index").querySelectorAll("a[data-experiment]")].find((one) => one.dataset.experiment === experiment);
  link?.focus();
}

/** How many are to stop, to check and so on, in one line. */
function summary(entries) {
  const groups = Map.groupBy(entries, taskOf);
  return Object.entries(TASKS).filter(([task]) => groups.has(task)).map(([task, [tone, mark]]) =>
    h("span", { class: "count", "data-tone": tone }, symbol(mark), `${count(groups.get(task).length)} ${task}`));
}

/** A group of experiments that a user unfolds. */
function folded(entries, fold, view) {
  const isOpen = view.unfold.includes(fold) || (view.search !== "" && hitsOf(entries, view).length > 0);
  return h("details", { "data-fold": fold, open: isOpen },
    h("summary", {}, found(entries, fold, view)), ...list(entries, fold, view));
}

/** The table of the experiments that have the searched text. */
function list(entries, kind, view) {
  const label = found(entries, kind, view);
  const hits = sorted(hitsOf(entries, view), view);
  if (hits.length === 0) return [h("p", { class: "note" }, `${label}.`)];
  const { by, isDown } = orderOf(view);
  const head = ([key, { title }]) =>
    h("th", { scope: "col", role: "columnheader", "data-column": key,
      "aria-sort": ariaSort(by === key, isDown) },
    h("button", { type: "button", class: "sort", "data-sort": key }, title, arrow(by === key, isDown)));
  const drawn = (title) => h("th", { scope: "col", role: "columnheader", class: "drawing" }, h("span", { class: "hidden" }, title));
  const heads = Object.entries(COLUMNS).flatMap((one) =>
    one[0] === "effect" ? [head(one), drawn("Interval, drawn"), drawn("Effect by looks, drawn")] : [head(one)]);
  return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table of ${label}` },
    h("table", { class: "index", role: "table" },
      h("caption", { class: "hidden" }, label),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
      h("tbody", { role: "rowgroup" }, ...hits.slice(0, MOST).map((one) => row(one, view))))),
  hits.length > MOST ? h("p", { class: "note" }, `${count(hits.length - MOST)} more experiments: search for them.`) : null];
}

/** The experiments of a table: all, or those that have the searched text. */
function found(entries, kind, view) {
  const all = counted(entries.length, kind);
  return view.search === "" ? all : `${count(hitsOf(entries, view).length)} of ${all} with “${name(view.search, NAME)}”`;
}

const hitsOf = (entries, { search }) => {
  const text = search.trim().toLowerCase();
  return entries.filter((one) => `${one.name}\n${one.title}`.toLowerCase().includes(text));
};

function row(one, view) {
  const { text, recommendation: advice } = one;
  const [tone, mark] = [text.tone, text.symbol || "!"];
  const cell = (column, kind, attributes, ...parts) =>
    h("td", { class: kind, role: "cell", "data-label": column, ...attributes }, h("span", {}, ...parts));
  // The sentence says why somebody should look at it: the action, and after a colon its reason.
  const isQuiet = advice?.action === "wait";
  const [words, ...why] = advice === null ? ["unknown", one.sentence] : isQuiet ? [text.advice] : advice.sentence.split(": ");
  return h("tr", { role: "row", "data-tone": isToStop(one) ? "bad" : tone, "data-verdict": one.effect?.verdict ?? null },
    h("th", { scope: "row", role: "rowheader" }, linkOf(one, view),
      one.title && one.name ? h("small", {}, name(one.title, TITLE)) : null),
    h("td", { class: "advice", role: "cell", "data-tone": isQuiet ? null : tone }, symbol(mark),
      h("span", {}, name(words, 80), why.length ? h("small", {}, name(why.join(": "), 400)) : null)),
    ...effect(one),
    cell("Guardrails", null, { "data-tone": one.guardrails.broken.length ? text.guardrails_tone : null }, text.guardrails || "none"),
    cell("Sample ratio", null, { "data-tone": one.srm?.alarm ? text.ratio_tone : null }, text.ratio || "not known"),
    cell("Days", null, {}, text.days || "not known"),
    cell("Units", null, {}, text.units || "not known"),
    cell("State", null, {}, one.state));
}

/** The link to an experiment, whose page has all since the start. */
function linkOf({ name: own, title }, view) {
  const address = addressOf(viewOf(own, view));
  return h("a", { href: address, "data-view": true, "data-experiment": own }, own === "" ? name(title || "(no name)", TITLE) : name(own, NAME));
}

/** The view of an experiment, from that of the index. */
const viewOf = (experiment, { generation }) => ({
  experiment, generation, window: "total", by: null, where: [], metric: null, chart: "history",
  find: "", search: "", sort: null, order: null, unfold: [],
});

/** The effect in numbers, its interval about zero in the middle, and its course. */
function effect({ effect: of, text }) {
  if (of === null) {
    return [h("td", { role: "cell", "data-label": "Effect" }, h("span", {}, "none yet")),
      h("td", { class: "drawn", role: "cell" }), h("td", { class: "course", role: "cell" })];
  }
  const numbers = { value: value(of.estimate), lower: value(of.lower), upper: value(of.upper), low: NaN, high: NaN };
  const finite = [numbers.value, numbers.lower, numbers.upper].filter(Number.isFinite).map(Math.abs);
  const most = Math.max(0, ...finite);
  const scale = finite.length && most > 0 ? scaleOf([-most, most], [], true) : null;
  const tone = { better: "good", worse: "bad" }[of.verdict] ?? "neutral";
  return [
    h("td", { class: "number", role: "cell", "data-label": "Effect", title: of.reason || null },
      h("span", {}, h("span", { class: "value" }, data(of.relative, text.lift || text.effect || "—")), ` ${text.label}`,
        h("small", {}, text.always ? `${text.effect} [${text.always}]` : "too early"))),
    h("td", { class: "drawn", role: "cell", "data-mark": tone }, intervalBar(scale, numbers)),
    h("td", { class: "course", role: "cell", "data-mark": tone }, sparkline(of.course)),
  ];
}

function clicked(event) {
  const button = event.target.closest?.("[data-sort]");
  if (button) again(sortedBy(asked(), button.dataset.sort));
}

function toggled({ target }) {
  const { fold } = target.dataset;
  const view = asked();
  if (fold === undefined || view.search !== "" || view.unfold.includes(fold) === target.open) return;
  again({ unfold: target.open ? [...view.unfold, fold] : view.unfold.filter((one) => one !== fold) }, true);
}

/** Show the same answer in another view. `replace`: without a new entry of the history. */
function again(parts, replace = false) {
  const view = { ...asked(), ...parts };
  go(view, replace);
  show(shown, view);
  announce(byId("index-title").textContent);
}
