"""Empty, loading, stale and broken: each state of the page is named, said and drawn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.witness import note_known
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.patience import LIMIT_S
from tests.ports import free_ports

Open = Callable[..., Seen]


def test_loading_is_said_until_there_is_an_answer(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").page
    page.route("**/api/results*", lambda route: None)
    page.reload()
    page.wait_for_selector("html[data-state=loading]", state="attached")
    assert "Loading the results" in page.inner_text("#notice")
    assert page.locator("table.figures").count() == 0


def test_an_empty_store_says_that_the_page_fills_by_itself(tmp_path: Path, open_page: Open) -> None:
    with Stream.counted(tmp_path, days=0).serve() as stream:
        page = open_page(stream.url).until("empty")
        assert "No events are counted yet" in page.text("#notice")
        stream.write(20)
        stream.count()
        page.until("ready")
        assert page.page.locator("table.figures").count() >= 1


def test_a_store_that_went_back_is_amber_until_it_has_counted_again(
    stream_copy: Stream, open_page: Open
) -> None:
    with stream_copy.serve(), closing(Ledger.open(str(stream_copy.folder / "store.db"))) as ledger:
        page = open_page(stream_copy.url).until("ready")
        assert page.page.locator("#incomplete").is_hidden()
        (head,) = ledger.snapshot().heads
        note_known(ledger.store, ledger.snapshot().generation, head, head.next_offset + 30)
        page.page.wait_for_selector("#incomplete h2")
        title, text = page.text("#incomplete").split("\n\n")
        answer = read_results(ledger, Query())
        assert f"incomplete: {text[0].lower()}{text[1:]}" == answer.incomplete_text
        assert title == "Results are incomplete"
        ground = "one => getComputedStyle(one).backgroundColor"
        amber = page.page.eval_on_selector("#incomplete", ground)
        assert amber != page.page.eval_on_selector(".card", ground)
        scraped = httpx.get(f"{stream_copy.url}metrics", timeout=LIMIT_S).text
        assert "\nstreammetrics_store_incomplete_logs 1.0\n" in scraped
        stream_copy.write(20)
        stream_copy.count()
        page.page.wait_for_selector("#incomplete:empty", state="attached")


def test_a_filter_that_lets_nothing_pass_leads_back(served: Stream, open_page: Open) -> None:
    page = open_page(served.url + "?by=variant,phase&where=phase=none").until("empty")
    assert "No results pass the filters" in page.text("#notice")
    page.page.click("#notice a")
    page.until("ready")


def test_an_address_that_asks_for_what_is_not_there_says_what_to_do(
    served: Stream, open_page: Open
) -> None:
    page = open_page(served.url + "?metric=nope").until("broken")
    notice = page.text("#notice")
    assert "asks for something that does not exist" in notice
    assert "got 'nope'" in notice and "What to do" in notice
    page.page.click("#notice a")
    page.until("ready")


def test_a_store_that_is_away_is_broken(served: Stream, open_page: Open) -> None:
    page = open_page(served.url).until("ready").page
    error = '{"error": {"got": "the store is away"}}'
    page.route("**/api/results*", lambda route: route.fulfill(status=503, body=error))
    page.reload()
    page.wait_for_selector("html[data-state=broken]", state="attached")
    assert "the store is away" in page.inner_text("#notice")


def test_what_is_shown_is_stale_when_the_server_goes_and_fresh_when_it_returns(
    stream_copy: Stream, open_page: Open
) -> None:
    (port,) = free_ports(1)
    with stream_copy.serve(port) as stream:
        page = open_page(stream.url).until("ready")
    page.until("stale")
    assert "The results shown are from" in page.text("#notice")
    assert "No connection" in page.text("#health")
    assert page.page.locator("table.figures").count() >= 1
    with stream.serve(port):
        page.until("ready")
        assert "No connection" not in page.text("#health")
