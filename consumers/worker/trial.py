"""Refused events, read again: which are good now, and what they add to the ledger.

An event that is tried again is in its window, and in the totals, as any other. It is not late and
moves no event time: both are facts of the log, where its neighbours stand without it. A metric
that started later than the event's place in the log does not count it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from consumers.config.config import Config
from consumers.counting.commits import commit_of
from consumers.counting.delta import Delta
from consumers.events.decoder import Decoded
from consumers.events.refusals import Refused, Unfit, refused
from consumers.model.commit import Commit, Counters, Head
from consumers.model.generation import Generation, Piece

Place = tuple[int, int]  # offset of the record, index of the event in it


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of some events of one record or of several, by their place."""

    good: frozenset[Place]
    bad: Mapping[Place, Refused]


@dataclass(slots=True)
class Trial:
    """The events of one log that are good now. `floor_ms` is the retention floor, None to count
    every window; `closed_ms` up to where label windows are closed."""

    config: Config
    generation: Generation
    head: Head
    floor_ms: int | None
    closed_ms: int | None = None
    _deltas: dict[frozenset[str], Delta] = field(default_factory=dict)
    _first: int | None = None
    _end: int = 0

    def add(self, decoded: Decoded, wanted: Collection[Place]) -> Tried:
        """Try these events of some records. Others in the same records are passed by."""
        places = places_of(decoded)
        known = [i for i, place in enumerate(places) if place in wanted]
        bad = {
            (entry.offset, entry.index): entry
            for entry in decoded.refused
            if (entry.offset, entry.index) in wanted
        }
        good = frozenset(places[i] for i in known)
        eras: dict[frozenset[str], list[int]] = {}
        for i in known:
            eras.setdefault(self._later_than(places[i][0]), []).append(i)
        for later, some in eras.items():
            unfit = self._feed(later, decoded.take(np.array(some, np.intp)))
            bad.update(unfit)
            good -= unfit.keys()
        for offset, _ in good:
            self._first = offset if self._first is None else min(self._first, offset)
            self._end = max(self._end, offset + 1)
        return Tried(good, bad)

    def commit(self) -> Commit:
        """The delta of the good events, for the offsets that they lie between."""
        pieces: list[Piece] = []
        counters = Counters()
        closable: list[int] = []
        floor_ms: int | None = None
        for later, delta in self._deltas.items():
            found = commit_of(self.head, delta)
            pieces += [piece for piece in found.pieces if piece.pane.metric not in later]
            counters += found.counters
            closable += [] if found.closed_at_most is None else [found.closed_at_most]
            floor_ms = found.floor_ms if found.floor_ms is not None else floor_ms
        start = 0 if self._first is None else self._first
        expired = Counters(expired=counters.expired)
        return Commit(
            self.head,
            start,
            self._end,
            self.head.greatest_event_ms,
            expired,
            pieces,
            closed_at_most=min(closable, default=None),
            floor_ms=floor_ms,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, roughly."""
        return sum(delta.nbytes for delta in self._deltas.values())

    def _later_than(self, offset: int) -> frozenset[str]:
        """The metrics that start after this offset. What is joined is not counted yet."""
        if self.config.join is not None:
            return frozenset()
        return frozenset(
            metric.name
            for metric in self.generation.metrics
            if metric.start_offsets.get(self.head.id, 0) > offset
        )

    def _feed(self, later: frozenset[str], decoded: Decoded) -> dict[Place, Refused]:
        delta = self._deltas.get(later)
        if delta is None:
            delta = Delta(
                self.config,
                self.head.partition,
                0,
                None,
                self.floor_ms,
                closed_ms=self.closed_ms,
                ordered=False,
            )
            self._deltas[later] = delta
        # Without what the decoder refused, and as if it followed what was fed before.
        chunk = replace(decoded.chunk, start=delta.end, end=delta.end + 1)
        before = len(delta.quarantine)
        delta.add(replace(decoded, chunk=chunk, refused=()))
        return {(entry.offset, entry.index): entry for entry in delta.quarantine[before:]}


def places_of(decoded: Decoded) -> list[Place]:
    """The place of each good event."""
    chunk = decoded.chunk
    indices = chunk.indices
    return [
        (int(chunk.offsets[i]), 0 if indices is None else int(indices[i]))
        for i in decoded.at.tolist()
    ]


def described(decoded: Decoded, i: int) -> Refused:
    """Size and hash of the `i`-th good event, in the form of a refusal."""
    return refused(decoded.chunk, int(decoded.at[i]), Unfit("metric", None, ""))
