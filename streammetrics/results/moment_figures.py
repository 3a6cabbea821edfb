"""MomentFigures: mean, variance, skewness and extremes of numbers, from exact sums of powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final

from streammetrics.core.parts.exact_sums import scaled_sum
from streammetrics.core.parts.float_bits import Dyadic, dyadic
from streammetrics.estimators.mean import MeanOfValues, MomentSums
from streammetrics.estimators.quantile import EXTREME
from streammetrics.estimators.share import Share
from streammetrics.kernels.exact.rounding import quotient_by_root, ratio
from streammetrics.present.view import NONE, POSITIVE, SHARE, View
from streammetrics.results.rounded_weights import OfWeightedRows

_LACKING: Final = "some rows were counted before values above 0 were"
_NEGATIVE: Final = "some values are below 0"
_UNKNOWN: Final = (
    "at most one row, rows that weigh at most 1 together, or a value past the largest float"
)


class _PowerSums:
    """Σ x, Σ x² and Σ x³, each at its scales, before they are fractions."""

    _sums: Sequence[Sequence[Dyadic]]

    @cached_property
    def total(self) -> Fraction:
        return self._power(0)

    @cached_property
    def squares(self) -> Fraction:
        return self._power(1)

    @cached_property
    def cubes(self) -> Fraction:
        return self._power(2)

    def _power(self, i: int) -> Fraction:
        return scaled_sum([dyadic(*part) for part in self._sums[i]])


def _moment_sums(figures: MomentFigures) -> MomentSums:
    return MomentSums(figures._units, figures.total, figures.squares, figures.cubes)


def _counts_above(figures: MomentFigures) -> tuple[int, int] | None:
    above = figures._count_above
    return None if above is None else (above, figures._units)


_MEAN: Final[MeanOfValues[MomentFigures]] = MeanOfValues(
    _moment_sums, each=lambda metric, batch: batch.values
)
_ABOVE_ZERO: Final[Share[MomentFigures]] = Share(_counts_above)


@dataclass(frozen=True, eq=False, repr=False)
class MomentFigures(_PowerSums, OfWeightedRows):
    """Mean, variance, skewness and extremes of numbers x; n rows, or their total weight.

    total: Σ x. squares: Σ x². cubes: Σ x³. All are exact and in units of weight, `weight_unit`
    each. minimum, maximum: exact; nan without rows. _above: units of values above 0, as k and n, k
    / 2 ** n; None if unknown. Every figure is rounded once, and infinite past the largest float.

    >>> sums = [Fraction(x) for x in (7, 21, 73)]
    >>> found = MomentFigures(3, *sums, 1.0, 4.0)  # 1, 2, 4
    >>> found.mean, found.variance, found.std, found.skewness
    (2.3333333333333335, 2.3333333333333335, 1.5275252316519468, 0.3818017741606063)
    """

    _n: int  # units of weight
    total: Fraction = field()
    squares: Fraction = field()
    cubes: Fraction = field()
    minimum: float = field(metadata=View(better=NONE, undefined="no rows", estimator=EXTREME))
    maximum: float = field(metadata=View(better=NONE, undefined="no rows", estimator=EXTREME))
    weight_unit: Fraction = Fraction(1)
    _surplus: int = 0  # of units over rows
    rows_rounded: int | None = None
    _above: Dyadic | None = None

    @property
    @View(estimator=_MEAN, better=NONE, undefined="no rows", headline=1, rate_beside="above_zero")
    def mean(self) -> float:
        """Σ x / n."""
        return ratio(self.total, self._units)

    @property
    @View(better=NONE, range=POSITIVE, undefined=_UNKNOWN)
    def variance(self) -> float:
        """(n Σ x² - (Σ x)²) / (n (n - 1)), of the rows as a sample; nan if n is at most 1."""
        return ratio(*self._variance)

    @property
    @View(better=NONE, range=POSITIVE, undefined=_UNKNOWN, headline=2)
    def std(self) -> float:
        """√variance, of the exact fraction."""
        top, bottom = self._variance
        if not bottom or not top:
            return math.nan if not bottom else 0.0
        variance = Fraction(top, bottom)
        return quotient_by_root(variance.numerator, variance.numerator * variance.denominator)

    @property
    @View(better=NONE, undefined="no rows, or all values are equal")
    def skewness(self) -> float:
        """m₃ / m₂^(3/2) of the central moments m_k = Σ (x - mean)^k / n, as scipy's `skew` has it;
        nan if all values are equal."""
        n, s, q = self._units, self.total, self.squares
        second = n * q - s * s
        third = n * n * self.cubes - 3 * n * s * q + 2 * s * s * s
        if not second:
            return math.nan
        (a, b), (c, d) = third.as_integer_ratio(), second.as_integer_ratio()
        return quotient_by_root(a * d * d, d * b * b * c * c * c)  # a / b / (c / d) ** 1.5

    @property
    @View(estimator=_ABOVE_ZERO, better=NONE, range=SHARE, undefined=_LACKING)
    def above_zero(self) -> float:
        """The share of values above 0; nan if some rows were counted before such values were."""
        return _ABOVE_ZERO.estimate(self)

    @property
    def _count_above(self) -> int | None:
        """The units of values above 0; None if unknown."""
        return None if self._above is None else self._above[0] >> self._above[1]

    @property
    def _units(self) -> int:
        return self._n

    @property
    def _variance(self) -> tuple[Fraction, Fraction]:
        """Numerator and denominator of the variance; 0 and 0 where it is undefined."""
        units, weight = self._units, self.weight
        if not weight > 1:
            return Fraction(0), Fraction(0)
        return units * self.squares - self.total * self.total, units * (weight - 1) / (
            self.weight_unit
        )

    def _no_rate_beside(self) -> str:
        if self._count_above is None and self.rows:
            return _LACKING
        return _NEGATIVE if self.minimum < 0 else ""
