"""Rows of many classes as the cells of tables: truth by prediction, and what is among the first k.

Classes are ordered by score, equal scores by class number, so that the predicted class is the
first of all and every answer is a function of the row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

CHUNK: Final = 1 << 15  # rows, or cells of a wide row, whose temporaries stay in the L2 cache
_FEW_CLASSES: Final = 1 << 8  # of which every cell is a number of 16 bits; MAX_CLASSES fit into 32


def class_cells(
    truth: NDArray[np.integer], predicted: NDArray[np.integer], n_classes: int
) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Pieces of the rows, and the cell truth * n_classes + predicted of each; intp.

    A piece lies in memory that the next one uses again.
    """
    # Narrow numbers are many to a register, and none of 64 bits are multiplied at once; but where
    # these are what came, to make them narrow takes as long.
    kind = np.uint16 if n_classes <= _FEW_CLASSES else np.uint32
    n, as_they_are = min(len(truth), CHUNK), truth.itemsize == predicted.itemsize == 8
    room, wide = np.empty((2, n), kind), np.empty(n, np.intp)
    for start in range(0, len(truth), CHUNK):
        piece = slice(start, min(start + CHUNK, len(truth)))
        n = piece.stop - start
        rows, columns, cells = room[0, :n], room[1, :n], wide[:n]
        if as_they_are:
            np.multiply(truth[piece], n_classes, out=cells, dtype=np.intp, casting="unsafe")
            np.add(cells, predicted[piece], out=cells, dtype=np.intp, casting="unsafe")
        else:
            np.copyto(rows, truth[piece], casting="unsafe")
            np.copyto(columns, predicted[piece], casting="unsafe")
            rows *= kind(n_classes)
            rows += columns
            np.copyto(cells, rows)
        yield piece, cells


def largest(scores: NDArray[np.floating]) -> NDArray[np.intp]:
    """The class of the largest score of each row [n, c]; of equal ones the smallest class."""
    found: NDArray[np.intp] = scores.argmax(axis=1)
    return found


def among_first(
    truth: NDArray[np.integer], scores: NDArray[np.floating], ks: Sequence[int]
) -> NDArray[np.uint8]:
    """For each row and each k a code: uint8 [n, k].

    Its low bit says whether the true class is among the first k; its high bit whether another
    order of classes with equal scores would say otherwise.
    """
    codes = np.empty((len(truth), len(ks)), np.uint8)
    n_classes = scores.shape[1]
    columns = np.arange(n_classes)
    step = max(1, CHUNK // n_classes)
    for start in range(0, len(truth), step):
        here = slice(start, start + step)
        some, own = scores[here], truth[here].astype(np.intp)
        mine = some[np.arange(len(some)), own][:, None]
        ahead = np.count_nonzero(some > mine, axis=1)
        equal = some == mine
        before = np.count_nonzero(equal & (columns < own[:, None]), axis=1)
        last = ahead + np.count_nonzero(equal, axis=1) - 1  # its place, if last of its equals
        for j, k in enumerate(ks):
            codes[here, j] = (ahead + before < k) + 2 * ((ahead < k) & (last >= k))
    return codes
