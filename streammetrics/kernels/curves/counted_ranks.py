"""The labels of a sorted run of different keys with counts: its rows of each label before a key.

Keys are those of `segments`: the label is the lowest bit, the score is above it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.label_ranks import Ints, Words

_BLOCK: Final = 5  # bits of the number of a key in a block of 32, whose rows are counted anew
_CHUNK: Final = 1 << 15  # keys at a time, in the second-level cache; a multiple of 32


class CountedRanks:
    """The rows of each label of a sorted run of different keys [n]; counts: of each, [n]."""

    __slots__ = ("_before", "_counts", "_words")

    def __init__(self, words: Words, counts: Words) -> None:
        self._words, self._counts = words, counts
        blocks = len(words) >> _BLOCK
        # By label, of the rows in all blocks before each.
        self._before = np.zeros((2, blocks + 1), np.int64)
        for i in range(0, blocks << _BLOCK, _CHUNK):
            end = min(i + _CHUNK, blocks << _BLOCK)
            labels = np.arange(2, dtype=words.dtype)[:, None]
            is_label = (words[i:end] & words.dtype.type(1)) == labels
            rows = (is_label * counts[i:end]).reshape(2, -1, 1 << _BLOCK)
            self._before[:, (i >> _BLOCK) + 1 : (end >> _BLOCK) + 1] = rows.sum(2, np.int64)
        np.cumsum(self._before, axis=1, out=self._before)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the keys and their counts."""
        return self._before.nbytes

    def rows(self, ends: NDArray[np.intp]) -> tuple[Ints, Ints]:
        """The negatives and the positives among the rows of the first `ends` keys; [k]."""
        negatives, positives = self._before[:, ends >> _BLOCK]
        step = _CHUNK >> _BLOCK
        for i in range(0, len(ends), step):
            some_ends = ends[i : i + step, None]
            keys = (some_ends >> _BLOCK << _BLOCK) + np.arange(1 << _BLOCK)
            is_before = keys < some_ends
            keys[~is_before] = 0
            counts = self._counts.take(keys) * is_before
            ones = counts * (self._words.take(keys) & 1).astype(np.bool_)
            positives[i : i + step] += ones.sum(1, np.int64)
            negatives[i : i + step] += (counts - ones).sum(1, np.int64)
        return negatives, positives

    def repeats(self, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> Ints:
        """The rows of the one key in each of these ranges, 0 of one without a key; [k]."""
        counts = self._counts.take(np.minimum(starts, len(self._counts) - 1)).astype(np.int64)
        return np.where(starts < ends, counts, 0)
