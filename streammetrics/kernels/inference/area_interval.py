"""The interval of an area under the ROC curve: on the logit scale, and guarded if rows are few.

The logit interval with Student's t is valid if both classes have enough rows on the wrong side.
Near an area of 1, or with few positives, its variance is poorly estimated; there the interval is
widened to include Hanley and McNeil's, whose variance is a function of the candidate area.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import exact_dot, exact_sum, ratio
from streammetrics.kernels.inference.placement_sums import PlacementSums
from streammetrics.kernels.inference.t_columns import critical_columns, logit_bound_columns
from streammetrics.kernels.inference.t_interval import EVERYTHING, Bounds, critical, logit_bounds
from streammetrics.kernels.inference.tails import last_inside

# DeLong's variance of the area under the ROC curve, from buckets, in exact integers.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Number = TypeVar("Number", float, NDArray[np.float64])

_HALF_INT64: Final = 1 << 61  # twice this plus a bucket fits int64


class AreaEstimate(NamedTuple):
    """An area, its variance and the degrees of freedom of that. positives, negatives: the rows of
    each class; for clustered rows, divided by the design effect. resolution: how far bucketing may
    have moved the area."""

    area: float
    variance: float
    df: float
    positives: float
    negatives: float
    resolution: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is a logit interval."""
        return self.variance > 0 and self.df > 0 and 0 < self.area < 1

    @property
    def is_guarded(self) -> bool:
        """Whether the interval includes Hanley and McNeil's: min(P, N) min(A, 1 - A) < 10, or the
        variance is 0 or unknown."""
        least = min(self.positives, self.negatives) * min(self.area, 1.0 - self.area)
        return not self.is_known or least < GUARD

    @property
    def has_both(self) -> bool:
        """Whether both classes have rows; without that there is no interval."""
        return self.positives > 0 and self.negatives > 0 and 0 <= self.area <= 1


class Placements(NamedTuple):
    """Sums over the placements of the rows of each class among those of the other.

    half_wins: U, twice the pairs won, where a tie is one half. of_positives, of_negatives: Σ p_b
    w_b² and Σ n_b v_b². ties: Σ p_b n_b, the pairs within a bucket. All count rows or units of
    weight. For two models on the same rows U, w and v are the differences of both, and so is the
    area.
    """

    positives: int
    negatives: int
    half_wins: int
    of_positives: int
    of_negatives: int
    ties: int

    @property
    def estimate(self) -> AreaEstimate:
        """The area and what its interval rests on, each correctly rounded, for independent rows.

        The area is nan without a positive or a negative, the variance below 2 rows of a class, and
        the degrees of freedom where the variance is 0. They are Satterthwaite's: (a + b)² /
        (a² / (P - 1) + b² / (N - 1)). (Brunner and Munzel 2000, Biometrical Journal 42, 17-25.)
        The area of the unbucketed scores may differ by Σ p_b n_b / 2PN.
        """
        p, n, half_wins, p_squares, n_squares, ties = self
        area, resolution = ratio(half_wins, 2 * p * n), ratio(ties, 2 * p * n)
        variance = df = math.nan
        if p > 1 and n > 1:
            # What the rows of each class add to 4 P² N² (P - 1)(N - 1) times the variance.
            square = half_wins * half_wins
            a = (p * p_squares - square) * (n - 1)
            b = (n * n_squares - square) * (p - 1)
            variance = ratio(a + b, 4 * p * p * n * n * (p - 1) * (n - 1))
            of_classes = a * a * (n - 1) + b * b * (p - 1)
            df = ratio((a + b) ** 2 * (p - 1) * (n - 1), of_classes)
        return AreaEstimate(area, variance, df, float(p), float(n), resolution)


@dataclass(frozen=True)
class PlacementColumns:
    """The `Placements` of many curves."""

    rows: Sequence[Placements]

    @cached_property
    def table(self) -> Floats:
        """Their estimates as columns, [6, k], in the order of `AreaEstimate`."""
        estimates = [placements.estimate for placements in self.rows]
        return np.array(estimates, np.float64).reshape(-1, 6).T


def placements(negatives: Ints, positives: Ints) -> Placements:
    """From buckets [b] in ascending order of score; empty ones may be omitted. O(b).

    >>> estimate = placements(np.array([1, 1, 0]), np.array([0, 1, 2])).estimate
    >>> estimate.area, estimate.variance, estimate.resolution
    (0.9166666666666666, 0.013888888888888888, 0.08333333333333333)
    """
    sums = PlacementSums(exact_sum(positives))
    sums.add_buckets(negatives, positives)
    return placements_of(sums)


