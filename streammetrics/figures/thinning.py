"""Curves with fewer points, and the boxes between those points that hold all the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def kept(position: Floats, most: int) -> Places:
    """At most `most` of the places [k] of a curve, the first and the last among them.

    position: [k], ascending: how far along the curve each lies. Between two that are kept either
    nothing is left out, or less than 2 / most of the whole length.

    >>> kept(np.linspace(0.0, 1.0, 101), 6).tolist()
    [0, 50, 51, 100]
    >>> kept(np.array([0.0, 0.5, 1.0]), 6).tolist()
    [0, 1, 2]
    """
    count = len(position)
    if count <= most:
        return np.arange(count)
    steps = max(1, (most - 2) // 2)
    goals = np.linspace(position[0], position[-1], steps + 1)[1:-1]
    after = np.searchsorted(position, goals, "right")
    ends = np.array([0, count - 1])
    found = np.unique(np.concatenate([ends, after - 1, after]))
    return found[(found >= 0) & (found < count)]


def envelope(x: Floats, low: Floats, high: Floats, doubt: float = 0.0) -> tuple[Floats, Floats]:
    """The band over each step [x_i, x_(i+1)] of boxes whose place on x may be off by `doubt`.

    x: [k + 1], ascending; low, high: [k], the ends of the box over each step. Returns the ends
    over each step, [k].

    >>> low, high = envelope(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.4]), np.array([0.4, 1.0]))
    >>> low.tolist(), high.tolist()
    ([0.0, 0.4], [0.4, 1.0])
    """
    if not doubt or not len(low):
        return low, high
    first = np.clip(np.searchsorted(x, x[:-1] - doubt, "left") - 1, 0, len(low) - 1)
    last = np.clip(np.searchsorted(x, x[1:] + doubt, "right") - 1, 0, len(low) - 1)
    spans = list(zip(first.tolist(), last.tolist(), strict=True))
    return (
        np.array([low[a : b + 1].min() for a, b in spans]),
        np.array([high[a : b + 1].max() for a, b in spans]),
    )
