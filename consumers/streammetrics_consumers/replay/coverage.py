"""Events of a log that no delta row of the ledger covers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.ledger.audit import Covers
from streammetrics_consumers.model.generation import Metric

Total = tuple[str, int]  # the metric and the grouping of a pane of all events


@dataclass(slots=True)
class Hole:
    """Events that no row covers: their number, and the first and the last offset."""

    events: int
    first: int
    last: int

    def __str__(self) -> str:
        return f"no delta row covers {self.events} events at offsets {self.first} to {self.last}"


@dataclass(slots=True)
class Coverage:
    """Checks that the delta rows of a ledger cover its log: each event must lie in the offsets of a
    row of every total that counts it. Sums that happen to agree would not show a hole.

    `counted` are the metrics by name, with the start and the holes of each in the log of `head`.
    """

    covers: Covers
    counted: Mapping[str, Metric]
    head: int
    holes: dict[Total, Hole] = field(default_factory=dict)

    def look(self, totals: Collection[Total], offsets: NDArray[np.int64]) -> None:
        """Check events that these totals count, in order of offset."""
        outside: dict[tuple[tuple[int, int], ...], NDArray[np.int64]] = {}
        for total in totals:
            # Most totals are covered by the same ranges.
            ranges = tuple(self.covers.get(total, ()))
            if ranges not in outside:
                outside[ranges] = _offsets_outside(ranges, offsets)
            missing = outside[ranges]
            metric = self.counted.get(total[0])
            if metric is not None and len(missing):
                missing = missing[missing >= metric.start_offsets.get(self.head, 0)]
                for start, end in metric.holes.get(self.head, ()):
                    missing = missing[(missing < start) | (missing >= end)]
            if len(missing):
                hole = self.holes.setdefault(total, Hole(0, int(missing[0]), 0))
                hole.events += len(missing)
                hole.last = int(missing[-1])


def _offsets_outside(
    ranges: tuple[tuple[int, int], ...], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    if not ranges:
        return offsets
    edges = np.array(ranges, np.int64)
    before = np.searchsorted(edges[:, 0], offsets, side="right") - 1
    inside = (before >= 0) & (offsets < edges[np.maximum(before, 0), 1])
    outside_offsets: NDArray[np.int64] = offsets[~inside]
    return outside_offsets
