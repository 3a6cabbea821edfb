"""Housekeeping of a worker: it merges delta rows, drops old windows, and detects a store that went
back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.compact import Compactor, MergeRun
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.merge_plan import ABOVE, MergeGroup
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.witness import Witness, note_known, read_now
from streammetrics_consumers.model.commit import JOIN_START, Head
from streammetrics_consumers.model.generation import Generation

log = logging.getLogger(__name__)

SHARE: Final = 0.1  # of a worker's time, while records keep arriving
IDLE_S: Final = 0.25  # at most, between two empty polls
AUDIT_S: Final = 0.5  # between two comparisons, at least


class IdleCompactor:
    """Merges the delta rows of the heads that this worker commits to.

    It checks a head after more commits than it may have rows. A step after a poll with records
    does one check or one merge, and none while these have taken more than a tenth of the time; a
    step after an empty poll does as many as fit.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float], *, above: int = ABOVE) -> None:
        self._compactor = Compactor(store, above=above)
        self._monotonic = monotonic
        self._above = above
        self._commits: Counter[int] = Counter()  # by head, since its last check
        self._known: set[int] = set()
        self._runs: list[MergeRun] = []
        self._groups: list[MergeGroup] = []  # of the last merge run
        self._began_s, self._spent_s = monotonic(), 0.0

    def committed(self, head: Head) -> None:
        """Note a commit to this head. The first one makes its earlier rows due for a check."""
        if head.id not in self._known:
            self._known.add(head.id)
            self._commits[head.id] = self._above
        self._commits[head.id] += 1

    def step(self, *, idle: bool) -> None:
        """Do some work, if any is due and there is time for it."""
        if not self._runs and not any(n > self._above for n in self._commits.values()):
            return
        now_s = self._monotonic()
        if not idle and self._spent_s > SHARE * (now_s - self._began_s):
            return
        try:
            self._work()
            while idle and self._runs and self._monotonic() - now_s < IDLE_S:
                self._work()
        except StoreUnavailable as error:
            log.warning("%s; delta rows are merged later", error)
            self._runs, self._groups = [], []
        self._spent_s += self._monotonic() - now_s

    def _work(self) -> None:
        """Find the merge runs, or plan the groups of one run, or merge one group."""
        if not self._runs:
            due = [head for head, n in self._commits.items() if n > self._above]
            for head in due:
                del self._commits[head]
            self._runs = self._compactor.runs(due)
        elif not self._groups:
            self._groups = self._compactor.plan(self._runs[-1])
            if not self._groups:
                self._runs.pop()
        else:
            compacted = self._compactor.merge(self._runs[-1], self._groups.pop(0))
            if not self._groups:
                self._runs.pop()
            if compacted is not None:
                log.debug(
                    "merged %d delta rows into %d", compacted.rows_before, compacted.rows_after
                )


def floor_after(
    config: Config, heads: Sequence[Head], lowest_ms: int | None, closed_ms: int | None
) -> int | None:
    """The floor that these heads allow; None unless it is higher than `lowest_ms`, the present one.

    closed_ms: later events are pending and will be counted; JOIN_START: all events are; None: no
    events are pending."""
    times = [head.greatest_event_ms for head in heads]
    known_times = [time for time in times if time is not None]
    if not known_times or len(known_times) < len(times) or closed_ms == JOIN_START:
        return None
    floor_ms = config.windows.floor_ms(min(known_times))
    if closed_ms is not None:
        floor_ms = min(floor_ms, closed_ms // config.windows.pane_ms * config.windows.pane_ms)
    return floor_ms if lowest_ms is None or floor_ms > lowest_ms else None


class KnownHeads:
    """How far one worker has seen each head of its generation, its own and those of others.

    They are compared with the store at each poll interval, since a store may go back even while
    the log is quiet. See ledger/witness.py.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._witness = Witness()
        self.saw = self._witness.saw  # call it for each head that was read or committed
        self._compared_s = monotonic()

    def lost(self, generation: Generation) -> Iterator[tuple[Head, Head | None]]:
        """The heads that went back, as they were known and as they are now, if a check is due.

        Our own heads do not move meanwhile: the caller holds the lock of its deltas. Raises
        StoreReplaced.
        """
        now_s = self._monotonic()
        if now_s - self._compared_s < AUDIT_S:
            return
        self._compared_s = now_s
        try:
            heads = read_now(self._store, generation)
        except StoreUnavailable as error:  # a commit reports it, if it lasts
            log.debug("%s; the heads are compared later", error)
            return
        yield from self._witness.compare(heads)

    def moved(self, generation: Generation, known_head: Head, now: Head | None) -> Head | None:
        """Note that reading goes on at `now`, where a head differs from `known_head`. If it went
        back, the store keeps the known offset. Returns the head with that offset."""
        seen_head = self._witness.forget(known_head)
        last_head = max(known_head, seen_head, key=lambda head: head.next_offset)
        if now is None or now.next_offset < last_head.next_offset:
            description = "no head" if now is None else f"a head at {now.next_offset}"
            log.error(
                "store %s: expected %s to be counted up to %d, as this worker has seen, got %s: "
                "the store went back (a failover, a restored copy); the lost records are read "
                "again, and results are incomplete until then",
                self._store.name,
                last_head.partition,
                last_head.next_offset,
                description,
            )
        if now is not None and now.next_offset < last_head.next_offset:
            now = note_known(self._store, generation, now, last_head.next_offset)
        if now is not None:
            self._witness.saw(now)
        return now
