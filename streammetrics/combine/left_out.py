"""The results of a metric without each of several states in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streammetrics.combine.panel import part_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.parts import Slots

SIDE_BY_SIDE: Final = 1 << 19  # bytes of sums that are held at once, if there is a choice


def summed(states: Accumulator) -> Accumulator:
    """The sum of the states of all slots."""
    total = states._empty(1)
    total._merge_slots(states, np.zeros(states._width, np.intp))
    return part_of(states, total)


def left_out(states: Accumulator, weights: Sequence[int]) -> tuple[object | None, ...]:
    """For each slot the result of all others; None where its weight is 0.

    weights: [slots]. A half of the slots is added to what is outside of the other half, and so
    on: each state is added log2(slots) times. Sums that are small are made side by side; of large
    ones, one half after the other, so that only log2(slots) of them are held at once.
    """
    found: list[object | None] = [None] * len(weights)
    each = states.nbytes  # a sum is no larger than this
    if each <= SIDE_BY_SIDE:  # but smaller where states have cells in common
        each = summed(states).copy().nbytes

    def walk(slots: Slots, outside: Accumulator) -> None:
        if len(slots) == 1 or len(slots) * each <= SIDE_BY_SIDE:
            sums = _without_each(states._take(slots), outside)
            for i, slot in enumerate(slots.tolist()):
                one = sums._take(np.array([i], np.intp))
                found[slot] = part_of(states, one).compute()
            return
        half = len(slots) // 2
        for inside, others in ((slots[:half], slots[half:]), (slots[half:], slots[:half])):
            more = outside._take(np.zeros(1, np.intp))
            theirs = states._take(others)
            more._merge_slots(theirs, np.zeros(len(others), np.intp))
            walk(inside, more)

    used = np.flatnonzero(np.array(weights) != 0)
    if len(used):
        walk(used, states._empty(1))
    return tuple(found)


def _without_each(states: Accumulator, outside: Accumulator) -> Accumulator:
    """In slot i the sum of `outside` and all states but i.

    Halving as above, of all parts at once: before a step, slot j has what is outside of part j.
    """
    places = np.arange(states._width)
    for size in reversed([1 << i for i in range((states._width - 1).bit_length())]):
        part = places // size
        outside = outside._take(np.arange(part[-1] + 1) // 2)
        beside = part ^ 1  # the other half of what they were a part of together
        here = np.flatnonzero(beside <= part[-1])
        outside._merge_slots(states._take(here), beside[here])
    return outside
