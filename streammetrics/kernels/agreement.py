"""Agreement of two ratings of the same rows in many categories, from a table of counts.

x_ij rows have truth i and prediction j; r_i and c_j are the sums of its rows and columns, n that
of all. Everything is integers, of which each figure is one ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.rounding import over_root, ratio

Ints = NDArray[np.int64]


def kappa(agreed: int, r: Sequence[int], c: Sequence[int]) -> float:
    """Cohen's kappa, (p_o - p_e) / (1 - p_e); agreed: Σ x_ii. (Educ. Psychol. Meas. 20, 1960.)"""
    n, by_chance = sum(r), _dot(r, c)
    return ratio(n * agreed - by_chance, n * n - by_chance)


def weighted_kappa(truth: Ints, predicted: Ints, x: Ints, n_classes: int, power: int) -> float:
    """1 - n Σ w_ij x_ij / Σ w_ij r_i c_j with w_ij = |i - j|^power, power 1 or 2.

    truth, predicted, x: [m], the cells that are occupied and their counts. (Cohen, Psychol. Bull.
    70, 1968.)
    """
    distances = np.zeros(n_classes, np.int64)
    np.add.at(distances, np.abs(truth - predicted), x)
    seen = sum(d**power * count for d, count in enumerate(distances.tolist()))
    r, c = margins(truth, x, n_classes), margins(predicted, x, n_classes)
    n = sum(r)
    if power == 1:
        # Σ |i - j| r_i c_j counts, for each cut between two classes, the pairs on both sides.
        below = zip(accumulate(r), accumulate(c), strict=True)
        expected = sum(a * (n - b) + (n - a) * b for a, b in below)
    else:
        squares = sum(i * i * (a + b) for i, (a, b) in enumerate(zip(r, c, strict=True)))
        numbers = range(n_classes)
        expected = n * squares - 2 * _dot(numbers, r) * _dot(numbers, c)
    return ratio(expected - n * seen, expected)


def matthews(agreed: int, r: Sequence[int], c: Sequence[int]) -> float:
    """(n Σ x_ii - Σ r_i c_i) / √((n² - Σ r_i²)(n² - Σ c_i²)), Matthews' for many classes.

    (R_K of Gorodkin, Comput. Biol. Chem. 28, 2004.)
    """
    n = sum(r)
    square = (n * n - _dot(r, r)) * (n * n - _dot(c, c))
    return over_root(n * agreed - _dot(r, c), square)


def margins(classes: Ints, counts: Ints, n_classes: int) -> list[int]:
    """The sum of the counts of each class."""
    sums = np.zeros(n_classes, np.int64)
    np.add.at(sums, classes, counts)
    return list(map(int, sums))


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))
