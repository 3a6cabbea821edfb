"""Where to cut several sorted arrays, so that they can be merged range of values by range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def equal_cuts(columns: Sequence[NDArray[np.unsignedinteger]], size: int) -> list[list[int]]:
    """Where ranges of values begin in each of these ascending arrays, and where the last ends.

    A range has about `size` entries of all arrays together, or more where values repeat: equal
    ones are in one range, and then the ranges after it may be empty.

    >>> import numpy as np
    >>> evens, odds = np.arange(0, 100, 2, np.uint32), np.arange(1, 100, 2, np.uint32)
    >>> equal_cuts([evens, odds], 50)
    [[0, 0], [24, 23], [48, 47], [50, 50]]
    """
    ends = list(map(len, columns))
    cuts = [[0] * len(columns), ends]
    if sum(ends) <= size:
        return cuts
    # Every step-th value of each array stands for as many, so a range is off by a quarter at most.
    step = max(1, size // (4 * len(columns)))
    samples = np.concatenate([column[step - 1 :: step] for column in columns])
    samples.sort()
    starts = samples[size // step - 1 :: size // step]
    places = np.stack([np.searchsorted(column, starts) for column in columns], axis=1)
    return [cuts[0], *places.tolist(), ends]
