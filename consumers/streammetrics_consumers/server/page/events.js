// The server says when something was counted; the page asks then, and never on a timer.

const SILENT_MS = 20_000; // the server sends at least a comment every 15 s

/**
 * Listen for ever. `moved(data)`: something was counted; `health(data)`; `away(came)`: the store
 * does not answer; `lost()`: the server does not.
 */
export function listen({ moved, health, away, lost }) {
  let timer = 0;
  let source = null;

  function heard() {
    clearTimeout(timer);
    timer = setTimeout(begin, SILENT_MS, true);
  }

  function begin(silent = false) {
    if (silent) lost();
    source?.close();
    source = new EventSource("/api/events");
    const on = (kind, told) =>
      source.addEventListener(kind, (event) => {
        heard();
        told(JSON.parse(event.data));
      });
    on("moved", moved);
    on("health", health);
    on("away", (data) => away(data.came));
    source.onopen = heard;
    source.onerror = () => {
      lost();
      // A refused stream (too many readers, no token) is not tried again by the browser.
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(timer);
        timer = setTimeout(begin, 5000);
      }
    };
    heard();
  }

  begin();
}
