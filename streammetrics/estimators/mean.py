"""MeanOfValues: a mean over independent rows, lists or groups, and a ratio of two such means."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from streammetrics.core.interval import Interval
from streammetrics.core.parts.float_bits import Exact, fraction
from streammetrics.estimators.estimator import Estimator, R, RowValues
from streammetrics.estimators.many import Intervals, ManyRequest
from streammetrics.estimators.request import Arguments, IntervalRequest, Lacking
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.pooled_variance import (
    skewness_number_of_rounded,
    skewness_number_of_sums,
)
from streammetrics.kernels.inference.variances import (
    mean_variance,
    ratio_variance,
    rounded_mean_variance,
)


class MomentSums(NamedTuple):
    """The exact sums over n values: Σ x, Σ x² and Σ x³; total None: infinite, cubes None: unknown.
    rounded: 2 if the squares and cubes of single values were rounded before they were added, so
    that equal values may seem to differ; 1 if only the skewness has to allow for it.
    limit: the greatest value by design, if none is below 0; None without one. units: what n
    counts."""

    n: int
    total: Exact | None
    squares: Exact
    cubes: Exact | None = None
    rounded: int = 0
    limit: Fraction | None = None
    units: str = "rows"

    @property
    def variance(self) -> float:
        """Of the mean; nan for fewer than two values, and of an infinite one."""
        if self.total is None:
            return math.nan
        if self.rounded > 1:
            return rounded_mean_variance(self.n, self.total, self.squares)
        return mean_variance(self.n, self.total, self.squares)


@dataclass(frozen=True)
class MeanOfValues(Estimator[R]):
    """A mean, with the interval of Student's t.

    sums: of a result, and of the arguments of the view, or why it lacks them. None: there is no
    formula. each: of the metric and a batch of its checked rows, the value of each row, by which
    `Paired` compares two models on the same rows; None: it has no such formula.

    >>> from streammetrics.estimators.request import IntervalRequest
    >>> waits = MeanOfValues[int](lambda n: MomentSums(n, Fraction(n * (n + 1), 2), Fraction(30)))
    >>> request = IntervalRequest("mean", (), 2.5, 0.95, "auto")
    >>> print(waits.interval(4, request))
    2.5, 95 % CI 0.44574 to 4.55426 (t, n = 4)
    """

    sums: Callable[..., MomentSums | Lacking | None]
    each: RowValues | None = None

    def estimate(self, result: R, *arguments: object) -> float:
        """Σ x / n, rounded once; nan without values, or if it is not known."""
        sums = self.sums(result, *arguments)
        if sums is None or isinstance(sums, Lacking):
            return math.nan
        return math.inf if sums.total is None else ratio(sums.total, sums.n)

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's, with the rows less 1 degrees of freedom."""
        sums = self.sums(result, *request.arguments)
        if sums is None or isinstance(sums, Lacking):
            return request.lacking(sums)
        n = sums.n
        interval = request.spread(sums.variance, n, df=n - 1.0, methods=("t",), units=sums.units)
        return request.widen(interval)

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same, side by side where every result has the sums."""
        n, variances, units = list[int](), list[float](), set[str]()
        for result in results:  # sums are not kept: the garbage collector would visit them
            sums = self.sums(result, *request.arguments)
            if request.is_bounded or not isinstance(sums, MomentSums):
                return super().intervals(results, request)
            n.append(sums.n)
            variances.append(sums.variance)
            units.add(sums.units)
        if len(units) > 1:
            return super().intervals(results, request)
        df = [count - 1.0 for count in n]
        return request.spread(variances, n, df, "t", units=next(iter(units), "rows"))

    def skewness_number(self, result: R, arguments: Arguments) -> float:
        """Of the values, if their cubes are known."""
        sums = self.sums(result, *arguments)
        if sums is None or isinstance(sums, Lacking) or sums.total is None or sums.cubes is None:
            return math.nan
        total, squares, cubes = map(fraction, (sums.total, sums.squares, sums.cubes))
        if sums.rounded:
            return skewness_number_of_rounded(sums.n, total, squares, cubes)
        return skewness_number_of_sums(sums.n, total, squares, cubes)

    def moments(self, result: R, arguments: Arguments) -> Moments | None:
        """Of values from 0 to a limit that is known by design."""
        sums = self.sums(result, *arguments)
        if sums is None or isinstance(sums, Lacking) or sums.total is None or sums.limit is None:
            return None
        return Moments(sums.n, fraction(sums.total), fraction(sums.squares), sums.limit)


class RatioSums(NamedTuple):
    """Two exact sums over n rows, and those of the squares of the first, of the products of both,
    and of the squares of the second."""

    n: int
    above: Exact
    below: Exact
    products: tuple[Exact, Exact, Exact]


@dataclass(frozen=True)
class RatioOfSums(Estimator[R]):
    """Σ y / Σ x over rows, by the delta method with Student's t.

    sums: of a result, and of the arguments of the view; None if its state lacks them. each: see
    `MeanOfValues`.
    """

    sums: Callable[..., RatioSums | None]
    each: RowValues | None = None

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's, with the rows less 1 degrees of freedom."""
        sums = self.sums(result, *request.arguments)
        if sums is None:
            return None
        variance = ratio_variance(*sums)
        return request.spread(variance, sums.n, df=sums.n - 1.0, methods=("t",))

    def intervals(self, results: Sequence[R], request: ManyRequest) -> Intervals:
        """The same, side by side where every result has the sums."""
        n, variances = list[int](), list[float]()
        for result in results:
            sums = self.sums(result, *request.arguments)
            if request.is_bounded or sums is None:
                return super().intervals(results, request)
            n.append(sums.n)
            variances.append(ratio_variance(*sums))
        return request.spread(variances, n, [count - 1.0 for count in n], "t")


class WinsorisedSums(NamedTuple):
    """Of n rows, the number that is left when those at both ends are trimmed, and Σ (x - mean)² of
    all, with the trimmed ones at the nearest value that is left; None if it is not known."""

    n: int
    left: int
    squares: Fraction | None


@dataclass(frozen=True)
class TrimmedMean(Estimator[R]):
    """A trimmed mean, by Student's t with the variance of the winsorised rows. (Yuen 1974,
    Biometrika 61.)

    sums: of a result, and of the arguments of the view.
    """

    sums: Callable[..., WinsorisedSums]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Student's, with the rows that are left less 1 degrees of freedom."""
        n, left, squares = self.sums(result, *request.arguments)
        variance = math.nan if squares is None else ratio(squares, left * (left - 1))
        return request.widen(request.spread(variance, n, df=left - 1.0, methods=("t",)))
