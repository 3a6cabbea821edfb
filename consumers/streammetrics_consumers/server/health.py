"""Whether the workers are alive and ready, whether the store has changed, and the health of a page.

However many clients ask, a snapshot of the store is taken at most once a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal, TypeAlias

from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.ledger.witness import read_now
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import Counters, Head
from streammetrics_consumers.query.answers import EventCounts
from streammetrics_consumers.query.json_kinds import Answer, Count, Text, Time
from streammetrics_consumers.query.moments import Moment, moment_of
from streammetrics_consumers.query.query_plan import watermark_ms
from streammetrics_consumers.query.results import counted
from streammetrics_consumers.query.stream_warnings import stream_warnings

Workers: TypeAlias = Mapping[str, WorkerStatus | None]  # by name; None: it has sent no status yet

POLL_LIMIT_S: Final = 60.0
FETCH_LIMIT_S: Final = 120.0
NOTHING: Final = Counters()
EVERY_S: Final = 1.0
HealthState: TypeAlias = Literal["live", "idle", "stale", "broken"]


class HealthText(Text, frozen=True):
    """The numbers of health as texts. others: the counts of the rarer kinds of events."""

    lag: str
    read: str
    skipped: str
    late: str
    quarantined: str
    others: str


class HealthWorker(Answer, frozen=True):
    """A worker of this process, and its problem if it has one."""

    name: str
    problem: str | None
    lag_messages: Count | None
    partitions: Count


class Health(EventCounts, frozen=True, tag_field="format", tag="streammetrics-health/1"):
    """The health of the workers and of the store. committed_s: seconds since the last commit that
    this process knows of; since_s: seconds since this server started. warnings: sentences about the
    stream, such as that most events are refused."""

    state: HealthState
    sentence: str
    newest_event_ms: Time | None
    lag_messages: Count | None
    lag_seconds: float | None
    committed_s: float | None
    since_s: float
    workers: tuple[HealthWorker, ...]
    warnings: tuple[str, ...]
    text: HealthText


@dataclass(frozen=True, slots=True)
class WatchedWorkers:
    """The workers that count, and the clocks by which their health is judged.

    A poll takes half a second at most, so a loop in which none has returned for `poll_limit_s`
    hangs, although a client that spins inside `poll` seems alive to its group. A log that has not
    answered for `fetch_limit_s` is unavailable, with or without an exception.
    """

    workers: Callable[[], Workers]
    monotonic: Callable[[], float]  # the clock of the machine, which the workers read too
    clock: Callable[[], float]  # seconds since 1970
    poll_limit_s: float = POLL_LIMIT_S
    fetch_limit_s: float = FETCH_LIMIT_S

    def unhealthy(self) -> str | None:
        """Why the process should be restarted; None if it need not be."""
        now_s = self.monotonic()
        for name, reported in self.workers().items():
            if reported is None:
                continue
            hangs_s = now_s - reported.polled_s
            if hangs_s > self.poll_limit_s:
                return f"worker {name}: no poll has returned for {hangs_s:.0f} s"
            silent_s = now_s - reported.fetched_s
            if silent_s > self.fetch_limit_s:
                return f"worker {name}: the log has not answered for {silent_s:.0f} s"
        return None

    def unready(self) -> str | None:
        """Why the results may be outdated; None if they are not."""
        why = self.unhealthy()
        if why is not None:
            return why
        for name, reported in self.workers().items():
            if reported is None:
                return f"worker {name} has not started yet"
            if not reported.joined:
                return f"worker {name} is waiting for its partitions"
        return None


def _zero() -> float:
    return 0.0


NO_WORKERS: Final = WatchedWorkers(dict, _zero, _zero)  # for a process that only shows results


def unready(ledger: Ledger, watched: WatchedWorkers) -> str | None:
    """Why the results of a server may be outdated or incomplete; None if they can be relied on.

    The heads that each worker knows are compared with the store: see ledger/witness.py.
    """
    # First the workers, then the store, so that the head of a worker is never too new.
    workers = watched.workers()
    try:
        generations = ledger.generations()
        current = next((generation for generation in generations if generation.current), None)
        heads = () if current is None else read_now(ledger.store, current)
    except LedgerError as error:
        return str(error)
    why = watched.unready()
    if why is not None:
        return why
    live = {
        (head.partition.topic, head.partition.number): head for head in heads if not head.closed
    }
    for name, reported in workers.items():
        for partition in () if reported is None else reported.partitions:
            why = _lost(partition, live.get((partition.topic, partition.number)))
            if why is not None:
                return f"worker {name}: {why}"
    for head in heads:
        if head.is_incomplete:
            return (
                f"{head.partition} was counted up to {head.known_offset} before the store went "
                f"back, and is now counted up to {head.next_offset}"
            )
    return None


def _lost(partition: PartitionStatus, head: Head | None) -> str | None:
    """How a head differs from the one its worker knows; None if it is the same or later."""
    if partition.counted is None or (head is not None and head.next_offset > partition.counted):
        return None
    name = f"{partition.topic}/{partition.number}"
    if head is None:
        return f"it has counted {name} up to {partition.counted}, but the store has no head for it"
    if head.next_offset < partition.counted:
        return (
            f"it has counted {name} up to {partition.counted}, but the store only up to "
            f"{head.next_offset}: the store went back"
        )
    if head.digest != partition.digest:
        counted = f"it has counted {name} up to {partition.counted}"
        return f"{counted}, but the store has other commits there"
    return None


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The store at one read. version: of the counted events, independent of `looks`. moved_s: when
    this state was first seen, by the monotonic clock; None if that was the first read. away: why
    the store did not answer."""

    version: str = ""
    outline: str = ""
    looks: int = 0
    counters: Counters = NOTHING
    watermark_ms: int | None = None
    newest_ms: int | None = None
    moved_s: float | None = None
    away: str | None = None
    warnings: tuple[str, ...] = ()


