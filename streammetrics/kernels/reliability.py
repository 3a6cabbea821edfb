"""Which bin of equal width a probability is in, and what its log loss is."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.double_double import Pair, two_sum
from streammetrics.kernels.elementary import log

Floats = NDArray[np.float64]

_ONE: Final = np.ones(1)


def bin_edges(n: int) -> Floats:
    """The doubles i/n, from 0 to 1; [n + 1]."""
    return np.arange(n + 1) / n


def equal_bins(scores: Floats, n: int) -> NDArray[np.intp]:
    """The last i below n with i/n <= score, for scores [rows] in [0, 1]; 1.0 is in the last bin.

    The edges are the doubles nearest to i/n, and comparison with them is exact.

    >>> equal_bins(np.array([0.0, 0.2, 0.19999999999999998, 1.0]), 5).tolist()
    [0, 1, 0, 4]
    """
    edges = bin_edges(n)
    edges[n] = np.inf
    found = (scores * n).astype(np.intp)
    np.minimum(found, n - 1, out=found)
    found -= scores < edges[found]  # the product may have been rounded over an edge, either way
    found += scores >= edges[found + 1]
    return found


def log_losses(labels: NDArray[np.uint8], scores: Floats, clip: float | None = None) -> Pair:
    """-ln p where a label is 1 and -ln(1 - p) where it is 0, to 67 bits; inf for ln 0.

    labels: [n] of 0 and 1; scores: [n] in [0, 1]. clip: above 0, at most 1/2; p below it is taken
    as it, and p above 1 - clip as 1 - clip. 1 - p and 1 - clip are taken as two doubles each, so
    small ones lose nothing.
    """
    ones = labels.view(np.bool_)
    rest, error = two_sum(_ONE, -scores)
    high, low = np.where(ones, scores, rest), np.where(ones, 0.0, error)
    if clip is not None:
        # Of the true class and of the other; below 1/2 these are exact and have no second half.
        less, more = high < clip, np.where(ones, rest, scores) < clip
        high[less] = clip
        high[more], low[more] = two_sum(_ONE, np.full(1, -clip))
    found = log(high, low)
    return Pair(0.0 - found.high, 0.0 - found.low)
