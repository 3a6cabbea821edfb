"""Whether the workers live and are ready, told over HTTP with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server.application import application
from streammetrics_consumers.server.health import (
    FETCH_LIMIT_S,
    POLL_LIMIT_S,
    HealthMonitor,
    WatchedWorkers,
)

from tests.consumers.server.asking import Client
from tests.consumers.stores import make_store

NOW_S = 1000.0


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store))) as opened:
        yield opened


def get_response(ledger: Ledger, path: str, *workers: WorkerStatus | None) -> httpx.Response:
    statuses = {str(i): reported for i, reported in enumerate(workers)}
    watched = WatchedWorkers(lambda: statuses, lambda: NOW_S, lambda: 0.0)
    return Client(application(ledger, watched, store="s")).get(path)


def worker(polled_s: float = NOW_S, fetched_s: float = NOW_S, joined: bool = True) -> WorkerStatus:
    return WorkerStatus(1, polled_s, fetched_s, joined)


def test_workers_that_hang_or_hear_nothing_are_named(ledger: Ledger) -> None:
    slow = worker(NOW_S - POLL_LIMIT_S, NOW_S - FETCH_LIMIT_S)  # within the limits
    assert get_response(ledger, "/healthz", slow).text == "ok\n"
    assert get_response(ledger, "/readyz", slow).text == "ready\n"
    for bad, reason in (
        (worker(NOW_S - POLL_LIMIT_S - 5), "no poll has returned for 65 s"),
        (worker(fetched_s=NOW_S - FETCH_LIMIT_S - 5), "the log has not answered for 125 s"),
    ):
        for path in ("/healthz", "/readyz"):
            answer = get_response(ledger, path, worker(), bad)
            assert (answer.status_code, answer.text) == (503, f"worker 1: {reason}\n")


def test_a_worker_without_partitions_lives_and_is_not_ready(ledger: Ledger) -> None:
    for late, message in (
        (None, "worker 1 has not started yet\n"),
        (worker(joined=False), "worker 1 is waiting for its partitions\n"),
    ):
        assert get_response(ledger, "/healthz", worker(), late).text == "ok\n"
        answer = get_response(ledger, "/readyz", worker(), late)
        assert (answer.status_code, answer.text) == (503, message)


def test_a_store_that_is_gone_is_not_ready_and_says_why(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    with closing(Ledger.open(str(store))) as ledger:
        ledger.close()
        for path in tmp_path.glob(store.name + "*"):
            path.unlink()
        answer = get_response(ledger, "/readyz", worker())
        assert (answer.status_code, get_response(ledger, "/healthz", worker()).status_code) == (
            503,
            200,
        )
    assert answer.text.startswith(f"store {store}: ")
    assert answer.text.count("\n") == 1


def test_however_many_ask_the_store_is_looked_at_once_a_second_and_may_be_away(
    tmp_path: Path, store: Path
) -> None:
    copy, now = tmp_path / "copy.db", [0.0]
    copy.write_bytes(store.read_bytes())
    with closing(Ledger.open(str(copy), pauses_s=())) as ledger:
        monitor = HealthMonitor(ledger, WatchedWorkers(dict, lambda: now[0], lambda: 0.0))
        first = monitor.snapshot()
        ledger.close()
        copy.unlink()
        assert monitor.snapshot() is first
        assert monitor.health().committed_s is None
        now[0] = 1.0
        health = monitor.health()
    assert health.state == "broken"
    assert health.sentence.startswith("The store does not answer: ")


def test_health_is_what_the_workers_say(store: Path) -> None:
    behind = [PartitionStatus("t", 0, 3, 5, 40_000)]
    still = "The results shown may be out of date: worker 0"
    with closing(Ledger.open(str(store))) as ledger:
        for reported, state, sentence in (
            (WorkerStatus(1, 100.0, 100.0, joined=True, committed_s=98.0), "live", "Counting."),
            (
                WorkerStatus(1, 100.0, 100.0, joined=True, partitions=behind),
                "live",
                "Counting, 10 s behind.",
            ),
            (WorkerStatus(1, 10.0, 100.0, joined=True), "stale", f"{still}: "),
            (None, "stale", f"{still} has not started yet."),
        ):
            watched = WatchedWorkers(lambda now=reported: {"0": now}, lambda: 100.0, lambda: 50.0)  # type: ignore[misc]
            health = HealthMonitor(ledger, watched).health()
            assert health.state == state
            assert health.sentence.startswith(sentence)
            assert health.committed_s == (2.0 if sentence == "Counting." else None)


def test_a_commit_is_remembered_when_its_worker_is_replaced_and_when_the_store_was_away(
    tmp_path: Path, store: Path
) -> None:
    copy, away, now = tmp_path / "copy.db", tmp_path / "away.db", [100.0]
    copy.write_bytes(store.read_bytes())
    workers: dict[str, WorkerStatus | None] = {}
    watched = WatchedWorkers(lambda: workers, lambda: now[0], lambda: 0.0)
    with closing(Ledger.open(str(copy), pauses_s=())) as ledger:
        monitor = HealthMonitor(ledger, watched)

        def health(status: WorkerStatus | None) -> tuple[str, float | None]:
            now[0] += 10
            workers["0"] = status
            answer = monitor.health()
            return answer.state, answer.committed_s

        assert health(WorkerStatus(1, 110.0, 110.0, joined=True, committed_s=98.0)) == ("live", 12)
        assert health(None) == ("stale", 22)
        copy.rename(away)
        assert health(WorkerStatus(2, 130.0, 130.0, joined=True)) == ("broken", 32)
        away.rename(copy)
        assert health(WorkerStatus(2, 140.0, 140.0, joined=True)) == ("live", 42)
        assert health(WorkerStatus(2, 150.0, 150.0, joined=True, committed_s=149.0)) == ("live", 1)
