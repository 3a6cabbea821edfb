"""EventSets: states that are sets of events, which are removed once their time is closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import whole
from streammetrics.core.errors import InputError, shown
from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import MAX_TIME, Table
from streammetrics.join.join_events import check_span

END_OF_TIME: Final = MAX_TIME  # `close` at this time closes everything


class EventSets(Accumulator):
    """Sets of events, of which all parts are `Records`: the base class of joins.

    It has no clock: `close` of a subclass removes and returns the events older than a given time.
    """

    def split(self, pane_ms: int | None, ranges: int) -> Mapping[tuple[int, int], Self]:
        """Shards that merge back into this state, by start of a pane and range of the id's hash.

        pane_ms: the length of panes of event time; None: one pane, 0. ranges: their number, a power
        of two, so that ranges of different numbers nest. Empty shards are left out.
        """
        where = f"{type(self).__name__}.split"
        if pane_ms is not None and whole(pane_ms) != 0:
            check_span(pane_ms, 1, f"{where}, pane_ms")
        if type(ranges) is not int or not 1 <= ranges <= 1 << 32 or ranges & (ranges - 1):
            raise InputError(
                expected="a power of two, at most 2**32",
                got=shown(ranges),
                where=f"{where}, ranges",
                hint="pass the number of ranges",
            )
        shards: dict[tuple[int, int], Self] = {}
        sets = self._sets()
        positions = [places(record_set.settled(), pane_ms, ranges) for record_set in sets]
        for key in sorted({key for of_set in positions for key in of_set}):
            shards[key] = self._with(
                [
                    record_set.picked(of_set[key]) if key in of_set else record_set.empty_twin()
                    for record_set, of_set in zip(sets, positions, strict=True)
                ]
            )
        return shards

    def _closing_time(self, before_ms: object) -> int:
        """The time that `close` was given, or InputError."""
        if type(before_ms) is not int or not -MAX_TIME <= before_ms <= END_OF_TIME:
            raise InputError(
                expected="whole milliseconds since the epoch",
                got=shown(before_ms),
                where=f"{type(self).__name__}.close",
                hint="pass a time, or END_OF_TIME",
            )
        return before_ms

    def _sets(self) -> list[Any]:
        """The set of each part, in their order."""
        return [self.__dict__[name].sets[0] for name in self._parts]

    def _put(self, sets: Sequence[RecordSet]) -> None:
        """Replace the set of each part."""
        for name, record_set in zip(self._parts, sets, strict=True):
            self.__dict__[name].sets[0] = record_set

    def _with(self, sets: Sequence[RecordSet]) -> Self:
        """A state with these settings and these sets."""
        new = self.empty()
        new._put(sets)
        return new


def places(
    table: Table, pane_ms: int | None, ranges: int
) -> dict[tuple[int, int], NDArray[np.intp]]:
    """The indices of the records by (start of the pane, range), ascending; ranges: a power of two.

    pane_ms None: all records are in pane 0.
    """
    if not len(table):
        return {}
    shift = 64 - (ranges - 1).bit_length()
    of_range = np.zeros(len(table), np.int64)
    if shift < 64:
        of_range = (table.ids >> np.uint64(shift)).astype(np.int64)
    pane = np.zeros(len(table), np.int64) if pane_ms is None else table.times // pane_ms
    order = np.lexsort((of_range, pane))  # stable, so that indices stay ascending
    pane, of_range = pane[order], of_range[order]
    new = (pane[1:] != pane[:-1]) | (of_range[1:] != of_range[:-1])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    return {
        (int(pane[start]) * (pane_ms or 1), int(of_range[start])): indices
        for start, indices in zip(starts.tolist(), np.split(order, starts[1:]), strict=True)
    }
