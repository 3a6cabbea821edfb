"""Positions of nonzero values, and counts up to a position, in a third of NumPy's time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NOWHERE: Final = np.zeros(0, np.int64)


def nonzero(
    values: NDArray[np.generic], ends: NDArray[np.int64] = _NOWHERE
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The ascending indices of nonzero (or true) values [n], and how many of them are below each
    of `ends` [m], which are from 0 to n.

    If at most one value in ten is nonzero, `np.flatnonzero` searches from each to the next, at the
    cost of a mispredicted branch; with more, it runs without branches. So enough true values are
    appended here, and dropped from the result.

    >>> nonzero(np.array([0, 3, 0, 1], np.uint8), np.array([0, 2, 4]))
    (array([1, 3]), array([0, 1, 2]))
    """
    n = len(values)
    n_added = n // 8 + 1
    is_nonzero = np.empty(n + n_added, np.bool_)
    np.not_equal(values, 0, out=is_nonzero[:n])
    is_nonzero[n:] = True
    indices = np.flatnonzero(is_nonzero)[:-n_added]
    return indices, counts_below(is_nonzero[:n], ends) if len(ends) else _NOWHERE


def counts_below(values: NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the first `ends` [m] values [n] are true; ends are from 0 to n.

    Values are packed 64 to a word. A count adds the words before and the earlier bits of the word.
    """
    bits = np.zeros((len(values) // 64 + 1) * 8, np.uint8)
    packed = np.packbits(values, bitorder="little")
    bits[: len(packed)] = packed
    words = bits.view("<u8")
    before = np.zeros(len(words), np.int64)
    np.cumsum(np.bitwise_count(words[:-1]), out=before[1:])
    word, bit = ends >> 6, (ends & 63).astype(np.uint64)
    inside = words[word] & ((np.uint64(1) << bit) - np.uint64(1))
    counts: NDArray[np.int64] = before[word] + np.bitwise_count(inside)
    return counts


# Rows of small integers of which few are different, so that each is computed once.

_ODD: Final = np.int64(0x1E3779B97F4A7C15)  # hash multiplier; collisions cost only time


class Deduplicated(NamedTuple):
    """firsts: ascending indices of the representative rows. which: [n], for each row the position
    in `firsts` of an equal row."""

    firsts: NDArray[np.intp]
    which: NDArray[np.intp]


def deduplicate(*columns: NDArray[np.int64]) -> Deduplicated:
    """Representatives of all rows of columns [n]; a few representatives may be equal.

    Each row writes its index into a hash table. A row that then reads the index of an equal row is
    represented by that row, and otherwise by itself.

    >>> deduplicate(np.array([7, 7, 5, 7]), np.array([1, 2, 1, 1]))
    Deduplicated(firsts=array([1, 2, 3]), which=array([2, 0, 1, 2]))
    """
    n = len(columns[0])
    bits = n.bit_length() + 1
    mixed = columns[0] * _ODD
    for column in columns[1:]:
        mixed += column
        mixed *= _ODD
    slots = (mixed.view(np.uint64) >> np.uint64(64 - bits)).view(np.int64)
    rows = np.arange(n)
    table = np.empty(1 << bits, np.intp)
    table[slots] = rows
    representatives = table[slots]
    same = columns[0][representatives] == columns[0]
    for column in columns[1:]:
        same &= column[representatives] == column
    representatives = np.where(same, representatives, rows)
    firsts, _ = nonzero(representatives == rows)
    numbers = np.empty(n, np.intp)
    numbers[firsts] = np.arange(len(firsts))
    return Deduplicated(firsts, numbers[representatives])
