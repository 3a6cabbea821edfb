"""What a page follows, over a real socket: what was counted, and how the store stands."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server import events
from streammetrics_consumers.server.health import HealthMonitor, Watched
from streammetrics_consumers.server.process import serving

from tests.consumers.stores import EVENTS, make_store, write_events

ALONE = Watched(dict, time.monotonic, time.time)


def heard(answer: httpx.Response) -> Generator[tuple[str, dict[str, object]], None, None]:
    """The events of a stream, as a browser reads them."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def until(stream: Iterator[tuple[str, dict[str, object]]], wanted: str) -> dict[str, object]:
    return next(data for name, data in stream if name == wanted)


@pytest.mark.slow
def test_a_page_hears_of_what_was_counted(tmp_path: Path) -> None:
    store = make_store(tmp_path, EVENTS[:2])
    with (
        serving(str(store), "127.0.0.1", 0, ALONE) as url,
        httpx.stream("GET", url + "api/events", timeout=30) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        stream = heard(answer)
        first = until(stream, "moved")
        assert first["rows_read"] == 2
        assert until(stream, "health")["state"] == "idle"
        write_events(tmp_path, EVENTS)
        assert main(["run", str(tmp_path / "clicks.toml"), "--until-end", "--no-serve"]) == 0
        later = until(stream, "moved")
        assert later["rows_read"] == len(EVENTS)
        assert later["moment"] != first["moment"]  # of what is counted, whatever looks there were
        assert httpx.get(url + "api/health").json()["committed_s"] is not None


@pytest.mark.slow
def test_more_pages_than_the_limit_are_told_so_and_none_holds_up_the_end(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS", 1)
    with ExitStack() as stack:
        url = stack.enter_context(serving(str(store), "127.0.0.1", 0, ALONE))
        with httpx.stream("GET", url + "api/events", timeout=30) as answer:
            stream = heard(answer)  # it ends with this
            until(stream, "moved")
            refused = httpx.get(url + "api/events")
            assert refused.status_code == 503
            assert refused.json()["error"]["came"].startswith("1 pages follow")
            began_s = time.monotonic()
            stack.close()
            assert time.monotonic() - began_s < 3
            stream.close()


def test_however_many_ask_the_store_is_looked_at_once_a_second(store: Path) -> None:
    now = [0.0]
    with closing(Ledger.open(str(store))) as ledger:
        monitor = HealthMonitor(ledger, Watched(dict, lambda: now[0], lambda: 0.0))
        first = monitor.snapshot()
        ledger.close()
        assert monitor.snapshot() is first
        assert monitor.health().committed_s is None


def test_a_store_that_is_away_is_said_to_be(tmp_path: Path, store: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    with closing(Ledger.open(str(copy), pauses_s=())) as ledger:
        ledger.close()
        copy.unlink()
        found = HealthMonitor(ledger, ALONE).health()
    assert found.state == "broken"
    assert found.sentence.startswith("The store does not answer: ")


def test_health_is_what_the_workers_say(store: Path) -> None:
    behind = [PartitionStatus("t", 0, 3, 5, 40_000)]
    still = "What is shown may stand still: worker 0"
    with closing(Ledger.open(str(store))) as ledger:
        for reported, state, sentence in (
            (WorkerStatus(1, 100.0, 100.0, joined=True, committed_s=98.0), "live", "Counting."),
            (
                WorkerStatus(1, 100.0, 100.0, joined=True, places=behind),
                "live",
                "Counting, 10 s behind.",
            ),
            (WorkerStatus(1, 10.0, 100.0, joined=True), "stale", f"{still}: "),
            (None, "stale", f"{still} has not started yet."),
        ):
            watched = Watched(lambda now=reported: {"0": now}, lambda: 100.0, lambda: 50.0)  # type: ignore[misc]
            found = HealthMonitor(ledger, watched).health()
            assert found.state == state
            assert found.sentence.startswith(sentence)
            assert found.committed_s == (2.0 if sentence == "Counting." else None)
