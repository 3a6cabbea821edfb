// The server notifies the page when something was counted; the page asks only then, never on a timer.

const SILENT_MS = 20_000; // the server sends `health` every few seconds

/**
 * Listen for ever. `moved(data)`: something was counted; `health(data)`; `away(reason)`: the store
 * does not answer, for this reason; `lost()`: the server does not answer.
 */
export function listen({ moved, health, away, lost }) {
  let timer = 0;
  let source = null;

  function restartTimer() {
    clearTimeout(timer);
    timer = setTimeout(begin, SILENT_MS, true);
  }

  function begin(silent = false) {
    if (silent) lost();
    source?.close();
    source = new EventSource("/api/events");
    const on = (kind, handle) =>
      source.addEventListener(kind, (event) => {
        restartTimer();
        handle(JSON.parse(event.data));
      });
    on("moved", moved);
    on("health", health);
    on("away", (data) => away(data.got));
    source.onopen = restartTimer;
    source.onerror = () => {
      lost();
      // The browser does not retry a refused stream (too many readers, no token).
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(timer);
        timer = setTimeout(begin, 5000);
      }
    };
    restartTimer();
  }

  begin();
}
