"""Whether a store has moved, and how those stand who count into it: what a page follows.

However many ask, the store is looked at once a second.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal

from consumers.counting.experiment_plan import declared
from consumers.counting.worker_status import PartitionStatus, WorkerStatus
from consumers.ledger.failures import LedgerError
from consumers.ledger.ledger import Ledger
from consumers.ledger.view import Moment, View, view
from consumers.model.commit import Counters
from consumers.results.json_text import Json
from consumers.results.watermark import watermark_ms
from consumers.server.health import Watched
from consumers.server.readiness import unready

NOTHING: Final = Counters()
EVERY_S: Final = 1.0

State = Literal["live", "idle", "stale", "broken"]


@dataclass(frozen=True, slots=True)
class Beat:
    """The store at one look. `moment`: what is counted, however many `looks` were taken at it.
    `moved_s`: when it was first seen to stand so, by the monotonic clock; None where it has stood
    so since the first look. `away`: why it did not answer."""

    moment: str = ""
    outline: str = ""
    looks: int = 0
    counters: Counters = NOTHING
    watermark_ms: int | None = None
    newest_ms: int | None = None
    moved_s: float | None = None
    away: str | None = None


class Pulse:
    """Looks at a store, for any number of threads."""

    def __init__(self, ledger: Ledger, watched: Watched) -> None:
        self._ledger, self._watched = ledger, watched
        self._lock = Lock()
        self._seen: tuple[Moment, int] | None = None
        self._beat: Beat | None = None
        self._looked_s = 0.0
        self._began_s = watched.monotonic()

    def beat(self) -> Beat:
        """The last look, or a new one where that is older than a second."""
        with self._lock:
            now_s = self._watched.monotonic()
            if self._beat is None or now_s - self._looked_s >= EVERY_S:
                self._looked_s = now_s
                try:
                    self._beat = view(self._ledger, lambda now: self._look(now, now_s))
                except LedgerError as error:
                    self._seen, self._beat = None, Beat(away=str(error))
            return self._beat

    def _look(self, now: View, now_s: float) -> Beat:
        of = declared(now.moment.generation)
        looks = 0 if of is None else now.looks(of.fingerprint)
        seen = now.moment, looks
        if self._beat is not None and seen == self._seen:
            return self._beat
        first, self._seen = self._beat is None or self._seen is None, seen
        generation, heads = now.moment.generation, now.moment.heads
        panes = sorted({size.pane[2:] for size in now.snapshot.panes}, key=str)
        return Beat(
            moment=_hash(generation.id, heads, now.moment.retry),
            outline=_hash(generation, panes),
            looks=looks,
            counters=now.snapshot.counters,
            watermark_ms=watermark_ms(now.snapshot),
            newest_ms=now.snapshot.greatest_event_ms,
            moved_s=None if first else now_s,
        )

    def health(self) -> dict[str, Json]:
        """The answer of `GET /api/health`."""
        beat, watched = self.beat(), self._watched
        now_s, now = watched.monotonic(), watched.clock()
        workers = watched.workers()
        lags = [_lag(vitals, now) for vitals in workers.values() if vitals is not None]
        messages = [lag for lag, _ in lags if lag is not None]
        seconds = [lag for _, lag in lags if lag is not None]
        commits = [v.committed_s for v in workers.values() if v and v.committed_s is not None]
        last_s = max([*commits, *([] if beat.moved_s is None else [beat.moved_s])], default=None)
        problem = None if beat.away is not None else unready(self._ledger, watched)
        state, sentence = _state(beat, problem, bool(workers), max(seconds, default=None))
        return {
            "format": "streammetrics-health/1",
            "state": state,
            "sentence": sentence,
            "watermark_ms": beat.watermark_ms,
            "newest_event_ms": beat.newest_ms,
            "rows_read": beat.counters.rows,
            "late": beat.counters.late,
            "future": beat.counters.future,
            "expired": beat.counters.expired,
            "quarantined": beat.counters.quarantined,
            "repeated": beat.counters.repeated,
            "skipped": beat.counters.skipped,
            "lag_messages": sum(messages) if messages else None,
            "lag_seconds": max(seconds, default=None),
            "committed_s": None if last_s is None else round(now_s - last_s, 1),
            "since_s": round(now_s - self._began_s, 1),
            "workers": [_worker_json(name, one, watched, now) for name, one in workers.items()],
        }


def _state(
    beat: Beat, problem: str | None, counts: bool, behind_s: float | None
) -> tuple[State, str]:
    if beat.away is not None:
        return "broken", f"The store does not answer: {beat.away}."
    if not counts:
        return "idle", "This server shows the store, and does not know who counts into it."
    if problem is not None:
        return "stale", f"What is shown may stand still: {problem}."
    if not behind_s:
        return "live", "Counting."
    return "live", f"Counting, {behind_s:.0f} s behind."


def _worker_json(name: str, vitals: WorkerStatus | None, watched: Watched, now: float) -> Json:
    if vitals is None:
        return {"name": name, "problem": "it has not started yet", "lag_messages": None,
                "partitions": 0}  # fmt: skip
    alone = Watched(lambda: {name: vitals}, watched.monotonic, watched.clock)
    return {
        "name": name,
        "problem": alone.unready(),
        "lag_messages": _lag(vitals, now)[0],
        "partitions": len(vitals.places),
    }


def _lag(vitals: WorkerStatus, now: float) -> tuple[int | None, float | None]:
    """The messages that a worker has not read, and the age of the record that it stands at."""
    known = [place for place in vitals.places if place.end is not None]
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
