"""Areas under the precision-recall curve and under part of the ROC curve, with bounds.

For a step from (T₀, F₀) to (T₁, F₁) true and false positives, with p = T₁ - T₀ and P positives:
AP adds p/P · T₁/(T₁ + F₁), the trapezoid p/P · (π₀ + π₁)/2 with π the precision, π = 1 before the
first step. (Manning, Raghavan, Schütze 2008, Introduction to Information Retrieval, section 8.4;
Davis and Goadrich 2006, ICML, on why the two differ.)

If a step is a bucket, its rows may be in any order and any of them tied, with no effect outside it.
With h(j) = j/(j + F₁) and g(j) = j/(j + F₀), both concave, the precision after T positives in the
box is between h(T) and g(T). These bounds are attained if a bucket has room for enough scores:

- AP, most: all positives tied above the negatives, p g(T₁).
- AP, least: the negatives first and no two positives tied, Σ h(j), T₀ < j <= T₁.
- Trapezoid, least: the negatives first, and the positives tied below them, p (h(T₀) + h(T₁))/2; a
  chord of a concave function lies below all finer ones.
- Trapezoid, most: the positives first and no two tied, Σ (g(j - 1) + g(j))/2, T₀ < j <= T₁.

For the ROC curve up to a limit of FPR (McClish 1989, Medical Decision Making 9, 190-195), the curve
is straight between two points, because tied pairs count one half. If a step is a bucket, the area
in its box is least with the negatives first and greatest with the positives first.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.many_steps import FigureColumns, ManySteps
from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Ints, Steps, figure
from streammetrics.kernels.exact.double_double import (
    Floats,
    Pair,
    add,
    divided,
    fractions,
    minus,
    quotient,
    scaled,
    times,
    tree_totals,
    whole,
)
from streammetrics.kernels.exact.rounded_columns import quotients
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

# Sums of j / (j + f) over runs of integers j, with certain bounds, in constant time per run.


_SHORT: Final = 64  # the longest run that is added term by term
_FIRST: Final = 32  # leading terms of a longer run, added likewise
_LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)
_TERMS: Final = 20  # of the series of ln; z² < 0.0295, so the remainder is below 2**-100


def sums_of_shares(start: Ints, length: Ints, f: Ints) -> tuple[Pair, Pair]:
    """Lower and upper bounds of Σ j / (j + f) for start < j <= start + length: [k] each.

    start, f: integers [k] of at least 0; length: of at least 1. The rounding error is below 2**-94
    of `length`; the bounds do not include it.
    """
    long = length > _SHORT
    single = np.where(long, _FIRST, length).astype(np.int64)
    owners = np.repeat(np.arange(len(single)), single)
    positions = np.arange(len(owners)) - np.repeat(np.cumsum(single) - single, single) + 1
    j = start[owners] + positions
    low = _sums_by_owner(_share(j, f[owners]), single)
    long_runs = np.flatnonzero(long)
    if not len(long_runs):
        return low, low
    bounds = _remainders(start[long_runs] + _FIRST, length[long_runs] - _FIRST, f[long_runs])
    return _with(low, bounds[0], long_runs), _with(low, bounds[1], long_runs)


def _with(sums: Pair, addends: Pair, indices: NDArray[np.intp]) -> Pair:
    joined = add(sums.take(indices), addends)
    high, low = sums.high.copy(), sums.low.copy()
    high[indices], low[indices] = joined
    return Pair(high, low)


def _sums_by_owner(terms: Pair, lengths: Ints) -> Pair:
    """The sums of consecutive runs of terms; lengths: of the runs, at least 1."""
    first = np.cumsum(lengths) - lengths
    sums = terms.take(first)
    for i in range(1, int(lengths.max(initial=1))):
        longer_runs = np.flatnonzero(lengths > i)
        sums = _with(sums, terms.take(first[longer_runs] + i), longer_runs)
    return sums


def _remainders(start: Ints, length: Ints, f: Ints) -> tuple[Pair, Pair]:
    """The bounds of the sums by logarithms: length - f (H_b - H_a)."""
    half = np.full(len(start), 0.5)
    first = add(whole(start + f), Pair(half, np.zeros(len(start))))
    last = add(first, whole(length))
    u_first, u_last = _inverse_square(first, 24), _inverse_square(last, 24)
    near = add(_log_of_ratio(first, last), minus(u_last, u_first))
    every, weight = whole(length), whole(f)
    v_first, v_last = (7 / (960 * x.high * x.high * x.high * x.high) for x in (first, last))
    # The factor covers the rounding error of v itself.
    most = add(near, Pair(v_first * 1.001, np.zeros(len(start))))
    least = minus(near, Pair(v_last * 1.001, np.zeros(len(start))))
    return minus(every, times(weight, most)), minus(every, times(weight, least))


def _inverse_square(x: Pair, factor: int) -> Pair:
    ones = Pair(np.ones(len(x.high)), np.zeros(len(x.high)))
    return divided(ones, scaled(times(x, x), np.full(len(x.high), float(factor))))


def _log_of_ratio(below: Pair, above: Pair) -> Pair:
    """ln(above / below) to 98 significant bits, for 0 < below <= above."""
    _, exponent = np.frexp(above.high / below.high * np.sqrt(0.5))
    power = np.ldexp(1.0, exponent)
    near = Pair(below.high * power, below.low * power)
    z = divided(minus(above, near), add(above, near))
    square = times(z, z)
    series = _inverse(2 * _TERMS + 1, square.high)
    for i in range(_TERMS - 1, -1, -1):
        series = add(times(series, square), _inverse(2 * i + 1, square.high))
    log = scaled(times(z, series), np.full(len(z.high), 2.0))
    twos = scaled(Pair(*(np.full(len(z.high), part) for part in _LN2)), exponent.astype(np.float64))
    return add(twos, log)


def _inverse(n: int, like: Floats) -> Pair:
    return quotient(np.ones(len(like)), np.full(len(like), float(n)))


# Exceeds the rounding error of the sums below, which are correct to 94 bits.
_SLACK_BITS: Final = 88
_SLACK: Final = Fraction(1, 1 << _SLACK_BITS)
_FLOATS: Final = 1 << 53

Exact: TypeAlias = tuple[Fraction, Fraction, Fraction]  # a `Figure` before rounding


def average_precision(steps: Steps, *, bounded: bool) -> Figure:
    """AP as the step sum, correct to 90 bits and then rounded; a bucket counts as a tie.

    Unless `bounded` each step is one score. nan without a positive.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> average_precision(steps(np.array([1, 1, 0]), np.array([0, 1, 1])), bounded=False)[0]
    0.8333333333333334
    """
    return _figure(steps, bounded, _sums)


def average_precisions(curves: ManySteps, *, bounded: bool) -> FigureColumns:
    """The `average_precision` of each of many curves, computed side by side."""
    return _figures(curves, bounded, _sums)


def unrounded(steps: Steps, *, bounded: bool) -> Exact | None:
    """AP and its bounds, unrounded, for a mean that is rounded once; None without a positive."""
    if not steps.positives:
        return None
    return _exact(steps, *_sums(_boxes(steps), bounded).single(0))


def trapezoid(steps: Steps, *, bounded: bool) -> Figure:
    """The trapezoidal area under the precision-recall points, from (0, 1) on; else as AP."""
    return _figure(steps, bounded, _trapezoid_sums)


def trapezoids(curves: ManySteps, *, bounded: bool) -> FigureColumns:
    """The `trapezoid` of each of many curves, computed side by side."""
    return _figures(curves, bounded, _trapezoid_sums)


class _Boxes(NamedTuple):
    """T₀, T₁, F₀, F₁ and p of the steps that have a positive, of one curve after another. sizes: of
    each the number of these, at least 1."""

    t0: Ints
    t1: Ints
    f0: Ints
    f1: Ints
    p: Ints
    sizes: NDArray[np.intp]

    def sums(self, terms: Pair) -> Pair:
        """The sum of the terms of each curve."""
        return tree_totals(terms, self.sizes)

    @property
    def perfect(self) -> NDArray[np.bool_]:
        """Whether no negative is at or above a positive, of each curve."""
        is_zero: NDArray[np.bool_] = self.f1[np.cumsum(self.sizes) - 1] == 0
        return is_zero


class _Sums(NamedTuple):
    """An area and its bounds, times the positives, of each curve [c]. exact: where the bounds are
    the area."""

    value: Pair
    least: Pair
    most: Pair
    exact: NDArray[np.bool_]

    def single(self, i: int) -> Exact:
        """Those of one curve; all three are one object where they are exact."""
        [value] = fractions(self.value.take(slice(i, i + 1)))
        if self.exact[i]:
            return value, value, value
        [least], [most] = (fractions(x.take(slice(i, i + 1))) for x in (self.least, self.most))
        return value, least, most


SumsOf: TypeAlias = Callable[[_Boxes, bool], _Sums]


def _boxes(steps: Steps) -> _Boxes:
    """Those of one curve."""
    indices = np.flatnonzero(steps.tp[1:] > steps.tp[:-1])
    parts = steps.tp[:-1], steps.tp[1:], steps.fp[:-1], steps.fp[1:]
    t0, t1, f0, f1 = (part[indices] for part in parts)
    return _Boxes(t0, t1, f0, f1, t1 - t0, np.array([len(t0)]))


def _figure(steps: Steps, bounded: bool, sums_of: SumsOf) -> Figure:
    """The figure of one curve; `UNDEFINED` without a positive."""
    if not steps.positives:
        return UNDEFINED
    return _rounded(steps.positives, *sums_of(_boxes(steps), bounded).single(0))


def _figures(curves: ManySteps, bounded: bool, sums_of: SumsOf) -> FigureColumns:
    """The figure of each curve; nan without a positive."""
    table = np.full((3, len(curves)), np.nan)
    steps, group = np.flatnonzero(curves.p), np.flatnonzero(curves.positives)
    t1, f1, p = curves.tp[steps], curves.fp[steps], curves.p[steps]
    sizes = np.diff(np.searchsorted(steps, curves.edges))[group]
    boxes = _Boxes(t1 - p, t1, f1 - curves.n[steps], f1, p, sizes)
    table[:, group] = _rounded_columns(curves.positives[group], sums_of(boxes, bounded))
    return FigureColumns(*table)


def _rounded_columns(positives: Ints, sums: _Sums) -> Floats:
    """`_rounded` of many curves, [3, c]."""
    below = positives.astype(np.float64)
    nearest = quotients(sums.value, below).nearest()
    low = quotients(sums.least, below).rounded_down(float(_SLACK))
    high = quotients(sums.most, below).rounded_up(float(_SLACK))
    ends = (np.where(sums.exact, nearest.floats, end.floats) for end in (low, high))
    table = np.array([nearest.floats, *ends])
    for i in np.flatnonzero(~(nearest.sure & (sums.exact | (low.sure & high.sure)))).tolist():
        table[:, i] = _rounded(int(positives[i]), *sums.single(i))
    return table


def _sums(boxes: _Boxes, bounded: bool) -> _Sums:
    """AP and its bounds, times the positives; all equal where scores are exact."""
    value, perfect = _weighed(boxes, _share(boxes.t1, boxes.f1)), boxes.perfect
    if not bounded or perfect.all():
        return _Sums(value, value, value, np.ones_like(perfect))
    least = boxes.sums(sums_of_shares(boxes.t0, boxes.p, boxes.f1)[0])
    return _Sums(value, least, _weighed(boxes, _share(boxes.t1, boxes.f0)), perfect)


def _trapezoid_sums(boxes: _Boxes, bounded: bool) -> _Sums:
    t0, t1, f0, f1 = boxes.t0, boxes.t1, boxes.f0, boxes.f1
    value, perfect = _means_of_ends(boxes, _share(t0, f0), _share(t1, f1)), boxes.perfect
    if not bounded or perfect.all():
        return _Sums(value, value, value, np.ones_like(perfect))
    least = _means_of_ends(boxes, _share(t0, f1), _share(t1, f1))
    # Σ (g(j - 1) + g(j)) / 2 = Σ g(j) - (g(T₁) - g(T₀)) / 2
    rise = minus(_share(t1, f0), _share(t0, f0))
    halved = Pair(rise.high / 2, rise.low / 2)
    most = boxes.sums(minus(sums_of_shares(t0, boxes.p, f0)[1], halved))
    return _Sums(value, least, most, perfect)


def _means_of_ends(boxes: _Boxes, start: Pair, end: Pair) -> Pair:
    twice = _weighed(boxes, add(start, end))
    return Pair(twice.high / 2, twice.low / 2)


def _share(t: Ints, f: Ints) -> Pair:
    """The precision t / (t + f); 1 where nothing is predicted positive."""
    rows = t + f
    nothing = rows == 0
    if nothing.any():
        t, rows = np.where(nothing, 1, t), np.where(nothing, 1, rows)
    if rows.dtype != object and int(rows.max(initial=0)) < _FLOATS:
        return quotient(t.astype(np.float64), rows.astype(np.float64))
    return divided(whole(t), whole(rows))


def _weighed(boxes: _Boxes, values: Pair) -> Pair:
    """The sum of p times each value, of each curve."""
    p = boxes.p
    if p.dtype != object and int(p.max(initial=0)) < _FLOATS:
        weights: Floats = p.astype(np.float64)
        return boxes.sums(scaled(values, weights))
    return boxes.sums(times(values, whole(p)))


def _rounded(positives: int, value: Fraction, low: Fraction, high: Fraction) -> Figure:
    """`_exact`, rounded; without fractions, which are reduced at each step."""
    above, unit = value.as_integer_ratio()
    nearest = ratio(above, unit * positives)
    if value is low is high:
        return nearest, nearest, nearest
    (least, least_unit), (most, most_unit) = low.as_integer_ratio(), high.as_integer_ratio()
    least_unit, most_unit = least_unit * positives, most_unit * positives
    least = max((least << _SLACK_BITS) - least_unit, 0)
    most = min((most << _SLACK_BITS) + most_unit, most_unit << _SLACK_BITS)
    down = rounded_down(least, least_unit << _SLACK_BITS)
    return nearest, down, rounded_up(most, most_unit << _SLACK_BITS)


def _exact(steps: Steps, value: Fraction, low: Fraction, high: Fraction) -> Exact:
    """The sums divided by the positives, with bounds widened by `_SLACK` within [0, 1]."""
    every = steps.positives
    share = value / every
    if low is high:
        return share, share, share
    least, most = low / every - _SLACK, high / every + _SLACK
    return share, max(least, Fraction(0)), min(most, Fraction(1))


def partial_area(steps: Steps, max_fpr: Fraction, *, standardized: bool, bounded: bool) -> Figure:
    """The area over FPR in [0, max_fpr], 0 < max_fpr <= 1; nan with one class only.

    standardized: (1 + (area - m) / (max_fpr - m)) / 2 with m = max_fpr²/2, the area of chance:
    1/2 for chance, 1 for a perfect order. Correctly rounded, bounds rounded outwards.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> perfect = steps(np.array([2, 0]), np.array([0, 1]))
    >>> partial_area(perfect, Fraction(1, 4), standardized=False, bounded=False)[0]
    0.25
    """
    if not steps.pairs:
        return UNDEFINED
    limit = max_fpr * steps.negatives
    # The last position at or before the limit.
    last = int(np.searchsorted(steps.fp, limit.numerator // limit.denominator, "right")) - 1
    before, after = steps.tp[:last], steps.tp[1 : last + 1]
    widths = steps.fp[1 : last + 1] - steps.fp[:last]
    t0, f0 = int(steps.tp[last]), int(steps.fp[last])
    cut_width = limit - f0  # negatives before the limit in the step that it cuts
    p = n = 0
    if cut_width:
        p, n = int(steps.tp[last + 1]) - t0, int(steps.fp[last + 1]) - f0
    slope = Fraction(p, n) if n else Fraction(0)

    def standard(twice: Fraction) -> Fraction:
        area = twice / (2 * steps.pairs)
        if not standardized:
            return area
        chance = max_fpr * max_fpr / 2
        return (1 + (area - chance) / (max_fpr - chance)) / 2

    low, high = 2 * _area(steps, before, widths), 2 * _area(steps, after, widths)
    value = standard(Fraction(low + high, 2) + cut_width * (2 * t0 + cut_width * slope))
    worst, best = standard(low + 2 * cut_width * t0), standard(high + 2 * cut_width * (t0 + p))
    return figure(value, worst, best, bounded=bounded)


def _area(steps: Steps, heights: Ints, widths: Ints) -> int:
    if steps.pairs >= 1 << 63:
        heights, widths = heights.astype(object), widths.astype(object)
    return int((heights * widths).sum())
