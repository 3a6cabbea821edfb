"""Regression: mean absolute and squared errors, and R²."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    QUANTA,
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    Counts,
    ExactSum,
    ExactSums,
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
    require_moments,
    require_rounded_cubes,
    require_third_moment,
    side_by_side,
)
from streammetrics.core import (
    DOT_ROWS,
    SURELY,
    TOGETHER,
    Dot,
    Number,
    Units,
    add_dots,
    roughly,
    scaled_sum,
    surely_cubes,
)
from streammetrics.results.sums import RegressionErrors

Floats = NDArray[np.float64]

_ABSOLUTE: Final = 0  # index of the first of the sums
_SUMS: Final = 5


class Regression(Accumulator, schema="regression/3"):
    """Errors of predicted numbers.

    Settings
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    Rows
        labels: [n], the true numbers, finite. scores: [n], the predicted numbers, no NaN. weights:
        [n], at least 0, by default 1; a row of weight 0 is ignored.
    State
        The number of rows, and exact sums of the absolute errors, of the labels y, and of y², s²
        and y·s with scores s, which give the squared errors; without weights, of the rounded cubes
        of the rounded absolute errors, for the skewness of `mae`. With round_weights=True the
        same, without cubes, for the rows whose weight was rounded.
    Result
        RegressionErrors.
    Undefined
        nan without rows; R² also where all labels are equal. A score of inf or -inf has an infinite
        error: then MAE, MSE and RMSE are inf, and R² is -inf.
    Exactness
        Every figure is the exact value rounded once, R² and the root included, whatever the size of
        the numbers: squares outside the range of floats are summed in other units.
    Cost
        20 ns a row in large batches; four times that with weights or if some numbers are above
        1e45, eight times above 1e144. State: 500 bytes.
    Source
        Draper & Smith, Applied Regression Analysis, chapter 1, for R².

    >>> from streammetrics import Regression
    >>> metric = Regression()
    >>> metric.update([3, -0.5, 2, 7], [2.5, 0, 2, 8])
    >>> result = metric.compute()
    >>> result.mae, result.mse, result.r2
    (0.5, 0.375, 0.9486081370449678)
    """

    _schemas: ClassVar[Schemas] = {"regression/2": {"cubes"}}
    _many_slots: ClassVar[bool] = True

    weight_unit: Unit = 1
    round_weights: bool = False

    inputs = Inputs(labels=Real(finite=True), scores=Real(), weights=Weights())
    rows = WeightedCounts(1)
    absolute = ExactSum()
    labels = ExactSum()
    label_squares = ExactSum()
    score_squares = ExactSum()
    products = ExactSum()  # (y - s)² = y² - 2 y s + s²
    far = ExactSums(2, 5)  # [tiny or huge, each of the five]: terms not of ordinary size
    cubes = ExactSum()  # of the absolute errors, each rounded, without weights
    rounded = Counts("round_weights")  # rows whose weight was rounded, and the same sums over them
    rounded_sums = ExactSums("round_weights", 3, 5)

    if TYPE_CHECKING:

        def update(
            self, labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        for piece, piece_slots in batch.pieces(slots, DOT_ROWS):
            remaining_rows = piece
            if piece_slots is None and piece.quanta is None:
                remaining_rows = piece.take(self._add_dots(piece))
            for chunk, some_slots in remaining_rows.pieces(piece_slots):
                self._sums.add(_parts(chunk, chunk.quanta), some_slots)
        for piece, piece_slots in batch.pieces(slots):
            self.rows.add_row_count(piece.n, piece_slots, piece.quanta)
            self.cubes.add(_cubes(piece), piece_slots)

    def _add_dots(self, batch: Batch) -> NDArray[np.intp]:
        """Add the sums of ordinary rows, each of weight 1, and return the others."""
        labels, scores = (x.astype(np.float64, copy=False) for x in (batch.labels, batch.scores))
        signs = (labels >= scores).view(np.int8) * np.int8(2) - np.int8(1)  # |y - s| = ± (y - s)
        return add_dots(
            [
                Dot(self.absolute, signs, labels),
                Dot(self.absolute, signs, scores, -1),
                Dot(self.labels, labels),
                Dot(self.label_squares, labels, labels),
                Dot(self.score_squares, scores, scores),
                Dot(self.products, labels, scores),
            ]
        )

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        for piece, piece_slots in batch.pieces(slots):
            self.rounded.add(np.zeros(piece.n, np.intp), piece_slots)
            for scale, i, part in _parts(piece, None):
                cells = np.full(len(part), scale * _SUMS + i, np.intp)
                self.rounded_sums.add(part, cells, piece_slots)

    def compute(self) -> RegressionErrors:
        """The errors, each rounded once."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[RegressionErrors]:
        errors = side_by_side(
            RegressionErrors,
            len(slots),
            _n=self.rows.tables(slots)[:, 0].tolist(),
            weight_unit=repeat(Fraction(self.weight_unit)),
            _surplus=self.rows.surplus[slots].tolist(),
            rows_rounded=self.rounded.totals(slots),
            _sums=zip(
                zip(*self._sums.units(slots), strict=True), self.cubes.pairs(slots), strict=True
            ),
        )
        for i in self.absolute.infinite(slots):
            errors[i].__dict__.update(absolute=None, squares=None)
        return errors

    def _require_possible(self) -> None:
        for column in (*self._sums.near[1:], self.far.inner):
            require_finite(column, "an infinite sum of finite numbers")
        require(not self.absolute.infinities[: self._width, 0].any(), "an absolute error of -inf")
        far = bool(self.far.inner.limbs.any())
        doubtful = np.arange(self._width)
        if self._width >= TOGETHER and not far and not self.round_weights:
            doubtful = np.flatnonzero(~self._surely_possible(doubtful))
        for slot in doubtful.tolist():
            units = int(self.rows.dense(slot)[0])
            if far:
                _require_sums(units, self._sums.finite_fractions(slot), 1)
            else:
                _require_sums(units, [c.quanta(slot) for c in self._sums.near], QUANTA)
            infinite = int(self.absolute.infinities[slot, 1])
            require(infinite <= units, "more infinite errors than rows")
            rows = units - int(self.rows.surplus[slot])
            self._require_cubes(slot, rows, plain=rows == units and not far)
            if self.round_weights:
                sums = [*self.rounded_sums.finite_fractions(slot)]
                of_rounded = [scaled_sum(sums[i::_SUMS]) for i in range(_SUMS)]
                _require_sums(int(self.rounded.dense(slot)[0]), of_rounded, 1)

    def _require_cubes(self, slot: int, rows: int, *, plain: bool) -> None:
        """plain: whether the other sums are without weights, and at the first scale."""
        fault = "impossible cubes of errors"
        require_rounded_cubes(rows, self.cubes, slot, fault)
        if plain and self.cubes.finite(slot) and self.absolute.finite(slot):
            total, _, of_labels, of_scores, of_both = [c.quanta(slot) for c in self._sums.near]
            squares = of_labels - 2 * of_both + of_scores
            require_third_moment(rows, (total, squares, self.cubes.quanta(slot)), fault)

    def _surely_possible(self, slots: Slots) -> NDArray[np.bool_]:
        """Of each of these decoded states, without far numbers and rounded weights, whether one
        pass of floats proves that its sums are possible."""
        n = self.rows.tables(slots)[:, 0].astype(np.float64)
        absolute, labels, of_labels, of_scores, of_both = map(roughly, self._sums.near)
        rounding = (of_labels + of_scores + 2 * np.abs(of_both)) * (1 - SURELY)
        squares = of_labels + of_scores - 2 * of_both - rounding
        sure = (n > 0) & (absolute >= 0) & (of_labels >= 0) & (of_scores >= 0)
        sure &= (labels**2 <= SURELY * n * of_labels) & (absolute**2 <= SURELY * n * squares)
        sure &= of_both**2 <= SURELY * of_labels * of_scores
        cubes = roughly(self.cubes)
        sure &= (squares**2 <= SURELY * absolute * cubes) & surely_cubes(squares, cubes)
        infinite = self.absolute.infinities[slots] | self.cubes.infinities[slots]
        return sure & ~infinite.any(axis=1)

    @property
    def _sums(self) -> ProductSums:
        squares = self.label_squares, self.score_squares, self.products
        return ProductSums((self.absolute, self.labels, *squares), self.far)


