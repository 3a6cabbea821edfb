"""Results of exact sums over rows: a mean, a ratio, and the errors of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch
from streammetrics.core.parts.exact_sums import scaled_ratio, scaled_sum
from streammetrics.core.parts.float_bits import Dyadic, Exact, IntegerRatio, dyadic, nearest
from streammetrics.core.weights import units_counted
from streammetrics.estimators.mean import MeanOfValues, MomentSums
from streammetrics.estimators.request import Lacking
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.rounding import quotient_by_root, ratio
from streammetrics.present.view import HIGHER, LOWER, NONE, POSITIVE, SHARE, Range, View
from streammetrics.results.has_intervals import USERS, HasIntervals
from streammetrics.results.rounded_weights import OfWeightedRows

_SQUARES: Final = "Moments keeps them, for the mean of a value (Welch's interval of two)"

# MeanResult: the mean of one value per row.


class _MeanSums:
    """The sums of a mean before they are fractions; the squares are None beyond the floats, and the
    cubes if they are unknown."""

    _sums: tuple[Dyadic, Dyadic | None, Dyadic | None]

    @cached_property
    def total(self) -> Fraction:
        return dyadic(*self._sums[0])

    @cached_property
    def squares(self) -> Fraction | None:
        return None if self._sums[1] is None else dyadic(*self._sums[1])

    @cached_property
    def _cubes(self) -> Fraction | None:
        return None if self._sums[2] is None else dyadic(*self._sums[2])


def _mean_sums(result: MeanResult) -> MomentSums | None:
    if result.squares is None:
        return None
    cubes = None if result._surplus else result._cubes
    return MomentSums(result._units, result.total, result.squares, cubes, rounded=1)


_MEAN: Final[MeanOfValues[MeanResult]] = MeanOfValues(
    _mean_sums, each=lambda metric, batch: batch.value
)


@dataclass(frozen=True, eq=False, repr=False)
class MeanResult(_MeanSums, HasIntervals):
    """The mean of one value per row, with its interval.

    total: Σ v, exact and in units of weight, `weight_unit` each. squares: Σ v² over rows, each v²
    rounded; None: beyond the floats.

    >>> MeanResult(4, Fraction(1), Fraction(1)).mean
    0.25
    """

    _units: int
    total: Fraction = field()
    squares: Fraction | None = field(repr=False)
    weight_unit: Fraction = Fraction(1)
    _surplus: int = field(default=0, repr=False)  # of units over rows
    # Σ v³ over rows, each v³ rounded; None: unknown.
    _cubes: Fraction | None = field(default_factory=lambda: None, repr=False)

    @property
    @View(estimator=_MEAN, better=NONE)
    def mean(self) -> float:
        """The exact sum over the rows, or their weight, rounded once; nan without rows."""
        return ratio(self.total, self._units)

    @property
    def rows(self) -> int:
        """The counted rows, without those of weight zero."""
        return self._units - self._surplus

    @property
    def weight_units(self) -> int | None:
        """All units of weight; None if every row weighs 1, so that they are the rows."""
        return units_counted(self._units, self.rows, self.weight_unit)


class _QuotientSums:
    """Both sums of a ratio before they are rounded: in units of 2 ** -n, and n."""

    _sums: tuple[int, int, int] | None = None

    @cached_property
    def numerator(self) -> float:
        units, _, shift = self._sums or (0, 0, 0)
        return nearest(units, shift)

    @cached_property
    def denominator(self) -> float:
        _, units, shift = self._sums or (0, 0, 0)
        return nearest(units, shift)

    @cached_property
    def exact(self) -> tuple[Fraction, Fraction] | None:
        if self._sums is None:
            return None
        numerator, denominator, shift = self._sums
        return dyadic(numerator, shift), dyadic(denominator, shift)


def _range_of_share(ratio: Quotient) -> Range | None:
    """None is known of other ratios, nor without rows."""
    return SHARE if ratio.is_share and ratio.rows else None


def _no_ratio(ratio: Quotient) -> str:
    if not ratio.denominator:
        return "the denominator is 0"
    if math.isnan(ratio.numerator + ratio.denominator):
        return "a sum has infinite values of both signs"
    if math.isinf(ratio.denominator):
        return "both sums are infinite"
    return "a value is infinite" if math.isinf(ratio.numerator) else "beyond the range of numbers"


def _share_counts(ratio: Quotient) -> tuple[int, int] | Lacking | None:
    """Of rows that are 0 or 1 over 1."""
    sums = ratio._sums
    if sums is None and ratio.exact is None:
        return None
    if not ratio.is_share and ratio.rows:
        why = "rows are not all 0 or 1 over 1, and sums of squares are not kept"
        return Lacking(f"{why}; {_SQUARES}, and {USERS}", ratio.rows)
    if sums is None:
        return int(ratio.exact[0]), ratio.rows  # type: ignore[index] # it has one of both
    return sums[0] >> sums[2], ratio.rows


_RATIO: Final[Share[Quotient]] = Share(_share_counts)


@dataclass(frozen=True, eq=False, repr=False)
class Quotient(_QuotientSums, HasIntervals):
    """A ratio of sums, with the sums and the number of rows.

    numerator, denominator: the sums, correctly rounded; they may be infinite or nan.
    exact: both sums without rounding, or None where one is not finite. is_share: every row is 0 or
    1 over 1, so that the ratio is a share of rows.

    >>> Quotient(1.0, 3.0, (Fraction(1), Fraction(3)), rows=3).ratio
    0.3333333333333333
    """

    numerator: float = field(metadata=View(better=NONE))
    denominator: float = field(metadata=View(better=NONE))
    exact: tuple[Fraction, Fraction] | None = field(repr=False)
    rows: int = field()
    is_share: bool = False

    @property
    @View(estimator=_RATIO, better=NONE, range=_range_of_share, undefined=_no_ratio)
    def ratio(self) -> float:
        """The exact numerator over the exact denominator, rounded once; nan where that is 0."""
        if self._sums is not None:
            return ratio(self._sums[0], self._sums[1])
        if self.exact is None:
            return self.numerator / self.denominator if self.denominator else math.nan
        return ratio(*self.exact)


class _ErrorSums:
    """Σ |y - s|, Σ y, Σ y², Σ s² and Σ y s, each at all SCALES, before they are fractions; and the
    sum of cubes, None if it is unknown."""

    _sums: tuple[Sequence[Sequence[Dyadic]], Dyadic | None]

    @cached_property
    def absolute(self) -> Fraction | None:
        return self._total(0)

    @cached_property
    def squares(self) -> Fraction | None:
        # One sum of integers at each scale: fractions would be reduced thrice.
        return scaled_sum(
            [dyadic(*_squared(*sums)) for sums in zip(*self._sums[0][2:], strict=True)]
        )

    @cached_property
    def labels(self) -> Fraction:
        return self._total(1)

    @cached_property
    def label_squares(self) -> Fraction:
        return self._total(2)

    @cached_property
    def _cubes(self) -> Fraction | None:
        cubes = self._sums[1]
        return None if cubes is None else dyadic(*cubes)

    def _total(self, i: int) -> Fraction:
        return scaled_sum([dyadic(*part) for part in self._sums[0][i]])

    # The same as they are at hand: as fractions only if they were given, or read before.

    @property
    def _exact_absolute(self) -> Exact | None:
        if "absolute" in self.__dict__:
            return self.absolute
        return scaled_ratio(self._sums[0][0])

    @cached_property
    def _exact_squares(self) -> Exact | None:
        if "squares" in self.__dict__:
            return self.squares
        *_, labels, scores, products = self._sums[0]
        return scaled_ratio([*map(_squared, labels, scores, products)])

    @property
    def _exact_label_sums(self) -> tuple[Exact, Exact]:
        """Σ y and Σ y²."""
        if "label_squares" in self.__dict__:
            return self.labels, self.label_squares
        return scaled_ratio(self._sums[0][1]), scaled_ratio(self._sums[0][2])

    @property
    def _exact_cubes(self) -> Exact | None:
        if "_cubes" in self.__dict__ or self._sums[1] is None:
            return self._cubes
        units, shift = self._sums[1]
        return IntegerRatio(units, 1 << shift)


def _squared(labels: Dyadic, scores: Dyadic, products: Dyadic) -> Dyadic:
    """Σ (y - s)² from Σ y², Σ s² and Σ y s."""
    (y, y_shift), (s, s_shift), (dot, both_shift) = labels, scores, products
    if not (y or s or dot):
        return 0, 0
    shift = max(y_shift, s_shift, both_shift)
    return (y << shift - y_shift) - (dot << shift - both_shift + 1) + (s << shift - s_shift), shift


def _absolute_sums(errors: RegressionErrors) -> MomentSums | None:
    absolute, squares = errors._exact_absolute, errors._exact_squares
    if absolute is None or squares is None:
        return None
    cubes = None if errors._surplus else errors._exact_cubes
    return MomentSums(errors._units, absolute, squares, cubes, rounded=1)


def _errors(batch: Batch) -> NDArray[np.float64]:
    """The error of each row."""
    labels, scores = batch.labels.astype(np.float64), batch.scores.astype(np.float64)
    with np.errstate(over="ignore"):
        errors: NDArray[np.float64] = labels - scores
    return errors


def _absolute_errors(metric: object, batch: Batch) -> NDArray[np.float64]:
    return np.abs(_errors(batch))


def _squared_errors(metric: object, batch: Batch) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.square(_errors(batch))


_MAE: Final[MeanOfValues[RegressionErrors]] = MeanOfValues(_absolute_sums, each=_absolute_errors)
_MSE: Final[MeanOfValues[RegressionErrors]] = MeanOfValues(
    lambda errors: None, each=_squared_errors
)


@dataclass(frozen=True, eq=False, repr=False)
class RegressionErrors(_ErrorSums, OfWeightedRows):
    """Errors of scores s against labels y; n rows, weights included.

    absolute: Σ |y - s|. squares: Σ (y - s)². labels: Σ y. label_squares: Σ y². All are exact and
    in units of weight, `weight_unit` each; None: infinite, because a score is. Every figure is
    rounded once, and infinite past the largest float.

    >>> sums = [Fraction(x) for x in (2, 2, 6, 14)]
    >>> result = RegressionErrors(3, *sums)  # y = 1, 2, 3 and s = 2, 2, 4
    >>> result.mae, result.mse, result.rmse, result.r2
    (0.6666666666666666, 0.6666666666666666, 0.816496580927726, 0.0)
    """

    _n: int  # units of weight
    absolute: Fraction | None = field()
    squares: Fraction | None = field()
    labels: Fraction = field()
    label_squares: Fraction = field()
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None
    # Σ |y - s|³ over rows, each rounded; None: unknown.
    _cubes: Fraction | None = field(default_factory=lambda: None, repr=False)

    @property
    @View(estimator=_MAE, better=LOWER, range=POSITIVE)
    def mae(self) -> float:
        """Mean absolute error, 1/n Σ |y - s|."""
        absolute = self._exact_absolute
        return math.inf if absolute is None else ratio(absolute, self._units)

    @property
    @View(estimator=_MSE, better=LOWER, range=POSITIVE)
    def mse(self) -> float:
        """Mean squared error, 1/n Σ (y - s)²."""
        squares = self._exact_squares
        return math.inf if squares is None else ratio(squares, self._units)

    @property
    @View(better=LOWER, range=POSITIVE)
    def rmse(self) -> float:
        """√mse, of the exact fraction."""
        squares = self._exact_squares
        if squares is None:
            return math.inf
        top, bottom = squares.numerator, squares.denominator * self._units
        if bottom and not top:
            return 0.0
        return quotient_by_root(top, top * bottom)

    @property
    @View(better=HIGHER, undefined="all labels are equal, or a score is infinite")
    def r2(self) -> float:
        """1 - Σ (y - s)² / Σ (y - mean y)²; nan where all labels are equal."""
        if not self._units:
            return math.nan
        labels, label_squares = self._exact_label_sums
        (y, unit), (yy, square_unit) = labels.as_integer_ratio(), label_squares.as_integer_ratio()
        # n Σ y² - (Σ y)², in units of 1 / below.
        spread = self._units * yy * unit * unit - y * y * square_unit
        if not spread:
            return math.nan
        squares = self._exact_squares
        if squares is None:
            return -math.inf
        below = unit * unit * square_unit
        errors = self._units * squares.numerator * below
        return ratio(spread * squares.denominator - errors, spread * squares.denominator)

    @property
    def _units(self) -> int:
        return self._n
