"""How far the sum of independent contributions is from normal, in the number of values it rests on.

The skewness of a sum is γ = Σ d³ / (Σ d²)^(3/2) of its centred contributions d, and 1 / γ² is a
number of values: of rare zeros and ones it is the number of ones, and few large values among many
small ones count as few. Student's t of a sum is too small too often by about γ (2 q² + 1) / 6
density(q) (Hall 1992, "The Bootstrap and Edgeworth Expansion", 2.6), so that intervals far out, as
those that hold at all looks are, need a large number. Kish's number (Σ x)² / Σ x² (Kish 1965,
"Survey Sampling", 11.7) takes its place where cubes are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

LEAST: Final = 10.0  # of an arm as large as the other, or larger
MOST: Final = 40.0  # of an arm that is tiny beside the other
KISH: Final = 20.0


def skewness_number(contributions: Sequence[float]) -> float:
    """(Σ d²)³ / (Σ d³)², d the contributions less their mean; infinite where they are symmetric.

    0 where all are alike, of which nothing is known.

    >>> round(skewness_number([1.0] * 10 + [0.0] * 9_990), 1), skewness_number([1.0, 2.0, 3.0])
    (10.0, inf)
    """
    if not contributions or not all(map(math.isfinite, contributions)):
        return 0.0
    mean = math.fsum(one / len(contributions) for one in contributions)
    apart = [one - mean for one in contributions]
    scale = max(map(abs, apart))
    if not 0 < scale < math.inf:
        return 0.0
    apart = [one / scale for one in apart]
    squares = math.fsum(one * one for one in apart)
    cubes = math.fsum(one * one * one for one in apart)
    return squares * squares * squares / (cubes * cubes) if cubes * cubes else math.inf


def needed(mine: int, other: int) -> float:
    """The skewness number that an arm of so many rows needs beside the other one's.

    40 (1 - w)², w its share of the rows, and at least 10. In arms of one size the skewness cancels
    in the difference, which 10 is enough for; in a small one it does not.

    >>> needed(500, 500), needed(0, 100), needed(900, 100)
    (10.0, 40.0, 10.0)
    """
    rest = other / (mine + other) if mine + other else 1.0
    return max(LEAST, MOST * rest * rest)


def kish_number(n: int, mean: float, variance: float) -> float:
    """(Σ x)² / Σ x² of n values, from their mean and the variance of it: how many equal values
    weigh as much; 0 where that is not known.

    >>> round(kish_number(100, 0.1, 0.1 * 0.9 / 99), 9)  # ten ones among a hundred
    10.0
    """
    square = mean * mean
    below = square + (n - 1) * variance  # Σ x² / n
    return n * square / below if below > 0 else 0.0
