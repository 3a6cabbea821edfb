"""Rows of small whole numbers of which few are different, so that each is worked out once."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.places import nonzero

_ODD: Final = np.int64(0x1E3779B97F4A7C15)  # mixes numbers; what it mixes up costs time alone


class Alike(NamedTuple):
    """firsts: places of rows that stand for all, ascending. which: [n], for each row the place in
    `firsts` of an equal one."""

    firsts: NDArray[np.intp]
    which: NDArray[np.intp]


def alike(*columns: NDArray[np.int64]) -> Alike:
    """Rows of columns [n] that stand for all others; a few of them may be equal.

    Each row writes its place into a table, where the hash of the row says; who reads a place of an
    equal row is stood for by that one.

    >>> alike(np.array([7, 7, 5, 7]), np.array([1, 2, 1, 1]))
    Alike(firsts=array([1, 2, 3]), which=array([2, 0, 1, 2]))
    """
    n = len(columns[0])
    bits = n.bit_length() + 1
    mixed = columns[0] * _ODD
    for column in columns[1:]:
        mixed += column
        mixed *= _ODD
    slots = (mixed.view(np.uint64) >> np.uint64(64 - bits)).view(np.int64)
    place = np.arange(n)
    table = np.empty(1 << bits, np.intp)
    table[slots] = place
    stands = table[slots]
    same = columns[0][stands] == columns[0]
    for column in columns[1:]:
        same &= column[stands] == column
    stands = np.where(same, stands, place)
    firsts, _ = nonzero(stands == place)
    numbers = np.empty(n, np.intp)
    numbers[firsts] = np.arange(len(firsts))
    return Alike(firsts, numbers[stands])
