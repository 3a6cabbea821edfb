"""Refused events read again: those that are good now, and their addition to the ledger.

A retried event counts in its window and in the totals like any other. It is not late and does not
move the greatest event time: both are facts of the log, where its neighbours were read without it.
A metric that started after the event's offset does not count it.

Of a message with many events that was refused whole, all events are counted, or none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events import Unfit, refused
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Counters, Head, QuarantineRow, Refused
from streammetrics_consumers.model.generation import Generation, StateShard

EventPosition = tuple[int, int]  # offset of the record, index of the event in it
_UNFIT = Unfit("metric", None, "")  # any reason: comparisons ignore it


@dataclass(frozen=True, slots=True)
class DryRunOutcome:
    """The outcome of a dry run for some events, by position."""

    good: frozenset[EventPosition]
    bad: Mapping[EventPosition, Refused]


@dataclass(slots=True)
class DryRun:
    """Counts events of one log that were refused, without writing anything.

    floor_ms: the retention floor, None to count every window; closed_ms: the time up to which label
    windows are closed.
    """

    config: Config
    generation: Generation
    head: Head
    floor_ms: int | None
    closed_ms: int | None = None
    _deltas: dict[frozenset[str], Delta] = field(default_factory=dict)
    _first: int | None = None
    _end: int = 0

    def add(self, decoded: Decoded, wanted: Collection[EventPosition]) -> DryRunOutcome:
        """Count these events of some records. Others in the same records are ignored."""
        places = places_of(decoded, wanted)
        bad = {
            position: entry for position, entry in refused_in(decoded).items() if position in wanted
        }
        good = frozenset(places)
        eras: dict[frozenset[str], list[int]] = {}
        for (offset, _), i in places.items():
            eras.setdefault(self._later_than(offset), []).append(i)
        for later, era in eras.items():
            unfit = self._feed(later, decoded.take(np.array(era, np.intp)))
            bad.update(unfit)
            good -= unfit.keys()
        for offset, _ in good:
            self._first = offset if self._first is None else min(self._first, offset)
            self._end = max(self._end, offset + 1)
        return DryRunOutcome(good, bad)

    def add_whole(self, decoded: Decoded, offset: int) -> DryRunOutcome:
        """Count all events of this one message, or none. The outcome is that of one, at index 0."""
        position = offset, 0
        indices = decoded.chunk.indices
        positions = {
            (int(decoded.chunk.offsets[i]), 0 if indices is None else int(indices[i]))
            for i in decoded.at.tolist()
        }
        positions |= refused_in(decoded).keys()
        empty = DryRun(self.config, self.generation, self.head, self.floor_ms, self.closed_ms)
        outcome = empty.add(decoded, positions)
        if outcome.bad:
            return DryRunOutcome(frozenset(), {position: outcome.bad[min(outcome.bad)]})
        self.add(decoded, positions)
        return DryRunOutcome(frozenset([position] if positions else ()), {})

    def commit(self) -> Commit:
        """The delta of the good events, for the range of their offsets."""
        shards: list[StateShard] = []
        counters = Counters()
        closable: list[int] = []
        floor_ms: int | None = None
        for later, delta in self._deltas.items():
            commit = commit_of(self.head, delta)
            shards += [shard for shard in commit.shards if shard.pane.metric not in later]
            counters += commit.counters
            closable += [] if commit.closed_at_most is None else [commit.closed_at_most]
            floor_ms = commit.floor_ms if commit.floor_ms is not None else floor_ms
        return Commit(
            self.head,
            0 if self._first is None else self._first,
            self._end,
            self.head.greatest_event_ms,
            Counters(expired=counters.expired),
            shards,
            closed_at_most=min(closable, default=None),
            floor_ms=floor_ms,
        )

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return sum(delta.nbytes for delta in self._deltas.values())

    def _later_than(self, offset: int) -> frozenset[str]:
        """The metrics that start after this offset; none where events are joined, not counted."""
        if self.config.join is not None:
            return frozenset()
        starts = ((metric.name, metric.start_offsets.get(self.head.id, 0))
                  for metric in self.generation.metrics)  # fmt: skip
        return frozenset(name for name, start in starts if start > offset)

    def _feed(self, later: frozenset[str], decoded: Decoded) -> dict[EventPosition, Refused]:
        delta = self._deltas.get(later)
        if delta is None:
            delta = self._deltas[later] = Delta(
                self.config,
                self.head.partition,
                0,
                None,
                self.floor_ms,
                closed_ms=self.closed_ms,
                ordered=False,
            )
        # Without the events that the decoder refused, and as if it followed the last chunk.
        chunk = replace(decoded.chunk, start=delta.end, end=delta.end + 1)
        before = len(delta.quarantine)
        delta.add(replace(decoded, chunk=chunk, refused=()))
        return {(entry.offset, entry.index): entry for entry in delta.quarantine[before:]}


def offsets_of(decoded: Decoded) -> NDArray[np.int64]:
    """The offset of the record of each good event."""
    offsets: NDArray[np.int64] = np.asarray(decoded.chunk.offsets, np.int64)[decoded.at]
    return offsets


def places_of(decoded: Decoded, wanted: Collection[EventPosition]) -> dict[EventPosition, int]:
    """The places, among the good events and in their order, of those at these positions."""
    if not wanted:
        return {}
    chunk, offsets = decoded.chunk, offsets_of(decoded)
    places = {}
    for i in np.flatnonzero(np.isin(offsets, [offset for offset, _ in wanted])).tolist():
        index = 0 if chunk.indices is None else int(chunk.indices[decoded.at[i]])
        if (position := (int(offsets[i]), index)) in wanted:
            places[position] = i
    return places


def refused_in(decoded: Decoded) -> dict[EventPosition, Refused]:
    """The refused events by position."""
    return {(entry.offset, entry.index): entry for entry in decoded.refused}


def events_at(decoded: Decoded, wanted: Collection[EventPosition]) -> dict[EventPosition, Refused]:
    """The events at these positions, good ones as refusals: with their size and hash."""
    events = {
        position: entry for position, entry in refused_in(decoded).items() if position in wanted
    }
    for position, i in places_of(decoded, wanted).items():
        events[position] = refused(decoded.chunk, int(decoded.at[i]), _UNFIT)
    return events


def as_refused(record: Chunk) -> Refused:
    """The one record of a chunk as read, in the form of a refusal."""
    return refused(record, 0, _UNFIT)


def record_at(chunk: Chunk, offset: int) -> Chunk | None:
    """The record of a chunk at this offset; None where there is none."""
    i = bisect_left(chunk.offsets, offset)
    if i == len(chunk) or chunk.offsets[i] != offset:
        return None
    return chunk.part(i, i + 1, offset, offset + 1)


def is_same(entry: QuarantineRow, event: Refused | None) -> bool:
    """Whether an event has the size and the hash of an entry."""
    return event is not None and (event.size, event.sha256) == (entry.size, entry.sha256)


def is_message(entry: QuarantineRow, event: Refused | None, record: Chunk | None) -> bool:
    """Whether an entry stands for a whole message that is now divided into events. event: the one
    that is now at its position."""
    if entry.index or is_same(entry, event) or record is None:
        return False
    return is_same(entry, as_refused(record))
