"""What has happened since the last commit: a delta. Pure: no clock, no I/O, no threads.

Events of one partition go in, in offset order. Each is routed to the states of its pane of event
time, its groupings and its slice. How the log was cut into chunks leaves no trace: the same
records give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from consumers.events.decoder import Decoded
from consumers.events.fields import slice_column
from consumers.events.refusals import Refused, Unfit
from consumers.ledger.groupings import Groupings, finest, summed
from consumers.ledger.rows import Counters
from consumers.sources.source import Partition
from consumers.worker.metric_columns import columns_of, of_one_shape
from streammetrics import Coded, InputError, PerKey

if TYPE_CHECKING:
    from consumers.config.config import Config

Flags = NDArray[np.bool_]
Span: TypeAlias = "tuple[int, int] | tuple[None, None]"  # [start_ms, end_ms), or all of time


class Piece(NamedTuple):
    """One state to be stored: a metric of one pane [start_ms, end_ms), or of all rows since the
    last commit where both are None. Keys of `state` are (grouping, value, ...): the place in
    `[slices] by`, and the text of each of its fields, None where an event had none. A grouping
    has states of its own, so that its keys never push those of another into (other). A coarser
    grouping `follows` from the last piece before it that does not."""

    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None
    make: Callable[[], PerKey]
    follows: bool

    @property
    def state(self) -> PerKey:
        """Made when it is asked for; the state of several spans is one object."""
        return self.make()


class Delta:
    """What the events of one partition from `start` to `end` add to the ledger.

    greatest_event_ms: the greatest event time of the partition's earlier events, None before the
    first. floor_ms: the retention floor; events below it count in totals alone. An event is late
    if it is older than the greatest event time of the good events before it in the partition,
    less the allowed lateness. An event further ahead than `max_ahead_s` of its record's timestamp
    is refused and moves no watermark; files have no such timestamps, so there the rule has
    nothing to compare with and does not apply.
    """

    def __init__(
        self,
        config: Config,
        partition: Partition,
        start: int,
        greatest_event_ms: int | None = None,
        floor_ms: int | None = None,
    ) -> None:
        self.config = config
        self.partition = partition
        self.start = start
        self.end = start
        self.greatest_event_ms = greatest_event_ms
        self.floor_ms = floor_ms
        self.counters = Counters()
        self.quarantine: list[Refused] = []
        self._quarantine_bytes = 0
        # The states of the finest groupings alone; those of the coarser ones follow from them.
        self._coarser = finest(config.slices.by)
        self._columns = {
            place: [slice_column(config, name) for name in config.slices.by[place]]
            for place in self._coarser
        }
        self._windows = {place: config.empty() for place in self._coarser}
        self._expired = {place: config.per_key() for place in self._coarser}
        self._rows_in_states = False

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, roughly."""
        held = (*self._windows.values(), *self._expired.values())
        states = sum(state.nbytes for state in held)
        return int(states) + self._quarantine_bytes

    def add(self, decoded: Decoded) -> None:
        """Take in the next chunk. Raises ValueError if it does not follow the last one."""
        chunk = decoded.chunk
        if chunk.partition != self.partition or chunk.start != self.end:
            raise ValueError(
                f"expected the records of {self.partition} from offset {self.end}, "
                f"came {chunk.partition} from {chunk.start}"
            )
        decoded, ahead = self._without_future(decoded)
        decoded = self._feed(decoded)
        late, expired = self._late(decoded), self._below_floor(decoded)
        if len(decoded):
            newest = int(decoded.times_ms.max())
            known = self.greatest_event_ms
            self.greatest_event_ms = newest if known is None else max(known, newest)
        self.quarantine.extend(decoded.refused)
        self._quarantine_bytes += sum(entry.nbytes for entry in decoded.refused)
        self.counters += Counters(
            rows=len(chunk),
            tombstones=decoded.tombstones,
            late=int(late.sum()),
            future=ahead,
            expired=int(expired.sum()),
            quarantined=len(decoded.refused),
        )
        self.end = chunk.end

    def states(self) -> Iterator[Piece]:
        """Every state to be stored, in an order that depends on nothing but what it holds. One
        that is the state of several spans comes once for each of them."""
        if not self._rows_in_states:
            return
        by, max_keys = self.config.slices.by, self.config.slices.max_keys
        for base, coarser in self._coarser.items():
            for whole, times in self._spans(base):
                for metric in self.config.metrics:
                    one = whole.project(metric.name)
                    for place in (base, *coarser):
                        make = _once(one, by, base, place, max_keys)
                        for start_ms, end_ms in times:
                            yield Piece(metric.name, place, start_ms, end_ms, make, place != base)

    def has_coarser(self, grouping: int) -> bool:
        """Whether other groupings follow from this one."""
        return bool(self._coarser.get(grouping))

    def _spans(self, base: int) -> Iterator[tuple[PerKey, list[Span]]]:
        """Each different state of a finest grouping, with what it is the state of."""
        windows, expired = self._windows[base], self._expired[base]
        pane_ms = self.config.windows.pane_ms
        panes = windows.panes()
        total: list[Span] = [(None, None)]
        if len(panes) > 1 or expired != expired.empty():
            state = windows.total_state()
            assert isinstance(state, PerKey)
            state.merge(expired)
            yield state, total
            total = []
        for start_ms, pane in panes.items():
            assert isinstance(pane, PerKey)
            yield pane, [*total, (start_ms, start_ms + pane_ms)]

    def _without_future(self, decoded: Decoded) -> tuple[Decoded, int]:
        records = decoded.record_times_ms
        if records is None or not len(decoded):
            return decoded, 0
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

    def _late(self, decoded: Decoded) -> Flags:
        times = decoded.times_ms
        if not len(times):
            return np.zeros(0, np.bool_)
        known = self.greatest_event_ms
        first = int(times[0]) if known is None else known
        before = np.maximum.accumulate(np.concatenate([np.array([first], np.int64), times[:-1]]))
        late: Flags = times < before - self.config.windows.lateness_s * 1000
        return late

    def _below_floor(self, decoded: Decoded) -> Flags:
        if self.floor_ms is None:
            return np.zeros(len(decoded), np.bool_)
        below: Flags = decoded.times_ms < self.floor_ms
        return below

    def _feed(self, decoded: Decoded) -> Decoded:
        """Add events to the states; those that a metric refuses leave first. The answer is without
        columns, which nobody reads any more."""
        bad: dict[int, Unfit] = {}
        for places in of_one_shape(decoded):
            while len(places):
                some = decoded.take(places) if len(places) < len(decoded) else decoded
                expired = self._below_floor(some)
                try:
                    # With rows for both, all are checked before any is added.
                    if expired.any() and not expired.all():
                        self._check(some)
                    self._absorb(some, expired)
                except InputError as error:
                    found = self._offenders(some, error)
                    bad.update((int(places[i]), why) for i, why in found.items())
                    places = np.delete(places, list(found))
                    continue
                self._rows_in_states = True
                break
        return replace(decoded, keys={}, columns={}).without(bad)

    def _absorb(self, decoded: Decoded, expired: Flags) -> None:
        some = bool(expired.any())
        live = decoded.take(np.flatnonzero(~expired)) if some else decoded
        if len(live):
            columns = columns_of(live)
            for place, windows in self._windows.items():
                windows.update(live.times_ms, keys=self._keys(live, place), **columns)
        if some:
            old = decoded.take(np.flatnonzero(expired))
            columns = columns_of(old)
            for place, state in self._expired.items():
                state.update(self._keys(old, place), **columns)

    def _check(self, decoded: Decoded) -> None:
        # Keys are bounded by the decoder, so what one grouping accepts all accept.
        place, state = next(iter(self._expired.items()))
        state.check(self._keys(decoded, place), **columns_of(decoded))

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

    def _keys(self, decoded: Decoded, grouping: int) -> Coded:
        """The key of each event in one grouping: (grouping, value, ...)."""
        codes = np.zeros(len(decoded), np.intp)
        keys: list[tuple[str | int | None, ...]] = [(grouping,)]
        for name in self._columns[grouping]:
            column = decoded.keys[name]
            width = max(len(column.values), 1)
            present, codes = _distinct(codes * width + column.codes, len(keys) * width)
            firsts, seconds = np.divmod(present, width)
            keys = [
                (*keys[i], column.values[j])
                for i, j in zip(firsts.tolist(), seconds.tolist(), strict=True)
            ]
        return Coded(codes, tuple(keys))


def _once(
    whole: PerKey, by: Groupings, base: int, place: int, max_keys: int
) -> Callable[[], PerKey]:
    """What makes the state of grouping `place` out of that of `base`, where all keys are kept."""

    @cache
    def make() -> PerKey:
        mine = whole if place == base else summed(whole, by, base, place)
        return mine.limited(max_keys)

    return make


def _distinct(codes: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct codes, ascending, and the place of each row's code among them.

    codes: [n] below `size`. Counting instead of sorting where there are few possible codes.
    """
    if size > 4 * len(codes) + 1024:
        present, places = np.unique(codes, return_inverse=True)
        return present, places.astype(np.intp)
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    table = np.zeros(size, np.intp)
    table[present] = np.arange(len(present))
    return present, table[codes]
