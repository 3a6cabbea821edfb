"""The cost of the page in a real browser at the size of a large experiment: 50 metrics, 10 variants
and 30 days of windows.

First content: from the request of the page until the first text, and until the tables are shown, in
a new profile (`cold`) and with its files in the cache (`warm`). Then one update: all work of the
page's main thread in Chromium's own trace from a commit until the page is idle, with the charts,
minus its work in an equally long time without one; its longest task; and the time by kind of work.
Each has two times: CPU time, and wall time, which includes other processes.
`python -m benchmarks.bench_page`; needs Chromium.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from benchmarks.bench_http import EVENTS, append, count, timed_request, write
from benchmarks.browser import Unavailable, running_browser
from benchmarks.main_thread import CATEGORIES, NOTHING, Busy, Ms, busy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

UPDATES: Final = 5
SETTLED_MS: Final = 5_000  # charts follow one by one
FIRST: Final = ("api/store", "api/results?by=variant&views=headline", "api/experiment")


def main() -> int:
    """Print the figures."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write(folder)
        count(config)
        watched = WatchedWorkers(dict, time.monotonic, time.time)
        try:
            with (
                serving(str(folder / "store.db"), ServerConfig(port=0), watched) as url,
                running_browser() as browser,
            ):
                for path in FIRST:
                    # The server has read its store, as after earlier visits.
                    timed_request(url + path)
                page = _opened(browser, url)
                _updates(browser, page, folder, config)
        except Unavailable as error:
            sys.stderr.write(f"no browser: {error}\n")
            return 1
    return 0


def _opened(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(url)
    print(f"{'ms':40} {'text':>8} {'tables':>8}")
    for name in ("cold", "warm"):
        page.wait_for_selector("html[data-state=ready]", state="attached")
        page.wait_for_timeout(SETTLED_MS)
        first, shown = (_mark_ms(page, mark) for mark in ("first-contentful-paint", "shown"))
        print(f"{'first content, ' + name:40} {first:8.0f} {shown:8.0f}")
        if name == "cold":
            page.reload()
    print(f"{'elements':40} {page.locator('*').count():8}")
    return page


def _mark_ms(page: Page, name: str) -> float:
    return float(page.evaluate("(name) => performance.getEntriesByName(name)[0].startTime", name))


def _updates(browser: Browser, page: Page, folder: Path, config: Path) -> None:
    """Updates with charts in view and new numbers in every row."""
    page.locator(".card").first.scroll_into_view_if_needed()
    page.locator("figure").first.scroll_into_view_if_needed()
    page.wait_for_selector("figure[aria-busy=false] canvas")
    page.wait_for_timeout(SETTLED_MS)
    counted = EVENTS

    def commit() -> None:
        nonlocal counted
        append(folder, counted, 100)
        counted += 100
        count(config)

    commit()
    page.wait_for_timeout(SETTLED_MS)
    idle = _traced(browser, page, lambda: None)
    traces = [_traced(browser, page, commit) for _ in range(UPDATES)]
    print(f"\n{'ms of the main thread':40} {'CPU':>10} {'wall':>10}")
    _line("an update", [trace.total.less(idle.total) for trace in traces])
    for kind in traces[0].kinds:
        less = idle.kinds.get(kind, NOTHING)
        _line(f"  {kind}", [trace.kinds.get(kind, NOTHING).less(less) for trace in traces])
    _line("longest task of an update", [trace.longest for trace in traces])
    _line("as long, without an update", [idle.total])


def _traced(browser: Browser, page: Page, act: Callable[[], None]) -> Busy:
    browser.start_tracing(page=page, categories=list(CATEGORIES))
    act()
    page.wait_for_timeout(SETTLED_MS)
    return busy(browser.stop_tracing())


def _line(name: str, durations: list[Ms]) -> None:
    cpu, wall = (statistics.median(values) for values in zip(*durations, strict=True))
    print(f"{name:40} {cpu:10.0f} {wall:10.0f}")


if __name__ == "__main__":
    sys.exit(main())
