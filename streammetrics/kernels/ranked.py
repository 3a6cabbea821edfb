"""From graded lists to the ranks of their relevant items, many lists at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streammetrics.core.score_bits import Scores
from streammetrics.kernels.discounts import MAX_GRADE
from streammetrics.kernels.list_sort import (
    GRADE,
    NARROWEST,
    as_rows,
    in_full,
    may_be_open,
    of_like_length,
    sort_keys,
)
from streammetrics.kernels.lists import Lengths, Lists, Ranked, Relevant
from streammetrics.kernels.ties import Grades, Indices, Tied, settle

CHUNK_ITEMS: Final = 1 << 17  # items at a time: their keys take one megabyte


def ranked(lists: Lists, depth: int | None, ties: str) -> Iterator[tuple[int, Ranked]]:
    """Rank chunk by chunk; with each chunk comes the number of its first list.

    depth: ranks beyond it are of no interest; None: all are. ties: how the order of equal scores
    counts: "expected" (the mean over all orders), "worst" or "best".
    """
    work = lists.offsets + np.arange(len(lists) + 1) * NARROWEST
    first, n = 0, len(lists)
    while first < n:
        room = int(np.searchsorted(work, work[first] + CHUNK_ITEMS, side="right")) - 1
        last = min(max(room, first + 1), n)
        yield first, _ranked(lists.part(first, last), depth, ties)
        first = last


def _ranked(lists: Lists, depth: int | None, ties: str) -> Ranked:
    at = np.flatnonzero(lists.grades != 0)
    seen = np.diff(np.searchsorted(at, lists.offsets))
    owners = np.repeat(np.arange(len(lists)), seen)
    grades = lists.grades[at]
    counts = _counts(owners, grades, seen, lists.unseen)
    if lists.scores is None:
        hits = Relevant(owners, at - lists.offsets[owners], grades)
        return Ranked(len(lists), hits, (), counts)
    return Ranked(len(lists), *_sorted(lists, lists.scores, depth, ties), counts)


def _counts(owners: Indices, grades: Grades, seen: Lengths, unseen: Lengths | None) -> Lengths:
    """How many known items of each grade each list has; [n, g + 1]."""
    highest = max(1, int(grades.max(initial=0)), 0 if unseen is None else unseen.shape[1])
    if highest == 1:
        counts = np.stack([np.zeros_like(seen), seen], axis=1)
    else:
        cells = owners * (highest + 1) + grades
        counts = np.bincount(cells, minlength=len(seen) * (highest + 1)).reshape(len(seen), -1)
    if unseen is not None:
        counts[:, 1 : 1 + unseen.shape[1]] += unseen
    return counts


def _sorted(
    lists: Lists, scores: Scores, depth: int | None, ties: str
) -> tuple[Relevant, tuple[Tied, ...]]:
    """Sort each list by score; lists of like length are sorted as the rows of one matrix."""
    lengths = np.diff(lists.offsets)
    longest = int(lengths.max(initial=0))
    keys = sort_keys(lists.grades, scores, spare=longest)
    parts: list[Relevant] = []
    tied: list[Tied] = []
    for some in of_like_length(lengths, longest):
        rows = as_rows(keys, lists.offsets, some)
        rows.sort(axis=1)
        width = rows.shape[1]
        top = width if depth is None else min(depth, width)
        codes = (rows[:, :top] & GRADE).astype(np.uint8)
        open_ = may_be_open(rows, top)
        if len(open_):
            full = in_full(rows[open_], lists, scores, some[open_])
            if ties == "expected":
                tied.append(Tied.of(some[open_], *full, top))
            else:
                codes[open_] = MAX_GRADE - settle(*full, ties)[:, :top]
        flat = codes.ravel()
        at = np.flatnonzero(flat != MAX_GRADE)
        row, rank = np.divmod(at, top)
        parts.append(Relevant(some[row], rank, MAX_GRADE - flat[at]))
    return _joined(parts), tuple(tied)


def _joined(parts: list[Relevant]) -> Relevant:
    if len(parts) == 1:
        return parts[0]
    return Relevant(
        np.concatenate([p.lists for p in parts] or [np.empty(0, np.intp)]),
        np.concatenate([p.ranks for p in parts] or [np.empty(0, np.intp)]),
        np.concatenate([p.grades for p in parts] or [np.empty(0, np.uint8)]),
    )
