"""Quick at 50 metrics, 10 variants and 30 days of windows: measured in the browser's own trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]
KINDS = ("Ratio", "HistogramAUC", "Calibration")
METRICS = {"ctr": "Ratio", **{f"m{i:02d}": KINDS[i % 3] for i in range(49)}}
VARIANTS = tuple(f"v{i}" for i in range(10))


class TooSlow(Exception):
    """Nothing else is expected to fail."""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """The size that is promised. The server has read its store once, for whoever asked first."""
    folder = tmp_path_factory.mktemp("big")
    with Stream.served(folder, VARIANTS, METRICS, days=30, events=10) as stream:
        stream.get("api/results?by=variant&views=headline")
        yield stream


@pytest.mark.timeout(300)
def test_fifty_metrics_of_ten_variants_are_there_within_a_second(
    big: Stream, open_page: Open, record_property: Callable[[str, object], None]
) -> None:
    page = open_page(big.url).until("ready")
    cold_ms = _mark(page, "shown")
    page.chart()
    page.page.reload()  # scripts are in the browser's cache now
    page.until("ready")
    paint_ms, warm_ms = _mark(page, "first-contentful-paint"), _mark(page, "shown")
    for name, ms in (("cold", cold_ms), ("warm", warm_ms), ("first paint", paint_ms)):
        record_property(f"{name}, ms", round(ms))
    assert max(paint_ms, warm_ms) < 1000
    assert page.page.locator("*").count() < 6000
    assert page.page.locator("figure canvas").count() < 20


@pytest.mark.timeout(300)
@pytest.mark.xfail(
    strict=True, raises=TooSlow, reason="an update takes about 200 ms; 100 ms are promised"
)
def test_an_update_takes_less_than_a_tenth_of_a_second_of_the_main_thread(
    big: Stream, open_page: Open, record_property: Callable[[str, object], None]
) -> None:
    page = open_page(big.url).until("ready")
    page.chart()
    page.page.wait_for_timeout(4000)
    session = page.page.context.new_cdp_session(page.page)
    session.send("Performance.enable")
    idle_ms = _busy_ms(session, lambda: page.page.wait_for_timeout(4000))
    busy_ms = _busy_ms(session, lambda: _update(big, page))
    record_property("update, ms", round(busy_ms))
    record_property("idle, ms", round(idle_ms))
    arrived = page.page.locator('.card[data-metric="ctr"] td:text-is("301")').count()
    assert arrived == len(VARIANTS)
    if busy_ms >= 100:
        raise TooSlow(f"{busy_ms:.0f} ms")


def _update(stream: Stream, page: Seen) -> None:
    stream.write(1, day=29)
    stream.count()
    page.page.wait_for_timeout(4000)  # the charts follow one by one


def _busy_ms(session: CDPSession, act: Callable[[], None]) -> float:
    """Time of the page's main thread: scripts, layout and paint, those of the charts too."""

    def now_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    before_s = now_s()
    act()
    return 1000 * (now_s() - before_s)


def _mark(page: Seen, name: str) -> float:
    return float(
        page.page.evaluate("(name) => performance.getEntriesByName(name)[0].startTime", name)
    )
