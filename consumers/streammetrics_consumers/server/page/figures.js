// Charts: specifications from the server, drawn by Vega. Charts out of view are not drawn, one is
// drawn at a time while the browser is idle, and new numbers go into the existing chart.

import { answer, NoAnswer } from "/assets/answers.js";
import { h, say } from "/assets/elements.js";
import { tooltips, withLazyTooltips } from "/assets/tooltip.js";

// The content-security policy allows no eval (`ast`), and none of the styles of Vega.
const OPTIONS = {
  ast: true,
  actions: false,
  renderer: "canvas",
  defaultStyle: false,
};

// Kinds whose rows have fixed positions, so that some rows can change without the others.
const STEADY = ["windows", "effects"];

const MOST_CHANGES = 50; // then it is drawn anew: Vega keeps a little of each change for ever

let vega = null; // the module, once the first chart is needed
const waiting = [];
let working = false;

const figures = new WeakMap(); // by their box
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) figures.get(entry.target)?.seen(entry.isIntersecting);
});

/** A box for one chart. */
export class Figure {
  constructor(label) {
    this.note = h("span", { class: "note" });
    this.chart = h("div", { class: "figure-inner", role: "img", "aria-label": label });
    this.box = h("figure", { "aria-busy": "true" },
      h("figcaption", {}, `${label} `, this.note), this.chart);
    this.view = null;
    this.shape = null;
    this.data = null;
    this.rows = null; // those of the chart, by their JSON
    this.changes = 0; // since it was drawn
    this.wanted = null;
    this.isSeen = false;
    this.mark = null; // the last request, and its moment
    this.words = null; // the request to send once the box is visible
    figures.set(this.box, this);
    watcher.observe(this.box);
  }

  /** Show the answer to this request at `moment`; at another moment it is sent again. */
  show(words, moment) {
    const mark = `${words} ${moment}`;
    if (mark === this.mark) return;
    this.mark = mark;
    this.words = words;
    if (this.isSeen) this.ask();
  }

  /** Draw the chart now, in view or not; resolves when it is drawn, or cannot be. */
  async whole() {
    if (this.words !== null) this.ask();
    while (this.box.getAttribute("aria-busy") === "true" && this.box.isConnected) {
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  seen(isSeen) {
    this.isSeen = isSeen;
    if (isSeen && this.words !== null) this.ask();
  }

  ask() {
    const { words } = this;
    this.words = null;
    this.wanted?.abort();
    this.wanted = new AbortController();
    const { signal } = this.wanted;
    answer("/api/figure", words, signal).then(
      (spec) => later(() => (signal.aborted ? null : this.draw(spec))),
      (error) => {
        if (!(error instanceof NoAnswer) || signal.aborted) return;
        this.mark = null;
        this.explain(error.message);
      },
    );
  }

  /** Release the chart; the box stays, so that nothing moves. */
  drop() {
    this.wanted?.abort();
    this.view?.finalize();
    this.view = this.shape = this.data = this.rows = this.mark = this.words = null;
    this.chart.replaceChildren();
    this.box.setAttribute("aria-busy", "true");
  }

  async draw(spec) {
    const { reason, shape } = spec.usermeta ?? {};
    if (reason) {
      this.explain(reason);
      return;
    }
    const data = JSON.stringify(spec.data);
    const size = textSize();
    const whole = JSON.stringify([shape, spec.config, size]);
    say(this.note, [spec.title?.subtitle ?? ""].flat().join(" "));
    if (this.view !== null && whole === this.shape && this.changes < MOST_CHANGES) {
      if (data !== this.data) await this.change(spec);
      this.data = data;
      this.chart.setAttribute("aria-label", spec.description);
      return;
    }
    const vegaEmbed = await library();
    if (vegaEmbed === null) {
      this.mark = null; // requested again when something changes
      this.explain("The charts did not load; the tables have the numbers.");
      return;
    }
    this.view?.finalize();
    const inner = h("div", { class: "figure-inner" });
    this.chart.replaceChildren(inner);
    const [lazy, fields] = withLazyTooltips(fitted(spec, size));
    this.view = (await vegaEmbed(inner, lazy, { ...OPTIONS, tooltip: tooltips(fields) })).view;
    this.rows = null;
    this.changes = 0;
    this.shape = whole;
    this.data = data;
    this.chart.setAttribute("aria-label", spec.description);
    this.box.setAttribute("aria-busy", "false");
  }

  /** Change the rows of the existing chart. Of a month of windows, one has changed. */
  async change(spec) {
    this.changes += 1;
    const rows = new Map();
    for (const row of spec.data.values) {
      let text = JSON.stringify(row);
      while (rows.has(text)) text += " ";
      rows.set(text, this.rows?.get(text) ?? row);
    }
    const some = this.rows !== null && STEADY.includes(spec.usermeta.kind);
    const gone = some ? [...this.rows].filter(([text]) => !rows.has(text)) : null;
    const come = some ? [...rows].filter(([text]) => !this.rows.has(text)) : [...rows];
    const changes = this.view.changeset().remove(some ? gone.map(([, row]) => row) : () => true)
      .insert(come.map(([, row]) => row));
    this.rows = rows;
    await this.view.change("rows", changes).runAsync();
  }

  explain(text) {
    this.view?.finalize();
    this.view = this.shape = this.data = this.rows = null;
    this.chart.replaceChildren(h("p", { class: "note" }, text));
    this.chart.setAttribute("aria-label", text);
    this.box.setAttribute("aria-busy", "false");
  }
}

/** The charting library; null if it cannot be loaded now, such as from a server that has gone. */
async function library() {
  try {
    vega ??= import("/assets/charts.js");
    return (await vega).vegaEmbed;
  } catch {
    vega = null;
    return null;
  }
}

/** The scale of the page's text, which is larger on a wall display; that of charts follows it. */
const textSize = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

/** A chart as wide as its box, with text of the page's size; the caption of the box is its title. */
function fitted(spec, size) {
  const { config } = spec;
  const [label, title] = [11 * size, 12 * size];
  const axis = { ...config.axis, labelFontSize: label, titleFontSize: title };
  const legend = { ...config.legend, labelFontSize: title, titleFontSize: title,
    symbolSize: config.legend.symbolSize * size, symbolStrokeWidth: config.legend.symbolStrokeWidth * size };
  const layer = spec.layer.map((one) => ({ ...one, mark: enlarged(one.mark, size) }));
  return { ...spec, layer, title: undefined, width: "container", height: spec.height * size,
    config: { ...config, axis, legend } };
}

/** A mark whose lines and points grow with the text. */
function enlarged(mark, size) {
  if (typeof mark === "string") return mark;
  const found = { ...mark };
  if (mark.strokeWidth !== undefined) found.strokeWidth = mark.strokeWidth * size;
  if (mark.size !== undefined) found.size = mark.size * size * size;
  if (mark.fontSize !== undefined) found.fontSize = mark.fontSize * size;
  return found;
}

/** Do this work when the browser is idle, after earlier work. */
function later(work) {
  waiting.push(work);
  if (!working) next();
}

function next() {
  const work = waiting.shift();
  working = work !== undefined;
  if (!working) return;
  const idle = globalThis.requestIdleCallback ?? ((done) => setTimeout(done, 1));
  idle(
    async () => {
      try {
        await work();
      } catch (error) {
        console.error(error);
      } finally {
        next();
      }
    },
    { timeout: 1000 },
  );
}
