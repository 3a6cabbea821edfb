"""The variance of means and of ratios, from exact sums of their units.

A mean over lists has a unit for each list; a ratio (CTR, a mean over the rows of users, GAUC) one
for each user, or for each group of users. Sums are integers or Fractions, so nothing is lost where
the difference of large sums is small, and each result is rounded once.
"""

from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.kernels.exact.rounding import ratio


def mean_variance(n: int, sum_: Fraction | int, squares: Fraction | int) -> float:
    """The variance of a mean of n independent units: (Σx² - (Σx)² / n) / (n - 1) / n.

    n - 1 degrees of freedom; nan for n < 2. Where Σx² was rounded it may be too small: then 0.

    >>> mean_variance(4, 10, 30)  # 1, 2, 3, 4
    0.4166666666666667
    """
    return ratio(max(n * squares - sum_ * sum_, 0), n * n * (n - 1))


def ratio_variance(
    units: int,
    y: Fraction | int,
    n: Fraction | int,
    squares: tuple[Fraction | int, Fraction | int, Fraction | int],
) -> float:
    """The variance of R = Σy / Σn over independent units: U/(U-1) Σ (y_u - R n_u)² / (Σn)².

    units: U, those with rows. y, n: Σ y_u and Σ n_u. squares: Σ y_u², Σ y_u n_u, Σ n_u².
    U - 1 degrees of freedom; nan for U < 2 and where Σn is 0. (Cochran 1977, "Sampling
    Techniques", 6.4; Deng, Knoblich and Lu 2018, KDD, arXiv 1803.06336.) The units may be users, or
    groups of users that have rows. GAUC = Σ w_u AUC_u / Σ w_u is such a ratio: y_u = w_u AUC_u,
    n_u = w_u, of the users with both labels.

    >>> clicks, views = [2, 1, 0, 5, 0, 2, 3, 4], [10, 4, 7, 12, 3, 9, 5, 20]
    >>> users = list(zip(clicks, views, strict=True))
    >>> squares = sum(y * y for y, _ in users), sum(y * n for y, n in users), sum(
    ...     n * n for _, n in users)
    >>> round(math.sqrt(ratio_variance(8, 17, 70, squares)), 12)
    0.052712918267
    """
    if units < 2 or not n:
        return math.nan
    yy, yn, nn = squares
    # Times n²: Σ (n y_u - y n_u)².
    spread = n * n * yy - 2 * n * y * yn + y * y * nn
    return ratio(max(units * spread, 0), (units - 1) * n**4)


def ratio_influence(y: list[Fraction | int], n: list[Fraction | int]) -> list[float]:
    """What each group adds to the linearised ratio: Z_g = (y_g - R n_g) / Σn, rounded once.

    y, n: totals of each group, [K]; nan where Σn is 0.

    >>> ratio_influence([1, 0], [2, 2])
    [0.125, -0.125]
    """
    all_y, all_n = sum(y), sum(n)
    return [ratio(a * all_n - all_y * b, all_n * all_n) for a, b in zip(y, n, strict=True)]


def ratio_replicates(y: list[Fraction | int], n: list[Fraction | int]) -> list[float]:
    """The ratio without each of the groups in turn, [K], rounded once; nan where nothing is left.

    >>> ratio_replicates([1, 0], [2, 2])
    [0.0, 0.5]
    """
    all_y, all_n = sum(y), sum(n)
    return [ratio(all_y - a, all_n - b) for a, b in zip(y, n, strict=True)]
