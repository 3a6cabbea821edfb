"""MeanOfLists: a mean over lists, or a ratio of two sums over lists, such as that of a measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nan

from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, R
from streammetrics.estimators.request import Arguments, IntervalRequest
from streammetrics.kernels.inference.pooled_variance import skewness_number_of_rounded
from streammetrics.kernels.inference.variances import rounded_ratio_variance


@dataclass(frozen=True, slots=True)
class ListMoments:
    """Σ v and Σ v² over n lists. pooled: for a ratio Σ v / Σ w also Σ w, Σ w² and Σ v w.
    shares: each value is 0 or 1. limits: the least and the greatest value of a list. units: what
    the n are called. cubes: Σ v³, of a ratio also Σ v² w, Σ v w² and Σ w³; None: unknown.

    >>> ListMoments(2, Fraction(1), Fraction(1)).variance
    0.25
    """

    n: int
    sum_: Fraction
    squares: Fraction
    pooled: tuple[Fraction, Fraction, Fraction] | None = None
    shares: bool = False
    limits: tuple[float, float] = (-inf, inf)
    units: str = "lists"
    cubes: tuple[Fraction, ...] | None = None

    @property
    def skewness_number(self) -> float:
        """That of the values minus their mean, or of v - (Σ v / Σ w) w; nan if unknown."""
        if self.cubes is None:
            return nan
        if self.pooled is None:
            [cubes] = self.cubes
            return skewness_number_of_rounded(self.n, self.sum_, self.squares, cubes)
        (w, ww, vw), (vvv, vvw, vww, www) = self.pooled, self.cubes
        if not w:
            return nan
        ratio = self.sum_ / w
        squares = self.squares - 2 * ratio * vw + ratio**2 * ww
        cubes = vvv - 3 * ratio * vvw + 3 * ratio**2 * vww - ratio**3 * www
        return skewness_number_of_rounded(self.n, Fraction(0), squares, cubes)

    @property
    def variance(self) -> float:
        """The variance of the mean, or the ratio, of independent lists; nan for fewer than 2, and
        0 where values are equal but for their rounding."""
        w, ww, vw = self.pooled or (self.n, self.n, self.sum_)
        return rounded_ratio_variance(self.n, self.sum_, w, (self.squares, vw, ww))

    def interval(self, request: IntervalRequest) -> Interval:
        """The interval of the mean: Wilson's if each value is 0 or 1, else Student's."""
        if self.shares and request.method in ("auto", "wilson", "delta"):
            return request.share(int(self.sum_), self.n)
        methods = ("wilson", "t") if self.shares else ("t",)
        request.choose(*methods)
        return request.spread(
            self.variance, self.n, df=self.n - 1.0, methods=("t",), units=self.units
        )


@dataclass(frozen=True)
class MeanOfLists(Estimator[R]):
    """A mean over lists, whose values may all be 0 or 1.

    sums: of a result, and of the arguments of the view; None if it lacks them.
    """

    sums: Callable[..., ListMoments | None]

    def interval(self, result: R, request: IntervalRequest) -> Interval | None:
        """Wilson's if each value is 0 or 1, else Student's."""
        moments = self.sums(result, *request.arguments)
        return None if moments is None else moments.interval(request)

    def skewness_number(self, result: R, arguments: Arguments) -> float:
        """Of the values, or of their distances from a ratio, if their cubes are known."""
        moments = self.sums(result, *arguments)
        return nan if moments is None else moments.skewness_number