class HealthMonitor:
    """Reads the health of a store. Thread-safe."""

    def __init__(self, ledger: Ledger, watched: WatchedWorkers) -> None:
        self._ledger, self._watched = ledger, watched
        self._lock = Lock()
        self._seen: Moment | None = None
        self._snapshot: HealthSnapshot | None = None
        self._looked_s = 0.0
        self._began_s = watched.monotonic()
        self._committed_s: float | None = None  # the last commit that an answer told of

    def snapshot(self) -> HealthSnapshot:
        """The last snapshot, or a new one if that is older than a second."""
        with self._lock:
            now_s = self._watched.monotonic()
            if self._snapshot is None or now_s - self._looked_s >= EVERY_S:
                self._looked_s = now_s
                try:
                    self._snapshot = view(self._ledger, lambda now: self._read(now, now_s))
                except LedgerError as error:
                    self._seen, self._snapshot = None, HealthSnapshot(away=str(error))
            return self._snapshot

    def _read(self, now: StoreView, now_s: float) -> HealthSnapshot:
        moment = moment_of(now)
        if self._snapshot is not None and moment == self._seen:
            return self._snapshot
        first, self._seen = self._snapshot is None or self._seen is None, moment
        generation, heads = now.version.generation, now.version.heads
        panes = sorted({size.pane[2:] for size in now.snapshot.panes}, key=str)
        return HealthSnapshot(
            version=_hash(generation.id, heads, now.version.retry, now.version.retry_note),
            outline=_hash(generation, panes),
            looks=now.looks(),
            counters=now.snapshot.counters,
            watermark_ms=watermark_ms(now.snapshot),
            newest_ms=now.snapshot.greatest_event_ms,
            moved_s=None if first else now_s,
            warnings=stream_warnings(self._ledger.store, now.snapshot),
        )

    def health(self) -> Health:
        """The answer of `GET /api/health`."""
        snapshot, watched = self.snapshot(), self._watched
        now_s, now = watched.monotonic(), watched.clock()
        workers = watched.workers()
        lags = [_lag(reported, now) for reported in workers.values() if reported is not None]
        messages = [lag for lag, _ in lags if lag is not None]
        seconds = [lag for _, lag in lags if lag is not None]
        committed_s = self._last_commit_s(snapshot, workers)
        problem = None if snapshot.away is not None else unready(self._ledger, watched)
        behind_s = max(seconds, default=None)
        state, sentence = _state(snapshot, problem, bool(workers), behind_s)
        lag = sum(messages) if messages else None
        return Health(
            state=state,
            sentence=sentence,
            watermark_ms=snapshot.watermark_ms,
            newest_event_ms=snapshot.newest_ms,
            **counted(snapshot.counters),
            lag_messages=lag,
            lag_seconds=behind_s,
            committed_s=None if committed_s is None else round(now_s - committed_s, 1),
            since_s=round(now_s - self._began_s, 1),
            workers=tuple(
                _worker(name, reported, watched, now) for name, reported in workers.items()
            ),
            warnings=snapshot.warnings,
            text=_text(snapshot.counters, lag, behind_s),
        )

    def _last_commit_s(self, snapshot: HealthSnapshot, workers: Workers) -> float | None:
        """When something was committed last, also by a worker that was replaced since, or before
        the store was away; None if this process has seen no commit."""
        reported = (status.committed_s for status in workers.values() if status is not None)
        with self._lock:
            commits = [self._committed_s, snapshot.moved_s, *reported]
            self._committed_s = max((at_s for at_s in commits if at_s is not None), default=None)
            return self._committed_s


