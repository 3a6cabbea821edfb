"""Points of a curve: the best points, the KS distance, and gain and lift at k cuts.

With tp and fp true and false positives of P and N, TPR = tp/P and FPR = fp/N. Floats only select
the few candidates for the best point; integers of any size decide among them. If a step is a
bucket, the curve passes through (fp, tp) before the step and (fp, tp) after it, and may pass any
point of the box between them. Every aim improves with more true and fewer false positives, so its
best value in a box is at (fp before, tp after). (Youden 1950, Cancer 3; Fawcett 2006, Pattern
Recognition Letters 27, section 4; Smirnov 1948, Ann. Math. Stat. 19, for the Kolmogorov-Smirnov
distance.)

Gain and lift cut the rows, from high to low scores, into k equal parts. If a cut falls into a row
or into tied rows, these are split in proportion, which is the mean over their orders. If a step is
a bucket, w of its rows above the cut hold at most min(w, p) of its p positives and at least w minus
its negatives. These bounds are attained where cuts fall between rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Ints, Steps, figure
from streammetrics.kernels.exact.rounding import over_root, ratio, rounded_down, rounded_up

Floats = NDArray[np.float64]

# Values of points are in [-2, 2] and off by less than 2**-48, so no equal value is lost.
_NEAR: Final = 2.0**-44


@dataclass(frozen=True)
class Aim:
    """A criterion: of two points, the one with the greater `merit` is better.

    near: merit / scale from TPR and FPR, to a few units in the last place. merit: an integer, from
    tp and fp. rooted: the value is √(-merit / scale), else merit / scale.
    """

    near: Callable[[Floats, Floats], Floats]
    merit: Callable[[int, int], int]
    scale: int
    rooted: bool = False

    def figure(self, merit: int, most: int) -> Figure:
        """The value of a merit, correctly rounded, and its bounds if up to `most` is possible."""
        if not self.rooted:
            low, high = rounded_down(merit, self.scale), rounded_up(most, self.scale)
            return ratio(merit, self.scale), low, high
        low, high = _root(-most, self.scale), _root(-merit, self.scale)
        value = high
        if Fraction(low) ** 2 > Fraction(-most, self.scale):
            low = math.nextafter(low, 0)
        if Fraction(high) ** 2 < Fraction(-merit, self.scale):
            high = math.nextafter(high, math.inf)
        return value, low, high


@dataclass(frozen=True)
class Best:
    """The best merit among points, and the points that have it.

    figure: value, low and high. at: intp [m], ascending indices into `tp` and `fp` of the steps.
    """

    figure: Figure
    at: NDArray[np.intp]


def aim_of(by: str, found: Steps, share: Fraction | None = None) -> Aim | None:
    """The aim of this name; None where it is undefined for these steps.

    share: the share of positives for "accuracy"; None: their share of the rows.
    """
    p, n = found.positives, found.negatives
    if by == "accuracy" and share is None and found.rows:
        # (tp + N - fp) / rows is defined for one class too.
        w, v = p / found.rows, n / found.rows
        return Aim(lambda a, b: w * a + v * (1 - b), lambda t, f: t + n - f, found.rows)
    if not (p and n):
        return None
    if by == "youden":
        return Aim(lambda a, b: a - b, lambda t, f: t * n - f * p, p * n)
    if by == "product":
        return Aim(lambda a, b: a * (1 - b), lambda t, f: t * (n - f), p * n)
    if by == "distance":
        return Aim(
            lambda a, b: -(b * b + (1 - a) * (1 - a)),
            lambda t, f: -((f * p) ** 2 + ((p - t) * n) ** 2),
            (p * n) ** 2,
            rooted=True,
        )
    assert share is not None
    top, all_ = share.as_integer_ratio()
    w, v = float(share), 1 - float(share)
    return Aim(
        lambda a, b: w * a + v * (1 - b),
        lambda t, f: top * t * n + (all_ - top) * (n - f) * p,
        all_ * p * n,
    )


def best(found: Steps, aim: Aim, *, bounded: bool) -> Best:
    """All points between steps that have the best merit; if `bounded`, the steps are buckets.

    The value is that of these points, which are certain; a point inside a bucket may be better.
    """
    merit, at = _best_of(found, aim, found.tp, found.fp)
    if not bounded:
        value = aim.figure(merit, merit)[0]
        return Best((value, value, value), at)
    most, _ = _best_of(found, aim, found.tp[1:], found.fp[:-1])
    return Best(aim.figure(merit, most), at)


def distance_of_classes(found: Steps, *, bounded: bool) -> Figure:
    """KS, the greatest |TPR - FPR|, correctly rounded; nan with one class only.

    In the box of a bucket, the maximum is at one of the two corners off the curve.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> distance_of_classes(steps(np.array([1, 1]), np.array([0, 1])), bounded=False)[0]
    0.5
    """
    p, n = found.positives, found.negatives
    if not (p and n):
        return UNDEFINED
    aim = Aim(lambda a, b: np.abs(a - b), lambda t, f: abs(t * n - f * p), p * n)
    merit, _ = _best_of(found, aim, found.tp, found.fp)
    if not bounded:
        value = aim.figure(merit, merit)[0]
        return value, value, value
    tp = np.concatenate([found.tp[1:], found.tp[:-1]])
    fp = np.concatenate([found.fp[:-1], found.fp[1:]])
    return aim.figure(merit, _best_of(found, aim, tp, fp)[0])


def _best_of(found: Steps, aim: Aim, tp: Ints, fp: Ints) -> tuple[int, NDArray[np.intp]]:
    """The greatest merit among points, and the indices of the points that have it."""
    p, n = max(found.positives, 1), max(found.negatives, 1)
    near = aim.near(tp.astype(np.float64) / float(p), fp.astype(np.float64) / float(n))
    some = np.flatnonzero(near >= near.max() - _NEAR)
    points = zip(tp[some].tolist(), fp[some].tolist(), strict=True)
    merits = [aim.merit(t, f) for t, f in points]
    most = max(merits)
    return most, some[[merit == most for merit in merits]]


def _root(numerator: int, denominator: int) -> float:
    """√(numerator / denominator), correctly rounded."""
    return over_root(numerator, numerator * denominator) if numerator else 0.0


@dataclass(frozen=True)
class _Cut:
    """The positives above a cut, with bounds, and the step that the cut falls into."""

    value: Fraction
    low: Fraction
    high: Fraction
    step: int
    rows: Fraction  # above the cut


def gains(found: Steps, k: int, *, bounded: bool) -> list[Figure]:
    """The share of positives in the first i of k parts, for i = 1 to k; nan without a positive.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> [gain for gain, _, _ in gains(steps(np.array([1, 1, 0]), np.array([0, 1, 1])), 2,
    ...     bounded=False)]
    [0.75, 1.0]
    """
    if not found.positives:
        return [UNDEFINED] * k
    return [figure(*_gain(found, Fraction(i, k)), bounded=bounded) for i in range(1, k + 1)]


def lifts(found: Steps, k: int, *, cumulative: bool, bounded: bool) -> list[Figure]:
    """The rate of positives in each of k parts over that of all rows; nan without a positive.

    cumulative: the rate in the first i parts, i = 1 to k.
    """
    if not found.positives:
        return [UNDEFINED] * k
    found_gains = [_gain(found, Fraction(i, k)) for i in range(k + 1)]
    cuts = [_cut(found, Fraction(i, k)) for i in range(k + 1)]
    figures = []
    for i in range(1, k + 1):
        first = 0 if cumulative else i - 1
        (v0, low0, high0), (v1, low1, high1) = found_gains[first], found_gains[i]
        low, high = max(low1 - high0, Fraction(0)), high1 - low0
        start, end = cuts[first], cuts[i]
        if start.step == end.step:  # both cuts in one bucket: any of its rows may be between
            p, n = _made_of(found, end.step)
            width, every = end.rows - start.rows, found.positives
            low, high = max(width - n, Fraction(0)) / every, min(width, Fraction(p)) / every
        times = Fraction(k, i if cumulative else 1)
        ends = (v1 - v0) * times, low * times, high * times
        figures.append(figure(*ends, bounded=bounded))
    return figures


def _gain(found: Steps, share: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """The share of positives in the highest `share` of the rows, and its bounds."""
    every, cut = found.positives, _cut(found, share)
    return cut.value / every, cut.low / every, cut.high / every


def _cut(found: Steps, share: Fraction) -> _Cut:
    rows = share * found.rows
    # The step that the cut falls into; a cut between two steps is at the end of the first.
    # Bisection needs the ranks of few of millions of positions, so not all are computed.
    positions, rank = range(len(found.tp)), -(-rows.numerator // rows.denominator)
    step = max(bisect_left(positions, rank, key=lambda at: _rank(found, at)) - 1, 0)
    t0 = int(found.tp[step])
    p, n = _made_of(found, step)
    inside = rows - _rank(found, step)
    return _Cut(
        value=t0 + inside * Fraction(p, p + n),
        low=t0 + max(inside - n, Fraction(0)),
        high=t0 + min(inside, Fraction(p)),
        step=step,
        rows=rows,
    )


def _rank(found: Steps, position: int) -> int:
    """The number of rows above this position."""
    return int(found.tp[position]) + int(found.fp[position])


def _made_of(found: Steps, step: int) -> tuple[int, int]:
    """Positives and negatives of a step."""
    p = int(found.tp[step + 1]) - int(found.tp[step])
    return p, int(found.fp[step + 1]) - int(found.fp[step])
