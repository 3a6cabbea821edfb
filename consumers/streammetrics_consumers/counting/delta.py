"""What has happened since the last commit: a delta. Pure: no clock, no I/O, no threads.

Events of one partition go in, in offset order. Each is routed to the states of its pane of event
time, its groupings and its slice. How the log was cut into chunks leaves no trace: the same
records give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streammetrics import InputError
from streammetrics_consumers.counting.join_states import JoinStates
from streammetrics_consumers.counting.metric_sets import MetricSetStates
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.events.refusals import Refused, Unfit
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.model.generation import StateShard
from streammetrics_consumers.model.partition import Partition

if TYPE_CHECKING:
    from streammetrics_consumers.config.config import Config
from streammetrics import DictionaryColumn
from streammetrics_consumers.config.event import offsets_column
from streammetrics_consumers.events.columns import Lists


class Delta:
    """What the events of one partition from `start` to `end` add to the ledger.

    greatest_event_ms: the greatest event time of the partition's earlier events, None before the
    first. floor_ms: the retention floor; events below it count in totals alone. An event is late
    if it is older than the greatest event time of the good events before it in the partition,
    less the allowed lateness. An event further ahead than `max_ahead_s` of its record's timestamp
    is refused and moves no watermark; files have no such timestamps, so there the rule has
    nothing to compare with and does not apply.

    Where events are joined, they wait in `joined` for their label windows to close, and no metric
    counts them yet: see `JoinStates`, which `closed_ms` is for. Late ones are refused: what is
    joined must not depend on when windows are closed.
    ordered: whether the events have an order. Where they have none (a part of a batch of a
    cluster, refused events that are tried again), an event is late beside `greatest_event_ms`
    alone, which is that of earlier events.
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
        self.metric_sets = tuple(MetricSetStates(metric_set) for metric_set in config.metric_sets)
        self._rows_in_states = False
        self._lateness_ms = config.windows.lateness_s * 1000
        self.joined: JoinStates | None = None
        if config.join is not None:
            self._lateness_ms += config.join.reopen_s * 1000
            behind = None if greatest_event_ms is None else greatest_event_ms - self._lateness_ms
            self.joined = JoinStates(config, config.join, closed_ms, behind)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, roughly."""
        held = sum(states.nbytes for states in self.metric_sets) + self._quarantine_bytes
        return held if self.joined is None else held + self.joined.nbytes

    def add(self, decoded: Decoded) -> None:
        """Take in the next chunk. Raises ValueError if it does not follow the last one."""
        chunk = decoded.chunk
        if chunk.partition != self.partition or chunk.start != self.end:
            raise ValueError(
                f"expected the records of {self.partition} from offset {self.end}, "
                f"got {chunk.partition} from {chunk.start}"
            )
        ahead = 0
        if decoded.record_times_ms is not None and len(decoded):
            decoded, ahead = self._without_future(decoded, decoded.record_times_ms)
        decoded = self._feed(decoded) if self.joined is None else self._fit(decoded, self.joined)
        behind_ms = self._behind_ms(decoded)
        late = behind_ms > self._lateness_ms
        late_outcomes = expired = 0
        if self.joined is not None:
            too_late = self.joined.too_late(decoded, late, behind_ms, self._lateness_ms)
            late_outcomes = sum(why.reason == "late_outcome" for why in too_late.values())
            decoded = decoded.without(too_late)
            self.joined.accumulate(decoded)
        elif self.floor_ms is not None:  # an impression is counted later
            expired = int((decoded.times_ms < self.floor_ms).sum())
        if len(decoded):
            newest = int(decoded.times_ms.max())
            known = self.greatest_event_ms
            self.greatest_event_ms = newest if known is None else max(known, newest)
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

    @property
    def has_states(self) -> bool:
        """Whether any event is counted in it."""
        return self._rows_in_states

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state as rows of the store, of at most `limit` bytes each but for the state of a
        single key, in an order that depends on nothing but what it holds."""
        if self.joined is not None:
            yield from self.joined.shards(limit)
        elif self._rows_in_states:
            for states in self.metric_sets:
                yield from states.shards(limit)

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

    def _behind_ms(self, decoded: Decoded) -> NDArray[np.int64]:
        """By how much each event is older than the newest one before it; int64 [n], below 0 where
        it is newer."""
        times = decoded.times_ms
        if not len(times):
            return np.zeros(0, np.int64)
        if not self._ordered:
            before = times if self._before_ms is None else np.int64(self._before_ms)
            return np.asarray(before - times, np.int64)
        known = self.greatest_event_ms
        first = int(times[0]) if known is None else known
        newest = np.maximum.accumulate(np.concatenate([np.array([first], np.int64), times[:-1]]))
        return np.asarray(newest - times, np.int64)

    def _feed(self, decoded: Decoded) -> Decoded:
        """Add events to the states; those that a metric refuses leave first. The answer is without
        columns, which nobody reads any more."""
        bad: dict[int, Unfit] = {}
        for alike in of_one_shape(decoded):
            parts = [(alike, False)]
            if self.floor_ms is not None:
                old = decoded.times_ms[alike] < self.floor_ms
                parts = [(alike[~old], False), (alike[old], True)]
            for places, expired in parts:
                while len(places):
                    some = decoded.take(places) if len(places) < len(decoded) else decoded
                    columns = columns_of(some)
                    try:  # for all metrics, before any of them counts
                        checked = [
                            states.checked(some, columns, expired=expired)
                            for states in self.metric_sets
                        ]
                    except InputError as error:
                        found = self._offenders(some, error)
                        bad.update((int(places[i]), why) for i, why in found.items())
                        places = np.delete(places, list(found))
                        continue
                    for add in checked:
                        add()
                    self._rows_in_states = True
                    break
        decoded = replace(decoded, keys={}, columns={})
        return decoded.without(bad) if bad else decoded

    def _fit(self, decoded: Decoded, joined: JoinStates) -> Decoded:
        """The events that can be joined: those that a metric would refuse leave."""
        bad = joined.unfit(decoded)
        places = joined.impressions(decoded)
        while len(places):
            some = joined.with_labels(decoded.take(places))
            try:
                self._check(some)
            except InputError as error:
                found = self._offenders(some, error)
                bad |= {int(places[i]): why for i, why in found.items()}
                places = np.delete(places, list(found))
                continue
            break
        return decoded.without(bad)

    def _check(self, decoded: Decoded) -> None:
        columns = columns_of(decoded)
        for states in self.metric_sets:
            states.check(decoded, columns)

    def _offenders(self, decoded: Decoded, error: InputError) -> dict[int, Unfit]:
        """The events that a metric refuses, each with what is said of it alone, since what is
        said of a batch depends on the batch."""
        suspects = error.rows.tolist() or range(len(decoded))
        found: dict[int, Unfit] = {}
        for i in suspects:
            try:
                self._check(decoded.take(np.array([i], np.intp)))
            except InputError as alone:
                found[i] = Unfit("metric", None, str(alone)[:300])
        if not found:
            raise error
        return found


