"""Gain and lift: the positives among the rows with the highest scores, in k equal parts of rows.

A cut between parts may fall into a row or into tied rows: these are shared in proportion, which
is the mean over their orders. Where a step is a bucket, w of its rows above the cut hold at most
min(w, p) of its p positives and at least w less its negatives. These ends are reached where cuts
fall between rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streammetrics.kernels.curves import UNDEFINED, Figure
from streammetrics.kernels.rounding import ratio, rounded_down, rounded_up
from streammetrics.kernels.steps import Steps


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
    >>> from streammetrics.kernels.steps import steps
    >>> [gain for gain, _, _ in gains(steps(np.array([1, 1, 0]), np.array([0, 1, 1])), 2,
    ...     bounded=False)]
    [0.75, 1.0]
    """
    every = found.positives
    if not every:
        return [UNDEFINED] * k
    cuts = [_cut(found, Fraction(i, k)) for i in range(1, k + 1)]
    return [_figure(c.value / every, c.low / every, c.high / every, bounded) for c in cuts]


def lifts(found: Steps, k: int, *, cumulative: bool, bounded: bool) -> list[Figure]:
    """The rate of positives in each of k parts over that of all rows; nan without a positive.

    cumulative: in the first i parts, i = 1 to k.
    """
    every = found.positives
    if not every:
        return [UNDEFINED] * k
    cuts = [_cut(found, Fraction(i, k)) for i in range(k + 1)]
    figures = []
    for i in range(1, k + 1):
        start, end = cuts[0 if cumulative else i - 1], cuts[i]
        low, high = end.low - start.high, end.high - start.low
        if start.step == end.step:  # both cuts in one bucket: what lies between is free
            p, n = _made_of(found, end.step)
            width = end.rows - start.rows
            low, high = max(width - n, Fraction(0)), min(width, Fraction(p))
        over = Fraction(every * (i if cumulative else 1), k)
        value = end.value - start.value
        figures.append(_figure(value / over, low / over, high / over, bounded))
    return figures


def _cut(found: Steps, share: Fraction) -> _Cut:
    rows = share * found.rows
    ranks = found.tp + found.fp
    # The step in which the cut lies; a cut between two steps is at the end of the first.
    step = max(int(np.searchsorted(ranks, -(-rows.numerator // rows.denominator), "left")) - 1, 0)
    t0 = int(found.tp[step])
    p, n = _made_of(found, step)
    inside = rows - int(ranks[step])
    return _Cut(
        value=t0 + inside * Fraction(p, p + n),
        low=t0 + max(inside - n, Fraction(0)),
        high=t0 + min(inside, Fraction(p)),
        step=step,
        rows=rows,
    )


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
