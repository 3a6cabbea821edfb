"""Too many bad events stop the process: the cause is then a config or a producer, not an event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from consumers.ledger.quarantine import open_since
from consumers.ledger.store import Store
from consumers.model.commit import Counters, Head
from consumers.worker.pipeline import Delta

FIRST_ROWS: Final = 1000  # events before a share of them means something


class TooManyBad(Exception):
    """More events were refused than `store.max_bad_share` allows.

    Events since the last commit are neither counted nor in quarantine: they are read again once
    the cause is mended.
    """


class BadShare:
    """Of the events that one worker has read and not skipped, the share that was refused.

    A worker that starts again takes the last records of each log that it is given into account:
    else each start would let FIRST_ROWS bad events through. What is committed while the share is
    too high must not be over it itself, so that good events get in once the cause is mended.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._known: set[int] = set()  # heads
        self.rows = self.refused = 0

    def began(self, store: Store, head: Head) -> None:
        """A log is ours: count what was refused of its last FIRST_ROWS records and is open still.

        A record may hold many events: as many as one did on average.
        """
        records = head.next_offset - head.start_offset - head.lost
        if records <= 0 or self.limit >= 1 or head.id in self._known:
            return
        self._known.add(head.id)
        refused = open_since(store, head, head.next_offset - FIRST_ROWS)
        rows = _meant(head.counters) * min(FIRST_ROWS, records) // records
        self.rows += max(rows, refused)
        self.refused += refused

    def count(self, delta: Delta) -> None:
        """This delta is committed."""
        self.rows += _meant(delta.counters)
        self.refused += delta.counters.quarantined

    def check(self, deltas: Sequence[Delta], *, last: bool) -> None:
        """Raise TooManyBad rather than commit these. `last`: no more events will come."""
        new = sum(_meant(delta.counters) for delta in deltas)
        bad = sum(delta.counters.quarantined for delta in deltas)
        rows, refused = self.rows + new, self.refused + bad
        if bad <= self.limit * new:
            return
        if refused <= self.limit * rows or (rows < FIRST_ROWS and not last):
            return
        said = f"{refused} of {rows} events were refused, more than max_bad_share = {self.limit:g}"
        entries = [(delta.partition, entry) for delta in deltas for entry in delta.quarantine]
        reasons = Counter(entry.reason for _, entry in entries).most_common(3)
        for partition, first in entries[:1]:
            said += ": " + ", ".join(f"{count} {reason}" for reason, count in reasons)
            said += f"; the first is {partition} offset {first.offset}"
            said += f", field {first.field}: {first.detail}" if first.field else f": {first.detail}"
        raise TooManyBad(
            f"{said}. Nothing since the last commit is counted; mend the events or the config, or "
            "raise [store] max_bad_share"
        )


def _meant(counters: Counters) -> int:
    """The events that a share is of."""
    return counters.rows - counters.skipped
