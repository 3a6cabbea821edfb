"""What a worker does beside counting: it merges delta rows, drops old windows, and notices a store
that went back."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.compact import ABOVE, Compactor, Group, MergeRun
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.witness import Witness, note_known, read_now
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation

log = logging.getLogger(__name__)

SHARE: Final = 0.1  # of a worker's time, while records keep coming
IDLE_S: Final = 0.25  # at most between two polls that bring nothing
AUDIT_S: Final = 0.5  # between two comparisons, at least


class IdleCompactor:
    """Merges the delta rows of the heads that this worker commits to.

    It looks when a head has had more commits than rows may stand. A step that follows a poll with
    records does one look or one merge, and none while these have taken more than a tenth of the
    time; a step that follows an empty poll does as many as fit.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float], *, above: int = ABOVE) -> None:
        self._compactor = Compactor(store, above=above)
        self._monotonic = monotonic
        self._above = above
        self._commits: Counter[int] = Counter()  # of a head, since we looked at it
        self._known: set[int] = set()
        self._runs: list[MergeRun] = []
        self._groups: list[Group] = []  # of the last merge run
        self._began_s, self._spent_s = monotonic(), 0.0

    def committed(self, head: Head) -> None:
        """This head has moved. What stood there before our first commit is looked at too."""
        if head.id not in self._known:
            self._known.add(head.id)
            self._commits[head.id] = self._above
        self._commits[head.id] += 1

    def step(self, *, idle: bool) -> None:
        """Do one piece of work, if there is any and time for it."""
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
        """Look where there is work, or look at one merge run, or merge one group."""
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
            done = self._compactor.merge(self._runs[-1], self._groups.pop(0))
            if not self._groups:
                self._runs.pop()
            if done is not None:
                log.debug("merged %d delta rows into %d", done.rows_before, done.rows_after)


def floor_after(
    config: Config, heads: Sequence[Head], lowest_ms: int | None, closed_ms: int | None
) -> int | None:
    """The floor that these heads allow, where it is higher than `lowest_ms`, that of now.

    closed_ms: what is later waits to be joined, and will be counted; None: nothing waits."""
    times = [head.greatest_event_ms for head in heads]
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    floor_ms = config.windows.floor_ms(min(known))
    if closed_ms is not None:
        floor_ms = min(floor_ms, closed_ms // config.windows.pane_ms * config.windows.pane_ms)
    return floor_ms if lowest_ms is None or floor_ms > lowest_ms else None


class KnownHeads:
    """How far one worker has seen each head of its generation, its own and those of others.

    They are compared with the store at each poll interval, since a store may go back, also while
    the log is quiet. See ledger/witness.py for what is found and what is kept.
    """

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._witness = Witness()
        self.saw = self._witness.saw  # to be called for each head that was read or committed
        self._compared_s = monotonic()

    def lost(self, of: Generation) -> Iterator[tuple[Head, Head | None]]:
        """The heads that went back, as they were known and as they are now, if it is time to look.

        Nothing moves a head of ours meanwhile: the caller holds the lock of its deltas. Raises
        StoreReplaced.
        """
        now_s = self._monotonic()
        if now_s - self._compared_s < AUDIT_S:
            return
        self._compared_s = now_s
        try:
            heads = read_now(self._store, of)
        except StoreUnavailable as error:  # a commit will say so, if it lasts
            log.debug("%s; the heads are compared later", error)
            return
        yield from self._witness.compare(heads)

    def went_on(self, of: Generation, known: Head, now: Head | None) -> Head | None:
        """Reading goes on where a head stands now, which was known to stand elsewhere. Where it
        went back, that is kept in the store. Answers the head with it."""
        seen = self._witness.forget(known)
        known = max(known, seen, key=lambda one: one.next_offset)
        if now is None or now.next_offset < known.next_offset:
            stands = "nowhere" if now is None else f"at {now.next_offset}"
            log.error(
                "store %s: expected %s to be counted up to %d, as this worker has seen, got a "
                "head that stands %s: the store went back (a fail-over, a restored copy); what it "
                "lost is read again, and results are incomplete until then",
                self._store.name,
                known.partition,
                known.next_offset,
                stands,
            )
        if now is not None and now.next_offset < known.next_offset:
            now = note_known(self._store, of, now, known.next_offset)
        if now is not None:
            self._witness.saw(now)
        return now
