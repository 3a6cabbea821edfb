"""The difference of two models on the same units, whose values are correlated.

Both models score the same rows, lists or users. What makes one of them easy or hard moves both
values, and cancels in their difference. So the variance of the difference is that of the
differences of each unit, usually far less than the sum of both variances. With a weight w for each
unit (1 for a mean) the difference is Σ d / Σ w, where d is the value of the first model less that
of the second; both are in units of the numerator. A mean is the paired t-test (Student 1908,
Biometrika 6), a ratio its linearisation (`variances.ratio_variance`).

For areas under the ROC curve see `area_interval.paired_placements`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import ByValue
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.tails import beta_p, chi2_sf
from streammetrics.kernels.inference.variances import (
    GroupVariance,
    jackknife_variance,
    rounded_ratio_variance,
)

Floats = NDArray[np.float64]

SUMS: Final = 5  # d, w, d², d w, w²
_TINY: Final = Fraction(1, 1 << 1074)  # above the error of a product near 0
_ROUNDED: Final = 1 + Fraction(1, 1 << 52)
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")


@dataclass(frozen=True, slots=True, eq=False)
class PairedError(ByValue):
    """The variance of a difference, and where it is from.

    df: degrees of freedom. n: the independent units, named by `units`. method: "t" for means,
    "delong" for areas, "jackknife" for users and for tables of counts. reason: why the variance is
    nan, or doubtful. discordant: of an accuracy, the rows that only the first model has right, and
    those that only the second has right; None for other views.
    """

    variance: float
    df: float
    n: int
    method: str
    units: str = "rows"
    reason: str = ""
    discordant: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PairedSums:
    """Exact sums over the units: Σ d, Σ w, Σ d², Σ d w, Σ w².

    units: those with a value or a weight. unbounded: units whose difference is not finite, such as
    a log loss of inf; with one of them the variance is nan.

    >>> ours, theirs = np.array([1.0, 0.5, 0.5, 1.0]), np.array([0.5, 0.5, 0.25, 0.5])
    >>> sums = PairedSums.from_values(ours, theirs)
    >>> sums.difference, round(sums.variance, 9), sums.df
    (0.3125, 0.014322917, 3.0)
    """

    units: int
    sums: tuple[Fraction, ...]
    unbounded: int = 0

    @classmethod
    def from_values(cls, a: Floats, b: Floats, weights: Floats | None = None) -> PairedSums:
        """From the values of both models [n] and the weights of the units [n], None: 1 each.

        The order of the units changes no bit.
        """
        terms, used, bounded = difference_terms(a, b, weights)
        sums = [Fraction(math.fsum(row.tolist())) for row in terms[:, bounded]]
        return cls(int(np.count_nonzero(used)), tuple(sums), int(np.count_nonzero(~bounded)))

    @property
    def difference(self) -> float:
        """Σ d / Σ w; nan without weight, or if a unit is unbounded."""
        d, w, *_ = self.sums
        return float(d / w) if w and not self.unbounded else math.nan

    @property
    def variance(self) -> float:
        """Of the difference, for independent units; nan for fewer than two, and 0 where the
        differences are equal but for their rounding."""
        if self.unbounded:
            return math.nan
        d, w, dd, dw, ww = self.sums
        return rounded_ratio_variance(self.units, d, w, (dd, dw, ww))

    @property
    def df(self) -> float:
        """Degrees of freedom: units - 1; nan where there are none."""
        return float(self.units - 1) if self.units > 1 else math.nan

    def error(self, units: str = "rows") -> PairedError:
        """The variance, its degrees of freedom, and the number of units."""
        why = f"{self.unbounded} {units} with an infinite difference" if self.unbounded else ""
        return PairedError(self.variance, self.df, self.units, "t", units, why)


def difference_terms(
    a: Floats, b: Floats, weights: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """The terms d, w, d², d w and w² of each unit [5, n], each product rounded once; whether a
    unit has a value or a weight [n], and whether all its terms are finite [n].

    a, b: [n], the values of both models; weights: [n], None: 1 each.
    """
    w = np.ones(len(a)) if weights is None else weights
    with np.errstate(over="ignore", invalid="ignore"):
        d = a - b
        terms = np.stack([d, w, d * d, d * w, w * w])
    used: NDArray[np.bool_] = (d != 0) | (w != 0)
    bounded: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(terms), axis=0)
    return terms, used, bounded


def are_possible(n: int, sums: Sequence[Fraction]) -> bool:
    """Whether n units may have these sums of d, w, d², d w and w²: by the inequality of Cauchy and
    Schwarz, as each product was rounded once, those of tiny numbers to 0.

    >>> tiny, one = Fraction(1e-200), Fraction(1)
    >>> are_possible(1, [tiny, one, Fraction(0), tiny, one])  # the float 1e-200 * 1e-200 is 0
    True
    >>> are_possible(1, [one, one, Fraction(0), one, one])
    False
    """
    d, w, dd, dw, ww = sums
    least = n * _TINY
    most_d, most_w = dd * _ROUNDED + least, ww * _ROUNDED + least
    least_dw = max(abs(dw) / _ROUNDED - least, Fraction(0))
    bounded = d * d <= n * most_d and w * w <= n * most_w and least_dw * least_dw <= most_d * most_w
    return bounded and dd >= 0 and ww >= 0


def table_variance(counts: Sequence[int], replicates: Sequence[float]) -> float:
    """The variance of an estimate from a table of counts, by the jackknife over rows.

    counts: the rows of each cell, [k], each at least 1. replicates: the estimate without one row of
    each cell, [k]. (n - 1) / n Σ x (θ - mean θ)²; nan for fewer than two rows and where one is nan.
    (Efron & Stein 1981, Ann. Stat. 9.)

    >>> round(table_variance([3, 1], [2 / 3, 1.0]), 12)  # of a share: 0.75 * 0.25 / 3
    0.0625
    """
    n = sum(counts)
    if n < 2 or not all(map(math.isfinite, replicates)):
        return math.nan
    cells = list(zip(counts, replicates, strict=True))
    mean = math.fsum(x * value for x, value in cells) / n
    return (n - 1) / n * math.fsum(x * (value - mean) * (value - mean) for x, value in cells)


def mcnemar(
    only_a: int, only_b: int, *, exact: bool = True, correction: bool = True
) -> tuple[float, float]:
    """The statistic and the two-sided p-value of McNemar's test, from the rows that only the first
    model, and only the second, has right.

    exact: the binomial test of only_a out of both, whose statistic is the smaller; else chi-square
    with one degree of freedom, (|a - b| - 1)² / (a + b) with the correction for continuity and
    (a - b)² / (a + b) without. (McNemar 1947, Psychometrika 12; Edwards 1948, Psychometrika 13.)

    >>> mcnemar(6, 16, exact=False)[0], round(mcnemar(6, 16)[1], 12)
    (3.6818181818181817, 0.052478790283)
    """
    n, least = only_a + only_b, min(only_a, only_b)
    if exact:  # 2 P(X <= least), X binomial of n and 1/2
        tail = 1.0 if 2 * least == n else 2.0 * beta_p(n - least, least + 1, 0.5, 0.5)
        return float(least), min(1.0, tail)
    apart = max(0, abs(only_a - only_b) - int(correction))
    statistic = ratio(apart * apart, n) if n else 0.0
    return statistic, chi2_sf(statistic, 1.0) if apart else 1.0


def paired_jackknife(
    a: Sequence[float], b: Sequence[float], weights: Sequence[int | Fraction] = ()
) -> GroupVariance:
    """The variance of a difference from groups of users, each left out of both models in turn.

    a, b: the estimates of both models from all groups but g, [K]; the same groups. weights: of the
    groups, whose effective number less 1 is the degrees of freedom; equal by default.

    >>> paired_jackknife([0.5, 0.75, 0.625], [0.25, 0.5, 0.5]).variance
    0.006944444444444444
    """
    return jackknife_variance([x - y for x, y in zip(a, b, strict=True)], weights)


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """The correlation of two estimates, from their values without each group in turn, [K]: that of
    two quantiles is nearly that of the shares of rows up to them. nan if one never changes.

    >>> correlation([1.0, 2.0, 3.0], [2.0, 4.0, 7.0])
    0.9933992677987828
    """
    sum_variance = paired_jackknife([-x for x in a], b).variance  # of the sum, by V(a) + V(b) + 2 C
    variance_a, variance_b = jackknife_variance(a).variance, jackknife_variance(b).variance
    scale = math.sqrt(variance_a * variance_b)
    return (
        max(-1.0, min(1.0, (sum_variance - variance_a - variance_b) / 2.0 / scale))
        if scale > 0
        else math.nan
    )


def rank_correlation(a: Sequence[int], b: Sequence[int]) -> float:
    """Spearman's rank correlation of two counts of each group [K], tied counts at their mean rank.

    Heavy users do not dominate it. Counts of different users in groups by hash are independent, so
    it is 0 -/+ 1 / √(K - 1); those of the same users are correlated. nan if all counts are equal.
    (Spearman 1904, Am. J. Psychol. 15.)

    >>> rank_correlation([1, 5, 5, 900], [20, 30, 31, 32])
    0.9486832980505138
    """
    first, second = (_centred_ranks(np.asarray(counts, np.int64)) for counts in (a, b))
    scale = math.sqrt(int((first * first).sum()) * int((second * second).sum()))
    return int((first * second).sum()) / scale if scale else math.nan


def _centred_ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Twice the mean rank of each count, from 0, less that of all."""
    ordered = np.sort(counts)
    ends = [np.searchsorted(ordered, counts, side) for side in _SIDES]
    ranks: NDArray[np.int64] = (ends[0] + ends[1] - len(counts)).astype(np.int64)
    return ranks
