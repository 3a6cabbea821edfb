"""Delays in bins of powers of two of a second: [0, 1), [1, 2), [2, 4), [4, 8) seconds, and on."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

BINS: Final = 54  # the last ends past 2**53 ms, the longest label window
_STARTS: Final = np.array([1000 << i for i in range(BINS - 1)], np.int64)


def delay_bins(delays_ms: NDArray[np.int64]) -> NDArray[np.intp]:
    """Intp [n]: the bin of each delay in milliseconds, from 0 on.

    >>> import numpy as np
    >>> delay_bins(np.array([0, 999, 1000, 2000, 3999, 4000])).tolist()
    [0, 0, 1, 2, 2, 3]
    """
    return np.searchsorted(_STARTS, delays_ms, "right")


def ends_s(number: int) -> tuple[int, int]:
    """The start and the end of a bin in seconds.

    >>> [ends_s(i) for i in range(4)]
    [(0, 1), (1, 2), (2, 4), (4, 8)]
    """
    return (1 << number) >> 1, 1 << number
