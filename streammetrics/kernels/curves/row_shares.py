"""Gain and lift: the positives among the rows with the highest scores, in k equal parts of rows.

A cut between parts may fall into a row or into tied rows: these are shared in proportion, which
is the mean over their orders. Where a step is a bucket, w of its rows above the cut hold at most
min(w, p) of its p positives and at least w less its negatives. These ends are reached where cuts
fall between rows.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.curves.steps import UNDEFINED, Figure, Steps
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up


@dataclass(frozen=True)
class _Cut:
    """Positives above a cut, and how the step that it cuts is made up."""

    value: Fraction
    low: Fraction
    high: Fraction
    step: int
    rows: Fraction  # above it


def gains(found: Steps, k: int, *, bounded: bool) -> list[Figure]:
    """Share of the positives in the first i of k parts, for i = 1 to k; nan without one.

    >>> import numpy as np
    >>> from streammetrics.kernels.curves.steps import steps
    >>> [gain for gain, _, _ in gains(steps(np.array([1, 1, 0]), np.array([0, 1, 1])), 2,
    ...     bounded=False)]
    [0.75, 1.0]
    """
    if not found.positives:
        return [UNDEFINED] * k
    return [_figure(*_gain(found, Fraction(i, k)), bounded) for i in range(1, k + 1)]


def lifts(found: Steps, k: int, *, cumulative: bool, bounded: bool) -> list[Figure]:
    """The rate of positives in each of k parts over that of all rows; nan without a positive.

    cumulative: in the first i parts, i = 1 to k.
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
        if start.step == end.step:  # both cuts in one bucket: between them is free
            p, n = _made_of(found, end.step)
            width, every = end.rows - start.rows, found.positives
            low, high = max(width - n, Fraction(0)) / every, min(width, Fraction(p)) / every
        times = Fraction(k, i if cumulative else 1)
        bounds = (v1 - v0) * times, low * times, high * times
        figures.append(_figure(*bounds, bounded))
    return figures


def _gain(found: Steps, share: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """The share of the positives in this share of the rows, and its bounds."""
    every, cut = found.positives, _cut(found, share)
    return cut.value / every, cut.low / every, cut.high / every


def _cut(found: Steps, share: Fraction) -> _Cut:
    rows = share * found.rows
    # The step in which the cut lies; a cut between two steps is at the end of the first. A few of
    # the millions of places are looked at, so their ranks are not summed for all.
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


def _rank(found: Steps, place: int) -> int:
    """How many rows lie above this place."""
    return int(found.tp[place]) + int(found.fp[place])


def _made_of(found: Steps, step: int) -> tuple[int, int]:
    """Positives and negatives of a step."""
    p = int(found.tp[step + 1]) - int(found.tp[step])
    return p, int(found.fp[step + 1]) - int(found.fp[step])


def _figure(value: Fraction, low: Fraction, high: Fraction, bounded: bool) -> Figure:
    nearest = ratio(value, 1)
    if not bounded:
        return nearest, nearest, nearest
    return (
        nearest,
        rounded_down(low.numerator, low.denominator),
        rounded_up(high.numerator, high.denominator),
    )
