"""Agreement of two ratings of the same rows in many categories, from a table of counts.

x_ij rows have truth i and prediction j; r_i and c_j are the row and column sums of x, and n is the
total. All sums are integers, and each coefficient is rounded once.

Variances are for independent rows, by the delta method. A coefficient g does not change when all x
are doubled, so Σ x ψ = 0 and its variance is Σ x ψ² with ψ_ij = ∂g/∂x_ij (see `term_means`). All ψ
have one denominator, so the sum is of integers and is rounded once, by one division.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.rounding import quotient_by_root, ratio

Ints = NDArray[np.int64]
_FEW: Final = 256  # cells that are summed as quickly one by one


def kappa(agreed: int, r: Sequence[int], c: Sequence[int]) -> float:
    """Cohen's kappa, (p_o - p_e) / (1 - p_e); agreed: Σ x_ii. (Educ. Psychol. Meas. 20, 1960.)"""
    n, by_chance = sum(r), _dot(r, c)
    return ratio(n * agreed - by_chance, n * n - by_chance)


def weighted_kappa(truth: Ints, predicted: Ints, x: Ints, n_classes: int, power: int) -> float:
    """1 - n Σ w_ij x_ij / Σ w_ij r_i c_j with w_ij = |i - j|^power, power 1 or 2.

    truth, predicted, x: [m], the occupied cells and their counts. (Cohen, Psychol. Bull. 70, 1968.)
    """
    distances = np.zeros(n_classes, np.int64)
    np.add.at(distances, np.abs(truth - predicted), x)
    observed = sum(d**power * count for d, count in enumerate(distances.tolist()))
    r, c = margins(truth, x, n_classes), margins(predicted, x, n_classes)
    n = sum(r)
    if power == 1:
        # Σ |i - j| r_i c_j counts, for each cut between two classes, the pairs that it separates.
        below = zip(accumulate(r), accumulate(c), strict=True)
        expected = sum(a * (n - b) + (n - a) * b for a, b in below)
    else:
        squares = sum(i * i * (a + b) for i, (a, b) in enumerate(zip(r, c, strict=True)))
        numbers = range(n_classes)
        expected = n * squares - 2 * _dot(numbers, r) * _dot(numbers, c)
    return ratio(expected - n * observed, expected)


def matthews(agreed: int, r: Sequence[int], c: Sequence[int]) -> float:
    """(n Σ x_ii - Σ r_i c_i) / √((n² - Σ r_i²)(n² - Σ c_i²)), Matthews' coefficient.

    For many classes. (R_K of Gorodkin, Comput. Biol. Chem. 28, 2004.)
    """
    n = sum(r)
    square = (n * n - _dot(r, r)) * (n * n - _dot(c, c))
    return quotient_by_root(n * agreed - _dot(r, c), square)


def margins(classes: Ints, counts: Ints, n_classes: int) -> list[int]:
    """The sum of the counts of each class."""
    if len(counts) > _FEW:
        table = np.zeros(n_classes, np.int64)
        np.add.at(table, classes, counts)
        return list(map(int, table))
    sums = [0] * n_classes
    for number, count in zip(classes.tolist(), counts.tolist(), strict=True):
        sums[number] += count
    return sums


def _dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def kappa_variance(truth: Ints, predicted: Ints, x: Ints, n_classes: int, power: int = 0) -> float:
    """The variance of Cohen's kappa, 1 - n Q / E.

    Q = Σ w_ij x_ij, E = Σ w_ij r_i c_j, w_ij = |i - j|^power. truth, predicted, x: [m], the
    occupied cells and their counts. power: 0 for plain kappa (0^0 is 0 here), 1 or 2.
    ψ_ij = (n Q e_ij - (Q + n w_ij) E) / E² with e_ij = ∂E/∂x_ij = Σ_k w_ik c_k + Σ_k w_kj r_k. nan
    where kappa is. (Fleiss, Cohen and Everitt 1969, Psychol. Bull. 72, 323-327.)

    >>> two = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([40, 10, 10, 40])
    >>> round(kappa_variance(*two, 2), 12)  # 4 p (1 - p) / n, since E is as good as known
    0.0064
    """
    r, c = margins(truth, x, n_classes), margins(predicted, x, n_classes)
    n, cells = sum(r), _cells(truth, predicted, x)
    of_truth, of_prediction = _distances(c, power), _distances(r, power)
    observed = sum(_weight(i, j, power) * count for i, j, count in cells)
    expected = sum(a * b for a, b in zip(r, of_truth, strict=True))
    if not expected:
        return math.nan
    above = sum(
        count
        * (
            n * observed * (of_truth[i] + of_prediction[j])
            - (observed + n * _weight(i, j, power)) * expected
        )
        ** 2
        for i, j, count in cells
    )
    return ratio(above, expected**4)


