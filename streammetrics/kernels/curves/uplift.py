"""Uplift: how large the effect of a treatment is among the rows with the highest scores.

Y and n are the successes and the rows of an arm, t or c, above a cut, and N its rows in all. The
curve is V = Y_t/N_t - Y_c/N_c against the share x of all rows above the cut. It ends at the average
treatment effect (ATE), and the Qini coefficient is the area between it and its chord,
Q = ∫V dx - ATE/2. Tied rows are one straight step, their mean over all orders. V is linear in the
counts and never 0/0. (Radcliffe 2007, Direct Marketing Analytics Journal; V: Devriendt et al. 2020,
IEEE TKDE.)

Two curves that other libraries have are not linear. Radcliffe's is Y_t - Y_c n_t/n_c, where n_t/n_c
is 0 before the first control row; the gain is (Y_t/n_t - Y_c/n_c)(n_t + n_c), a share of no rows
being 0. Their areas are those of trapezoids against n_t + n_c between different scores.

If a step is a bucket, its rows may be in any order and any of them tied:

- Q has its maximum with the treated successes first and those of the control last, its minimum the
  other way round: Q -/+ Σ_b [y_t(s - y_t)/N_t + y_c(s - y_c)/N_c] / 2N, with s rows in bucket b.
- After r of its s rows, at least max(0, r - (s - y)) and at most min(r, y) of its y successes are
  above the cut. The first is convex in r and the second concave, so a straight line between two
  orders that are possible is within them too. They and the ends of n_t/n_c, Y_t/n_t and Y_c/n_c in
  the bucket bound the other two curves; the points at the ends of the bucket are certain.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Ints, cumulative, figure, shares
from streammetrics.kernels.exact.double_double import Pair, divided, times, total, whole
from streammetrics.kernels.exact.rounding import (
    BITS,
    FractionMean,
    exact_dot,
    rounded,
    rounded_down,
    rounded_up,
)
from streammetrics.kernels.inference.proportions import Arms

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArmSteps:
    """Cumulative counts of both arms from high to low scores; index i is after i steps.

    kinds: [4, k + 1], from 0: failures and successes of the control, then of the treated.
    positions: intp [k], the index of the step's score among those given.
    """

    kinds: Ints
    positions: NDArray[np.intp]

    @property
    def y_c(self) -> Ints:
        """Successes of the control."""
        successes: Ints = self.kinds[1]
        return successes

    @property
    def y_t(self) -> Ints:
        """Successes of the treated."""
        successes: Ints = self.kinds[3]
        return successes

    @cached_property
    def n_c(self) -> Ints:
        """Rows of the control."""
        rows: Ints = self.kinds[0] + self.kinds[1]
        return rows

    @cached_property
    def n_t(self) -> Ints:
        """Rows of the treated."""
        rows: Ints = self.kinds[2] + self.kinds[3]
        return rows

    @cached_property
    def rows(self) -> Ints:
        """Rows of both arms."""
        return self.n_c + self.n_t

    @property
    def control(self) -> int:
        """N_c."""
        return int(self.n_c[-1])

    @property
    def treated(self) -> int:
        """N_t."""
        return int(self.n_t[-1])

    @property
    def both(self) -> bool:
        """Whether both arms have rows."""
        return self.control > 0 and self.treated > 0


def arm_steps(counts: Ints) -> ArmSteps:
    """Steps from counts [2, 2, k] by arm (control, treated), outcome (0, 1) and score, in ascending
    order of score; scores without a row are omitted."""
    return ArmSteps(*cumulative(*counts.reshape(4, -1)))


def effect(steps: ArmSteps) -> Fraction | None:
    """The average treatment effect, Y_t/N_t - Y_c/N_c; None without rows of both arms."""
    if not steps.both:
        return None
    y_t, y_c = int(steps.y_t[-1]), int(steps.y_c[-1])
    return Fraction(y_t, steps.treated) - Fraction(y_c, steps.control)


def qini(steps: ArmSteps, *, bounded: bool) -> Figure:
    """The Qini coefficient and its bounds, which some order attains; nan without rows of both
    arms.

    >>> import numpy as np
    >>> counts = np.array([[[1, 0], [1, 0]], [[0, 0], [0, 2]]])  # all treated above all control
    >>> qini(arm_steps(counts), bounded=False)[0]
    0.375
    """
    chord = effect(steps)
    if chord is None:
        return UNDEFINED
    sizes, area, spread = np.diff(steps.rows), Fraction(0), Fraction(0)
    for sign, y, n in ((1, steps.y_t, steps.treated), (-1, steps.y_c, steps.control)):
        inside = np.diff(y)
        area += Fraction(sign * exact_dot(sizes, y[:-1] + y[1:]), n)
        spread += Fraction(exact_dot(inside, sizes - inside), n)
    twice = 2 * int(steps.rows[-1])
    value, apart = area / twice - chord / 2, spread / twice
    return figure(value, value - apart, value + apart, bounded=bounded)


def heights(steps: ArmSteps) -> Floats:
    """V after each step: [k + 1], correctly rounded; nan without rows of both arms."""
    n_t, n_c, y_t, y_c = steps.treated, steps.control, steps.y_t, steps.y_c
    if n_t * n_c >= 1 << 62:
        y_t, y_c = y_t.astype(object), y_c.astype(object)
    return shares(y_t * n_c - y_c * n_t, n_t * n_c)


# -- the areas of other libraries -----------------------------------------------------------------


class Cuts(NamedTuple):
    """The counts above each of some cuts: int64 [n], or objects if products exceed int64."""

    y_t: Ints
    n_t: Ints
    y_c: Ints
    n_c: Ints

    @property
    def rows(self) -> Ints:
        """Rows of both arms."""
        return self.n_t + self.n_c

    def cuts_between(self, start: int | None, end: int | None) -> Cuts:
        """Some of the cuts."""
        return Cuts(*(column[start:end] for column in self))


class Terms(NamedTuple):
    """Rational numbers a b / c with c > 0: integers [n] each."""

    a: Ints
    b: Ints
    c: Ints

    def times(self, factors: Ints | int) -> Terms:
        """Each number as often as its factor says."""
        return Terms(self.a, self.b * factors, self.c)


@dataclass(frozen=True, eq=False)
class Sum:
    """Half the sum of terms, which is rounded once: from about 90 bits, and from the fractions
    themselves if these bits do not decide."""

    terms: Sequence[Terms]

    def enclosing(self, bits: int) -> list[tuple[int, int]]:
        return self._terms_near() if bits == BITS[0] else self._exact.enclosing(bits)

    def fraction(self) -> tuple[int, int]:
        return self._exact.fraction()

    def _terms_near(self) -> list[tuple[int, int]]:
        pairs = [divided(times(whole(a), whole(b)), whole(c)) for a, b, c in self.terms]
        every = Pair(*(np.concatenate([getattr(pair, x) for pair in pairs]) for x in Pair._fields))
        near, size = total(every) / 2, Fraction(float(np.abs(every.high).sum()))
        return [(near + sign * size * _ROUNDED).as_integer_ratio() for sign in (-1, 1)]

    @cached_property
    def _exact(self) -> FractionMean:
        sums: dict[int, int] = {}
        for term in self.terms:
            for a, b, c in zip(*(column.tolist() for column in term), strict=True):
                sums[c] = sums.get(c, 0) + a * b
        return FractionMean(sums, 2)


_ROUNDED: Final = Fraction(1, 1 << 90)  # exceeds the rounding error of `Sum`, relative to its terms


class UpliftArea(NamedTuple):
    """An area and its bounds, not yet rounded; all equal where scores are exact."""

    value: Sum
    low: Sum
    high: Sum

    def figure(self, less: Fraction = Fraction(0), by: Fraction = Fraction(1)) -> Figure:
        """(area - less) / by, rounded once, and its bounds, rounded outwards; by > 0."""
        value = rounded(_Shifted(self.value, less, by))
        if self.low is self.value:
            return value, value, value
        low = rounded(_Shifted(self.low, less, by), rounded_down)
        return value, low, rounded(_Shifted(self.high, less, by), rounded_up)


@dataclass(frozen=True, slots=True)
class _Shifted:
    """(of - less) / by, as a rational number."""

    of: Sum
    less: Fraction
    by: Fraction

    def enclosing(self, bits: int) -> list[tuple[int, int]]:
        return [self._shifted(*end) for end in self.of.enclosing(bits)]

    def fraction(self) -> tuple[int, int]:
        return self._shifted(*self.of.fraction())

    def _shifted(self, numerator: int, denominator: int) -> tuple[int, int]:
        return ((Fraction(numerator, denominator) - self.less) / self.by).as_integer_ratio()


class Height(ABC):
    """The height of a curve that is no linear function of the counts; see the module."""

    @abstractmethod
    def heights_at(self, cuts: Cuts) -> Terms:
        """The height at each cut."""

    @abstractmethod
    def sums_inside(self, a: Cuts, b: Cuts) -> tuple[Sequence[Terms], Sequence[Terms]]:
        """Of each bucket from a to b, of s rows, the least and the greatest sum of the heights
        after 1, ..., s - 1 of them."""

    @abstractmethod
    def perfect(self, counts: Ints) -> Ints:
        """Counts [2, 2] of all rows in the order that scikit-uplift calls perfect: [2, 2, k]."""


class Radcliffe(Height):
    """Y_t - Y_c n_t/n_c."""

    def heights_at(self, cuts: Cuts) -> Terms:
        y_t, n_t, y_c, n_c = cuts
        below = np.maximum(n_c, 1)  # without rows the control has no successes either
        return Terms(y_t * below - y_c * n_t, np.ones_like(below), below)

    def sums_inside(self, a: Cuts, b: Cuts) -> tuple[Sequence[Terms], Sequence[Terms]]:
        s, ones = b.rows - a.rows, np.ones_like(a.n_c)
        few_t, most_t = _sums(a.y_t, b.y_t - a.y_t, s)
        few_c, most_c = _sums(a.y_c, b.y_c - a.y_c, s)
        # Before the first control row, Y_c n_t/n_c is at most n_t, and 0 without successes.
        first = a.n_c == 0
        most_c = np.where(first, (s - 1) * (b.y_c > 0), most_c)
        low = Terms(-b.n_t, most_c, np.where(first, ones, a.n_c))
        high = Terms(-a.n_t, few_c, np.maximum(b.n_c, 1))
        return (Terms(few_t, ones, ones), low), (Terms(most_t, ones, ones), high)

    def perfect(self, counts: Ints) -> Ints:
        # Successes of the treated, all failures, successes of the control.
        table = np.zeros((2, 2, 3), counts.dtype)
        table[0, 1, 0], table[:, 0, 1], table[1, 1, 2] = counts[0, 1], counts[:, 0], counts[1, 1]
        return table


class Gain(Height):
    """(Y_t/n_t - Y_c/n_c)(n_t + n_c)."""

    def heights_at(self, cuts: Cuts) -> Terms:
        y_t, n_t, y_c, n_c = cuts
        # An arm without rows has no successes either.
        n_t, n_c = np.maximum(n_t, 1), np.maximum(n_c, 1)
        return Terms(y_t * n_c - y_c * n_t, cuts.rows, n_t * n_c)

    def sums_inside(self, a: Cuts, b: Cuts) -> tuple[Sequence[Terms], Sequence[Terms]]:
        s = b.rows - a.rows
        rows = (s - 1) * a.rows + s * (s - 1) // 2
        least_t, most_t = _rates(a.y_t, b.y_t, a.n_t, b.n_t, rows)
        least_c, most_c = _rates(a.y_c, b.y_c, a.n_c, b.n_c, rows)
        return (least_t, most_c.times(-1)), (most_t, least_c.times(-1))

    def perfect(self, counts: Ints) -> Ints:
        # Successes of the treated, failures of the control, then the rest, the fewer ones last.
        last = (1, 0) if counts[0, 1] > counts[1, 0] else (0, 1)
        order = (last, (1 - last[0], 1 - last[1]), (0, 0), (1, 1))
        table = np.zeros((2, 2, 4), counts.dtype)
        for rank, (arm, outcome) in enumerate(order):
            table[arm, outcome, rank] = counts[arm, outcome]
        return table


RADCLIFFE: Final = Radcliffe()
GAIN: Final = Gain()


def _sums(before: Ints, y: Ints, s: Ints) -> tuple[Ints, Ints]:
    """The least and the greatest sum of the successes after 1, ..., s - 1 of s rows, of which y are
    successes."""
    return (s - 1) * before + y * (y - 1) // 2, (s - 1) * before + y * (2 * s - y - 1) // 2


def _rates(y0: Ints, y1: Ints, n0: Ints, n1: Ints, rows: Ints) -> tuple[Terms, Terms]:
    """The least and the greatest rate of an arm in a bucket, times rows; of no rows it is 0."""
    successes = y1 - y0
    least, most = n1 - successes, n0 + successes
    return Terms(y0, rows, np.maximum(least, 1)), Terms(y1, rows, np.maximum(most, 1))


def area(steps: ArmSteps, height: Height, *, bounded: bool) -> UpliftArea | None:
    """The area under a curve by trapezoids against rows; None without rows of both arms."""
    if not steps.both:
        return None
    cuts = _cuts(steps)
    rows, terms = cuts.rows, height.heights_at(cuts)
    # Twice the area: a point counts with the rows of the steps on both of its sides.
    sizes = np.diff(rows)
    value = Sum([terms.times(np.append(sizes, 0) + np.append(0, sizes))])
    if not bounded:
        return UpliftArea(value, value, value)
    ends = np.full(len(rows), 2)
    ends[[0, -1]] = 1
    low, high = height.sums_inside(cuts.cuts_between(None, -1), cuts.cuts_between(1, None))
    least, most = (
        [terms.times(ends), *(inner.times(2) for inner in bound)] for bound in (low, high)
    )
    return UpliftArea(value, Sum(least), Sum(most))


def normalized(steps: ArmSteps, height: Height, curve_area: UpliftArea) -> Figure:
    """The area above the chord over that of a perfect order, as in scikit-uplift; nan if that is 0,
    since no perfect order is anywhere below its chord. curve_area: of these steps."""
    whole_table = steps.kinds[:, -1].reshape(2, 2)
    best = area(arm_steps(height.perfect(whole_table)), height, bounded=False)
    cuts = _cuts(steps)
    (a,), (b,), (c,) = (x.tolist() for x in height.heights_at(cuts.cuts_between(-1, None)))
    chord = Fraction(a * b * int(cuts.rows[-1]), 2 * c)
    above = Fraction(0) if best is None else Fraction(*best.value.fraction()) - chord
    return curve_area.figure(chord, above) if above else UNDEFINED


def _cuts(steps: ArmSteps) -> Cuts:
    cuts = Cuts(steps.y_t, steps.n_t, steps.y_c, steps.n_c)
    small = int(cuts.rows[-1]) < 1 << 31  # products of two numbers of rows are below 2**62
    return cuts if small else Cuts(*(column.astype(object) for column in cuts))


# -- equal parts of the rows ----------------------------------------------------------------------


class Part(NamedTuple):
    """The rates of both arms in a part of the rows, and their difference; nan without rows.

    arms: successes and rows of the control, and of the treated.
    """

    treated: float
    control: float
    uplift: Figure
    arms: Arms


_Span: TypeAlias = tuple[Fraction, Fraction, Fraction]  # of rows: proportional, fewest, most


def parts(steps: ArmSteps, k: int, *, bounded: bool) -> list[Part]:
    """The rates in k equal parts of all rows, the highest scores first.

    A cut through tied rows, or through one row, takes a proportional part.

    >>> import numpy as np
    >>> counts = np.array([[[1, 0], [0, 1]], [[1, 0], [0, 1]]])
    >>> [part.uplift[0] for part in parts(arm_steps(counts), 2, bounded=False)]
    [0.0, 0.0]
    """
    cuts = [_cut(steps.rows, Fraction(i, k)) for i in range(k + 1)]
    return [_part(_spans(steps, steps.rows, a, b), bounded) for a, b in pairwise(cuts)]


def part(steps: ArmSteps, index: int, k: int, *, bounded: bool) -> Part:
    """One of `parts`, from 0."""
    first, last = (_cut(steps.rows, Fraction(i, k)) for i in (index, index + 1))
    return _part(_spans(steps, steps.rows, first, last), bounded)


def _cut(rows: Ints, share: Fraction) -> tuple[int, Fraction]:
    """The step that a cut falls into, and the rows of the step above it."""
    above = share * int(rows[-1])
    step = max(bisect_left(rows, math.ceil(above)) - 1, 0)
    return step, above - int(rows[step])


def _spans(
    steps: ArmSteps, rows: Ints, first: tuple[int, Fraction], last: tuple[int, Fraction]
) -> list[_Span]:
    """The rows of each kind between two cuts."""
    (i, above), (j, until) = first, last
    if i == j:
        pieces = [(i, until - above)]
        whole = [0] * len(steps.kinds)
    else:
        size = int(rows[i + 1]) - int(rows[i])
        pieces = [(i, size - above), (j, until)]
        whole = [int(kind[j]) - int(kind[i + 1]) for kind in steps.kinds]
    spans = []
    for kind, between in zip(steps.kinds, whole, strict=True):
        value = low = high = Fraction(between)
        for step, taken_rows in pieces:
            if taken_rows:
                size, kind_rows = (int(x[step + 1]) - int(x[step]) for x in (rows, kind))
                value += taken_rows * Fraction(kind_rows, size)
                low += max(Fraction(0), taken_rows - (size - kind_rows))
                high += min(taken_rows, Fraction(kind_rows))
        spans.append((value, low, high))
    return spans


def _part(spans: Sequence[_Span], bounded: bool) -> Part:
    control, treated = _rate(*spans[:2]), _rate(*spans[2:])
    rate_t, rate_c = (math.nan if rate is None else float(rate[0]) for rate in (treated, control))
    (zc, _, _), (yc, _, _), (zt, _, _), (yt, _, _) = spans
    arms = (yc, yc + zc), (yt, yt + zt)
    if treated is None or control is None:
        return Part(rate_t, rate_c, UNDEFINED, arms)
    ends = treated[0] - control[0], treated[1] - control[2], treated[2] - control[1]
    return Part(rate_t, rate_c, figure(*ends, bounded=bounded), arms)


def _rate(failures: _Span, successes: _Span) -> _Span | None:
    """The rate of successes, and its bounds wherever it is defined; None without rows."""
    (z, few_z, most_z), (y, few_y, most_y) = failures, successes
    if not y + z:
        return None
    low = few_y / (few_y + most_z) if few_y + most_z else Fraction(1)
    high = most_y / (most_y + few_z) if most_y + few_z else Fraction(0)
    return y / (y + z), low, high
