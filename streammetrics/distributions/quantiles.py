"""Quantiles: any quantile from counts in buckets of values, with its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import Bounded
from streammetrics.core.codec import require
from streammetrics.core.inputs import Inputs, Probability, Weights
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import SLOT_0, Column, Extreme, ExtremeColumn, Slots
from streammetrics.core.parts.score_bits import codes_of, integers_of, scores_of
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.weights import Unit
from streammetrics.kernels.tables.grids import check_grid, grid_of
from streammetrics.results.distribution import Distribution


class Quantiles(Accumulator, schema="quantiles/1"):
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

    grid: str = "relative"
    resolution: int = 8
    range: str = "real"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()
    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(values=Probability("_in_unit"), weights=Weights())
    counts = WeightedCounts("buckets")
    least = Extreme("min")  # as ordered integers
    greatest = Extreme("max")
    rounded = Counts("round_weights")  # rows whose weight was rounded

    def check_settings(self) -> None:
        for name, value in check_grid(self).items():
            self._set(name, value)

    @property
    def _in_unit(self) -> bool:
        """Whether values must be in [0, 1]."""
        return self.range == "probability"

    @property
    def buckets(self) -> int:
        """The number of buckets of the grid."""
        return grid_of(self).n_buckets

    if TYPE_CHECKING:

        def update(self, values: ArrayLike, *, weights: ArrayLike | None = None) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        values, quanta = batch.values, batch.quanta
        if not batch.n:
            return
        for piece, cells in grid_of(self).cells(np.zeros(batch.n, np.uint8), values):
            here = None if slots is None else slots[..., piece]
            self.counts.add_rows(cells, here, None if quanta is None else quanta[piece])
        if slots is None:
            values = values[[values.argmin(), values.argmax()]]
        ordered = integers_of(codes_of(values.astype(np.float64)))
        self.least.add(ordered, slots)
        self.greatest.add(ordered, slots)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        self.rounded.add(np.zeros(batch.n, np.intp), slots)

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        cells, _ = new.counts.cells_of(np.arange(width))
        slots, buckets = np.divmod(cells, self.buckets)
        first = np.searchsorted(slots, np.arange(width))
        used = np.searchsorted(slots, np.arange(width), "right") > first
        last = np.searchsorted(slots, np.flatnonzero(used), "right") - 1
        what = "extremes outside of the occupied buckets"
        for extreme, ends in ((new.least, first[used]), (new.greatest, last)):
            require(np.array_equal(extreme.known[:width], used), what)
            values = _floats(extreme, np.flatnonzero(used))
            require(not self._in_unit or bool(((values >= 0) & (values <= 1)).all()), what)
            require(np.array_equal(grid_of(self).buckets(values), buckets[ends]), what)
        # Of a NaN this is false too.
        require(bool((_floats(new.least, used) <= _floats(new.greatest, used)).all()), what)
        return new

    def compute(self) -> Distribution[Bounded]:
        """The counts of values in order, with certain bounds on every figure."""
        self._flush()
        cells, counts = self.counts.cells_of(SLOT_0)
        grid = grid_of(self)
        low, ends = grid.least[cells], grid.ends[cells]
        high = np.where(np.isnan(ends), np.inf, np.nextafter(ends, -np.inf))
        middle = _middle(low, high)
        if len(cells):
            low[0], high[-1] = _floats(self.least, SLOT_0)[0], _floats(self.greatest, SLOT_0)[0]
        # The middle of a bucket, or of the known values of one without an end.
        values = np.where(np.isfinite(middle), middle.clip(low, high), _middle(low, high))
        values = np.where(np.isfinite(values), values, np.where(np.isfinite(low), low, high))
        rows = int(counts.sum()) - int(self.counts.surplus[0])
        rounded = int(self.rounded.dense().sum()) if self.round_weights else None
        unit = Fraction(self.weight_unit)
        return Distribution(values, low, high, counts, False, rows, "", unit, rounded)


def _middle(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The middle of each bucket; infinite or nan if it has no end."""
    with np.errstate(invalid="ignore"):
        return low / 2 + high / 2


def _floats(extreme: ExtremeColumn, slots: NDArray[np.generic]) -> NDArray[np.float64]:
    """The extremes of these slots, which are known."""
    codes = codes_of(extreme.values[slots] * extreme.sign)
    return scores_of(codes).astype(np.float64, copy=False)