def matthews_variance(truth: Ints, predicted: Ints, x: Ints, n_classes: int) -> float:
    """The variance of Matthews' coefficient, A / √(S T).

    A = n Σ x_ii - Σ r c, S = n² - Σ r², T = n² - Σ c².
    ψ_ij = (a_ij S T - A ((n - r_i) T + (n - c_j) S)) / (S T)^(3/2) with a_ij = ∂A/∂x_ij =
    Σ x_kk + n [i = j] - c_i - r_j. nan where the coefficient is.

    >>> two = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([40, 10, 10, 40])
    >>> round(matthews_variance(*two, 2), 12)
    0.0064
    """
    r, c = margins(truth, x, n_classes), margins(predicted, x, n_classes)
    n, cells = sum(r), _cells(truth, predicted, x)
    right = sum(count for i, j, count in cells if i == j)
    a = n * right - sum(map(int.__mul__, r, c))
    s, t = (n * n - sum(margin * margin for margin in sums) for sums in (r, c))
    if not s * t:
        return math.nan
    above = sum(
        count
        * ((right + n * (i == j) - c[i] - r[j]) * s * t - a * ((n - r[i]) * t + (n - c[j]) * s))
        ** 2
        for i, j, count in cells
    )
    return ratio(above, (s * t) ** 3)


# Of two classes, from the table itself. With d = TP TN - FP FN, and r and c the numbers of rows by
# truth and by prediction, Matthews' coefficient is d / √D, D = r_1 r_0 c_1 c_0, and kappa 2 d / E,
# E = r_1 c_0 + c_1 r_0.

Table: TypeAlias = tuple[int, int, int, int]  # TP, FP, FN and TN


def two_class_kappa_variance(table: Table) -> float:
    """The `kappa_variance` of two classes.

    >>> round(two_class_kappa_variance((40, 10, 10, 40)), 12)
    0.0064
    """
    tp, fp, fn, tn = table
    r, s, c, e = tp + fn, fp + tn, tp + fp, fn + tn
    d, chance = tp * tn - fp * fn, r * e + c * s
    if not chance:
        return math.nan
    above = tp * (tn * chance - d * (e + s)) ** 2 + tn * (tp * chance - d * (c + r)) ** 2
    above += fp * (fn * chance + d * (c + s)) ** 2 + fn * (fp * chance + d * (e + r)) ** 2
    return ratio(4 * above, chance**4)


def two_class_matthews_variance(table: Table) -> float:
    """The `matthews_variance` of two classes.

    >>> round(two_class_matthews_variance((40, 10, 10, 40)), 12)
    0.0064
    """
    tp, fp, fn, tn = table
    r, s, c, e = tp + fn, fp + tn, tp + fp, fn + tn
    product, d = r * s * c * e, tp * tn - fp * fn
    if not product:
        return math.nan
    # ∂/∂x of a cell in row i and column j is (∂d/∂x - d (1 / r_i + 1 / c_j) / 2) / √D.
    above = tp * ((2 * r * c * tn - d * (r + c)) * s * e) ** 2
    above += tn * ((2 * s * e * tp - d * (s + e)) * r * c) ** 2
    above += fp * ((2 * s * c * fn + d * (s + c)) * r * e) ** 2
    above += fn * ((2 * r * e * fp + d * (r + e)) * s * c) ** 2
    return ratio(above, 4 * product**3)


def _cells(truth: Ints, predicted: Ints, x: Ints) -> list[tuple[int, int, int]]:
    return list(zip(truth.tolist(), predicted.tolist(), x.tolist(), strict=True))


def _weight(i: int, j: int, power: int) -> int:
    return int(i != j) if power == 0 else abs(i - j) ** power


def _distances(counts: Sequence[int], power: int) -> list[int]:
    """Σ_k w_ik counts_k for each i."""
    n = sum(counts)
    if power == 0:
        return [n - count for count in counts]
    first = sum(k * count for k, count in enumerate(counts))
    if power == 2:
        second = sum(k * k * count for k, count in enumerate(counts))
        return [i * i * n - 2 * i * first + second for i in range(len(counts))]
    # Up to i: i b - m; above: (first - m) - i (n - b); b, m: Σ counts_k, Σ k counts_k up to i.
    below = accumulate(counts)
    sums = accumulate(k * count for k, count in enumerate(counts))
    pairs = enumerate(zip(below, sums, strict=True))
    return [i * b - m + (first - m) - i * (n - b) for i, (b, m) in pairs]
