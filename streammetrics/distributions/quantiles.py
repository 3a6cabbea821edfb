"""Quantiles: any quantile from counts in buckets of values, with its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    AnySlots,
    Batch,
    Bounded,
    Counts,
    Extremes,
    Histogram,
    Inputs,
    Probability,
    Slots,
    Unit,
    Weights,
    grid_of,
    require,
)
from streammetrics.core import DriftOf
from streammetrics.results.distribution import Distribution

_IN_GROUPS: Final = {"relative": 4, "equal": 8}  # the resolution, by the kind of grid
_SHARES: Final = 'pass shares, or leave out range="probability" for values of any size'


class Quantiles(Histogram[Distribution[Bounded]], schema="quantiles/1"):
    """Any quantile, with certain bounds, in a state of bounded size.

    Settings
        grid: the buckets of values. "relative": of relative width 2**-resolution, from `floor` to
        `ceiling` on either side of 0; smaller values share a bucket, and so do those of size
        `ceiling` or more on either side. With range="probability" values are in [0, 1] and the
        width is also relative to the distance from 1. "equal": 2**resolution buckets of equal width
        over [0, 1]. "edges": between the given `edges`.
        range: "real" (default), any value, or "probability", values in [0, 1].
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    State
        Counts by bucket, in units of weight; only the occupied ones while these are few. The exact
        least and greatest value. The grid is a function of the settings alone, so states merge
        exactly.
    Result
        Distribution: any quantile, share below a value, trimmed and winsorised mean, as Bounded.
    Undefined
        nan without rows.
    Exactness
        low <= exact <= high for every input. The value is the middle of a bucket: between `floor`
        and `ceiling` its relative error is at most 2**-(resolution + 1).
    Cost
        As HistogramAUC; 200 kB at most if all of the default grid is occupied.
    Source
        Hyndman & Fan 1996, The American Statistician 50, definition 1.

    >>> from streammetrics import Quantiles
    >>> metric = Quantiles()
    >>> metric.update([3, 1, 4, 1, 5, 9, 2, 6])
    >>> print(metric.compute().median)
    3.00390625 (exact within [3.0, 3.0078124999999996])
    """

    _drift_of: ClassVar[DriftOf] = "values"

    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(values=Probability("_in_unit", hint=_SHARES), weights=Weights())
    extremes = Extremes()
    rounded = Counts("round_weights")  # rows whose weight was rounded

    if TYPE_CHECKING:

        def update(self, values: ArrayLike, *, weights: ArrayLike | None = None) -> None: ...

    def _kinds_and_scores(self, batch: Batch) -> tuple[None, NDArray[np.floating]]:
        return None, batch.values

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        for piece, piece_slots in batch.pieces(slots):
            super()._accumulate(piece, piece_slots)
            self.extremes.add(piece.values, piece_slots)

    def _require_possible(self) -> None:
        cells, _ = self.counts.cells_of(np.arange(self._width))
        slots, buckets = np.divmod(cells, self.buckets)
        first = np.flatnonzero(np.diff(slots, prepend=-1))
        last = np.flatnonzero(np.diff(slots, append=self._width))
        fault = "extremes outside of the occupied buckets"
        require(np.array_equal(np.flatnonzero(self.extremes.known), slots[first]), fault)
        for values, ends in zip(
            self.extremes.extremes_of(slots[first]), (first, last), strict=True
        ):
            require(not self._in_unit or bool(((values >= 0) & (values <= 1)).all()), fault)
            require(np.array_equal(grid_of(self).buckets(values), buckets[ends]), fault)

    def _coarse_in_groups(self) -> Self | None:
        resolution = _IN_GROUPS.get(self.grid, self.resolution)
        if self.resolution <= resolution:
            return None
        return type(self)(**{**self.settings(), "resolution": resolution})  # type: ignore[arg-type]

    def compute(self) -> Distribution[Bounded]:
        """The counts of values in order, with certain bounds on every figure."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _results(self, slots: Slots) -> Iterator[Distribution[Bounded]]:
        cells, counts = self.counts.cells_of(slots)
        grid, (slot, bucket) = grid_of(self), np.divmod(cells, self.buckets)
        edges = np.searchsorted(slot, np.arange(len(slots) + 1))
        low, ends = grid.least[bucket], grid.ends[bucket]
        high = np.where(np.isnan(ends), np.inf, np.nextafter(ends, -np.inf))
        middle = _middle(low, high)
        used = np.flatnonzero(edges[1:] > edges[:-1])
        low[edges[used]], high[edges[used + 1] - 1] = self.extremes.extremes_of(slots[used])
        # The middle of a bucket, or of the known values of one without an end.
        values = np.where(np.isfinite(middle), middle, _middle(low, high))
        values = np.where(np.isfinite(values), values, np.where(np.isfinite(low), low, high))
        values = values.clip(low, high)  # halves of subnormal numbers are rounded
        surplus, rounded = self.counts.surplus[slots].tolist(), self.rounded.totals(slots)
        unit = Fraction(self.weight_unit)
        for i, (start, end) in enumerate(pairwise(edges.tolist())):
            # Copies: a result that is kept must not keep the counts of all other keys.
            x, least, most = (column[start:end].copy() for column in (values, low, high))
            n = counts[start:end].copy()
            rows = int(n.sum()) - surplus[i]
            yield Distribution(x, least, most, n, False, rows, "", unit, rounded[i])


def _middle(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of each bucket; infinite or nan if it has no end."""
    with np.errstate(invalid="ignore"):
        return low / 2 + high / 2
