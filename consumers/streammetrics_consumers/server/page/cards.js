// A card for each metric: its tables, the effects and its charts. A card far out of view is a heading
// above an empty box of the same height, so that only visible rows cost anything.

import { addressOf, question } from "/assets/address.js";
import { answer, NoAnswer } from "/assets/answers.js";
import { byId, h, put } from "/assets/elements.js";
import { Figure } from "/assets/figures.js";
import { CHARTS } from "/assets/filters.js";
import { name, span } from "/assets/printed.js";
import { AT_FIRST, MOST, slicesTable, variantsIn } from "/assets/slices.js";
import { effects, figures, METRIC, sliceName } from "/assets/tables.js";
import { isDark } from "/assets/theme.js";

const NEAR = "200px 0px"; // how far out of view a card is already drawn

const cards = new Map(); // by the metric's name
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) cards.get(entry.target.dataset.metric)?.near(entry.isIntersecting);
  },
  { rootMargin: NEAR },
);

/** Show the metrics of an answer whose names have the searched text. `go(view)` is called when the user
 * follows the link of a metric. Returns how many are shown. */
export function show(store, view, results, go) {
  const rows = Map.groupBy(results.results, (row) => row.metric);
  const compared = Map.groupBy(results.comparisons, (one) => one.metric);
  const find = view.find.trim().toLowerCase();
  const wanted = store.metrics.filter((one) => rows.has(one.name) && one.name.toLowerCase().includes(find));
  for (const [key, card] of cards) {
    if (!wanted.some((one) => one.name === key)) card.remove();
  }
  const box = byId("cards");
  box.toggleAttribute("data-alone", view.metric !== null);
  wanted.forEach((one, i) => {
    const card = cards.get(one.name) ?? new Card(one, go);
    if (box.children[i] !== card.box) box.insertBefore(card.box, box.children[i] ?? null);
    card.update({ store, view, metric: one, rows: rows.get(one.name), offsets: results.offsets,
      slices: results.slices?.[one.name], comparisons: compared.get(one.name) ?? [] });
  });
  return wanted.length;
}

/** Draw all cards with their charts, also out of view. */
export const whole = () => Promise.all([...cards.values()].map((card) => card.whole()));

/** Draw the charts again, in other colours. */
export function recolour() {
  for (const card of cards.values()) card.draw();
}

/** The position of each variant, which gives its colour, in charts too: as declared, else in order; and
 * which is the control. */
export function variantsOf(store, rows) {
  const found = [...new Set(rows.map((row) => row.slice.variant))].filter((one) => one !== undefined);
  const known = store.variants.length ? store.variants : found;
  const place = (variant) => (known.includes(variant) ? known.indexOf(variant) : known.length);
  return { place, control: store.control ?? undefined };
}

/** The effects of a metric: of each treatment its own table if there are several windows. */
function effectsOf(comparisons, control) {
  if (comparisons.length === 0) return [];
  const caption = `against ${name(control)}`; // which the rows do not name
  if (new Set(comparisons.map((one) => one.window.start_ms)).size === 1) return [effects(comparisons, `Effect ${caption}`, false)];
  return [...Map.groupBy(comparisons, (one) => one.treatment_variant)].map(([variant, mine]) =>
    effects(mine, `Effect of ${name(variant, 24)} ${caption}, each window by itself`, false));
}