def placements_of(sums: PlacementSums) -> Placements:
    """From the sums over all blocks."""
    squares = sums.of_positives, sums.of_negatives
    return Placements(sums.positives, sums.negatives, sums.half_wins, *squares, sums.ties)


def paired_placements(labels: Ints, a: Ints, b: Ints, counts: Ints) -> Placements:
    """Of the difference of the areas of two models, from the cells that rows occupy.

    labels: [n] of 0 and 1. a, b: [n], the buckets or ordered codes of the scores of both models.
    counts: [n], the rows of each cell. The placements of a row under both models are subtracted
    before they are squared, which is DeLong's variance with the covariance of the two areas.
    (DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44, 837-845.) O(n log n).

    >>> cells = np.array([[0, 0, 1, 1], [1, 2, 2, 3], [1, 3, 2, 4], [1, 1, 1, 1]])
    >>> estimate = paired_placements(*cells).estimate
    >>> estimate.area, estimate.variance  # 7/8 and 3/4
    (0.125, 0.03125)
    """
    w_a, v_a = _placed(labels, a, counts)
    w_b, v_b = _placed(labels, b, counts)
    positive, negative = np.flatnonzero(labels), np.flatnonzero(labels == 0)
    p, n = counts[positive], counts[negative]
    won, lost = (w_a - w_b)[positive], (v_a - v_b)[negative]
    half_wins = exact_dot(p, np.maximum(won, 0)) - exact_dot(p, np.maximum(-won, 0))
    won, lost = np.abs(won), np.abs(lost)
    squares = exact_dot(p, won, won), exact_dot(n, lost, lost)
    return Placements(exact_sum(p), exact_sum(n), half_wins, *squares, 0)


