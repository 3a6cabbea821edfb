"""Arrays of counts: their type, their sum, and the counts of what is sorted."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

# The different values of a column of small integers, by marking instead of sorting.

_SPARSE: Final = 4  # times as many possible values as rows, beyond which sorting is quicker
_FEW: Final = 1024


def distinct(values: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The different values [m], ascending, and the place among them of each row's value [n].

    values: [n], from 0 to below `size`.
    """
    if size > _SPARSE * len(values) + _FEW:
        present, places = np.unique(values, return_inverse=True)
        return present, places.astype(np.intp, copy=False)
    there = np.zeros(size, np.bool_)
    there[values] = True
    present = np.flatnonzero(there)
    place = np.empty(size, np.intp)
    place[present] = np.arange(len(present))
    return present, place[values]


_MOST: Final = (1 << 63) - 1


def kind_for(top: int) -> type[np.integer]:
    """The least type of cells that holds counts up to this one."""
    if top < 1 << 16:
        return np.uint8 if top < 1 << 8 else np.uint16
    return np.uint32 if top < 1 << 32 else np.int64


def counted(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each distinct value of sorted codes, and how often it is there."""
    if not len(codes):
        return codes, codes
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    return codes[first], np.diff(first, append=len(codes))


def exact_total(counts: NDArray[np.integer]) -> int:
    """The sum of counts [n], which are at least 0, however large it is."""
    n = len(counts)
    if not n:
        return 0
    if counts.item(counts.argmax()) <= _MOST // n:
        return int(np.add.reduce(counts))
    # The parts of 32 bits cannot overflow where the whole could.
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