def of_one_shape(decoded: Decoded) -> Iterator[NDArray[np.intp]]:
    """The places of the events, in groups whose columns are arrays of one shape.

    A field that may be one value or a row of a table (`..._or_row`) gives a vector or a table, and
    no array is both. Which group is fed first leaves no trace in a state.
    """
    codes = np.zeros(len(decoded), np.intp)
    for name, column in decoded.columns.items():
        if isinstance(column, Lists) and name.endswith("_or_row"):
            plain = np.diff(column.offsets) == 1
            codes = np.unique(2 * codes + plain, return_inverse=True)[1]
    for code in range(int(codes.max(initial=-1)) + 1):
        yield np.flatnonzero(codes == code)


def columns_of(decoded: Decoded) -> dict[str, NDArray[np.generic] | DictionaryColumn]:
    """The columns that metrics read, as keywords for a panel. Events are `of_one_shape`."""
    columns: dict[str, NDArray[np.generic] | DictionaryColumn] = {}
    for name, column in decoded.columns.items():
        if not isinstance(column, Lists):
            columns[name] = column
            continue
        path, _, kind = name.rpartition(":")
        columns[name] = column.values
        if kind in ("label_list", "int_list"):
            columns[offsets_column(path)] = column.offsets
        elif kind.endswith("_row"):
            table = column.values.reshape(len(column), -1)
            one = kind.endswith("_or_row") and table.shape[1] == 1
            columns[name] = table[:, 0] if one else table
    return columns
