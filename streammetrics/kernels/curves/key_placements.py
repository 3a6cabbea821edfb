"""The placements of the rows of each class among those of the other, from sorted keys, and of many
small curves.

Keys are those of `segments`: words in ascending order, whose lowest bit is the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.label_ranks import Words
from streammetrics.kernels.curves.many_steps import ManySteps
from streammetrics.kernels.inference.area_interval import Placements, placements_of
from streammetrics.kernels.inference.placement_sums import BLOCK, PlacementSums, Ties

Counts = NDArray[np.unsignedinteger]
Piece = tuple[Words, Counts | None]
_LABEL: Final = 1
_SMALL: Final = 1 << 20  # rows of a curve whose sums of cubes fit int64


def placements_of_keys(planes: Iterable[Iterable[Piece]], positives: int) -> Placements:
    """The placements of all rows, in memory for a few thousand keys.

    planes: ranges of scores in ascending order, each in pieces: words [n] and their counts, None
    for one row each. Within a plane keys ascend, from piece to piece too. positives: of all rows.

    >>> words = np.array([4, 4, 5, 6, 9], np.uint32)  # scores 2, 2, 2, 3 and 4
    >>> sums = placements_of_keys([[(words[:3], None), (words[3:], None)]], 2)
    >>> sums.half_wins, sums.of_positives, sums.of_negatives, sums.ties
    (8, 40, 22, 2)
    """
    sums = PlacementSums(positives)
    for plane in planes:
        for words, counts in _score_blocks(plane):
            if counts is not None:
                sums.add_buckets(*_score_placements(words, counts))
            elif len(words) <= BLOCK:
                positives_at = np.flatnonzero(words & words.dtype.type(_LABEL))
                sums.add_rows(len(words), positives_at, _ties(words))
            else:  # of one score
                n = int(words.searchsorted(words[0] | words.dtype.type(_LABEL)))
                sums.add_buckets(np.array([n]), np.array([len(words) - n]))
    return placements_of(sums)


def _score_blocks(plane: Iterable[Piece]) -> Iterator[Piece]:
    """The keys in blocks that are cut between two scores: of at most BLOCK keys, or of one score.

    The keys of a score are in one piece, but for those of its two labels."""
    for words, counts in plane:
        label_bit, start = words.dtype.type(_LABEL), 0
        while start < len(words):
            end = start + BLOCK
            if end < len(words):
                end = start + int(words[start:end].searchsorted(words[end] & ~label_bit))
                if end == start:  # all are of one score
                    end = int(words.searchsorted(words[start] | label_bit, "right"))
            yield words[start:end], None if counts is None else counts[start:end]
            start = end


def _ties(words: Words) -> Ties | None:
    """The ties of both labels among rows that are not counted."""
    label_bit = words.dtype.type(_LABEL)
    change = words[1:] ^ words[:-1]
    starts = np.flatnonzero(change)
    if len(starts) == len(words) - 1:  # no key is there twice
        first = np.flatnonzero(change == label_bit) + 1
        ones = np.ones(len(first), np.int64)
        return Ties(ones, ones, first) if len(first) else None
    turns = np.flatnonzero(change[starts] == label_bit)
    if not len(turns):
        return None
    bounds = np.concatenate([[0], starts + 1, [len(words)]])
    sizes = np.diff(bounds)
    return Ties(sizes[turns], sizes[turns + 1], bounds[turns + 1])


def _score_placements(words: Words, counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The negatives and the positives of each score."""
    label_bit, rows = words.dtype.type(_LABEL), counts.astype(np.int64)
    starts = np.concatenate([[0], np.flatnonzero((words[1:] ^ words[:-1]) > label_bit) + 1])
    positives = np.add.reduceat(np.where(words & label_bit, rows, 0), starts)
    return np.add.reduceat(rows, starts) - positives, positives


def placements_of_many(steps: ManySteps) -> list[Placements | None]:
    """The `placements` of each of many curves; None for one of 2**20 rows or more.

    >>> from streammetrics.kernels.curves.many_steps import many_steps
    >>> from streammetrics.kernels.inference.area_interval import placements
    >>> negatives, positives = np.array([1, 1, 0]), np.array([0, 1, 2])
    >>> curves = placements_of_many(many_steps(negatives, positives, np.array([0, 3])))
    >>> curves == [placements(negatives, positives)]
    True
    """
    n, p = steps.n, steps.p
    # Twice the negatives below each positive, and the positives above each negative; ties one half.
    w = 2 * (np.repeat(steps.negatives, np.diff(steps.edges)) - steps.fp) + n
    v = 2 * steps.tp - p
    sums = [steps.sums(values) for values in (p * w, p * w * w, n * v * v, p * n)]
    small = steps.positives + steps.negatives < _SMALL
    columns = steps.positives, steps.negatives, *sums
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Placements._make(row) if is_small else None
        for row, is_small in zip(rows, small.tolist(), strict=True)
    ]
