"""Moments: mean, variance, skewness and extremes of numbers, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SCALES,
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    Counts,
    ExactSum,
    ExactSums,
    Extremes,
    Inputs,
    ProductSums,
    Real,
    Schemas,
    Slots,
    Unit,
    WeightedCounts,
    Weights,
    exact_parts,
    ordinary,
    require,
    require_finite,
    require_three_moments,
    side_by_side,
    weighted_values,
)
from streammetrics.core import DOT_ROWS, Dot, Units, add_dots, add_parts
from streammetrics.results.moment_figures import MomentFigures

Floats = NDArray[np.float64]


class Moments(Accumulator, schema="moments/2"):
    """Mean, variance, standard deviation, skewness, and the least and greatest of numbers, exactly.

    Beside a mean of values of at least 0 stands the share of those above 0, `above_zero`: revenue
    that stops is seen by it first, because few rows have much of it.

    Settings
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    Rows
        values: [n], finite. weights: [n], at least 0, by default 1; a row of weight w counts as w
        equal rows, and one of weight 0 is ignored.
    State
        The number of rows, and of those above 0; exact sums of x, x² and x³; the least and greatest
        value.
    Result
        MomentFigures: `mean`, `variance` (over n - 1; numpy divides by n unless
        ddof=1), `std`, `skewness` (of the central moments, as scipy's; pandas multiplies it by
        √(n (n - 1)) / (n - 2)), `minimum`, `maximum`, `above_zero` (the share of values above 0).
        In the result of UserGroups the attribute `variance` is that of the estimate;
        `value.variance` is this one.
    Undefined
        nan without rows; variance and std also of one row; skewness of equal values; above_zero of
        states of before it was counted, and of all that they are merged into.
    Exactness
        Every figure is the exact value rounded once, whatever the size of the numbers: products
        outside the range of floats are summed in other units.
    Cost
        25 ns a row in large batches; three times that with weights or if some numbers are above
        1e45, five times above 1e90. State: 500 bytes.
    Source
        Fisher 1925, Statistical Methods for Research Workers, chapter 3.

    >>> from streammetrics import Moments
    >>> metric = Moments()
    >>> metric.update([1e16, 1, -1e16])
    >>> result = metric.compute()
    >>> result.mean, result.std, result.minimum
    (0.3333333333333333, 1e+16, -1e+16)
    """

    _schemas: ClassVar[Schemas] = {"moments/1": {"above"}}
    _many_slots: ClassVar[bool] = True

    weight_unit: Unit = 1
    round_weights: bool = False
    inputs = Inputs(values=Real(finite=True), weights=Weights())
    rows = WeightedCounts(1)
    total = ExactSum()
    squares = ExactSum()
    cubes = ExactSum()
    far = ExactSums(len(SCALES) - 1, 2)  # [scale, squares or cubes]: those that are not ordinary
    extremes = Extremes()
    above = ExactSum()  # units of values above 0
    rounded = Counts("round_weights")  # rows whose weight was rounded

    if TYPE_CHECKING:

        def update(self, values: ArrayLike, *, weights: ArrayLike | None = None) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        for piece, piece_slots in batch.pieces(slots, DOT_ROWS):
            remaining_rows = piece
            if piece_slots is None and piece.quanta is None:
                remaining_rows = piece.take(self._add_dots(piece))
            for short_piece, some_slots in remaining_rows.pieces(piece_slots):
                values = short_piece.values.astype(np.float64, copy=False)
                add_parts(self.total, weighted_values(values, short_piece.quanta), some_slots)
                self._powers.add(_powers(values, short_piece.quanta), some_slots)
                above = weighted_values((values > 0).astype(np.float64), short_piece.quanta)
                add_parts(self.above, above, some_slots)
        for piece, piece_slots in batch.pieces(slots):
            self.rows.add_row_count(piece.n, piece_slots, piece.quanta)
            self.extremes.add(piece.values.astype(np.float64, copy=False), piece_slots)

    def _add_dots(self, batch: Batch) -> NDArray[np.intp]:
        """Add the sums of ordinary rows of weight 1, and return the others."""
        values = batch.values.astype(np.float64, copy=False)
        squares = Dot(self.squares, values, squared=True)
        cubes = Dot(self.cubes, values, values, squared=True)
        above = Dot(self.above, (values > 0).view(np.int8))
        return add_dots([Dot(self.total, values), squares, cubes, above])

    def compute(self) -> MomentFigures:
        """The figures, each rounded once."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[MomentFigures]:
        least, greatest = self.extremes.extremes_of(slots)
        return side_by_side(
            MomentFigures,
            len(slots),
            _n=self.rows.tables(slots)[:, 0].tolist(),
            minimum=least.tolist(),
            maximum=greatest.tolist(),
            weight_unit=repeat(Fraction(self.weight_unit)),
            _surplus=self.rows.surplus[slots].tolist(),
            rows_rounded=self.rounded.totals(slots),
            _above=self.above.pairs(slots),
            _sums=zip(zip(self.total.pairs(slots)), *self._powers.units(slots), strict=True),
        )

    def _require_possible(self) -> None:
        fault = "impossible moments"
        for column in (self.total, self.squares, self.cubes, self.far.inner):
            require_finite(column, fault)
        slots = np.arange(self._width)
        n = self.rows.tables(slots)[:, 0]
        ends = np.stack(self.extremes.extremes_of(slots))
        require(np.array_equal(np.isfinite(ends), np.stack([n > 0, n > 0])), fault)
        for slot in slots.tolist():
            low, high = (Fraction(end) if n[slot] else Fraction(0) for end in ends[:, slot])
            sums = self.total.finite_fraction(slot), *self._powers.finite_fractions(slot)
            require_three_moments(int(n[slot]), sums, (low, high), fault)
        self._require_possible_counts(n, ends, fault)

    def _require_possible_counts(self, n: NDArray[np.int64], ends: Floats, fault: str) -> None:
        """That values above 0 are as many as the extremes [2, width] allow; both infinities once
        for each row of a former state, of which it is unknown."""
        lost = self.above.infinities[: self._width]
        require(
            np.array_equal(*lost.T) and bool((lost[:, 0] <= n - self.rows.surplus).all()), fault
        )
        counts, places = self.above.units(np.arange(self._width))
        require(not places, fault)
        rows = zip(counts, n.tolist(), *(ends > 0).tolist(), lost[:, 0].tolist(), strict=True)
        for above, units, low, high, unknown in rows:
            require(0 <= above <= units, fault)
            require(bool(unknown) or (above > 0) == high, fault)
            require(bool(unknown) or (above == units) == (low or not units), fault)

    @property
    def _powers(self) -> ProductSums:
        return ProductSums((self.squares, self.cubes), self.far)


def _powers(values: Floats, units: Units | None) -> Iterator[tuple[int, int, Floats]]:
    """The squares and cubes of values: the index of a scale, that of the sum, and a part [n]."""
    for scale, part in exact_parts(values, values, units, far=not ordinary(values)):
        yield scale, 0, part
    far = not ordinary(values, 3)
    for scale, part in exact_parts(values, values, units, far=far, c=values):
        yield scale, 1, part
