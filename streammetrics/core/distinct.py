"""The different values of a column of small integers, by marking instead of sorting."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

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
