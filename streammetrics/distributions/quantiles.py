"""Quantiles: any quantile from counts in buckets of values, with its bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import Bounded
from streammetrics.core.codec import require
from streammetrics.core.inputs import Inputs, Probability, Weights
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import SLOT_0, Column, Extreme, ExtremeColumn, Slots
from streammetrics.core.parts.score_bits import floats_of, ordered_integers
from streammetrics.core.parts.weighted_counts import WeightedCounts
from streammetrics.core.weights import Unit
from streammetrics.kernels.tables.grids import check_grid, grid_of
from streammetrics.results.distribution import Distribution

_SHARES: Final = 'pass shares, or leave out range="probability" for values of any size'
_AT_ONCE: Final = 1 << 8  # states that are read together: 100 MB if all are full


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

    inputs = Inputs(values=Probability("_in_unit", hint=_SHARES), weights=Weights())
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
        for piece, cells in grid_of(self).cells(None, values):
            here = None if slots is None else slots[piece]
            self.counts.add_rows(cells, here, None if quanta is None else quanta[piece])
            if here is not None:
                self._add_extremes(values[piece], here)
        if slots is None:
            self._add_extremes(values[[values.argmin(), values.argmax()]], np.zeros(2, np.intp))

    def _add_extremes(self, values: NDArray[np.floating], slots: Slots) -> None:
        ordered = ordered_integers(values)
        beyond = self.least.beyond(ordered, slots)
        beyond |= self.greatest.beyond(ordered, slots)
        if beyond.any():
            self.least.add(ordered[beyond], slots[beyond])
            self.greatest.add(ordered[beyond], slots[beyond])

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
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[Distribution[Bounded]]:
        found: list[Distribution[Bounded]] = []
        for start in range(0, len(slots), _AT_ONCE):
            found += self._some(slots[start : start + _AT_ONCE])
        return found

    def _some(self, slots: Slots) -> Iterator[Distribution[Bounded]]:
        cells, counts = self.counts.cells_of(slots)
        grid, (slot, bucket) = grid_of(self), np.divmod(cells, self.buckets)
        edges = np.searchsorted(slot, np.arange(len(slots) + 1))
        low, ends = grid.least[bucket], grid.ends[bucket]
        high = np.where(np.isnan(ends), np.inf, np.nextafter(ends, -np.inf))
        middle = _middle(low, high)
        used = np.flatnonzero(edges[1:] > edges[:-1])
        low[edges[used]] = _floats(self.least, slots[used])
        high[edges[used + 1] - 1] = _floats(self.greatest, slots[used])
        # The middle of a bucket, or of the known values of one without an end.
        values = np.where(np.isfinite(middle), middle.clip(low, high), _middle(low, high))
        values = np.where(np.isfinite(values), values, np.where(np.isfinite(low), low, high))
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


def _floats(extreme: ExtremeColumn, slots: NDArray[np.generic]) -> NDArray[np.float64]:
    """The extremes of these slots, which are known."""
    return floats_of(extreme.values[slots])
