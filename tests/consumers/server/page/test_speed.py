"""At 50 metrics, 10 variants and 30 days of windows the page costs what is in view of it.

How long that takes is measured by benchmarks/bench_page.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.patience import until

Open = Callable[..., Seen]
KINDS = ("Ratio", "HistogramAUC", "Calibration")
METRICS = {"ctr": "Ratio", **{f"m{i:02d}": KINDS[i % 3] for i in range(49)}}
VARIANTS = tuple(f"v{i}" for i in range(10))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """The size that is promised."""
    folder = tmp_path_factory.mktemp("big")
    with Stream.counted(folder, VARIANTS, METRICS, days=30, events=5).serve() as stream:
        yield stream


def figures(page: Seen) -> int:
    """How many charts were asked for."""
    return sum(urlsplit(url).path == "/api/figure" for url in page.requests)


def test_what_is_not_in_view_is_neither_drawn_nor_asked_for(big: Stream, open_page: Open) -> None:
    page = open_page(big.url).until("ready").settled(1200)  # the server has said where it stands
    paths = Counter(urlsplit(url).path for url in page.requests)
    assert [paths[f"/api/{name}"] for name in ("store", "results", "experiment")] == [1, 1, 1]
    assert page.page.locator(".card").count() == len(METRICS)
    assert figures(page) <= 6
    assert page.page.locator("*").count() < 3000
    for _ in range(30):
        page.page.mouse.wheel(0, 800)
        page.page.wait_for_timeout(30)
    page.page.locator(".card").last.scroll_into_view_if_needed()
    page.page.wait_for_selector(".card:last-child table")
    page.settled()
    # What was seen on the way is given back.
    assert page.page.locator("*").count() < 3000
    assert page.page.locator("figure canvas").count() <= 12
    assert page.page.locator(".card table").count() <= 30


def test_an_update_asks_for_the_results_and_for_the_charts_in_view_alone(
    big: Stream, open_page: Open
) -> None:
    page = open_page(big.url).until("ready").chart()
    page.settled(1200)
    nodes = page.page.locator("*").count()
    canvases = page.page.query_selector_all("figure canvas")
    page.requests.clear()
    big.write(1, day=29)
    big.count()
    page.page.wait_for_selector('.card[data-metric="ctr"] td:text-is("151")')
    until(lambda: page.has_asked("/api/experiment"))  # a look at it follows the results
    page.settled(1200)
    requests = Counter(page.requests)
    kinds = Counter(urlsplit(url).path for url in requests)
    assert kinds.pop("/api/figure") <= 4
    # The look at the experiment is a commit of its own, after which the rows are the same.
    assert kinds.pop("/api/experiment") <= 2
    assert kinds == {"/api/results": 1}
    for url, times in requests.items():
        # The look at the experiment is a commit of its own, which charts of values are not part of.
        assert times <= (1 if "kind=history" in url else 2), requests
    # New numbers go into the charts that are there; marks of axes may come and go.
    assert abs(page.page.locator("*").count() - nodes) < 50
    assert all(canvas.evaluate("one => one.isConnected") for canvas in canvases)
