// The address holds the view, with the parameters of the command line and of the API: window, by,
// where (repeatable), metric; and chart and find, which only the page has. So a view can be shared.

/** The view in the address. Unknown values are kept, so that the API can refuse them. */
export function asked() {
  const words = new URLSearchParams(location.search);
  return {
    window: words.get("window") ?? "total",
    by: words.get("by"),
    where: words.getAll("where"),
    metric: words.get("metric"),
    generation: words.get("generation"),
    chart: words.get("chart") ?? "history",
    find: words.get("find") ?? "",
  };
}

/** The address of a view, without parameters that have their default. */
export function addressOf(view) {
  const words = new URLSearchParams();
  if (view.window !== "total") words.append("window", view.window);
  if (view.by !== null) words.append("by", view.by);
  for (const condition of view.where) words.append("where", condition);
  if (view.metric !== null) words.append("metric", view.metric);
  if (view.generation !== null) words.append("generation", view.generation);
  if (view.chart !== "history") words.append("chart", view.chart);
  if (view.find !== "") words.append("find", view.find);
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

/** Call `changed` when the user goes back or forward. */
export function onBack(changed) {
  addEventListener("popstate", changed);
}

/** Go to a view without loading the page again. `replace`: without a new entry of the history. */
export function go(view, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", addressOf(view));
}
