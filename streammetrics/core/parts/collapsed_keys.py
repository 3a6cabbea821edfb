"""Keys that collapse: a state has a bounded number of different ones, by default `MOST`.

Keys are integers in the order of what they stand for, such as scores. A state keeps all of its keys
shifted right by the least number of bits that leaves at most that many different ones. This shift
is a function of the set of keys: more rows can only raise it, and a sum starts with the greater one
of its operands. So equal rows have equal states, however they were split and merged. Keys that are
no more than that are kept as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.part import Slots

Ints = NDArray[np.int64]
MOST: Final = 256  # different keys of a state, unless more are asked for
IN_PAIRS: Final = 1024  # of one of two models, whose difference varies less than either


class Keys(NamedTuple):
    """Different keys in ascending order, slot by slot; the bits that are shifted out are 0."""

    slots: Slots
    keys: Ints


NO_KEYS: Final = Keys(np.empty(0, np.intp), np.empty(0, np.int64))


def masks(shifts: Ints) -> Ints:
    """All bits but those that are shifted out."""
    masks: Ints = np.int64(-1) << shifts
    return masks


def ordered_pairs(slots: Slots, keys: Ints, shifts: Ints) -> tuple[Keys, NDArray[np.intp]]:
    """The different pairs of slot and key, ascending, and the number of each given one. The keys,
    mostly in ascending runs, are those under these shifts."""
    shifted = keys >> shifts[slots]
    least = int(shifted.min(initial=0))
    size = int(shifted.max(initial=0)) - least + 1
    if size * len(shifts) < 1 << 62:
        shifted -= least
        shifted += slots * size
        order = np.argsort(shifted, kind="stable")  # it merges runs
    else:
        order = np.argsort(keys)
        kind = slots.astype(np.uint16) if len(shifts) <= 1 << 16 else slots
        order = order[np.argsort(kind[order], kind="stable")]
    slots, keys = slots[order], keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (slots[1:] != slots[:-1]) | (keys[1:] != keys[:-1])
    number = np.empty(len(keys), np.intp)
    number[order] = np.cumsum(new) - 1
    return Keys(slots[new], keys[new]), number


def united(sets: Sequence[Keys], shifts: Ints, most: int = MOST) -> tuple[Keys, NDArray[np.intp]]:
    """The different keys of all sets, collapsed where a slot has more than `most`, whose shift is
    raised in place; and the number of each given key among them."""
    slots, keys = (np.concatenate([key_set[i] for key_set in sets]) for i in (0, 1))
    keys &= masks(shifts)[slots]
    distinct_keys, number = ordered_pairs(slots, keys, shifts)
    least = least_shifts(distinct_keys, shifts, most)
    if (least == shifts).all():
        return distinct_keys, number
    shifts[:] = least
    fewer, new_numbers = ordered_pairs(
        distinct_keys.slots, distinct_keys.keys & masks(shifts)[distinct_keys.slots], shifts
    )
    return fewer, new_numbers[number]


def least_shifts(keys: Keys, shifts: Ints, most: int = MOST) -> Ints:
    """The least shift of each slot, at least the given ones, that leaves at most `most` keys. Two
    neighbours stay apart while their highest different bit is not shifted out."""
    sizes = np.bincount(keys.slots, minlength=len(shifts))
    if not len(sizes) or sizes.max() <= most:
        return shifts
    crowded = sizes > most
    neighbours = np.flatnonzero((keys.slots[1:] == keys.slots[:-1]) & crowded[keys.slots[1:]])
    bits = _bit_lengths(keys.keys[neighbours] ^ keys.keys[neighbours + 1])
    ordered = np.sort(keys.slots[neighbours] * 128 - bits)  # of each slot the highest first
    slots = np.flatnonzero(crowded)
    first = np.searchsorted(ordered, slots * 128 - 64)
    new_shifts = shifts.copy()
    new_shifts[slots] = slots * 128 - ordered[first + most - 1]
    return new_shifts


def _bit_lengths(words: Ints) -> Ints:
    """The number of bits of each word, without its leading zeros."""
    bits = words.view(np.uint64)
    high = bits >> np.uint64(32)
    part = np.where(high > 0, high, bits & np.uint64(0xFFFFFFFF)).astype(np.float64)
    lengths: Ints = np.frexp(part)[1].astype(np.int64) + np.where(high > 0, 32, 0)
    return lengths
