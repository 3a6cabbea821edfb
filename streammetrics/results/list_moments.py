"""ListMoments: the sums over lists that the interval of their mean is made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.sums_variance import mean_variance, ratio_variance
from streammetrics.results.interval import Asked, Interval


@dataclass(frozen=True, slots=True)
class ListMoments:
    """Σ v and Σ v² over n lists. pooled: of a ratio Σ v / Σ w also Σ w, Σ w² and Σ v w.
    shares: each value is 0 or 1.

    >>> ListMoments(2, Fraction(1), Fraction(1)).variance
    0.25
    """

    n: int
    sum_: Fraction
    squares: Fraction
    pooled: tuple[Fraction, Fraction, Fraction] | None = None
    shares: bool = False

    @property
    def variance(self) -> float:
        """Of the mean, or of the ratio, of independent lists; nan of fewer than two."""
        if self.pooled is None:
            return mean_variance(self.n, self.sum_, self.squares)
        w, ww, vw = self.pooled
        return ratio_variance(self.n, self.sum_, w, (self.squares, vw, ww))

    def interval(self, asked: Asked) -> Interval:
        """Of the mean: Wilson's where each list is hit or not, else Student's."""
        if self.shares and asked.method in ("auto", "wilson", "delta"):
            return asked.share(int(self.sum_), self.n)
        methods = ("wilson", "t") if self.shares else ("t",)
        asked.choose(*methods)
        return asked.spread(self.variance, self.n, df=self.n - 1.0, methods=("t",), units="lists")