def _placed(labels: Ints, scores: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """w, v of each row: twice the negatives below it and the positives above it."""
    different, positions = np.unique(scores, return_inverse=True)
    table = np.zeros((2, len(different)), np.int64)
    np.add.at(table, (labels, positions), counts)
    w, v = _beaten(table[0], table[1])
    return w[positions], v[positions]


def _beaten(n: Ints, p: Ints) -> tuple[Ints, Ints]:
    """w, v of each bucket: twice the negatives below and positives above it, ties one half."""
    if max(exact_sum(n), exact_sum(p)) > _HALF_INT64:
        n, p = n.astype(object), p.astype(object)
    above = p.sum() - np.cumsum(p)
    return 2 * (np.cumsum(n) - n) + n, 2 * above + p


GUARD: Final = 10.0  # min(P, N) min(A, 1 - A) below which the interval is guarded
COARSE: Final = 0.25  # resolution in standard errors above which the interval is widened


class AreaBounds(NamedTuple):
    """An area's interval. guarded: it includes Hanley and McNeil's. widened: by the resolution."""

    lower: float
    upper: float
    guarded: bool
    widened: bool


@lru_cache(maxsize=16)  # the area and Gini's coefficient of one curve have the same
def area_bounds(estimate: AreaEstimate, level: float) -> AreaBounds:
    """The interval of an area.

    Its resolution is added on both sides if it is above a quarter of the standard error. Infinite
    if a class has no rows.

    >>> bounds = area_bounds(AreaEstimate(31 / 42, 0.022297808012094, 8.681519661, 6, 7), 0.95)
    >>> round(bounds.lower, 9), round(bounds.upper, 9), bounds.guarded
    (0.32713939, 0.942314634, True)
    """
    if not estimate.has_both:
        return AreaBounds(*EVERYTHING, guarded=False, widened=False)
    area, variance, df, positives, negatives, resolution = estimate
    se, guarded = math.sqrt(variance) if variance > 0 else 0.0, estimate.is_guarded
    intervals = [logit_bounds(area, se, critical(level, df))] if estimate.is_known else []
    intervals += [score_bounds(area, positives, negatives, critical(level))] if guarded else []
    lower, upper = min(low for low, _ in intervals), max(high for _, high in intervals)
    widened = resolution > COARSE * se
    if widened:
        lower, upper = max(lower - resolution, 0.0), min(upper + resolution, 1.0)
    return AreaBounds(lower, upper, guarded, widened)


class AreaBoundColumns(NamedTuple):
    """`AreaBounds` of many areas, as columns [k]."""

    lower: Floats
    upper: Floats
    guarded: NDArray[np.bool_]
    widened: NDArray[np.bool_]


def many_area_bounds(table: Floats, level: float) -> AreaBoundColumns:
    """The `area_bounds` of many areas, side by side; table: [6, k], as `PlacementColumns` has it.

    >>> estimate = AreaEstimate(31 / 42, 0.022297808012094, 8.681519661, 6, 7)
    >>> bounds = many_area_bounds(np.array([estimate]).T, 0.95)
    >>> bounds.lower.item() == area_bounds(estimate, 0.95).lower
    True
    """
    return _bound_columns(table.tobytes(), level)


@lru_cache(maxsize=1)  # the areas and Gini's coefficients of the same curves have the same
def _bound_columns(table: bytes, level: float) -> AreaBoundColumns:
    columns = np.frombuffer(table, np.float64).reshape(6, -1)
    area, variance, df, positives, negatives, resolution = columns
    has_both = (positives > 0) & (negatives > 0) & (area >= 0) & (area <= 1)
    has_logit = (variance > 0) & (df > 0) & (area > 0) & (area < 1)
    least = np.minimum(positives, negatives) * np.minimum(area, 1.0 - area)
    guarded = has_both & (~has_logit | (least < GUARD))
    se = np.sqrt(np.where(variance > 0, variance, 0.0))
    lower, upper = np.full(len(area), np.inf), np.full(len(area), -np.inf)
    rows = np.flatnonzero(has_logit & has_both)
    q = critical_columns(level, df[rows])
    lower[rows], upper[rows] = logit_bound_columns(area[rows], se[rows], q)
    rows = np.flatnonzero(guarded)
    classes = positives[rows], negatives[rows]
    low, high = score_bound_columns(area[rows], *classes, critical(level))
    lower[rows], upper[rows] = np.minimum(lower[rows], low), np.maximum(upper[rows], high)
    widened = has_both & (resolution > COARSE * se)
    lower = np.where(widened, np.maximum(lower - resolution, 0.0), lower)
    upper = np.where(widened, np.minimum(upper + resolution, 1.0), upper)
    lower, upper = np.where(has_both, lower, -np.inf), np.where(has_both, upper, np.inf)
    return AreaBoundColumns(lower, upper, guarded, widened)


def score_bounds(area: float, positives: float, negatives: float, z: float) -> Bounds:
    """The areas θ with |area - θ| <= z √V(θ), with V by Hanley and McNeil.

    (Hanley and McNeil 1982, Radiology 143, 29-36, for the variance.) Counts below 1 are taken as 1.

    >>> lower, upper = score_bounds(31 / 42, 6, 7, 1.959963984540054)
    >>> round(lower, 9), round(upper, 9)
    (0.417899115, 0.91355616)
    """
    positives, negatives = max(positives, 1.0), max(negatives, 1.0)

    def is_near(tried: float) -> bool:
        variance = hanley_mcneil_variance(tried, positives, negatives)
        return (area - tried) * (area - tried) <= z * z * variance

    return last_inside(area, 0.0, is_near), last_inside(area, 1.0, is_near)


def score_bound_columns(
    areas: Floats, positives: Floats, negatives: Floats, z: float
) -> tuple[Floats, Floats]:
    """The `score_bounds` of many areas [k], by the same bisection.

    >>> low, high = score_bound_columns(*np.array([[31 / 42], [6], [7]]), 1.959963984540054)
    >>> (low[0], high[0]) == score_bounds(31 / 42, 6, 7, 1.959963984540054)
    True
    """
    positives, negatives = np.maximum(positives, 1.0), np.maximum(negatives, 1.0)

    def last(outside: Floats) -> Floats:
        inside = areas.copy()
        while True:
            middle = inside + 0.5 * (outside - inside)
            settled = (middle == inside) | (middle == outside)
            if settled.all():
                return inside
            variance = hanley_mcneil_variance(middle, positives, negatives)
            holds = (areas - middle) * (areas - middle) <= z * z * variance
            inside = np.where(holds & ~settled, middle, inside)
            outside = np.where(holds | settled, outside, middle)

    return last(np.zeros(len(areas))), last(np.ones(len(areas)))


def hanley_mcneil_variance(area: Number, positives: Number, negatives: Number) -> Number:
    """The variance of an area of θ, for exponentially distributed scores.

    (θ(1 - θ) + (P - 1)(Q1 - θ²) + (N - 1)(Q2 - θ²)) / PN, Q1 = θ / (2 - θ), Q2 = 2θ² / (1 + θ).

    >>> hanley_mcneil_variance(0.5, 1, 1), hanley_mcneil_variance(1.0, 5, 5)
    (0.25, 0.0)
    """
    # Q1 - θ² = θ (1 - θ)² / (2 - θ), and Q2 - θ² = θ² (1 - θ) / (1 + θ), without cancellation.
    complement = 1.0 - area
    of_positives = (positives - 1.0) * area * complement * complement / (2.0 - area)
    of_negatives = (negatives - 1.0) * area * area * complement / (1.0 + area)
    return (area * complement + of_positives + of_negatives) / positives / negatives
