"""Whether the delta rows of a ledger cover what its log holds: each event that is counted lies in
the offsets of a row of every total. A hole there would be missed by sums that happen to agree."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from consumers.ledger.audit import Covers
from consumers.model.generation import Metric

Total = tuple[str, int]  # the metric and the grouping of a pane of all events


@dataclass(slots=True)
class Hole:
    """Events outside of every row: how many, and the offsets that they lie between."""

    events: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"no delta row covers {self.events} events at offsets {self.first} to {self.last}"


@dataclass(slots=True)
class Coverage:
    """Looks at the offsets of one log as they are counted. `starts` says from where on each metric
    counts it, and `left_out` between which offsets it does not."""

    covers: Covers
    totals: Collection[Total]
    starts: dict[str, int]
    left_out: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    holes: dict[Total, Hole] = field(default_factory=dict)

    def look(self, offsets: NDArray[np.int64]) -> None:
        """These events were counted, in order of offset."""
        outside: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}
        for total in self.totals:
            # Most totals are covered by the same ranges.
            ranges = tuple(self.covers.get(total, ()))
            if ranges not in outside:
                outside[ranges] = _outside(ranges, offsets)
            missing = outside[ranges]
            missing = missing[missing >= self.starts.get(total[0], 0)]
            for start, end in self.left_out.get(total[0], ()):
                missing = missing[(missing < start) | (missing >= end)]
            if len(missing):
                hole = self.holes.setdefault(total, Hole(0, int(missing[0]), 0))
                hole.events += len(missing)
                hole.last = int(missing[-1])


def _outside(ranges: tuple[tuple[int, int], ...], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    if not ranges:
        return offsets
    edges = np.array(ranges, np.int64)
    before = np.searchsorted(edges[:, 0], offsets, side="right") - 1
    inside = (before >= 0) & (offsets < edges[np.maximum(before, 0), 1])
    found: NDArray[np.int64] = offsets[~inside]
    return found


def starts_of(metrics: Collection[Metric], head: int) -> dict[str, int]:
    """From where on each metric counts the log of this head."""
    return {one.name: one.start_offsets.get(head, 0) for one in metrics}
