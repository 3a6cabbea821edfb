"""`/metrics`: as Prometheus's own parser reads it, of every worker, escaped and bounded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from streammetrics_consumers.counting.worker_status import (
    COMMIT_BOUNDS_S,
    PartitionStatus,
    WorkerStatus,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.server import exposition as module
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import WatchedWorkers

from streammetrics import __version__
from tests.consumers.server.asking import Client
from tests.consumers.stores import EVENTS, HOSTILE

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def watched(**workers: WorkerStatus | None) -> WatchedWorkers:
    return WatchedWorkers(lambda: workers, lambda: 100.0, lambda: 50.0)


def scraped(store: Path, watched: WatchedWorkers) -> Samples:
    with closing(Ledger.open(str(store))) as ledger:
        text = exposition(ledger, watched).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for metric_set in text_string_to_metric_families(text)
        for sample in metric_set.samples
    }


def test_each_worker_has_its_series_and_the_store_its_own(store: Path) -> None:
    first, second = (
        WorkerStatus(1, 99.0, 98.0, rows=5),
        WorkerStatus(2, 97.0, 96.0, rows=7, rebuilds=3),
    )
    second.commit_s, second.commits[0], second.commits[-1] = 3.5, 2, 1
    second.quarantined = {"empty": 1}
    samples = scraped(store, watched(a=first, b=second, c=None))

    def sample(name: str, **labels: str) -> float:
        return samples[f"streammetrics_{name}", tuple(sorted(labels.items()))]

    rows = {labels: value for (name, labels), value in samples.items() if name.endswith("ts_total")}
    assert rows[("worker", "a"),] == 5 and rows[("worker", "b"),] == 7
    assert sample("source_rebuilds_total", worker="b") == 3
    assert (sample("poll_age_seconds", worker="a"), sample("fetch_age_seconds", worker="b")) == (
        1,
        4,
    )
    assert sample("memory_bytes", worker="a") > 0
    # The time of commits is a histogram.
    commits = "commit_duration_seconds"
    bounds = (*map(str, COMMIT_BOUNDS_S), "+Inf")
    buckets = [sample(f"{commits}_bucket", le=le, worker="b") for le in bounds]
    assert buckets == [2] * len(COMMIT_BOUNDS_S) + [3]
    assert (sample(f"{commits}_count", worker="b"), sample(f"{commits}_sum", worker="b")) == (
        3,
        3.5,
    )
    # What the store says goes on over restarts.
    assert (sample("store_up"), sample("store_events")) == (1, len(EVENTS))
    assert sample("store_state_bytes") > 0 and sample("watermark_timestamp_seconds") > 0
    # No name of a client library's own: nothing global is registered.
    assert all(name.startswith(("streammetrics_", "process_")) for name, _ in samples)


def test_each_process_says_what_it_uses_and_what_it_runs(store: Path) -> None:
    same, parent = WorkerStatus(os.getpid(), 0.0, 0.0), WorkerStatus(os.getppid(), 0.0, 0.0)
    samples = scraped(store, watched(a=same, b=parent, c=WorkerStatus(2**22 + 1, 0.0, 0.0)))
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds", "start_time_seconds"):
        values = {dict(labels)["worker"]: value for (series, labels), value in samples.items()
                  if series == f"process_{name}"}  # fmt: skip
        assert values.keys() == {"", "b"}, name  # worker a is this process, and c is gone
        assert all(value >= 0 for value in values.values()) and values[""] > 0
    builds = [dict(labels) for (name, labels) in samples if name == "streammetrics_build_info"]
    assert {(build["version"], build["worker"]) for build in builds} == {
        (__version__, ""),
        (__version__, "b"),
    }


def test_a_store_that_is_away_costs_only_what_it_knows(tmp_path: Path, store: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(store, copy)
    with closing(Ledger.open(str(copy), pauses_s=())) as ledger:
        ledger.close()
        copy.unlink()
        text = exposition(ledger, watched(a=WorkerStatus(1, 0.0, 0.0, rows=5))).decode()
    assert "streammetrics_store_up 0.0\n" in text
    assert 'streammetrics_events_total{worker="a"} 5.0\n' in text


def test_lag_is_told_in_messages_and_in_seconds(store: Path) -> None:
    reported = WorkerStatus(1, 0.0, 0.0)
    reported.partitions = [
        PartitionStatus("t", 0, 90, 100, record_ms=20_000),
        PartitionStatus("t", 1, 100, 100, record_ms=20_000),
        PartitionStatus("t", 2, 5),  # nobody told its end
        PartitionStatus("t", 3, 0, 4),  # nothing came yet
    ]
    samples = scraped(store, watched(a=reported))

    def lag(unit: str, number: int) -> float | None:
        labels = (("partition", str(number)), ("topic", "t"), ("worker", "a"))
        return samples.get((f"streammetrics_lag_{unit}", labels))

    assert [lag("messages", n) for n in range(4)] == [10, 0, None, 4]
    assert [lag("seconds", n) for n in range(4)] == [30, 0, None, None]


def test_labels_are_escaped_and_their_number_is_bounded(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PLACES", 3)
    hostile = HOSTILE + '"\\\n} 1'
    reported = WorkerStatus(
        1, 0.0, 0.0, partitions=[PartitionStatus(hostile, n, 0, n) for n in range(9)]
    )
    samples = scraped(store, watched(a=reported))
    lags = {labels: lag for (name, labels), lag in samples.items() if name.endswith("lag_messages")}
    assert sorted(lags.values()) == [6, 7, 8]  # those with the greatest lag
    assert {dict(labels)["topic"] for labels in lags} == {hostile}


def test_it_is_served_as_text_of_prometheus(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
