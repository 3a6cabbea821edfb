"""The difference of a quantile between two arms, at all looks together.

An arm has evidence e(k) against each count k of its rows at or below its true quantile: an e-value,
whatever the look. At the true quantile x of one arm and y of the other, the product of both is an
e-value as well, since the arms are independent. So a difference d is excluded once the product
exceeds 1/α for every x and y = x + d, and p = 1/e of a difference of 0 is always valid. (Howard and
Ramdas 2022, Bernoulli 28, section 4.3.)

At x the count is at least the rows surely below x, and at most those that can be at or below x:
ties, and rows anywhere in their bucket, only make the evidence weaker.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.inference.normal_mixture import gaussianised, log_e
from streammetrics.kernels.inference.quantile_ranks import log_e_of_rank
from streammetrics.kernels.inference.t_interval import Bounds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_HALVINGS: Final = 500  # usually fewer than 200; after them the bound is certain, but wider


@dataclass(frozen=True, eq=False)
class Sided:
    """The rows of one arm in order, and the evidence against each count at or below its quantile.

    low, high: float64 [k], the least and the greatest possible value of each place, ascending.
    cumulative: int64 [k], the rows up to each place. log_e: of a count, convex, least at `best`.
    """

    low: Floats
    high: Floats
    cumulative: Ints
    log_e: Callable[[int], float]
    best: int
    _known: dict[int, float] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.cumulative[-1]) if len(self.cumulative) else 0

    def least(self, first: int, last: int) -> float:
        """The least evidence of the counts from `first` to `last`."""
        k = min(max(self.best, first), last)
        if k not in self._known:
            self._known[k] = self.log_e(k)
        return self._known[k]

    def rows_before(self, place: int) -> int:
        """The rows before a place: 0 for the first, all for the one after the last."""
        return int(self.cumulative[place - 1]) if place > 0 else 0

    def place_of_best(self) -> int:
        """The place of the count with the least evidence."""
        return int(np.searchsorted(self.cumulative, max(self.best, 1)))

    def lowest(self, limit: float) -> float:
        """The least point with evidence below the limit, -inf if nothing bounds it; inf if none."""
        # Piece i holds the points from place i - 1 on: its counts are those before and after it.
        places = len(self.cumulative)
        middle = self.place_of_best() + 1 if self.best else 0

        def is_inside(i: int) -> bool:
            return self.least(self.rows_before(i - 1), self.rows_before(i)) < limit

        piece = bisect_left(range(min(middle, places) + 1), True, key=is_inside)
        if piece > min(middle, places):
            return math.inf
        return float(self.low[piece - 1]) if piece else -math.inf

    def mirrored(self) -> Sided:
        """The same rows with the opposite sign, and counts at or above the quantile."""
        n, log_e = self.n, self.log_e
        before = np.concatenate([np.zeros(1, np.int64), self.cumulative[:-1]])
        ends = n - before[::-1] if len(self.cumulative) else self.cumulative
        return Sided(-self.high[::-1], -self.low[::-1], ends, lambda k: log_e(n - k), n - self.best)

    def moved(self, shift: float) -> Sided:
        """The rows with `by` added to each, rounded outwards."""
        if not shift:
            return self
        low, high = (
            np.nextafter(self.low + shift, -math.inf),
            np.nextafter(self.high + shift, math.inf),
        )
        return replace(self, low=low, high=high)


def rank_evidence(low: Floats, high: Floats, cumulative: Ints, p: Fraction, prior: float) -> Sided:
    """The evidence of independent rows, exact: the beta-binomial mixture. prior: as `prior_rows`.

    >>> x = np.arange(1.0, 9.0)
    >>> rank_evidence(x, x, np.arange(1, 9), Fraction(1, 2), 10.0).best
    4
    """
    n = int(cumulative[-1]) if len(cumulative) else 0

    def found(k: int) -> float:
        return log_e_of_rank(k, n, p, prior)

    return Sided(low, high, cumulative, found, _best(found, n, p))


def share_evidence(
    low: Floats, high: Floats, cumulative: Ints, p: Fraction, se: float, df: float, rho: float
) -> Sided:
    """The evidence of rows of users: the normal mixture of the share at or below the quantile, with
    the standard error `se` of `df` degrees of freedom. rho: as `tuned`."""
    n = int(cumulative[-1]) if len(cumulative) else 0
    v = 1.0 / se / se if se > 0 else math.nan

    def found(k: int) -> float:
        return log_e(gaussianised(float(Fraction(k, n) - p) / se, df), v, rho) if n else 0.0

    return Sided(low, high, cumulative, found, _best(found, n, p))


def _best(log_e: Callable[[int], float], n: int, p: Fraction) -> int:
    """The count with the least evidence: one of the two next to n p."""
    middle = min(int(n * p), max(n - 1, 0))
    return middle if not n or log_e(middle) <= log_e(middle + 1) else middle + 1


def difference_of_quantiles(control: Sided, treatment: Sided, limit: float) -> Bounds:
    """The bounds of all differences, treatment - control, with evidence below the limit.

    >>> x = np.arange(1.0, 201.0)
    >>> a = rank_evidence(x, x, np.arange(1, 201), Fraction(1, 2), 10.0)
    >>> difference_of_quantiles(a, a, math.log(20))
    (-36.0, 36.0)
    """
    lower = _least_difference(control, treatment, limit)
    upper = -_least_difference(control.mirrored(), treatment.mirrored(), limit)
    return lower + 0.0, upper + 0.0  # -0.0 is 0.0


def _least_difference(a: Sided, b: Sided, limit: float) -> float:
    # A point of a is at most the end of a place, with a count from before to after it. After the
    # last place there is no end.
    places = len(a.cumulative)

    def bound(first: int, last: int) -> float:
        spent = a.least(a.rows_before(first), a.rows_before(min(last + 1, places)))
        end = float(a.high[last]) if last < places else math.inf
        lowest = b.lowest(limit - spent)
        return math.inf if lowest == math.inf else lowest - end if lowest > -math.inf else lowest

    return _least(bound, places + 1)


def log_e_of_equality(a: Sided, b: Sided) -> float:
    """The logarithm of the e-value against equal quantiles: the least sum of both arms' evidence at
    any point.

    >>> x = np.array([1.0, 2.0])
    >>> a = rank_evidence(x, x, np.array([1, 2]), Fraction(1, 2), 10.0)
    >>> log_e_of_equality(a, a) < 0
    True
    """
    points = _points(a, b)
    return _least_sum((a, b), points, tuple(_counts(arm, points) for arm in (a, b)))


def log_e_of_at_most(a: Sided, b: Sided, difference: float) -> float:
    """The logarithm of the e-value against a quantile of b that exceeds that of a by at most
    `difference`: the least against any such difference.

    >>> x = np.array([1.0, 2.0])
    >>> a = rank_evidence(x, x, np.array([1, 2]), Fraction(1, 2), 10.0)
    >>> log_e_of_at_most(a, a, 0.0) == log_e_of_equality(a, a)
    True
    """
    b = b.moved(-difference)
    points = _points(a, b)
    below, most = _counts(b, points)
    # A point of b at or below x may have any count up to that at x.
    return _least_sum((a, b), points, (_counts(a, points), (np.zeros_like(below), most)))


Counted = tuple[Ints, Ints]


def _points(a: Sided, b: Sided) -> Floats:
    """The points at which a count may change, from the lower of both quantiles to the higher one:
    beyond them the evidence of both arms grows."""
    if not (a.n and b.n):
        return np.zeros(0)
    places = [arm.place_of_best() for arm in (a, b)]
    first = min(float(arm.low[place]) for arm, place in zip((a, b), places, strict=True))
    last = max(
        float(arm.high[min(place + 1, len(arm.high) - 1)])
        for arm, place in zip((a, b), places, strict=True)
    )
    ends = (end for arm in (a, b) for end in (arm.low, arm.high))
    return np.unique(
        np.concatenate(
            [x[np.searchsorted(x, first) : np.searchsorted(x, last, "right")] for x in ends]
        )
    )


def _counts(arm: Sided, points: Floats) -> Counted:
    """The fewest and the most rows at or below each point: int64 [m]."""
    counts = np.concatenate([np.zeros(1, np.int64), arm.cumulative])
    fewest = counts[np.searchsorted(arm.high, points, "left")]
    return fewest, counts[np.searchsorted(arm.low, points, "right")]


def _least_sum(arms: tuple[Sided, Sided], points: Floats, counted: tuple[Counted, ...]) -> float:
    if not len(points):
        return 0.0

    def bound(first: int, last: int) -> float:
        return sum(
            arm.least(int(below[first]), int(most[last]))
            for arm, (below, most) in zip(arms, counted, strict=True)
        )

    return _least(bound, len(points))


def _least(bound: Callable[[int, int], float], n: int) -> float:
    """The least of n values. bound: at most the least of those from a first to a last one, and
    equal to it if they are one. Halves the range with the lowest bound until it is one value."""
    ranges = [(bound(0, n - 1), 0, n - 1)]
    for _ in range(_HALVINGS):
        least, first, last = heapq.heappop(ranges)
        if first == last:
            return least
        middle = (first + last) // 2
        for half in ((first, middle), (middle + 1, last)):
            heapq.heappush(ranges, (bound(*half), *half))
    return ranges[0][0]