def _cubes(batch: Batch) -> Floats:
    """|y - s|³ of each row, rounded, or inf past the floats; [n]."""
    with np.errstate(over="ignore"):
        off = batch.labels.astype(np.float64, copy=False) - batch.scores
        np.abs(off, out=off)
        cubes: Floats = off * off
        cubes *= off
    return cubes


def _parts(batch: Batch, units: Units | None) -> Iterator[tuple[int, int, Floats]]:
    """The terms that rows add: the index of a scale, the index of a sum, and a part [n]."""
    labels: Floats = batch.labels.astype(np.float64, copy=False)
    scores: Floats = batch.scores.astype(np.float64, copy=False)
    far = not (ordinary(labels) and ordinary(scores))
    if far and (infinite := np.isinf(scores)).any():
        yield 0, _ABSOLUTE, np.where(infinite, np.inf, 0.0)
        scores = np.where(infinite, 0.0, scores)
    terms: tuple[tuple[int, Floats, Floats | None], ...] = (
        # |y - s| as two terms, max and -min: exact, and finite even if y - s overflows.
        (_ABSOLUTE, np.maximum(labels, scores), None),
        (_ABSOLUTE, -np.minimum(labels, scores), None),
        (1, labels, None),
        (2, labels, labels),
        (3, scores, scores),
        (4, labels, scores),
    )
    for i, a, b in terms:
        for scale, part in exact_parts(a, b, units, far=far):
            yield scale, i, part


def _require_sums(units: int, sums: Sequence[Number], unit: int) -> None:
    """StateError unless `units` of weight can have these five sums; unit: 1 in their quanta."""
    absolute, labels, of_labels, of_scores, of_both = sums
    fault = "impossible sums of errors"
    require(absolute >= 0 and of_scores >= 0 and (units > 0 or not any(sums)), fault)
    require_moments(units, labels, of_labels, fault, unit)
    require_moments(units, absolute, of_labels - 2 * of_both + of_scores, fault, unit)
    require(of_both * of_both <= of_labels * of_scores, fault)
