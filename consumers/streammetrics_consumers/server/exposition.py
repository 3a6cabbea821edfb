"""The metrics for Prometheus: the status of the workers and of the store at the time of a scrape.

Counters of workers begin at 0 with each process; Prometheus expects that. Values of the store
survive restarts, and are the same for workers on other machines. Labels are names of the config
(topic), numbers, and reasons from fixed lists; those of results (render/prometheus.py) are names
from the stream. The client library escapes them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from streammetrics import __version__
from streammetrics_consumers.counting.worker_status import COMMIT_BOUNDS_S, WorkerStatus
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.commit import Snapshot
from streammetrics_consumers.model.hook_events import HookState
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.latest import Latest, LatestResults
from streammetrics_consumers.query.moments import Moment, moment_of
from streammetrics_consumers.query.query_plan import watermark_ms
from streammetrics_consumers.render.prometheus import ROWS, families_of, result_gauges
from streammetrics_consumers.server.health import WatchedWorkers, messages_behind
from streammetrics_consumers.server.memory import resident_bytes

__all__ = ["CONTENT_TYPE_LATEST", "ServerNumbers", "exposition"]

PLACES: Final = 1000  # partitions of one worker that are listed: those with the greatest lag

_COUNTERS: Final = {  # name: (help text, field of WorkerStatus)
    "streammetrics_events": ("Events read and committed, refused ones included", "rows"),
    "streammetrics_events_skipped": ("Events that the config leaves out", "skipped"),
    "streammetrics_events_late": ("Late events", "late"),
    "streammetrics_events_future": ("Events too far ahead of their record", "future"),
    "streammetrics_events_expired": ("Events below the retention floor", "expired"),
    "streammetrics_tombstones": ("Messages without a value", "tombstones"),
    "streammetrics_duplicates": ("Records received again after they were counted", "duplicates"),
    "streammetrics_read_bytes": ("Bytes of records read", "read_bytes"),
    "streammetrics_commit_bytes": ("Bytes of states committed", "commit_bytes"),
    "streammetrics_source_rebuilds": ("Times the source failed and was reopened", "rebuilds"),
    "streammetrics_rebalances": ("Times the partitions were reassigned", "rebalances"),
}


@dataclass(frozen=True, slots=True)
class ServerNumbers:
    """What a server knows of its answers. heavy: those that give way to others, as charts do."""

    heavy: int
    cached_bytes: int
    max_cached_bytes: int


def exposition(
    ledger: Ledger,
    watched: WatchedWorkers,
    latest: LatestResults | None = None,
    numbers: ServerNumbers | None = None,
) -> bytes:
    """The text of `/metrics`. If the store does not answer, only the metrics from it are missing.

    latest: the results of the ledger, if the caller keeps them; without, this reads them however
    long that takes. numbers: of the server; without, their metrics are missing.
    """
    registry = CollectorRegistry(auto_describe=False)
    latest = latest or LatestResults(QueryCache(ledger), wait_s=None, rows=ROWS)
    stored: _ScrapedStore | None = None
    with suppress(LedgerError):
        stored = view(ledger, _ScrapedStore.read)
    registry.register(_Scrape(stored, watched, numbers))
    text: bytes = generate_latest(registry)
    return text + latest.text(_results_text, None if stored is None else stored.moment)


class _ScrapedStore(NamedTuple):
    """The store at one moment, with the number and the bytes of its delta rows, the number of the
    events of hooks by hook and state, and since when the oldest waits."""

    moment: Moment
    rows: int
    nbytes: int
    hooks: Mapping[tuple[str, HookState], int]
    waiting_ms: Mapping[str, int]

    @classmethod
    def read(cls, now: StoreView) -> _ScrapedStore:
        return cls(moment_of(now), *now.stored_size(), now.hooks_by_state(), now.hooks_waiting_ms())


def _results_text(results: Latest) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Results(results))
    text: bytes = generate_latest(registry)
    return text


class _Results:
    def __init__(self, results: Latest) -> None:
        self._results = results

    def collect(self) -> Iterator[Metric]:
        """The metric families of results."""
        return result_gauges(*self._results)


class _Scrape:
    def __init__(
        self,
        stored: _ScrapedStore | None,
        watched: WatchedWorkers,
        numbers: ServerNumbers | None,
    ) -> None:
        self._stored, self._watched, self._numbers = stored, watched, numbers

    def collect(self) -> Iterator[Metric]:
        """All metric families but those of results, once."""
        workers = {n: v for n, v in self._watched.workers().items() if v is not None}
        yield from _process_lines(workers)
        if self._numbers is not None:
            yield from _server_lines(self._numbers)
        yield from _counted(workers)
        yield _commits(workers)
        yield from _ages(workers, self._watched.monotonic())
        yield from _lags(workers, self._watched.clock())
        yield from _store_lines(self._stored)
        if self._stored is not None:
            yield from _hook_lines(self._stored, self._watched.clock())


def _process_lines(workers: Mapping[str, WorkerStatus]) -> Iterator[Metric]:
    """What each process uses, under the names that Prometheus has for it, and what it runs.

    The series of this process have no label, as those of any program; those of a worker that is
    another process have the label `worker`.
    """
    worker_pids = {
        name: reported.pid for name, reported in workers.items() if reported.pid != os.getpid()
    }
    processes = {"": os.getpid(), **worker_pids}
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    alive = {""}
    for worker, pid in processes.items():
        for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
            kind = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
            family = families.setdefault(
                metric.name, kind(metric.name, metric.documentation, labels=["worker"])
            )
            for sample in metric.samples:
                alive.add(worker)
                family.add_metric([worker], sample.value)
    yield from families.values()
    build = GaugeMetricFamily(
        "streammetrics_build_info", "The program that runs; its value is 1",
        labels=["version", "python", "worker"],
    )  # fmt: skip
    for worker in sorted(alive):
        build.add_metric([__version__, platform.python_version(), worker], 1)
    yield build


def _server_lines(numbers: ServerNumbers) -> Iterator[Metric]:
    for name, help_text, value in (
        ("heavy_answers", "Heavy answers and charts that are computed at the moment",
         numbers.heavy),
        ("cache_bytes", "Size of the states and answers that the server keeps, estimated",
         numbers.cached_bytes),
        ("cache_limit_bytes", "Limit of that size", numbers.max_cached_bytes),
    ):  # fmt: skip
        yield GaugeMetricFamily(f"streammetrics_{name}", help_text, value=value)


def _counted(workers: dict[str, WorkerStatus]) -> Iterator[Metric]:
    for name, (help_text, field) in _COUNTERS.items():
        family = CounterMetricFamily(name, help_text, labels=["worker"])
        for worker, reported in workers.items():
            family.add_metric([worker], getattr(reported, field))
        yield family
    refused = CounterMetricFamily(
        "streammetrics_events_quarantined", "Events refused", labels=["worker", "reason"]
    )
    commits = CounterMetricFamily(
        "streammetrics_commits_refused",
        "Commits that the ledger refused: fenced (discarded and read again) or locked (tried "
        "again)",
        labels=["worker", "why"],
    )
    for worker, reported in workers.items():
        for reason, count in reported.quarantined.items():
            refused.add_metric([worker, reason], count)
        for why, count in reported.refusals.items():
            commits.add_metric([worker, why], count)
    yield from (refused, commits)


def _commits(workers: dict[str, WorkerStatus]) -> Metric:
    family = HistogramMetricFamily(
        "streammetrics_commit_duration_seconds", "Duration of a commit", labels=["worker"]
    )
    bounds = [*map(str, COMMIT_BOUNDS_S), "+Inf"]
    for worker, reported in workers.items():
        buckets = list(zip(bounds, map(float, accumulate(reported.commits)), strict=True))
        family.add_metric([worker], buckets, reported.commit_s)
    return family


def _ages(workers: dict[str, WorkerStatus], now_s: float) -> Iterator[Metric]:
    gauges = {
        "streammetrics_poll_age_seconds": "Time since the worker's last poll returned",
        "streammetrics_fetch_age_seconds": "Time since the log last answered the source",
        "streammetrics_delta_bytes": "Memory of counted states that are not yet committed",
        "streammetrics_assigned_partitions": "Partitions that this worker reads",
        "streammetrics_memory_bytes": "Resident memory of the worker's process",
    }
    families = families_of(gauges, ["worker"])
    for worker, reported in workers.items():
        values = (
            now_s - reported.polled_s, now_s - reported.fetched_s, reported.delta_bytes,
            len(reported.partitions), resident_bytes(reported.pid),
        )  # fmt: skip
        for family, value in zip(families, values, strict=True):
            if value is not None:
                family.add_metric([worker], value)
    yield from families


def _lags(workers: dict[str, WorkerStatus], now_s: float) -> Iterator[Metric]:
    gauges = {
        "streammetrics_lag_messages": "Offsets from the read position to the end of the log",
        "streammetrics_lag_seconds": "Age of the record at the read position, 0 at the log's end",
    }
    messages, seconds = families_of(gauges, ["worker", "topic", "partition"])
    for worker, reported in workers.items():
        partitions = [partition for partition in reported.partitions if partition.end is not None]
        for partition in sorted(partitions, key=messages_behind, reverse=True)[:PLACES]:
            labels, lag = (
                [worker, partition.topic, str(partition.number)],
                messages_behind(partition),
            )
            messages.add_metric(labels, lag)
            if not lag:
                seconds.add_metric(labels, 0.0)
            elif partition.record_ms is not None:
                seconds.add_metric(labels, max(now_s - partition.record_ms / 1000, 0.0))
    yield from (messages, seconds)


def _hook_lines(stored: _ScrapedStore, now_s: float) -> Iterator[Metric]:
    """Events of hooks; nothing of a store that has none."""
    states = GaugeMetricFamily(
        "streammetrics_hooks", "Events of a hook in this state", labels=["hook", "state"]
    )
    ages = GaugeMetricFamily(
        "streammetrics_hook_waiting_seconds",
        "Age of the oldest event of a hook that is not sent yet, 0 without one",
        labels=["hook"],
    )
    for (name, state), count in sorted(stored.hooks.items()):
        states.add_metric([name, state], count)
    for name in sorted({name for name, _ in stored.hooks}):
        since_ms = stored.waiting_ms.get(name)
        ages.add_metric([name], 0.0 if since_ms is None else max(now_s - since_ms / 1000, 0.0))
    yield from (states, ages)


def _store_lines(stored: _ScrapedStore | None) -> Iterator[Metric]:
    yield GaugeMetricFamily("streammetrics_store_up", "Whether the store answers",
                            value=float(stored is not None))  # fmt: skip
    if stored is None:
        return
    version, _ = stored.moment
    snapshot = Snapshot(version.generation, version.heads, (), version.retry)
    gauges = {
        "streammetrics_store_events": ("Events counted so far", snapshot.counters.rows),
        "streammetrics_store_quarantined_events": ("Events in quarantine",
                                                   snapshot.counters.quarantined),
        "streammetrics_store_repeated_events": ("Events that repeat an earlier one, by their ids",
                                                snapshot.counters.repeated),
        "streammetrics_store_skipped_events": ("Events that the config leaves out",
                                               snapshot.counters.skipped),
        "streammetrics_store_state_bytes": ("Size of all states in the store",
                                            stored.nbytes),
        "streammetrics_store_state_rows": ("Rows of the store that hold states",
                                           stored.rows),
        "streammetrics_store_incomplete_logs": (
            "Logs that the store had counted further before it went back",
            len(snapshot.incomplete)),
        "streammetrics_generation": ("The current generation", snapshot.generation.id),
    }  # fmt: skip
    for name, (help_text, value) in gauges.items():
        yield GaugeMetricFamily(name, help_text, value=value)
    times = {
        "streammetrics_watermark_timestamp_seconds": (
            "Event time that every partition has reached, idle ones excepted",
            watermark_ms(snapshot)),
        "streammetrics_newest_event_timestamp_seconds": (
            "Event time of the newest event", snapshot.greatest_event_ms),
    }  # fmt: skip
    for name, (help_text, time_ms) in times.items():
        family = GaugeMetricFamily(name, help_text)
        if time_ms is not None:
            family.add_metric([], time_ms / 1000)
        yield family
