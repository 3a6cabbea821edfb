"""Runs: the occupied cells of sparse tables in ascending order, with their counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

NO_CODES: Final = np.empty(0, np.int64)
_PIECE: Final = 1 << 15  # codes at a time
Run = tuple[NDArray[np.int64], NDArray[np.int64]]


def counted(codes: NDArray[np.integer]) -> Run:
    """The different values of sorted codes, and their counts."""
    ends = np.flatnonzero(_changes(codes))
    return codes[ends[:-1]].astype(np.int64, copy=False), ends[1:] - ends[:-1]


def summed(runs: Sequence[Run], size: int) -> Run:
    """The different codes of runs, ascending, and the sums of their counts; none that is 0.

    The codes of a run, each below `size`, are in any order and may repeat.
    """
    bits = max([int(counts.max(initial=0)) for _, counts in runs]).bit_length()
    wide = int(size - 1).bit_length() + bits
    columns = [codes for codes, _ in runs], [counts for _, counts in runs]
    if wide < 64:  # one word sorts in a fifth of the time of two, and a narrow one in half of that
        kind = np.dtype(np.uint32 if wide <= 32 else np.int64)
        words, amounts = [np.concatenate(c, dtype=kind, casting="unsafe") for c in columns]
        words <<= bits
        words |= amounts
        words.sort()
        amounts = words & ((1 << bits) - 1)
        words >>= bits
    else:
        words, amounts = map(np.concatenate, columns)
        order = np.argsort(words, kind="stable")
        words, amounts = words[order], amounts[order]
    first = np.flatnonzero(_changes(words)[:-1])
    codes = words[first].astype(np.int64, copy=False)
    counts = np.add.reduceat(amounts, first, dtype=np.int64) if len(first) else NO_CODES
    if not counts.all():  # weights of zero are ignored
        positions = np.flatnonzero(counts != 0)
        codes, counts = codes[positions], counts[positions]
    return codes, counts


def merged(run: Run, other_run: Run, size: int) -> Run:
    """As `summed`, of two ascending runs: by ranges of codes, whose temporaries stay in the cache.

    Fresh memory for millions of codes would take most of the time.
    """
    if not len(run[0]):
        return other_run
    cuts = np.arange(_PIECE, len(run[0]), _PIECE)
    ends = np.searchsorted(other_run[0], run[0][cuts])
    room = len(run[0]) + len(other_run[0])
    codes, counts, n = np.empty(room, np.int64), np.empty(room, np.int64), 0
    for a, b, c, d in zip(
        [0, *cuts.tolist()],
        [*cuts.tolist(), len(run[0])],
        [0, *ends.tolist()],
        [*ends.tolist(), len(other_run[0])],
        strict=True,
    ):
        piece = summed([(run[0][a:b], run[1][a:b]), (other_run[0][c:d], other_run[1][c:d])], size)
        places = slice(n, n + len(piece[0]))
        codes[places], counts[places] = piece
        n = places.stop
    codes.resize(n, refcheck=False)  # no byte moves; room that had no codes cost nothing
    counts.resize(n, refcheck=False)
    return codes, counts


def _changes(codes: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether each of sorted codes [n] differs from the one before; [n + 1], True at the end."""
    changes = np.ones(len(codes) + 1, np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=changes[1:-1])
    return changes if len(codes) else changes[:0]
