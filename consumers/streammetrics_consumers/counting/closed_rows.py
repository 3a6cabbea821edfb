"""Closed events in the form in which metrics count them, and what a closing writes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn
from streammetrics_consumers.config.states import RowKind
from streammetrics_consumers.events.columns import Column, taken
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.closing import PendingMetadata
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import JOIN, Counters
from streammetrics_consumers.model.generation import StateShard

ROWS_AT_ONCE: Final = 200_000  # that are added to the metrics together
MAX_RANGES: Final = 1 << 10
_NOWHERE: Final = Chunk(JOIN, 0, 0, [], [])

Columns: TypeAlias = "Mapping[str, Column]"


@dataclass(frozen=True, slots=True)
class Step:
    """The closing of events from `since_ms` to `to_ms`, and the rows of pending events to read for
    it, by the metric that holds them."""

    since_ms: int
    to_ms: int
    pending: Mapping[str, PendingMetadata]

    def closes(self, start_ms: int) -> bool:
        """Whether the pane that begins there is closed in this step."""
        return self.since_ms <= start_ms < self.to_ms


@dataclass(slots=True)
class ClosedPart:
    """What a step counts and writes of the events of some kinds: `replaced` are the rows of pending
    events that are no longer needed, or are written anew."""

    counters: Counters = field(default_factory=Counters)
    shards: list[StateShard] = field(default_factory=list)
    replaced: list[DeltaMetadata] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClosedEvents:
    """Closed events of units. units: uint64 [n], hashes; times_ms: int64 [n]; columns: [n] each."""

    units: NDArray[np.uint64]
    times_ms: NDArray[np.int64]
    columns: Columns

    def range_part(self, place: int, ranges: int) -> ClosedEvents:
        """Those of the units in one of equal ranges; ranges: their number, a power of two."""
        if ranges == 1:
            return self
        shift = np.uint64(64 - (ranges - 1).bit_length())
        positions = np.flatnonzero(self.units >> shift == place)
        columns = {name: taken(column, positions) for name, column in self.columns.items()}
        return ClosedEvents(self.units[positions], self.times_ms[positions], columns)


def ranges_for(nbytes: int, max_bytes: int) -> int:
    """The number of equal ranges of ids, a power of two, of which each has about `max_bytes`."""
    ranges = 1
    while nbytes > max_bytes * ranges and ranges < MAX_RANGES:
        ranges *= 2
    return ranges


def decoded_parts(
    times_ms: NDArray[np.int64], columns: Columns, keys: Collection[str], kind: RowKind = "event"
) -> Iterator[Decoded]:
    """Closed rows [n] as if they had been read so, a part at a time. keys: the columns by which
    rows are kept apart."""
    for start in range(0, len(times_ms), ROWS_AT_ONCE):
        times = times_ms[start : start + ROWS_AT_ONCE]
        positions = np.arange(start, start + len(times))
        part = {name: taken(column, positions) for name, column in columns.items()}
        key_columns: dict[str, DictionaryColumn] = {}
        for name in keys:
            key = part.pop(name)
            assert isinstance(key, DictionaryColumn)
            key_columns[name] = key
        rows = np.arange(len(times))
        yield Decoded(_NOWHERE, rows, times, None, key_columns, part, (), row_kind=kind)
