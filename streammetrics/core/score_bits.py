"""Integers that order as floats do: what exact states sort instead of scores.

The code of a float is its bits, with the sign bit set where it is positive and all bits flipped
where it is negative. -0.0 has the code of 0.0; no code stands for NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.unsignedinteger]  # uint32 or uint64
Scores = NDArray[np.floating]  # float32 or float64


def codes_of(scores: Scores) -> Codes:
    """uint32 or uint64 [n], as wide as the scores, which hold no NaN.

    >>> import numpy as np
    >>> a, b, c = codes_of(np.array([-1.5, -0.0, 0.0])).tolist()
    >>> a < b == c
    True
    """
    if scores.dtype == np.float32:
        bits = (scores + np.float32(0)).view(np.int32)
        flip = bits >> 31
        flip |= np.int32(-(1 << 31))
        bits ^= flip
        return bits.view(np.uint32)
    wide = (scores + 0.0).view(np.int64)
    flips = wide >> 63
    flips |= np.int64(-(1 << 63))
    wide ^= flips
    return wide.view(np.uint64)


def scores_of(codes: Codes) -> Scores:
    """The floats of these codes."""
    if codes.dtype == np.uint32:
        narrow = np.where(codes >> 31, codes ^ np.uint32(1 << 31), ~codes)
        return narrow.astype(np.uint32).view(np.float32)
    wide = np.where(codes >> np.uint64(63), codes ^ np.uint64(1 << 63), ~codes)
    return wide.astype(np.uint64).view(np.float64)


def are_codes(codes: NDArray[np.uint64], bits: int) -> bool:
    """Whether each is the code of a float of 32 or 64 bits: no NaN, and no -0.0."""
    if not len(codes):
        return True
    ends_32 = codes_of(np.array([-np.inf, 0.0, np.inf], np.float32))
    ends_64 = codes_of(np.array([-np.inf, 0.0, np.inf], np.float64))
    ends = (ends_32 if bits == 32 else ends_64).astype(np.uint64)
    inside = bool(ends[0] <= codes.min() and codes.max() <= ends[2])
    return inside and not bool((codes == ends[1] - np.uint64(1)).any())
