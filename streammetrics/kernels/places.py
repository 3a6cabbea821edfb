"""Where something is, and how often up to a place, in a third of the time of numpy's functions."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_NOWHERE: Final = np.zeros(0, np.int64)


def nonzero(
    values: NDArray[np.generic], ends: NDArray[np.int64] = _NOWHERE
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Where values [n] are not zero (or true), ascending; and how many of these places are below
    each of `ends` [m], which are from 0 to n.

    `np.flatnonzero` looks for the next place from each, at the price of a mispredicted branch,
    where one in ten values or fewer is not zero, and above that it runs without branches. So
    there are always enough: the last ones are ours.

    >>> nonzero(np.array([0, 3, 0, 1], np.uint8), np.array([0, 2, 4]))
    (array([1, 3]), array([0, 1, 2]))
    """
    n = len(values)
    ours = n // 8 + 1
    found = np.empty(n + ours, np.bool_)
    np.not_equal(values, 0, out=found[:n])
    found[n:] = True
    at = np.flatnonzero(found)[:-ours]
    return at, below(found[:n], ends) if len(ends) else _NOWHERE


def below(found: NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the first `ends` [m] values [n] are true; ends are from 0 to n.

    They are a bit each, 64 to a word: what counts are the words before, and in the same word the
    bits before.
    """
    bits = np.zeros((len(found) // 64 + 1) * 8, np.uint8)
    packed = np.packbits(found, bitorder="little")
    bits[: len(packed)] = packed
    words = bits.view("<u8")
    before = np.zeros(len(words), np.int64)
    np.cumsum(np.bitwise_count(words[:-1]), out=before[1:])
    word, bit = ends >> 6, (ends & 63).astype(np.uint64)
    inside = words[word] & ((np.uint64(1) << bit) - np.uint64(1))
    counts: NDArray[np.int64] = before[word] + np.bitwise_count(inside)
    return counts
