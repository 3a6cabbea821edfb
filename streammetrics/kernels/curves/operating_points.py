"""Points of a curve: the best points, the KS distance, a budget, and gain and lift at k cuts.

With tp and fp true and false positives of P and N, TPR = tp/P and FPR = fp/N. Floats only select
the few candidates for the best point; integers of any size decide among them. If a step is a
bucket, the curve passes through (fp, tp) before the step and (fp, tp) after it, and may pass any
point of the box between them. Every aim improves with more true and fewer false positives, and so
do recall and precision, of which a least value may be required; so the best value in a box is at
(fp before, tp after), if any point of the box meets the requirements. (Youden 1950, Cancer 3;
Fawcett 2006, Pattern Recognition Letters 27, section 4; Smirnov 1948, Ann. Math. Stat. 19, for the
Kolmogorov-Smirnov distance.)

Gain and lift cut the rows, from high to low scores, into k equal parts. If a cut falls into a row
or into tied rows, these are split in proportion, which is the mean over their orders. If a step is
a bucket, w of its rows above the cut hold at most min(w, p) of its p positives and at least w minus
its negatives. These bounds are attained where cuts fall between rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.many_steps import FigureColumns, ManySteps
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Ints, Steps, figure
from streammetrics.kernels.exact.rounded_columns import share_bounds
from streammetrics.kernels.exact.rounding import quotient_by_root, ratio, rounded_down, rounded_up

Floats = NDArray[np.float64]

# Values of points are in [-2, 2] and off by less than 2**-48, so no equal value is lost.
_NEAR: Final = 2.0**-44


class Aim(NamedTuple):
    """What is sought: of two points, the one with the greater `merit` is better.

    near: merit / scale from TPR and FPR, to a few units in the last place. merit: an exact number,
    from tp and fp. rooted: the value is √(-merit / scale), else merit / scale. of_rows: undefined
    for a point that predicts nothing positive.
    """

    near: Callable[[Floats, Floats], Floats]
    merit: Callable[[int, int], int | Fraction]
    scale: int
    rooted: bool = False
    of_rows: bool = False

    @property
    def least(self) -> int:
        """The least merit of a point of some precision, where the point of all rows has less: it is
        above the diagonal. A distance is at most √2."""
        return -2 * self.scale if self.rooted else 0

    def figure(self, merit: int | Fraction, most: int | Fraction) -> Figure:
        """The value of a merit, correctly rounded, and its bounds if up to `most` is possible."""
        value, greatest = Fraction(merit) / self.scale, Fraction(most) / self.scale
        if not self.rooted:
            return figure(value, value, greatest, bounded=True)
        low, high = _root(-greatest), _root(-value)
        nearest = high
        if Fraction(low) ** 2 > -greatest:
            low = math.nextafter(low, 0)
        if Fraction(high) ** 2 < -value:
            high = math.nextafter(high, math.inf)
        return nearest, low, high


class Least(NamedTuple):
    """What is required of a point: a least recall, and a least precision. Only a point with a
    row that is predicted positive has a precision."""

    recall: Fraction | None = None
    precision: Fraction | None = None

    def met(self, steps: Steps, tp: Ints, fp: Ints) -> NDArray[np.bool_]:
        """Which points [n] meet the requirements; exact."""
        is_met = np.ones(len(tp), bool)
        if self.recall is not None:
            is_met &= (tp >= math.ceil(self.recall * steps.positives)) & (steps.positives > 0)
        if self.precision is not None:
            is_met &= _precise(tp, fp, self.precision)
        return is_met


def _precise(tp: Ints, fp: Ints, least: Fraction) -> NDArray[np.bool_]:
    """Whether tp / (tp + fp) is at least a share; False for 0/0."""
    hits, misses, share = tp.astype(np.float64), fp.astype(np.float64), float(least)
    margin = hits * (1 - share) - misses * share
    precise = margin >= 0
    for index in np.flatnonzero(np.abs(margin) <= _NEAR * (hits + misses)).tolist():
        t, f = int(tp[index]), int(fp[index])
        precise[index] = t + f > 0 and t >= least * (t + f)
    return precise


class Best(NamedTuple):
    """The best merit among points, and the points that have it.

    figure: value, low and high. at: intp [m], ascending indices into `tp` and `fp` of the steps.
    """

    figure: Figure
    at: NDArray[np.intp]


class Criterion(NamedTuple):
    """What a threshold is chosen by. aim: its aim for some steps, None where it is undefined, and
    for a number, None for the default. argument: of `ScoreCurve.best`, which is that number."""

    aim: Callable[[Steps, Fraction | None], Aim | None]
    argument: Literal["", "positives_share", "beta"] = ""


def _youden(steps: Steps, _: Fraction | None) -> Aim | None:
    p, n = steps.positives, steps.negatives
    return Aim(lambda a, b: a - b, lambda t, f: t * n - f * p, p * n) if p and n else None


def _product(steps: Steps, _: Fraction | None) -> Aim | None:
    p, n = steps.positives, steps.negatives
    return Aim(lambda a, b: a * (1 - b), lambda t, f: t * (n - f), p * n) if p and n else None


def _distance(steps: Steps, _: Fraction | None) -> Aim | None:
    p, n = steps.positives, steps.negatives
    if not (p and n):
        return None
    return Aim(
        lambda a, b: -(b * b + (1 - a) * (1 - a)),
        lambda t, f: -((f * p) ** 2 + ((p - t) * n) ** 2),
        (p * n) ** 2,
        rooted=True,
    )


def _accuracy(steps: Steps, share: Fraction | None) -> Aim | None:
    """By default the share of positives is that of the rows."""
    p, n = steps.positives, steps.negatives
    if not (p and n if share is not None else p + n):
        return None
    if share is None:  # (tp + N - fp) / rows is defined for one class too
        w, v = p / steps.rows, n / steps.rows
        return Aim(lambda a, b: w * a + v * (1 - b), lambda t, f: t + n - f, steps.rows)
    top, all_ = share.as_integer_ratio()
    w, v = float(share), 1 - float(share)
    return Aim(
        lambda a, b: w * a + v * (1 - b),
        lambda t, f: top * t * n + (all_ - top) * (n - f) * p,
        all_ * p * n,
    )


def _recall(steps: Steps, _: Fraction | None) -> Aim | None:
    p = steps.positives
    return Aim(lambda a, _: a, lambda t, _: t, p, of_rows=True) if p else None


def _precision(steps: Steps, _: Fraction | None) -> Aim | None:
    return _f_beta(steps, Fraction(0))


def _f_beta(steps: Steps, beta: Fraction | None) -> Aim | None:
    """F is (1 + b²) tp / (tp + fp + b² p), by default that of b = 1; precision that of b = 0."""
    p, n = steps.positives, steps.negatives
    if not p + n:
        return None
    # By its weight w = b² / (1 + b²), since the square may be above the largest float.
    square = (Fraction(1) if beta is None else beta) ** 2
    weight = square / (1 + square)
    of_positives, of_rows = weight * p, 1 - weight
    w, v = float(of_positives), float(of_rows)

    def is_near(a: Floats, b: Floats) -> Floats:
        hits = a * p
        below = v * (hits + b * n) + w  # 0 without positives if `v` is below the least float
        return np.divide(hits, below, out=np.zeros_like(hits), where=below > 0)

    return Aim(
        is_near, lambda t, f: Fraction(t) / (of_rows * (t + f) + of_positives), 1, of_rows=True
    )


CRITERIA: Final[Mapping[str, Criterion]] = {
    "youden": Criterion(_youden),
    "product": Criterion(_product),
    "distance": Criterion(_distance),
    "accuracy": Criterion(_accuracy, argument="positives_share"),
    "precision": Criterion(_precision),
    "recall": Criterion(_recall),
    "f_beta": Criterion(_f_beta, argument="beta"),
}


_NONE: Final = Least()


def best(steps: Steps, aim: Aim, least: Least = _NONE, *, bounded: bool) -> Best:
    """All points between steps that have the best merit of those that meet the requirements; if
    `bounded`, the steps are buckets.

    The value is that of these points, which are certain; a point inside a bucket may be better. nan
    if no point between steps meets the requirements; if one inside a bucket may, only the bounds
    are numbers.
    """
    merit, indices = _best_of(steps, aim, least, steps.tp, steps.fp)
    most = merit
    if bounded:
        inside, _ = _best_of(steps, aim, least, steps.tp[1:], _fewest(steps, least))
        most = inside if merit is None else merit if inside is None else max(merit, inside)
    if most is None:
        return Best(UNDEFINED, indices)
    if merit is None:
        value, low, high = aim.figure(aim.least, most)
        return Best((math.nan, low, high), indices)
    value, low, high = aim.figure(merit, most)
    return Best((value, low, high) if bounded else (value, value, value), indices)


class Budget(NamedTuple):
    """The rows predicted positive within a budget. at: index into `tp` and `fp` of the steps. left:
    how many more rows would fit; they are fewer than those of the next step."""

    at: int
    left: int

    def precision(self, steps: Steps) -> Figure:
        """Precision; if the next step is a bucket, up to `left` of its rows may be added."""
        t, rows = int(steps.tp[self.at]), _rank(steps, self.at)
        p, n = self._next(steps)
        if not rows and not self.left:
            return UNDEFINED
        low = rounded_down(t, rows + n) if rows + n else 1.0
        high = rounded_up(t + p, rows + p) if rows + p else 0.0
        return ratio(t, rows), low, high

    def recall(self, steps: Steps) -> Figure:
        """Recall; if the next step is a bucket, up to `left` of its rows may be added."""
        t, every = int(steps.tp[self.at]), steps.positives
        if not every:
            return UNDEFINED
        p, _ = self._next(steps)
        return ratio(t, every), rounded_down(t, every), rounded_up(t + p, every)

    def share(self, steps: Steps) -> Figure:
        """The share of the rows; if the next step is a bucket, up to `left` may be added."""
        rows, every = _rank(steps, self.at), steps.rows
        if not every:
            return UNDEFINED
        return ratio(rows, every), rounded_down(rows, every), rounded_up(rows + self.left, every)

    def _next(self, steps: Steps) -> tuple[int, int]:
        """The most positives, and the most negatives, of the next step that fit."""
        if not self.left:
            return 0, 0
        p, n = _made_of(steps, self.at)
        return min(p, self.left), min(n, self.left)


def steps_within(steps: Steps, share: Fraction) -> Budget:
    """The most steps whose rows are at most a share of all.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> steps_within(steps(np.array([2, 1, 0]), np.array([0, 1, 1])), Fraction(1, 2))
    Budget(at=1, left=1)
    """
    most = math.floor(share * steps.rows)
    last = bisect_right(range(len(steps.tp)), most, key=lambda position: _rank(steps, position)) - 1
    return Budget(last, most - _rank(steps, last))


def distance_of_classes(steps: Steps, *, bounded: bool) -> Figure:
    """KS, the greatest |TPR - FPR|, correctly rounded; nan with one class only.

    In the box of a bucket, the maximum is at one of the two corners off the curve.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> distance_of_classes(steps(np.array([1, 1]), np.array([0, 1])), bounded=False)[0]
    0.5
    """
    p, n = steps.positives, steps.negatives
    if not (p and n):
        return UNDEFINED
    aim = Aim(lambda a, b: np.abs(a - b), lambda t, f: abs(t * n - f * p), p * n)
    merit, _ = _greatest(steps, aim, steps.tp, steps.fp)
    if not bounded:
        value = aim.figure(merit, merit)[0]
        return value, value, value
    tp = np.concatenate([steps.tp[1:], steps.tp[:-1]])
    fp = np.concatenate([steps.fp[:-1], steps.fp[1:]])
    return aim.figure(merit, _greatest(steps, aim, tp, fp)[0])


_SMALL: Final = 2.0**52  # pairs of a curve, below which all products are floats


def distances_of_classes(curves: ManySteps, *, bounded: bool) -> FigureColumns:
    """The `distance_of_classes` of each of many curves, computed side by side."""
    table = np.full((3, len(curves)), np.nan)
    pairs = curves.positives.astype(np.float64) * curves.negatives
    for i in np.flatnonzero(pairs >= _SMALL).tolist():
        table[:, i] = distance_of_classes(curves.steps(i), bounded=bounded)
    group = np.flatnonzero((pairs > 0) & (pairs < _SMALL))
    p, n = (np.repeat(x, np.diff(curves.edges)) for x in (curves.positives, curves.negatives))
    tp, fp = curves.tp * n, curves.fp * p  # those of other curves may wrap around
    merits = curves.greatest(np.abs(tp - fp), group)
    every = (curves.positives * curves.negatives)[group]
    table[:, group] = merits / every.astype(np.float64)
    if bounded:
        corners = np.abs(tp - fp + curves.n * p), np.abs(tp - curves.p * n - fp)
        most = curves.greatest(np.maximum(*corners), group)
        table[1:, group] = share_bounds(merits, most, every)
    return FigureColumns(*table)


def _best_of(
    steps: Steps, aim: Aim, least: Least, tp: Ints, fp: Ints
) -> tuple[int | Fraction | None, NDArray[np.intp]]:
    """The greatest merit among the points that meet the requirements, and the indices of the points
    that have it; None and [] if none does."""
    if not aim.of_rows and least == _NONE:
        return _greatest(steps, aim, tp, fp)
    is_met = least.met(steps, tp, fp)
    if aim.of_rows:
        is_met &= (tp > 0) | (fp > 0)
    indices = np.flatnonzero(is_met)
    if not len(indices):
        return None, indices
    merit, greatest = _greatest(steps, aim, tp[indices], fp[indices])
    return merit, indices[greatest]


def _fewest(steps: Steps, least: Least) -> Ints:
    """The fewest false positives in each box, with all of its positives. What must have a precision
    has a row: of a first bucket without positives at least one, a negative."""
    fp = steps.fp[:-1]
    if least.precision is not None and len(fp) and not steps.tp[1]:
        return np.concatenate([np.ones_like(fp[:1]), fp[1:]])
    return fp


def _greatest(
    steps: Steps, aim: Aim, tp: Ints, fp: Ints
) -> tuple[int | Fraction, NDArray[np.intp]]:
    """The greatest merit among points, and the indices of the points that have it."""
    p, n = max(steps.positives, 1), max(steps.negatives, 1)
    near = aim.near(tp.astype(np.float64) / float(p), fp.astype(np.float64) / float(n))
    candidates = np.flatnonzero(near >= near.max() - _NEAR)
    points = zip(tp[candidates].tolist(), fp[candidates].tolist(), strict=True)
    merits = [aim.merit(t, f) for t, f in points]
    most = max(merits)
    return most, candidates[[merit == most for merit in merits]]


def _root(value: Fraction) -> float:
    """√value, correctly rounded."""
    numerator, denominator = value.as_integer_ratio()
    return quotient_by_root(numerator, numerator * denominator) if numerator else 0.0


class _Cut(NamedTuple):
    """The positives above a cut, with bounds, and the step that the cut falls into."""

    value: Fraction
    low: Fraction
    high: Fraction
    step: int
    rows: Fraction  # above the cut


def gains(steps: Steps, k: int, *, bounded: bool) -> list[Figure]:
    """The share of positives in the first i of k parts, for i = 1 to k; nan without a positive.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> [gain for gain, _, _ in gains(steps(np.array([1, 1, 0]), np.array([0, 1, 1])), 2,
    ...     bounded=False)]
    [0.75, 1.0]
    """
    if not steps.positives:
        return [UNDEFINED] * k
    return [figure(*_gain(steps, Fraction(i, k)), bounded=bounded) for i in range(1, k + 1)]


def lifts(steps: Steps, k: int, *, cumulative: bool, bounded: bool) -> list[Figure]:
    """The rate of positives in each of k parts over that of all rows; nan without a positive.

    cumulative: the rate in the first i parts, i = 1 to k.
    """
    if not steps.positives:
        return [UNDEFINED] * k
    found_gains = [_gain(steps, Fraction(i, k)) for i in range(k + 1)]
    cuts = [_cut(steps, Fraction(i, k)) for i in range(k + 1)]
    figures = []
    for i in range(1, k + 1):
        first = 0 if cumulative else i - 1
        (v0, low0, high0), (v1, low1, high1) = found_gains[first], found_gains[i]
        low, high = max(low1 - high0, Fraction(0)), high1 - low0
        start, end = cuts[first], cuts[i]
        if start.step == end.step:  # both cuts in one bucket: any of its rows may be between
            p, n = _made_of(steps, end.step)
            width, every = end.rows - start.rows, steps.positives
            low, high = max(width - n, Fraction(0)) / every, min(width, Fraction(p)) / every
        times = Fraction(k, i if cumulative else 1)
        ends = (v1 - v0) * times, low * times, high * times
        figures.append(figure(*ends, bounded=bounded))
    return figures


def _gain(steps: Steps, share: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """The share of positives in the highest `share` of the rows, and its bounds."""
    every, cut = steps.positives, _cut(steps, share)
    return cut.value / every, cut.low / every, cut.high / every


def _cut(steps: Steps, share: Fraction) -> _Cut:
    rows = share * steps.rows
    # The step that the cut falls into; a cut between two steps is at the end of the first.
    # Bisection needs the ranks of few of millions of positions, so not all are computed.
    positions, rank = range(len(steps.tp)), -(-rows.numerator // rows.denominator)
    step = max(bisect_left(positions, rank, key=lambda position: _rank(steps, position)) - 1, 0)
    t0 = int(steps.tp[step])
    p, n = _made_of(steps, step)
    inside = rows - _rank(steps, step)
    return _Cut(
        value=t0 + inside * Fraction(p, p + n),
        low=t0 + max(inside - n, Fraction(0)),
        high=t0 + min(inside, Fraction(p)),
        step=step,
        rows=rows,
    )


def _rank(steps: Steps, position: int) -> int:
    """The number of rows above this position."""
    return int(steps.tp[position]) + int(steps.fp[position])


def _made_of(steps: Steps, step: int) -> tuple[int, int]:
    """Positives and negatives of a step."""
    p = int(steps.tp[step + 1]) - int(steps.tp[step])
    return p, int(steps.fp[step + 1]) - int(steps.fp[step])
