"""The compactor in a worker: in time that nobody misses, a transaction at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from consumers.ledger.compact import Compactor, Strand
from consumers.ledger.compaction import ABOVE, Group
from consumers.ledger.failures import StoreUnavailable
from consumers.ledger.store import Store
from consumers.model.commit import Head

log = logging.getLogger(__name__)

SHARE: Final = 0.1  # of a worker's time, while records keep coming
IDLE_S: Final = 0.25  # at most between two polls that bring nothing


class Upkeep:
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
        self._strands: list[Strand] = []
        self._groups: list[Group] = []  # of the last strand
        self._began_s, self._spent_s = monotonic(), 0.0

    def committed(self, head: Head) -> None:
        """This head has moved. What stood there before our first commit is looked at too."""
        if head.id not in self._known:
            self._known.add(head.id)
            self._commits[head.id] = self._above
        self._commits[head.id] += 1

    def step(self, *, idle: bool) -> None:
        """Do one piece of work, if there is any and time for it."""
        if not self._strands and not any(n > self._above for n in self._commits.values()):
            return
        now_s = self._monotonic()
        if not idle and self._spent_s > SHARE * (now_s - self._began_s):
            return
        try:
            self._work()
            while idle and self._strands and self._monotonic() - now_s < IDLE_S:
                self._work()
        except StoreUnavailable as error:
            log.warning("%s; delta rows are merged later", error)
            self._strands, self._groups = [], []
        self._spent_s += self._monotonic() - now_s

    def _work(self) -> None:
        """Look where there is work, or look at one strand, or merge one group."""
        if not self._strands:
            due = [head for head, n in self._commits.items() if n > self._above]
            for head in due:
                del self._commits[head]
            self._strands = self._compactor.strands(due)
        elif not self._groups:
            self._groups = self._compactor.plan(self._strands[-1])
            if not self._groups:
                self._strands.pop()
        else:
            done = self._compactor.merge(self._strands[-1], self._groups.pop(0))
            if not self._groups:
                self._strands.pop()
            if done is not None:
                log.debug("merged %d delta rows into %d", done.rows_before, done.rows_after)
