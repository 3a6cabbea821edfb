// The address holds the view, with the parameters of the command line and of the API: experiment,
// window, by, where (repeatable), metric; and those that only the page has: chart and find, and of the
// index search, sort, order and unfold. So a view can be shared.

/** The view in the address. Unknown values are kept, so that the API can refuse them. */
export function asked() {
  const words = new URLSearchParams(location.search);
  return {
    experiment: words.get("experiment"),
    window: words.get("window") ?? "total",
    by: words.get("by"),
    where: words.getAll("where"),
    metric: words.get("metric"),
    generation: words.get("generation"),
    chart: words.get("chart") ?? "history",
    find: words.get("find") ?? "",
    search: words.get("search") ?? "",
    sort: words.get("sort"),
    order: words.get("order"),
    unfold: (words.get("unfold") ?? "").split(",").filter(Boolean),
  };
}

/** The address of a view, without parameters that have their default. */
export function addressOf(view) {
  const words = new URLSearchParams();
  if (view.experiment !== null) words.append("experiment", view.experiment);
  if (view.window !== "total") words.append("window", view.window);
  if (view.by !== null) words.append("by", view.by);
  for (const condition of view.where) words.append("where", condition);
  if (view.metric !== null) words.append("metric", view.metric);
  if (view.generation !== null) words.append("generation", view.generation);
  if (view.chart !== "history") words.append("chart", view.chart);
  if (view.find !== "") words.append("find", view.find);
  if (view.search !== "") words.append("search", view.search);
  if (view.sort !== null) words.append("sort", view.sort);
  if (view.order !== null) words.append("order", view.order);
  if (view.unfold.length) words.append("unfold", view.unfold.join(","));
  const text = words.toString();
  return location.pathname + (text ? "?" + text : "");
}

/** The parameters of a request to the API: these of the view, and those in `more`. */
export function question(view, names, more = {}) {
  const words = new URLSearchParams();
  for (const name of names) {
    if (name === "where") for (const condition of view.where) words.append("where", condition);
    else if (view[name] !== null && view[name] !== undefined) words.append(name, view[name]);
  }
  for (const [name, word] of Object.entries(more)) if (word !== null) words.append(name, word);
  return words.toString();
}

/** Call `changed` when the user goes back or forward, or follows a link to another view of this page
 * (`data-view`), for which the page is not loaded again. */
export function onView(changed) {
  addEventListener("popstate", changed);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-view]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    changed();
  });
}

/** Go to a view without loading the page again. `replace`: without a new entry of the history. */
export function go(view, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", addressOf(view));
}
