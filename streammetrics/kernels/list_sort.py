"""Lists sorted by score, as the rows of a matrix of 64-bit keys.

A key has the score, high to low, in its upper 60 bits and the grade, the best first, in the lower
4, so one sort without indices ranks a list. What the lost bits of a score may have hidden is
looked for afterwards, and only in lists in which it can matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from streammetrics.core.score_bits import Scores, codes_of
from streammetrics.kernels.discounts import MAX_GRADE
from streammetrics.kernels.lists import Lengths, Lists
from streammetrics.kernels.ties import Grades, Indices, Keys

GRADE: Final = np.uint64(MAX_GRADE)  # the bits of a key that hold the grade
LAST: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # after the key of any item, at a score of -inf too
NARROWEST: Final = 8  # items; a shorter list costs as much


def sort_keys(grades: Grades, scores: Scores, spare: int) -> Keys:
    """Keys that sort by score, high to low, and in a tie the best grade first; [n + spare]."""
    keys = np.empty(len(scores) + spare, np.uint64)
    keys[len(scores) :] = LAST
    head = keys[: len(scores)]
    codes = codes_of(scores)  # ascending
    np.invert(codes, out=codes)
    if codes.dtype == np.uint32:
        np.left_shift(codes, 4, out=head, dtype=np.uint64)
    else:  # the last 4 of 64 bits give way, which the look at possible ties makes good
        np.bitwise_and(codes, ~GRADE, out=head)
    head |= MAX_GRADE - grades
    return keys


def as_rows(keys: Keys, offsets: Lengths, some: Indices) -> Keys:
    """The keys of these lists as the rows of a matrix, padded with `LAST`."""
    starts, lengths = offsets[some], offsets[some + 1] - offsets[some]
    n_items, width = int(offsets[-1]), int(lengths.max())
    if int(lengths.sum()) == len(some) * width == n_items:  # all items, in lists of one length
        return keys[:n_items].reshape(-1, width)
    # Copying whole rows of overlapping windows is several times faster than picking items.
    rows = as_strided(keys, (n_items + 1, width), (8, 8), writeable=False)[starts]
    np.copyto(rows, LAST, where=np.arange(width) >= lengths[:, None])
    return rows


def of_like_length(lengths: Lengths, longest: int) -> Iterator[Indices]:
    """Groups of lists whose lengths differ by a factor of two at most; empty ones have none."""
    if longest and longest <= max(2 * int(lengths.min()), NARROWEST) and lengths.all():
        yield np.arange(len(lengths))
        return
    low, high = 0, NARROWEST
    while low < longest:
        some = np.flatnonzero((lengths > low) & (lengths <= high))
        if len(some):
            yield some
        low, high = high, 2 * high


def may_be_open(rows: Keys, top: int) -> Indices:
    """Rows whose order within the first `top` may be open.

    With the best grade first, a tie that reaches into the top and holds two grades shows there
    as two neighbours of equal score and unequal grade, or as a last one that is relevant and
    whose score goes on below the cut.
    """
    open_ = np.zeros(len(rows), np.bool_)
    if top > 1:
        step = rows[:, : top - 1] ^ rows[:, 1:top]
        step -= np.uint64(1)  # of equal keys: the greatest number there is
        open_[np.flatnonzero(step < GRADE) // (top - 1)] = True
    if top < rows.shape[1]:
        last = rows[:, top - 1]
        goes_on = (last ^ rows[:, top]) <= GRADE
        open_ |= goes_on & ((last & GRADE) != GRADE)
    return np.flatnonzero(open_)


def in_full(rows: Keys, lists: Lists, scores: Scores, some: Indices) -> tuple[Keys, Grades]:
    """Keys and grades [s, w] of sorted rows, with equal keys exactly where scores are equal."""
    keys, grades = rows & ~GRADE, MAX_GRADE - (rows & GRADE).astype(np.uint8)
    if scores.dtype == np.float32:  # all 32 bits of which are in the key
        return keys, grades
    column = np.arange(rows.shape[1])
    starts = lists.offsets[some, None]
    at = np.minimum(starts + column, len(scores) - 1)
    beyond = starts + column >= lists.offsets[some + 1, None]
    codes = (~codes_of(scores[at.ravel()])).astype(np.uint64).reshape(at.shape)
    codes[beyond] = LAST
    step = np.sort(codes, axis=1)
    step = step[:, 1:] ^ step[:, :-1]
    step -= np.uint64(1)
    hidden = np.flatnonzero((step < GRADE).any(axis=1))
    if len(hidden):
        order = np.argsort(codes[hidden], axis=1)
        keys[hidden] = np.take_along_axis(codes[hidden], order, axis=1)
        found = np.where(beyond[hidden], np.uint8(0), lists.grades[at[hidden]])
        grades[hidden] = np.take_along_axis(found, order, axis=1)
    return keys, grades
