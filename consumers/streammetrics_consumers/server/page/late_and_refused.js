// The late and the refused events, which the health strip counts: by log, by reason, and the newest. They
// are asked for when a user opens them.

import { answer, NoAnswer } from "/assets/answers.js";
import { byId, h } from "/assets/elements.js";
import { count, name, time } from "/assets/printed.js";

const IDS = ["late", "refused"]; // the targets of the links in the health strip

/** Show them when they are opened, or when the address names them. */
export function begin() {
  const box = byId("events");
  box.addEventListener("toggle", () => box.open && fill());
  const follow = () => {
    if (!IDS.includes(location.hash.slice(1))) return;
    if (box.open) fill();
    else box.open = true; // which fills it
  };
  addEventListener("hashchange", follow);
  addEventListener("click", (event) => {
    // A link to where the address already is changes no hash.
    if (event.target.closest?.(`a[href="${location.hash}"]`)) follow();
  });
  follow();
}

async function fill() {
  const body = byId("events-body");
  try {
    const [status, refused] = await Promise.all([answer("/api/status"), answer("/api/quarantine")]);
    body.replaceChildren(late(status), ...quarantine(refused));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    body.replaceChildren(h("p", { class: "note" }, `These are not known now: ${error.message}.`));
  }
  const id = location.hash.slice(1);
  if (IDS.includes(id)) byId(id)?.scrollIntoView();
}

function late({ logs }) {
  const rows = logs.map((log) => [
    `${name(log.topic, 80)} ${log.partition}`, count(log.rows), count(log.late),
    log.greatest_event_ms === null ? "none yet" : time(log.greatest_event_ms),
  ]);
  const said = "Late events, by log. Each is counted in its window, also after that was closed.";
  return table("late", said, ["Log", "Read", "Late", "Newest event (UTC)"], rows);
}

function quarantine({ open, reasons, newest }) {
  const by = Object.entries(reasons).map(([reason, n]) => [name(reason), count(n)]);
  const each = newest.map((one) => [
    name(one.partition, 80), String(one.offset), name(one.reason), one.field ? name(one.field) : "",
  ]);
  const said = `Refused events, by reason: ${count(open)} open. After a fix of the config or the event format, `
    + "streammetrics retry counts them.";
  return [
    table("refused", said, ["Reason", "Events"], by),
    table("newest", "The newest refused events. streammetrics quarantine lists all, with their contents.",
      ["Log", "Offset", "Reason", "Field"], each),
  ];
}

function table(id, caption, titles, rows) {
  const head = h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)));
  const lines = rows.map(([first, ...more]) => h("tr", {}, h("th", { scope: "row" }, first), ...more.map((text) => h("td", {}, text))));
  const empty = h("tr", {}, h("td", { colspan: titles.length }, "none"));
  return h("div", { id, class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...(lines.length ? lines : [empty]))));
}
