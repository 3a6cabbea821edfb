"""Rows of many labels as the cells of tables: of each label, and of how many a row has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.class_cells import CHUNK
from streammetrics.kernels.confusion import threshold_as


def label_codes(
    truth: NDArray[np.uint8], scores: NDArray[np.floating], threshold: float
) -> NDArray[np.uint8]:
    """2 * truth + prediction: uint8 [n, k]; predicted iff score >= threshold."""
    codes = truth << np.uint8(1)
    codes |= scores >= threshold_as(scores.dtype, threshold)
    return codes


def label_cells(
    codes: NDArray[np.uint8],
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.intp]]]:
    """Pieces of the rows [n, k], with two kinds of cells; intp.

    For each label of each row, row by row: 4 * label + code. For each row, of t labels that it
    has, p predicted ones, and h that are both: (t * (k + 1) + p) * (k + 1) + h.
    """
    k = codes.shape[1]
    first = np.arange(0, 4 * k, 4)
    step = max(1, CHUNK // k)
    for start in range(0, len(codes), step):
        piece = slice(start, start + step)
        some = codes[piece]
        true = np.count_nonzero(some >= 2, axis=1)
        predicted = np.count_nonzero(some & 1, axis=1)
        both = np.count_nonzero(some == 3, axis=1)
        sizes = (true * (k + 1) + predicted) * (k + 1) + both
        cells: NDArray[np.intp] = np.add(some, first, dtype=np.intp)
        yield piece, cells.reshape(-1), sizes
