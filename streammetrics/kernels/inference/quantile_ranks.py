"""Ranks of rows between which a quantile lies, and bands of a distribution function.

Of n independent rows the number at or below the p-quantile is binomial, whatever the distribution,
so an interval of counts k is an interval of order statistics X₍k₎: rank 0 stands for -inf, and
n + 1 for +inf. For one look the counts are those of the two tails (Conover 1999, section 3.2). For
all looks they are those with an e-value below 1/α, that of a beta-binomial mixture (Howard and
Ramdas 2022, Bernoulli 28, section 4). Ties only make the interval wider.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_counts
from streammetrics.kernels.inference.tails import beta_p, last_inside

_LEAST_PRIOR: Final = 1e-3  # rows that the prior counts as, at least
_SCALE: Final = 0.85  # A of the uniform band


def rank_of(n: int, p: Fraction) -> int:
    """The rank k of the p-quantile X₍k₎ of n rows, the least x with a share of at least p at or
    below it.

    >>> rank_of(100, Fraction("0.07")), rank_of(10, Fraction(0))
    (7, 1)
    """
    return max(1, math.ceil(n * p))


def fixed_ranks(n: int, p: Fraction, level: float | Fraction) -> tuple[int, int]:
    """The ranks of an interval for one look: the largest l with P(S < l) <= α/2, and the least u
    with P(S >= u) <= α/2, where S is binomial (n, p). α is that of the level as it is written.

    >>> fixed_ranks(100, Fraction(1, 2), 0.95)
    (40, 61)
    """
    tail = float((1 - Fraction(str(level))) / 2)  # 1 - 0.9 in binary is a little less than 0.1
    # The upper rank is the lower one of the rows in descending order, of which 1 - p are above.
    return _last(n, p, tail), n + 1 - _last(n, 1 - p, tail)


def _last(n: int, p: Fraction, tail: float) -> int:
    """The largest l with P(S < l) <= tail."""
    return bisect_left(range(n), True, key=lambda k: _share_at_most(k, n, p) > tail)


def _share_at_most(k: int, n: int, p: Fraction) -> float:
    """P(S <= k) of a binomial (n, p), 0 <= k < n."""
    return beta_p(n - k, k + 1, float(1 - p), float(p))


def prior_rows(n_opt: float, alpha: float) -> float:
    """The rows that the prior counts as, so that the interval is about the narrowest at n_opt
    rows."""
    nats = 2 * math.log(1 / alpha)
    return max(_LEAST_PRIOR, n_opt / (nats + math.log(1 + nats)) - 1)


def log_e_of_rank(k: int, n: int, p: Fraction, prior: float) -> float:
    """The logarithm of the e-value of k of n rows at or below a point, against a share of p.

    0 < p < 1. prior: as `prior_rows`.

    >>> round(log_e_of_rank(520, 1000, Fraction(1, 2), prior_rows(1000, 0.05)), 10)
    -0.3884796741
    """
    shares = p, 1 - p
    return log_e_of_counts([k, n - k], shares, [Fraction(prior) * share for share in shares])


def sequence_ranks(n: int, p: Fraction, prior: float, alpha: float) -> tuple[int, int]:
    """The ranks of an interval that holds at all looks with probability 1 - α.

    >>> sequence_ranks(1000, Fraction(1, 2), prior_rows(1000, 0.05), 0.05)
    (453, 548)
    """
    limit, middle = math.log(1 / alpha), int(n * p)

    def is_inside(k: int) -> bool:
        return log_e_of_rank(k, n, p, prior) < limit

    lower = bisect_left(range(middle), True, key=is_inside)
    upper = bisect_left(range(middle + 1, n + 1), True, key=lambda k: not is_inside(k))
    return lower, middle + 1 + upper


def uniform_band(rows: int, alpha: float, first: int) -> float:
    """The greatest distance, with probability 1 - α, of the shares at or below each x from the
    distribution function: for all x, and all looks from `first` rows on.

    0.85 √((ln ln(e t/m) + C)/t), with the least C that the theorem allows; infinite before `first`.
    (Howard and Ramdas 2022, theorem 2.)

    >>> round(uniform_band(1000, 0.05, 1), 7)
    0.0858061
    """
    if rows < first:
        return math.inf
    iterated = math.log(1 + math.log(rows / first))
    return _SCALE * math.sqrt((iterated + _constant(alpha)) / rows)


@lru_cache(maxsize=64)
def _constant(alpha: float) -> float:
    """The least C whose probability of error is at most α."""
    outside, inside = 1.0, 0.8 * math.log(1612 / alpha)  # the closed form is a little larger
    return last_inside(inside, outside, lambda c: _least_error(c) <= alpha)


def _least_error(c: float) -> float:
    """The bound of the theorem, 4 exp(-γ²C) (1 + 1/((γ² - 1) ln η)), at the best η."""

    def error(eta: float) -> float:
        square = 2 / eta * (_SCALE - math.sqrt(2 * (eta - 1) / c)) ** 2
        if square <= 1 or math.sqrt(2 * (eta - 1) / c) >= _SCALE:
            return math.inf
        return 4 * math.exp(-square * c) * (1 + 1 / ((square - 1) * math.log(eta)))

    # First a coarse search, since the bound is infinite from some η on.
    most = 2 * _SCALE * _SCALE
    grid = [1 + (most - 1) * i / 512 for i in range(1, 512)]
    best = min(range(len(grid)), key=lambda i: error(grid[i]))
    low, high = grid[max(best - 1, 0)] if best else 1.0, grid[min(best + 1, len(grid) - 1)]
    return _least(error, low, high)


def _least(value: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a function with one minimum between two points, by golden sections."""
    shrink = (math.sqrt(5) - 1) / 2
    a, b = high - shrink * (high - low), low + shrink * (high - low)
    value_a, value_b = value(a), value(b)
    for _ in range(80):
        if value_a <= value_b:
            high, b, value_b = b, a, value_a
            a = high - shrink * (high - low)
            value_a = value(a)
        else:
            low, a, value_a = a, b, value_b
            b = low + shrink * (high - low)
            value_b = value(b)
    return min(value_a, value_b)


def stitched_band(rows: int, p: float, alpha: float) -> float:
    """As `uniform_band` for one p, in closed form: the greatest distance of the share at or below
    the p-quantile from p, at all looks. (Howard and Ramdas 2022, theorem 1, with their constants.)

    >>> round(stitched_band(1000, 0.5, 0.05), 9)
    0.074212402
    """
    nats = (1.4 * math.log(math.log(2.1 * rows)) + math.log(10 / alpha)) / rows
    return 1.5 * math.sqrt(p * (1 - p) * nats) + 0.8 * nats