def _state(
    snapshot: HealthSnapshot, problem: str | None, counts: bool, behind_s: float | None
) -> tuple[HealthState, str]:
    if snapshot.away is not None:
        return "broken", f"The store does not answer: {snapshot.away}."
    if not counts:
        return "idle", (
            "This server only shows the store; it does not know the workers that count into it."
        )
    if problem is not None:
        return "stale", f"The results shown may be out of date: {problem}."
    if not behind_s:
        return "live", "Counting."
    return "live", f"Counting, {behind_s:.0f} s behind."


def _text(counters: Counters, lag: int | None, behind_s: float | None) -> HealthText:
    count = formatting.count
    behind = "unknown" if lag is None else f"{count(lag)} events" if lag else "none"
    if lag and behind_s is not None:
        behind += f", {formatting.duration(behind_s)}"
    return HealthText(
        lag=behind,
        read=count(counters.rows),
        skipped=count(counters.skipped),
        late=count(counters.late),
        quarantined=count(counters.quarantined),
        others=", ".join(
            f"{name} {count(getattr(counters, name))}" for name in ("future", "expired", "repeated")
        ),
    )


def _worker(
    name: str, reported: WorkerStatus | None, watched: WatchedWorkers, now: float
) -> HealthWorker:
    if reported is None:
        return HealthWorker(name, "it has not started yet", None, 0)
    worker_watch = WatchedWorkers(lambda: {name: reported}, watched.monotonic, watched.clock)
    return HealthWorker(
        name, worker_watch.unready(), _lag(reported, now)[0], len(reported.partitions)
    )


def _lag(reported: WorkerStatus, now: float) -> tuple[int | None, float | None]:
    """The number of messages that a worker has not read, and the age of its last record."""
    partitions = [partition for partition in reported.partitions if partition.end is not None]
    if not partitions:
        return None, None
    ages = [age for partition in partitions if (age := _age_s(partition, now)) is not None]
    return sum(messages_behind(partition) for partition in partitions), max(ages, default=None)


def messages_behind(partition: PartitionStatus) -> int:
    """The offsets from the read position to the end of the log; 0 if the end is not known."""
    return max((partition.end or 0) - partition.position, 0)


def _age_s(partition: PartitionStatus, now: float) -> float | None:
    if not messages_behind(partition):
        return 0.0
    return None if partition.record_ms is None else max(now - partition.record_ms / 1000, 0.0)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
