// The filters: their choices come from the store, and the selected ones from the address.

import { byId, h } from "/assets/elements.js";
import { name, span } from "/assets/printed.js";

/** The label of each kind of chart. */
export const CHARTS = {
  none: "No chart",
  history: "Over time",
  effect: "Effect over time",
  roc: "ROC",
  pr: "Precision and recall",
  reliability: "Reliability",
  scores: "Score distribution",
  lift: "Lift",
  gain: "Gain",
  uplift: "Uplift curve",
  uplift_parts: "Uplift by part",
  confusion: "Confusion matrix",
  classes: "Classes",
};

const seen = new Map(); // NAME=VALUE to its text: the slices in the answers so far
let mark = "";

/** Remember the slices of an answer, to offer them. */
export function learn(rows) {
  for (const row of rows) {
    for (const [key, value] of Object.entries(row.slice)) {
      if (key === "variant" || key === "(other)" || seen.size >= 500) continue;
      seen.set(`${key}=${value}`, `${name(key)} = ${name(value)}`);
    }
  }
}

/** Show the filters of a view; `changed(view)` is called with the new view. */
export function show(store, view, changed) {
  const next = JSON.stringify([store.outline, store.generation, { ...view, find: "" }, [...seen.keys()]]);
  if (next === mark) return;
  mark = next;
  const form = byId("filters");
  const focused = document.activeElement?.name;
  const choices = [
    select("window", "Time", windows(store, view), view.window.split("/").length > 1 ? firstOf(store, view) : view.window),
    view.window.includes("/") ? select("until", "Until", ends(store, view), view.window.split("/")[1]) : null,
    select("by", "Slices", groupings(store, view), view.by ?? ""),
    select("where", "Only", conditions(view), view.where.join("\n")),
    select("metric", "Metric", metrics(store, view), view.metric ?? ""),
    view.metric === null ? select("chart", "Chart", charts(store, view), view.chart) : null,
    view.metric === null ? search(view) : null,
  ];
  form.replaceChildren(...choices.filter(Boolean));
  form.onsubmit = (event) => event.preventDefault();
  const now = () => ({ ...view, find: form.elements.find?.value ?? view.find });
  form.onchange = ({ target }) =>
    target.name === "find" || changed({ ...now(), ...chosen(store, view, target.name, target.value) });
  form.oninput = ({ target }) => target.name === "find" && changed(now(), { search: true });
  if (focused) form.elements[focused]?.focus();
}

function chosen(store, view, key, value) {
  if (key === "metric") return { metric: value || null };
  if (key === "until") return { window: `${view.window.split("/")[0]}/${value}` };
  if (key === "where") return { where: value ? value.split("\n") : [] };
  return { [key]: value };
}

/** The field that searches the metrics by their names. */
const search = (view) =>
  h("label", {}, h("span", {}, "Search the metrics"),
    h("input", { type: "search", name: "find", value: view.find, autocomplete: "off", maxlength: 100 }));

function select(key, label, options, now) {
  const one = h("select", { name: key });
  for (const [value, text] of options) {
    one.append(h("option", { value, selected: value === now }, text));
  }
  return h("label", {}, h("span", {}, label), one);
}

const added = (options, value, text) =>
  options.some(([known]) => known === value) ? options : [...options, [value, text]];

function windows(store, view) {
  const spans = [...store.windows.spans].reverse().map((one) => [
    `${iso(one.start_ms)}/${iso(one.end_ms)}`,
    `${span(one)}, ${one.state}`,
  ]);
  const options = [["total", "Since the start"], ["latest", "Latest window"], ["all", "Each window"], ...spans];
  return added(options, view.window.includes("/") ? firstOf(store, view) : view.window, name(view.window, 60));
}

/** The window that a range of dates begins with. */
function firstOf(store, view) {
  const [start] = view.window.split("/");
  const first = store.windows.spans.find((one) => iso(one.start_ms) === start);
  return first ? `${start}/${iso(first.end_ms)}` : view.window;
}

/** The ends of the range of dates that begins where the chosen window does. */
function ends(store, view) {
  const [start, end] = view.window.split("/");
  const later = store.windows.spans.filter((one) => iso(one.start_ms) >= start);
  const options = later.map((one) => [iso(one.end_ms), `the end of ${span(one)}`]);
  return added(options, end, name(end, 60));
}

const iso = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");

function groupings(store, view) {
  const options = store.groupings.map((names) => {
    const ordered = [...names].sort((a, b) => (b === "variant") - (a === "variant"));
    return [ordered.join(","), names.length ? `by ${ordered.map((n) => name(n)).join(", ")}` : "all rows"];
  });
  return added(options, view.by ?? "", name(view.by));
}

function conditions(view) {
  const options = [["", "every slice"], ...seen];
  const now = view.where.join("\n");
  return added(options, now, view.where.map((text) => name(text)).join(" and "));
}

function metrics(store, view) {
  const options = store.metrics.map((one) => [one.name, name(one.name, 64)]);
  return added([["", "all metrics"], ...options], view.metric ?? "", name(view.metric));
}

function charts(store, view) {
  const kinds = new Set(["history", ...store.metrics.flatMap((one) => one.figures)]);
  if (store.experiment) kinds.add("effect");
  kinds.delete("values"); // the tables show them
  const options = [...kinds, "none"].map((kind) => [kind, CHARTS[kind] ?? name(kind)]);
  return added(options, view.chart, name(view.chart));
}
