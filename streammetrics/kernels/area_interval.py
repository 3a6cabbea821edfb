"""The interval of an area under the ROC curve: on the logit, and guarded where rows are few.

The logit with Student's t is right where both classes have rows enough on the wrong side. Near an
area of 1, or with few positives, its variance is itself a guess; there the interval is widened to
hold Hanley and McNeil's, whose variance is a function of the area that is tried.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from streammetrics.kernels.bisection import last_inside
from streammetrics.kernels.t_interval import EVERYTHING, Ends, critical, logit_ends

GUARD: Final = 10.0  # rows of the scarcer class that pairs are lost by, below which it is guarded
COARSE: Final = 0.25  # standard errors that the buckets may hide before the interval says so


class AreaEnds(NamedTuple):
    """An interval of an area. guarded: Hanley and McNeil's is in it. widened: by the buckets."""

    lower: float
    upper: float
    guarded: bool
    widened: bool


def area_ends(
    area: float,
    variance: float,
    df: float,
    classes: tuple[float, float],
    level: float,
    *,
    resolution: float = 0.0,
    strict: bool = False,
) -> AreaEnds:
    """The interval of an area with this variance and its degrees of freedom.

    classes: positives and negatives; of clustered rows, each divided by the design effect.
    resolution: how far the buckets may have moved the area; added on both sides where it is above a
    quarter of the standard error, or strict. Guarded where min(P, N) min(A, 1 - A) < 10, or the
    variance is 0 or not known. Infinite where a class has no rows.

    >>> ends = area_ends(31 / 42, 0.022297808012094, 8.681519661, (6, 7), 0.95)
    >>> round(ends.lower, 9), round(ends.upper, 9), ends.guarded
    (0.32713939, 0.942314634, True)
    """
    positives, negatives = classes
    if not (positives > 0 and negatives > 0 and 0 <= area <= 1):
        return AreaEnds(*EVERYTHING, guarded=False, widened=False)
    known = variance > 0 and df > 0 and 0 < area < 1
    guarded = not known or min(positives, negatives) * min(area, 1.0 - area) < GUARD
    se = math.sqrt(variance) if variance > 0 else 0.0
    found = [logit_ends(area, se, critical(level, df))] if known else []
    if guarded:
        found.append(score_ends(area, positives, negatives, critical(level)))
    lower, upper = min(low for low, _ in found), max(high for _, high in found)
    widened = resolution > 0 and (strict or resolution > COARSE * se)
    if widened:
        lower, upper = max(lower - resolution, 0.0), min(upper + resolution, 1.0)
    return AreaEnds(lower, upper, guarded, widened)


def score_ends(area: float, positives: float, negatives: float, z: float) -> Ends:
    """The areas θ with |area - θ| <= z √V(θ), V as Hanley and McNeil have it.

    (Hanley and McNeil 1982, Radiology 143, 29-36, for the variance.) At least one row of a class.

    >>> lower, upper = score_ends(31 / 42, 6, 7, 1.959963984540054)
    >>> round(lower, 9), round(upper, 9)
    (0.417899115, 0.91355616)
    """
    positives, negatives = max(positives, 1.0), max(negatives, 1.0)

    def near(tried: float) -> bool:
        variance = hanley_mcneil_variance(tried, positives, negatives)
        return (area - tried) * (area - tried) <= z * z * variance

    return last_inside(area, 0.0, near), last_inside(area, 1.0, near)


def hanley_mcneil_variance(area: float, positives: float, negatives: float) -> float:
    """The variance of an area of θ, of scores that are spread exponentially.

    (θ(1 - θ) + (P - 1)(Q1 - θ²) + (N - 1)(Q2 - θ²)) / PN, Q1 = θ / (2 - θ), Q2 = 2θ² / (1 + θ).

    >>> hanley_mcneil_variance(0.5, 1, 1), hanley_mcneil_variance(1.0, 5, 5)
    (0.25, 0.0)
    """
    # Q1 - θ² = θ (1 - θ)² / (2 - θ), and Q2 - θ² = θ² (1 - θ) / (1 + θ): no digits are lost.
    rest = 1.0 - area
    of_positives = (positives - 1.0) * area * rest * rest / (2.0 - area)
    of_negatives = (negatives - 1.0) * area * area * rest / (1.0 + area)
    return (area * rest + of_positives + of_negatives) / positives / negatives
