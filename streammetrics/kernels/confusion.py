"""Counts of truth against prediction at a threshold: a row is predicted positive iff s >= t."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

CHUNK: Final = 1 << 17  # rows whose temporaries, of one byte, stay in the L2 cache


def binary_counts(
    labels: NDArray[np.uint8], scores: NDArray[np.floating], threshold: float
) -> NDArray[np.int64]:
    """int64 [4]: true negatives, false positives, false negatives, true positives.

    labels: [n] of 0 and 1; scores: float32 or float64 [n].
    """
    limit = threshold_as(scores.dtype, threshold)
    room = np.empty(min(len(scores), CHUNK), np.bool_)
    truth = labels.view(np.bool_)
    true_positives = predicted = positives = 0
    for start in range(0, len(scores), CHUNK):
        some, true = scores[start : start + CHUNK], truth[start : start + CHUNK]
        above = np.greater_equal(some, limit, out=room[: len(some)])
        predicted += int(np.count_nonzero(above))
        positives += int(np.count_nonzero(true))
        above &= true
        true_positives += int(np.count_nonzero(above))
    false_positives, false_negatives = predicted - true_positives, positives - true_positives
    true_negatives = len(scores) - positives - false_positives
    counts = (true_negatives, false_positives, false_negatives, true_positives)
    return np.array(counts, np.int64)


def binary_cells(
    labels: NDArray[np.uint8], scores: NDArray[np.floating], threshold: float
) -> NDArray[np.intp]:
    """For each row 2 * label + prediction, its place in `binary_counts`: intp [n]."""
    cells = labels.astype(np.intp)
    cells *= 2
    cells += scores >= threshold_as(scores.dtype, threshold)
    return cells


def threshold_as(kind: np.dtype[np.floating], threshold: float) -> np.floating:
    """The least number of this precision that is not below the threshold.

    Comparing float32 scores with it gives what comparing their exact values with the threshold
    gives, which comparing with the rounded threshold would not.
    """
    with np.errstate(over="ignore"):  # beyond the range of float32, inf is that number
        near = kind.type(threshold)
    return near if float(near) >= threshold else np.nextafter(near, kind.type(np.inf))
