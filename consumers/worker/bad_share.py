"""Too many bad events stop the process: the cause is then a config or a producer, not an event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from consumers.worker.pipeline import Delta

FIRST_ROWS: Final = 1000  # events before a share of them means something


class TooManyBad(Exception):
    """More events were refused than `store.max_bad_share` allows.

    Events since the last commit are neither counted nor in quarantine: they are read again once
    the cause is mended.
    """


class BadShare:
    """Of the events that one worker has read, the share that was refused."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.rows = self.refused = 0

    def count(self, delta: Delta) -> None:
        """This delta is committed."""
        self.rows += delta.counters.rows
        self.refused += delta.counters.quarantined

    def check(self, deltas: Sequence[Delta], *, last: bool) -> None:
        """Raise TooManyBad rather than commit these. `last`: no more events will come."""
        rows = self.rows + sum(delta.counters.rows for delta in deltas)
        refused = self.refused + sum(delta.counters.quarantined for delta in deltas)
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
