"""Rows in ascending order, each value with its count: ranks, quantiles, and trimmed counts.

An exact value is a point. A value of a histogram is somewhere in its bucket, so a figure of it has
the ends of buckets as bounds, which hold for every possible row of each bucket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.steps import Figure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ordered:
    """Values in ascending order, with their counts.

    values: float64 [k]; low, high: float64 [k], the least and the greatest possible value at each
    place, the same array if values are exact. counts: int64 [k], each at least 1, of a sum below
    2**63.

    >>> values = np.array([1.0, 2.0])
    >>> found = Ordered(values, values, values, np.array([3, 1]))
    >>> found.value_at(3), found.value_at(4)
    ((1.0, 1.0, 1.0), (2.0, 2.0, 2.0))
    """

    values: Floats
    low: Floats
    high: Floats
    counts: Ints

    @cached_property
    def cumulative(self) -> Ints:
        """The counts up to each place: int64 [k]."""
        return np.cumsum(self.counts)

    @property
    def n(self) -> int:
        """The sum of the counts."""
        return int(self.cumulative[-1]) if len(self.counts) else 0

    def value_at(self, rank: int) -> Figure:
        """The value of this rank, 1 to n, and its bounds."""
        place = int(np.searchsorted(self.cumulative, rank))
        return float(self.values[place]), float(self.low[place]), float(self.high[place])

    def values_between(self, lower: int, upper: int) -> tuple[float, float]:
        """The least value of one rank and the greatest of another; rank 0 and those below stand for
        -inf, and those above n for inf."""
        return (
            self.value_at(lower)[1] if lower > 0 else -math.inf,
            self.value_at(upper)[2] if upper <= self.n else math.inf,
        )

    def rows_below(self, x: float) -> tuple[int, int]:
        """The fewest and the most rows that can be below x."""
        return self._rows_upto(x, self.high, "left"), self._rows_upto(x, self.low, "left")

    def rows_at_most(self, x: float) -> tuple[int, int]:
        """The fewest and the most rows that can be at or below x."""
        return self._rows_upto(x, self.high, "right"), self._rows_upto(x, self.low, "right")

    def _rows_upto(self, x: float, ends: Floats, side: str) -> int:
        place = int(np.searchsorted(ends, x, side))  # type: ignore[call-overload]
        return int(self.cumulative[place - 1]) if place else 0

    def kept(self, dropped: int) -> Ints:
        """The counts without this number of the lowest and of the highest rows: int64 [k]."""
        first, last = dropped, self.n - dropped
        before = self.cumulative - self.counts
        trimmed: Ints = np.minimum(self.cumulative, last) - np.maximum(before, first)
        return trimmed.clip(0)
