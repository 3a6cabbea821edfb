"""Rows as cells of tables of truth by prediction: for two classes, many classes, and many labels.

With two classes a row is predicted positive iff score >= threshold. With many, classes are ordered
by score, equal scores by class number, so that the predicted class is the first one and every
result is a function of the row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

BINARY_CHUNK: Final = 1 << 17  # rows whose temporaries, of one byte, stay in the L2 cache


def binary_counts(
    labels: NDArray[np.uint8], scores: NDArray[np.floating], threshold: float
) -> NDArray[np.int64]:
    """int64 [4]: true negatives, false positives, false negatives, true positives.

    labels: [n] of 0 and 1; scores: float32 or float64 [n].
    """
    limit = threshold_as(scores.dtype, threshold)
    room = np.empty(min(len(scores), BINARY_CHUNK), np.bool_)
    truth = labels.view(np.bool_)
    true_positives = predicted = positives = 0
    for start in range(0, len(scores), BINARY_CHUNK):
        chunk, true = scores[start : start + BINARY_CHUNK], truth[start : start + BINARY_CHUNK]
        above = np.greater_equal(chunk, limit, out=room[: len(chunk)])
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
    """For each row 2 * label + prediction, its index in `binary_counts`: intp [n]."""
    cells = labels.astype(np.intp)
    cells *= 2
    cells += scores >= threshold_as(scores.dtype, threshold)
    return cells


@lru_cache(maxsize=64)  # of few different thresholds; `errstate` takes longer than a small batch
def threshold_as(kind: np.dtype[np.floating], threshold: float) -> np.floating:
    """The least number of this precision that is not below the threshold.

    Comparing float32 scores with it is the same as comparing their exact values with the threshold;
    comparing with the rounded threshold is not.
    """
    with np.errstate(over="ignore"):  # beyond the range of float32 it is inf
        near = kind.type(threshold)
    return near if float(near) >= threshold else np.nextafter(near, kind.type(np.inf))


CHUNK: Final = 1 << 15  # rows, or cells of a wide row, whose temporaries stay in the L2 cache
LABELS_CHUNK: Final = 1 << 17  # labels of rows, of one byte each
_NARROW: Final = 1 << 6  # rows of a slice, at least
FEW_ROWS: Final = 1 << 8  # so few are counted in less time by their cells
_FEW_CLASSES: Final = 1 << 8  # cells fit into 16 bits; those of MAX_CLASSES fit into 32


def class_cells(
    truth: NDArray[np.integer], predicted: NDArray[np.integer], n_classes: int
) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Slices of the rows, and the cell truth * n_classes + predicted of each row; intp.

    The array of cells is overwritten for the next slice.
    """
    # Processors multiply narrow integers many at once, but not those of 64 bits; if these are
    # given, narrowing them takes as long.
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
    classes: NDArray[np.intp] = scores.argmax(axis=1)
    return classes


def first_positions(
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
        span = slice(start, start + step)
        chunk, true_classes = scores[span], truth[span].astype(np.intp)
        true_scores = chunk[np.arange(len(chunk)), true_classes][:, None]
        ahead = np.count_nonzero(chunk > true_scores, axis=1)
        equal = chunk == true_scores
        before = np.count_nonzero(equal & (columns < true_classes[:, None]), axis=1)
        last = ahead + np.count_nonzero(equal, axis=1) - 1  # its position, if last of its equals
        for j, k in enumerate(ks):
            codes[span, j] = (ahead + before < k) + 2 * ((ahead < k) & (last >= k))
    return codes


def label_codes(
    truth: NDArray[np.uint8], scores: NDArray[np.floating], threshold: float
) -> NDArray[np.uint8]:
    """2 * truth + prediction: uint8 [n, k]; predicted iff score >= threshold."""
    limit, codes = threshold_as(scores.dtype, threshold), np.empty(truth.shape, np.uint8)
    step = max(1, LABELS_CHUNK // truth.shape[1])
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        chunk = np.left_shift(truth[rows], 1, out=codes[rows])
        chunk |= scores[rows] >= limit
    return codes


def label_columns(
    codes: NDArray[np.uint8],
) -> Iterator[tuple[slice, NDArray[np.uint8], NDArray[np.intp]]]:
    """Slices of the rows [n, k], their codes label by label [k, rows], and for each row with t true
    labels, p predicted ones, and h that are both, the cell (t * (k + 1) + p) * (k + 1) + h.

    The array of codes is overwritten for the next slice.
    """
    k = codes.shape[1]
    step = max(_NARROW, LABELS_CHUNK // k)
    room = np.empty((k, min(step, len(codes))), np.uint8)
    for start in range(0, len(codes), step):
        piece = slice(start, start + step)
        # The rows of a label side by side, which processors add many at once.
        columns = room[:, : len(codes[piece])]
        np.copyto(columns, codes[piece].T)
        sizes = np.zeros(columns.shape[1], np.intp)
        for flags in _flags(columns):
            sizes *= k + 1
            sizes += np.add.reduce(flags, 0, np.uint16)
        yield piece, columns, sizes


def label_cells(columns: NDArray[np.uint8]) -> NDArray[np.intp]:
    """4 * label + code, for each label of each row, label by label; intp [k * rows]."""
    first = np.arange(0, 4 * len(columns), 4)[:, None]
    cells: NDArray[np.intp] = np.add(columns, first, dtype=np.intp)
    return cells.reshape(-1)


def label_counts(columns: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each of the `label_cells` occurs; [4 * k]."""
    counts = [[*map(np.count_nonzero, flags)] for flags in _flags(columns)]
    true, predicted, hits = np.array(counts, np.int64)
    true_negatives = columns.shape[1] - true - predicted + hits
    return np.stack([true_negatives, predicted - hits, true - hits, hits], axis=1).reshape(-1)


def _flags(codes: NDArray[np.uint8]) -> Iterator[NDArray[np.bool_]]:
    """Where a label is true, where it is predicted, and where it is both."""
    true, predicted = codes >= 2, (codes & 1).view(np.bool_)
    yield from (true, predicted, true & predicted)


def scored_cells(
    truth: NDArray[np.integer], scores: NDArray[np.floating]
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.uint8], NDArray[np.floating]]]:
    """Slices of the rows, and the class, label and score of each of their cells, row by row.

    truth: [n] class numbers, or uint8 [n, c] of 0 and 1. scores: [n, c].
    """
    c = scores.shape[1]
    numbers = np.arange(c)
    step = max(1, CHUNK // c)
    for start in range(0, len(scores), step):
        piece = slice(start, start + step)
        chunk, values = truth[piece], scores[piece].reshape(-1)
        flags = chunk if chunk.ndim == 2 else chunk.astype(np.intp, copy=False)[:, None] == numbers
        labels = flags.reshape(-1).astype(np.uint8, copy=False)
        yield piece, np.tile(numbers, len(chunk)), labels, values
