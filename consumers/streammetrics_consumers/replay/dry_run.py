"""Refused events read again: those that are good now, and their addition to the ledger.

A retried event counts in its window and in the totals like any other. It is not late and does not
move the greatest event time: both are facts of the log, where its neighbours were read without it.
A metric that started after the event's offset, or has a hole there, does not count it.

Of a message with many events that was refused whole, all events are counted, or none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
from streammetrics_consumers.model.generation import Generation

EventPosition = tuple[int, int]  # offset of the record, index of the event in it
_UNFIT = Unfit("metric", None, "")  # any reason: comparisons ignore it


@dataclass(frozen=True, slots=True)
class DryRunOutcome:
    """The outcome of a dry run for some events, by position."""

    good: frozenset[EventPosition]
    bad: Mapping[EventPosition, Refused]


@dataclass(slots=True)
class _Era:
    """Good events at offsets at which all metrics but those in `without` count."""

    delta: Delta
    without: frozenset[str]
    offsets: list[int] = field(default_factory=list)  # of its good events


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
    _eras: dict[int, _Era] = field(default_factory=dict)  # by their first offset
    _edges: list[int] = field(init=False)

    def __post_init__(self) -> None:
        edges = {0}
        for metric in () if self.config.closing is not None else self.generation.metrics:
            edges.add(metric.start_offsets.get(self.head.id, 0))
            edges.update(*metric.holes.get(self.head.id, ()))
        self._edges = sorted(edges)

    def add(self, decoded: Decoded, positions: Collection[EventPosition]) -> DryRunOutcome:
        """Count these events of some records. Others in the same records are ignored."""
        places = places_of(decoded, positions)
        bad = {
            position: entry
            for position, entry in refused_in(decoded).items()
            if position in positions
        }
        good = frozenset(places)
        places_by_era: dict[int, list[int]] = {}
        for (offset, _), i in places.items():
            places_by_era.setdefault(self.era_of(offset), []).append(i)
        for era, era_places in places_by_era.items():
            unfit = self._feed(era, decoded.take(np.array(era_places, np.intp)))
            bad.update(unfit)
            good -= unfit.keys()
        for offset, _ in good:
            self._eras[self.era_of(offset)].offsets.append(offset)
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

    def commits(self) -> dict[int, Commit]:
        """By era, the delta of its good events, for the range of their offsets: a row of the store
        is of metrics that all count at each of its offsets."""
        commits: dict[int, Commit] = {}
        for start, era in self._eras.items():
            if not era.offsets:
                continue
            commit = commit_of(self.head, era.delta)
            commits[start] = replace(
                commit,
                start=min(era.offsets),
                end=max(era.offsets) + 1,
                greatest_event_ms=self.head.greatest_event_ms,
                counters=Counters(expired=commit.counters.expired),
                shards=[shard for shard in commit.shards if shard.pane.metric not in era.without],
                refused=(),
                closed_at_least=None,
            )
        return commits

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return sum(era.delta.nbytes for era in self._eras.values())

    def era_of(self, offset: int) -> int:
        """The first offset of an era: offsets at which the same metrics count. Where events are
        pending, they are not counted yet, and there is one."""
        return self._edges[bisect_right(self._edges, offset) - 1]

    def _without(self, offset: int) -> frozenset[str]:
        """The metrics that start after this offset or have a hole there; none where events are
        pending."""
        if self.config.closing is not None:
            return frozenset()
        metrics = self.generation.metrics
        return frozenset(m.name for m in metrics if not m.counts(self.head.id, offset))

    def _feed(self, start: int, decoded: Decoded) -> dict[EventPosition, Refused]:
        if start not in self._eras:
            partition, floor_ms = self.head.partition, self.floor_ms
            delta = Delta(
                self.config, partition, 0, None, floor_ms, closed_ms=self.closed_ms, ordered=False
            )
            self._eras[start] = _Era(delta, self._without(start))
        delta = self._eras[start].delta
        # Without the events that the decoder refused, and as if it followed the last chunk.
        chunk = replace(decoded.chunk, start=delta.end, end=delta.end + 1)
        before = len(delta.quarantine)
        delta.add(replace(decoded, chunk=chunk, refused=()))
        return {(entry.offset, entry.index): entry for entry in delta.quarantine[before:]}


def offsets_of(decoded: Decoded) -> NDArray[np.int64]:
    """The offset of the record of each good event."""
    offsets: NDArray[np.int64] = np.asarray(decoded.chunk.offsets, np.int64)[decoded.at]
    return offsets


def places_of(decoded: Decoded, positions: Collection[EventPosition]) -> dict[EventPosition, int]:
    """The places, among the good events and in their order, of those at these positions."""
    if not positions:
        return {}
    chunk, offsets = decoded.chunk, offsets_of(decoded)
    places = {}
    for i in np.flatnonzero(np.isin(offsets, [offset for offset, _ in positions])).tolist():
        index = 0 if chunk.indices is None else int(chunk.indices[decoded.at[i]])
        if (position := (int(offsets[i]), index)) in positions:
            places[position] = i
    return places


def refused_in(decoded: Decoded) -> dict[EventPosition, Refused]:
    """The refused events by position."""
    return {(entry.offset, entry.index): entry for entry in decoded.refused}


def events_at(
    decoded: Decoded, positions: Collection[EventPosition]
) -> dict[EventPosition, Refused]:
    """The events at these positions, good ones as refusals: with their size and hash."""
    events = {
        position: entry for position, entry in refused_in(decoded).items() if position in positions
    }
    for position, i in places_of(decoded, positions).items():
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
