"""The delta: states and counters of a partition since its last commit. Pure: no clock, no I/O, no
threads.

Events of one partition are added in offset order. Each is routed to the states of its pane of event
time, its groupings and its slice. How the log was cut into chunks does not matter: the same records
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics import InputError
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.counted_states import CountedStates
from streammetrics_consumers.counting.pending_events import PendingEvents
from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.columns import ListColumn
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.model.commit import LATE_OUTCOMES, Counters, Refused
from streammetrics_consumers.model.generation import StateShard
from streammetrics_consumers.model.partition import Partition

T = TypeVar("T")


class Delta:
    """What the events of one partition from `start` to `end` add to the ledger.

    greatest_event_ms: the greatest event time of the partition's earlier events, None before the
    first. floor_ms: the retention floor; events below it count only in totals. An event is late if
    it is older than the greatest event time of the good events before it in the partition, less
    the allowed lateness. An event more than `max_ahead_s` ahead of its record's timestamp is
    refused and does not move the watermark; files have no such timestamps, so the rule does not
    apply to them.

    Where events wait for others (config.closing), they are in `pending` until they are closed, and
    no metric counts them yet: see `PendingEvents`, which takes `closed_ms`. Late ones are refused,
    because results must not depend on when events are closed.
    ordered: whether the events have an order. If not (a part of a batch of a cluster, retried
    events), an event is late only relative to `greatest_event_ms`, which is that of earlier events.
    """

    def __init__(
        self,
        config: Config,
        partition: Partition,
        start: int,
        greatest_event_ms: int | None = None,
        floor_ms: int | None = None,
        *,
        closed_ms: int | None = None,
        ordered: bool = True,
    ) -> None:
        self.config = config
        self.partition = partition
        self.start = start
        self.end = start
        self.greatest_event_ms = greatest_event_ms
        self.floor_ms = floor_ms
        self._before_ms, self._ordered = greatest_event_ms, ordered
        self.counters = Counters()
        self.quarantine: list[Refused] = []
        self._quarantine_bytes = 0
        self._nbytes: int | None = None  # None until it is asked for
        self.states = CountedStates(config)
        self.has_states = False  # whether any event is counted in them
        self._lateness_ms = config.windows.lateness_s * 1000
        self.pending: PendingEvents | None = None
        if config.closing is not None:
            self._lateness_ms = config.closing.lateness_ms(config.windows)
            behind = None if greatest_event_ms is None else greatest_event_ms - self._lateness_ms
            self.pending = PendingEvents(config, config.closing, closed_ms, behind)

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes. It is computed once after each `add`: it asks every part of
        every metric, 2 ms of 50 metrics, and a worker asks at every poll."""
        if self._nbytes is None:
            total = self.states.nbytes + self._quarantine_bytes
            self._nbytes = total if self.pending is None else total + self.pending.nbytes
        return self._nbytes

    def add(self, decoded: Decoded) -> None:
        """Add the next chunk. Raises ValueError if it does not follow the last one."""
        chunk = decoded.chunk
        if chunk.partition != self.partition or chunk.start != self.end:
            raise ValueError(
                f"expected the records of {self.partition} from offset {self.end}, "
                f"got {chunk.partition} from {chunk.start}"
            )
        ahead, self._nbytes = 0, None
        if decoded.record_times_ms is not None and len(decoded):
            decoded, ahead = self._without_future(decoded, decoded.record_times_ms)
        pending = self.pending
        decoded = self._feed(decoded) if pending is None else self._fit(decoded, pending)
        behind_ms = self._lag_ms(decoded)
        late = behind_ms > self._lateness_ms
        late_outcomes = expired = 0
        if pending is not None:
            too_late = pending.too_late(decoded, late, behind_ms, self._lateness_ms)
            late_outcomes = sum(why.reason in LATE_OUTCOMES for why in too_late.values())
            decoded = decoded.without(too_late)
            pending.accumulate(decoded)
        elif self.floor_ms is not None:  # a pending event is counted later
            expired = int((decoded.times_ms < self.floor_ms).sum())
        if len(decoded):
            newest = int(decoded.times_ms.max())
            greatest_ms = self.greatest_event_ms
            self.greatest_event_ms = newest if greatest_ms is None else max(greatest_ms, newest)
        self.quarantine.extend(decoded.refused)
        self._quarantine_bytes += sum(entry.nbytes for entry in decoded.refused)
        self.counters += Counters(
            rows=decoded.rows,
            tombstones=decoded.tombstones,
            late=int(late.sum()),
            future=ahead,
            expired=expired,
            quarantined=len(decoded.refused),
            late_outcomes=late_outcomes,
            skipped=decoded.skipped,
            repeated=decoded.repeated,
        )
        self.end = chunk.end

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state as rows of the store, of at most `limit` bytes each except for the state of
        a single key, in an order that depends only on the content."""
        if self.pending is not None:
            yield from self.pending.shards(limit)
        elif self.has_states:
            yield from self.states.shards(limit)

    def _without_future(self, decoded: Decoded, records: NDArray[np.int64]) -> tuple[Decoded, int]:
        """The events that are not ahead of their records, and how many are."""
        # Subtracting from the event's side cannot overflow: event times have calendar dates.
        limit_ms = self.config.windows.max_ahead_s * 1000
        ahead = np.flatnonzero(decoded.times_ms - limit_ms > records).tolist()
        return decoded.without(
            {
                i: Unfit(
                    "future",
                    self.config.event.time,
                    f"{int(decoded.times_ms[i] - records[i])} ms ahead of its record, "
                    f"at most {limit_ms} may be",
                )
                for i in ahead
            }
        ), len(ahead)

    def _lag_ms(self, decoded: Decoded) -> NDArray[np.int64]:
        """By how much each event is older than the newest one before it; int64 [n], below 0 where
        it is newer."""
        times = decoded.times_ms
        if not len(times):
            return np.zeros(0, np.int64)
        if not self._ordered:
            before = times if self._before_ms is None else np.int64(self._before_ms)
            return np.asarray(before - times, np.int64)
        greatest_ms = self.greatest_event_ms
        first = int(times[0]) if greatest_ms is None else greatest_ms
        newest = np.maximum.accumulate(np.concatenate([np.array([first], np.int64), times[:-1]]))
        return np.asarray(newest - times, np.int64)

    def _feed(self, decoded: Decoded) -> Decoded:
        """Add events to the states, without those that a metric refuses. The returned events have
        no columns, which are not read any more."""

        bad: dict[int, Unfit] = {}
        for alike in shape_groups(decoded):
            parts = [(alike, False)]
            if self.floor_ms is not None:
                old = decoded.times_ms[alike] < self.floor_ms
                parts = [(alike[~old], False), (alike[old], True)]
            for positions, expired in parts:
                # Check them for all metrics before any of them counts.
                check = partial(self.states.checked, expired=expired)
                add = self._accepted(decoded, positions, bad, check)
                if add is not None:
                    add()
                    self.has_states = True
        decoded = replace(decoded, keys={}, columns={})
        return decoded.without(bad) if bad else decoded

    def _fit(self, decoded: Decoded, pending: PendingEvents) -> Decoded:
        """The events that can be kept, without those that a metric would refuse."""
        bad = pending.unfit(decoded)
        closed = pending.completed(decoded)
        self._accepted(closed, pending.counted(decoded), bad, self.states.check)
        return decoded.without(bad)

    def _accepted(
        self,
        decoded: Decoded,
        positions: NDArray[np.intp],
        bad: dict[int, Unfit],
        check: Callable[[Decoded], T],
    ) -> T | None:
        """The result of `check` for the events at these positions, without those that a metric
        refuses, which are added to `bad`; None if no event is left."""
        while len(positions):
            events = decoded.take(positions) if len(positions) < len(decoded) else decoded
            try:
                return check(events)
            except InputError as error:
                offenders = self._offenders(events, error)
                bad.update((int(positions[i]), why) for i, why in offenders.items())
                positions = np.delete(positions, list(offenders))
        return None

    def _offenders(self, decoded: Decoded, error: InputError) -> dict[int, Unfit]:
        """The events that a metric refuses, each with the message for this event alone, since the
        message for a batch depends on the batch."""
        suspects = error.rows.tolist() or range(len(decoded))
        offenders: dict[int, Unfit] = {}
        for i in suspects:
            try:
                self.states.check_alone(decoded.take(np.array([i], np.intp)))
            except InputError as alone:
                offenders[i] = Unfit("metric", None, str(alone)[:300])
        if not offenders:
            raise error
        return offenders


def shape_groups(decoded: Decoded) -> Iterator[NDArray[np.intp]]:
    """The positions of the events, in groups whose columns are arrays of one shape.

    A field that may be one value or a row of a table (`..._or_row`) gives a vector or a table, and
    no array is both. The order of the groups does not affect a state.
    """
    codes = np.zeros(len(decoded), np.intp)
    for name, column in decoded.columns.items():
        if isinstance(column, ListColumn) and name.endswith("_or_row"):
            plain = np.diff(column.offsets) == 1
            codes = np.unique(2 * codes + plain, return_inverse=True)[1]
    for code in range(int(codes.max(initial=-1)) + 1):
        yield np.flatnonzero(codes == code)
