"""A few of many points, for a drawing or a line of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

MAX_POINTS: Final = 500  # looks at one comparison


def thinned(points: Sequence[T], most: int = MAX_POINTS) -> list[T]:
    """At most `most` points, evenly spaced, with the first and the last.

    >>> thinned(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(points) <= most:
        return list(points)
    return [points[i * (len(points) - 1) // (most - 1)] for i in range(most)]
