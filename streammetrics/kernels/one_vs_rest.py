"""Rows of many classes as rows of two: for each class its score, and whether the row is of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.class_cells import CHUNK


def scored_cells(
    truth: NDArray[np.integer], scores: NDArray[np.floating]
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.uint8], NDArray[np.floating]]]:
    """Pieces of the rows, and the class, label and score of each of their cells, row by row.

    truth: [n] class numbers, or uint8 [n, c] of 0 and 1. scores: [n, c].
    """
    c = scores.shape[1]
    numbers = np.arange(c)
    step = max(1, CHUNK // c)
    for start in range(0, len(scores), step):
        piece = slice(start, start + step)
        some, values = truth[piece], scores[piece].reshape(-1)
        flags = some if some.ndim == 2 else some[:, None] == numbers
        labels = flags.reshape(-1).astype(np.uint8, copy=False)
        yield piece, np.tile(numbers, len(some)), labels, values