class Card {
  constructor(metric, go) {
    const id = `metric-${cards.size}-${Math.random().toString(36).slice(2)}`;
    this.link = h("a", {}, name(metric.name, METRIC));
    this.link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ ...this.shown.view, metric: metric.name });
    });
    this.tables = h("div", { class: "tables" });
    this.sorting = AT_FIRST; // of the table of slices
    this.sorted = null; // its rows as the server sorted and searched them; null for those of the page
    this.asking = null; // the request for these, in progress
    for (const kind of ["click", "input", "change"]) this.tables.addEventListener(kind, (event) => this.sort(event));
    this.charts = h("div", { class: "charts" });
    this.body = h("div", { class: "card-body" }, this.tables, this.charts);
    this.box = h("section", { class: "card", "aria-labelledby": id, "data-metric": metric.name },
      h("h3", { id }, this.link, " ", h("small", {}, metric.type)), this.body);
    this.figures = new Map(); // by kind
    this.isNear = false;
    this.mark = "";
    cards.set(metric.name, this);
    watcher.observe(this.box);
  }

  /** Set the contents; they are drawn if the card is near the view. */
  update(shown) {
    this.shown = shown;
    this.link.href = addressOf({ ...shown.view, metric: shown.metric.name });
    if (this.needsServer()) this.ask();
    else this.sorted = null;
    if (this.isNear) this.draw();
  }

  near(isNear) {
    if (isNear === this.isNear) return;
    this.isNear = isNear;
    if (isNear) {
      this.draw();
      this.body.style.minHeight = "";
      return;
    }
    this.body.style.minHeight = `${this.body.offsetHeight}px`;
    this.tables.replaceChildren();
    for (const figure of this.figures.values()) figure.drop();
    this.mark = "";
  }

  /** Draw everything, also out of view, as on paper; resolves when the charts are drawn. */
  async whole() {
    this.isNear = true;
    this.body.style.minHeight = "";
    this.draw();
    await Promise.all([...this.figures.values()].map((figure) => figure.whole()));
  }

  draw() {
    if (!this.isNear) return;
    const mark = JSON.stringify([this.sorted ?? this.shown.rows, this.shown.comparisons]);
    if (mark !== this.mark) put(this.tables, ...this.content());
    this.mark = mark;
    this.chart();
  }

  content() {
    const { store, view, metric, comparisons } = this.shown;
    const { rows, slices } = this.sorted?.rows.length ? this.sorted : this.shown;
    const views = view.metric === null ? metric.headlines : [...new Set([...metric.headlines, ...metric.views])];
    const searched = rows !== this.shown.rows && this.sorted.find === this.sorting.find;
    const cut = slices?.all > 1 ? { slices, views, searched } : null;
    const order = (view) => [...metric.headlines, ...metric.views].indexOf(view);
    const who = variantsOf(store, rows);
    const isControl = (row) => row.slice.variant === who.control;
    const key = (row) => JSON.stringify([row.window.start_ms, row.window.end_ms, sliceName(row.slice)]);
    rows.sort((a, b) => order(a.view) - order(b.view) || isControl(b) - isControl(a)
      || who.place(a.slice.variant) - who.place(b.slice.variant));
    const { window, slice } = rows[0];
    const alone = cut === null && new Set(rows.map(key)).size === 1;
    const parts = [alone ? sliceName(slice) : "", window.start_ms === null ? "" : `${span(window)}, ${window.state}`];
    const label = (alone || window.start_ms === null ? parts.filter(Boolean).join("; ") : "") || span({ start_ms: null });
    const tables = alone
      ? [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${name(metric.name, METRIC)}, ${label}` },
          figures(rows, label, who))]
      : slicesTable(rows, this.sorting, who, name(metric.name, METRIC), cut);
    return [...tables, ...effectsOf(comparisons, store.control)];
  }

  /** Sort or search the table of slices. */
  sort({ type, target }) {
    const button = target.closest?.("[data-sort]");
    if (type === "click" && button) {
      const by = Number(button.dataset.sort);
      // Names ascend first, and numbers descend.
      const down = this.sorting.by === by ? !this.sorting.down : by > 0;
      this.sorting = { ...this.sorting, by, down };
    } else if (type === "input" && target.matches(".slice-find")) {
      this.sorting = { ...this.sorting, find: target.value };
    } else if (type === "change" && target.matches(".slice-view")) {
      this.sorting = { ...this.sorting, view: target.value };
    } else return;
    if (this.needsServer()) this.ask();
    else this.sorted = null;
    put(this.tables, ...this.content());
  }

  /** Whether the table needs rows that the answer left out: of other slices, or of another view. */
  needsServer() {
    const { slices } = this.shown;
    const leftOut = slices?.all > slices?.shown && this.sorting !== AT_FIRST;
    return leftOut || (slices?.all > 1 && this.sorting.view !== null);
  }

  /** Request the rows that are first in the order of the table; the latest request counts. */
  async ask() {
    const { store, view, metric, rows } = this.shown;
    const { by, down, find, view: which } = this.sorting;
    const variants = variantsIn(rows, variantsOf(store, rows));
    const variant = by > 0 && by <= variants.length ? variants[by - 1] : undefined;
    const words = question(view, ["experiment", "window", "by", "where", "generation"], {
      metric: metric.name, texts: "tables", most: MOST, view: which, find: find.trim() || null,
      sort: !by ? null : by <= variants.length ? "value" : "rows",
      variant: variant === undefined ? null : String(variant), order: down ? "descending" : null,
    });
    this.asking?.abort();
    const mine = (this.asking = new AbortController());
    try {
      const { results, slices } = await answer("/api/results", words, mine.signal);
      this.sorted = { rows: results, slices: slices[metric.name], find };
      if (this.isNear) put(this.tables, ...this.content());
    } catch (error) {
      // The page says why there is no answer, when it asks the next time.
      if (error.name !== "AbortError" && !(error instanceof NoAnswer)) throw error;
    }
  }

  chart() {
    const { view, metric, offsets, comparisons } = this.shown;
    const looks = comparisons.map((one) => one.looks);
    const kinds = view.metric === null ? this.one() : this.all();
    for (const [kind, figure] of this.figures) {
      if (kinds.includes(kind)) continue;
      figure.drop();
      figure.box.remove();
      this.figures.delete(kind);
    }
    const theme = isDark() ? "dark" : "light";
    for (const kind of kinds) {
      const figure = this.figures.get(kind) ?? new Figure(CHARTS[kind] ?? name(kind));
      if (!this.figures.has(kind)) this.charts.append(figure.box);
      this.figures.set(kind, figure);
      const window = kind === "history" || kind === "effect" || view.window === "all" ? null : view.window;
      const words = question(view, ["experiment", "by", "where", "generation"],
        { kind, metric: metric.name, window, theme });
      figure.show(words, JSON.stringify([offsets, kind === "effect" ? looks : null]));
    }
  }

  /** The kind of chart that the filters ask for, else the one that every metric has. */
  one() {
    const { view } = this.shown;
    if (view.chart === "none") return [];
    return this.all().includes(view.chart) ? [view.chart] : ["history"];
  }

  all() {
    const { store, metric, comparisons } = this.shown;
    const effect = store.experiment && comparisons.length > 0;
    const kinds = new Set(["history", ...(effect ? ["effect"] : []), ...metric.figures]);
    kinds.delete("values"); // the tables show them
    return [...kinds];
  }

  remove() {
    watcher.unobserve(this.box);
    for (const figure of this.figures.values()) figure.drop();
    this.asking?.abort();
    this.box.remove();
    cards.delete(this.shown.metric.name);
  }
}
