"""The area under the ROC curve from counts, in integers, with certain bounds.

With p_b positives and n_b negatives in bucket b, ascending, P and N in all:
wins = Σ_b p_b · Σ_{a<b} n_a counts the pairs whose order the buckets tell, ties = Σ_b p_b n_b the
others. The area of the scores behind the buckets lies between wins / PN and (wins + ties) / PN;
where a bucket is one score, a tied pair counts one half and the area is the midpoint.
(Hanley and McNeil, Radiology 143, 1982; Mann and Whitney, Ann. Math. Stat. 18, 1947.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

_INT64: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a positive and a negative: won, tied, and of how many rows."""

    wins: int
    ties: int
    positives: int
    negatives: int

    @property
    def all(self) -> int:
        """Every pair."""
        return self.positives * self.negatives


def pairs(negatives: NDArray[np.int64], positives: NDArray[np.int64]) -> Pairs:
    """Count the pairs of buckets [b] in ascending order of score; empty ones may be left out."""
    n, p = sum_of_counts(negatives), sum_of_counts(positives)
    if n * p > _INT64:  # no sum below is greater than n * p
        negatives, positives = negatives.astype(object), positives.astype(object)
    below = np.cumsum(negatives) - negatives
    wins, ties = int((positives * below).sum()), int((positives * negatives).sum())
    return Pairs(wins, ties, p, n)


def area(found: Pairs) -> float:
    """(wins + ties / 2) / PN, correctly rounded; nan without a positive or a negative."""
    return ratio(2 * found.wins + found.ties, 2 * found.all)


def area_bounds(found: Pairs) -> tuple[float, float]:
    """Wins / PN and (wins + ties) / PN, rounded outwards; nan where `area` is."""
    if not found.all:
        return math.nan, math.nan
    return rounded_down(found.wins, found.all), rounded_up(found.wins + found.ties, found.all)


def gini(found: Pairs) -> float:
    """2 area - 1, correctly rounded; nan where `area` is."""
    return ratio(2 * found.wins + found.ties - found.all, found.all)


def gini_bounds(found: Pairs) -> tuple[float, float]:
    """2 area - 1 at the bounds of the area, rounded outwards; nan where these are."""
    if not found.all:
        return math.nan, math.nan
    low, high = 2 * found.wins - found.all, 2 * (found.wins + found.ties) - found.all
    return rounded_down(low, found.all), rounded_up(high, found.all)


def sum_of_counts(counts: NDArray[np.int64]) -> int:
    """The sum as a Python integer, past int64 if need be."""
    if len(counts) and int(counts.max()) > _INT64 // len(counts):
        return sum(counts.tolist())
    return int(counts.sum())
