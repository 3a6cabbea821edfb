"""Where an interval ends: the last float of those that are inside."""

from __future__ import annotations

from collections.abc import Callable


def last_inside(inside: float, outside: float, holds: Callable[[float], bool]) -> float:
    """The float next to where `holds` ends, between one where it holds and one where it does not.

    Both ends finite. `holds` is asked at floats strictly between them, some 60 times; if it
    changes more than once in between, one of the changes is found.

    >>> last_inside(1.0, 2.0, lambda x: x * x < 2) ** 2 < 2
    True
    """
    while True:
        middle = inside + 0.5 * (outside - inside)
        if middle in (inside, outside):
            return inside
        if holds(middle):
            inside = middle
        else:
            outside = middle
