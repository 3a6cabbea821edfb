"""The page after it was open for long: many updates leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.patience import until

Open = Callable[..., Seen]
UPDATES = 80  # more than a chart takes before it is drawn anew
# Both charts are there, and no other.
DRAWN = """() => document.querySelectorAll("figure canvas").length === 2
  && document.querySelectorAll("figure[aria-busy=false] canvas").length === 2"""
# The events are the test's, and each answer differs from the last.
FAKE = """(() => {
  globalThis.EventSource = class extends EventTarget {
    constructor() {
      super();
      globalThis.said = (moment) => this.dispatchEvent(
        new MessageEvent("moved", { data: JSON.stringify({ moment, outline: "" }) }));
    }
    close() {}
  };
  const real = fetch;
  globalThis.charts = 0;
  globalThis.fetch = async (path, options) => {
    const response = await real(path, options);
    if (!response.ok) return response;
    const body = await response.json();
    if (body.results) body.offsets["events.jsonl/0"] += globalThis.charts;
    if (body.data) {
      globalThis.charts += 1;
      for (const row of body.data.values) if (row.value) row.value *= 1 + globalThis.charts / 1e4;
    }
    return new Response(JSON.stringify(body), { status: response.status });
  };
})()"""


def test_many_updates_leave_no_elements_no_listeners_and_no_old_charts(
    served: Stream, open_page: Open
) -> None:
    visit = open_page("about:blank")
    with closing(visit.page.context.new_page()) as page:
        page.set_viewport_size({"width": 1280, "height": 2400})
        page.add_init_script(FAKE)
        page.goto(served.url + "?metric=ctr")
        page.wait_for_function("() => globalThis.said")
        update(page, 0)
        page.wait_for_selector("figure[aria-busy=false] canvas")
        for moment in range(1, 4):
            update(page, moment)
        page.wait_for_function(DRAWN)
        before = counted(page)
        first = page.query_selector("figure .figure-inner .figure-inner")
        assert first is not None
        for moment in range(4, 10 * UPDATES):  # a busy machine draws several answers at once
            update(page, moment)
            if moment >= UPDATES and not first.evaluate("one => one.isConnected"):
                break
        assert page.evaluate("globalThis.charts") > UPDATES
        assert not first.evaluate("one => one.isConnected")
        page.wait_for_function(DRAWN)

        def nothing_is_left() -> bool:  # what an answer still draws beside it ends
            after = counted(page)
            return (
                after["nodes"] <= before["nodes"] + 40
                and after["jsEventListeners"] <= before["jsEventListeners"] + 10
            )

        until(nothing_is_left, lambda: (before, counted(page)))
        assert page.evaluate("performance.getEntriesByType('measure').length") == 1


def update(page: Any, moment: int) -> None:
    """One event, and its charts."""
    charts = page.evaluate(
        "(moment) => { globalThis.said(moment); return globalThis.charts; }", moment
    )
    page.wait_for_function(f"() => globalThis.charts > {charts}")
    page.wait_for_timeout(20)


def counted(page: Any) -> dict[str, int]:
    """The elements and listeners that are alive, also those out of the document."""
    tool = page.context.new_cdp_session(page)
    tool.send("HeapProfiler.collectGarbage")
    counters: dict[str, int] = tool.send("Memory.getDOMCounters")
    tool.detach()
    return counters
