"""Whether a store has moved, and the health of the workers that count into it: what a page follows.

However many clients ask, the store is looked at once a second.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from threading import Lock
from typing import Final

from streammetrics_consumers.counting.worker_status import PartitionStatus, WorkerStatus
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.view import StoreVersion, View, view
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query_plan import watermark_ms
from streammetrics_consumers.server.health import Watched, unready

NOTHING: Final = Counters()
EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The store at one look. `version`: what is counted, however many `looks` were taken at it.
    `moved_s`: when it was first seen in this state, by the monotonic clock; None where that was the
    first look. `away`: why it did not answer."""

    version: str = ""
    outline: str = ""
    looks: int = 0
    counters: Counters = NOTHING
    watermark_ms: int | None = None
    newest_ms: int | None = None
    moved_s: float | None = None
    away: str | None = None


class HealthMonitor:
    """Looks at a store, for any number of threads."""

    def __init__(self, ledger: Ledger, watched: Watched) -> None:
        self._ledger, self._watched = ledger, watched
        self._lock = Lock()
        self._seen: tuple[StoreVersion, int] | None = None
        self._snapshot: HealthSnapshot | None = None
        self._looked_s = 0.0
        self._began_s = watched.monotonic()

    def snapshot(self) -> HealthSnapshot:
        """The last look, or a new one where that is older than a second."""
        with self._lock:
            now_s = self._watched.monotonic()
            if self._snapshot is None or now_s - self._looked_s >= EVERY_S:
                self._looked_s = now_s
                try:
                    self._snapshot = view(self._ledger, lambda now: self._read(now, now_s))
                except LedgerError as error:
                    self._seen, self._snapshot = None, HealthSnapshot(away=str(error))
            return self._snapshot

    def _read(self, now: View, now_s: float) -> HealthSnapshot:
        of = declared(now.version.generation)
        looks = 0 if of is None else now.looks(of.fingerprint)
        seen = now.version, looks
        if self._snapshot is not None and seen == self._seen:
            return self._snapshot
        first, self._seen = self._snapshot is None or self._seen is None, seen
        generation, heads = now.version.generation, now.version.heads
        panes = sorted({size.pane[2:] for size in now.snapshot.panes}, key=str)
        return HealthSnapshot(
            version=_hash(generation.id, heads, now.version.retry),
            outline=_hash(generation, panes),
            looks=looks,
            counters=now.snapshot.counters,
            watermark_ms=watermark_ms(now.snapshot),
            newest_ms=now.snapshot.greatest_event_ms,
            moved_s=None if first else now_s,
        )

    def health(self) -> answers.Health:
        """The answer of `GET /api/health`."""
        seen, watched = self.snapshot(), self._watched
        now_s, now = watched.monotonic(), watched.clock()
        workers = watched.workers()
        lags = [_lag(reported, now) for reported in workers.values() if reported is not None]
        messages = [lag for lag, _ in lags if lag is not None]
        seconds = [lag for _, lag in lags if lag is not None]
        moves = [v.committed_s for v in workers.values() if v and v.committed_s is not None]
        moves += [] if seen.moved_s is None else [seen.moved_s]
        problem = None if seen.away is not None else unready(self._ledger, watched)
        state, sentence = _state(seen, problem, bool(workers), max(seconds, default=None))
        return answers.Health(
            state=state,
            sentence=sentence,
            watermark_ms=seen.watermark_ms,
            newest_event_ms=seen.newest_ms,
            rows_read=seen.counters.rows,
            late=seen.counters.late,
            future=seen.counters.future,
            expired=seen.counters.expired,
            quarantined=seen.counters.quarantined,
            repeated=seen.counters.repeated,
            skipped=seen.counters.skipped,
            lag_messages=sum(messages) if messages else None,
            lag_seconds=max(seconds, default=None),
            committed_s=round(now_s - max(moves), 1) if moves else None,
            since_s=round(now_s - self._began_s, 1),
            workers=tuple(_worker(name, one, watched, now) for name, one in workers.items()),
        )


def _state(
    seen: HealthSnapshot, problem: str | None, counts: bool, behind_s: float | None
) -> tuple[answers.HealthState, str]:
    if seen.away is not None:
        return "broken", f"The store does not answer: {seen.away}."
    if not counts:
        return "idle", "This server shows the store, and does not know who counts into it."
    if problem is not None:
        return "stale", f"What is shown may stand still: {problem}."
    if not behind_s:
        return "live", "Counting."
    return "live", f"Counting, {behind_s:.0f} s behind."


def _worker(
    name: str, reported: WorkerStatus | None, watched: Watched, now: float
) -> answers.HealthWorker:
    if reported is None:
        return answers.HealthWorker(name, "it has not started yet", None, 0)
    alone = Watched(lambda: {name: reported}, watched.monotonic, watched.clock)
    return answers.HealthWorker(name, alone.unready(), _lag(reported, now)[0], len(reported.places))


def _lag(reported: WorkerStatus, now: float) -> tuple[int | None, float | None]:
    """The messages that a worker has not read, and the age of the record that it stands at."""
    known = [place for place in reported.places if place.end is not None]
    if not known:
        return None, None
    ages = [age for place in known if (age := _age_s(place, now)) is not None]
    return sum(_behind(place) for place in known), max(ages, default=None)


def _behind(place: PartitionStatus) -> int:
    return max((place.end or 0) - place.position, 0)


def _age_s(place: PartitionStatus, now: float) -> float | None:
    if not _behind(place):
        return 0.0
    return None if place.record_ms is None else max(now - place.record_ms / 1000, 0.0)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
