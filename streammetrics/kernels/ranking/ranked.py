"""From graded lists to the ranks of their relevant items, many lists at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from streammetrics.core.parts.score_bits import Scores
from streammetrics.kernels.ranking.graded_lists import Lengths, Lists, Ranked, Relevant
from streammetrics.kernels.ranking.list_sort import (
    NARROWEST,
    in_full,
    key_rows,
    may_be_open,
    of_like_length,
    sort_keys,
)
from streammetrics.kernels.ranking.positions import nonzero
from streammetrics.kernels.ranking.ties import (
    IRRELEVANT,
    PADDING,
    UNJUDGED,
    Grades,
    Indices,
    TieGroups,
    settle_worst,
)

BLOCK: Final = 1 << 20  # items that are measured at a time: the number of calls does not show
_CHUNK: Final = 1 << 17  # items that are sorted at a time: their keys take one megabyte


def ranked(lists: Lists, depth: int | None, ties: str) -> Iterator[tuple[int, Ranked]]:
    """Rank block by block; with each block comes the number of its first list.

    depth: ranks beyond it are of no interest; None: all are. ties: how the order of equal scores
    counts: "expected" (the mean over all orders), "worst" or "best".
    """
    for first, block in _in_parts(lists, BLOCK):
        yield first, _ranked(block, depth, ties)


def _in_parts(lists: Lists, items: int) -> Iterator[tuple[int, Lists]]:
    """Parts of about `items` items, each with the number of its first list."""
    work = lists.offsets + np.arange(len(lists) + 1) * NARROWEST
    first, n = 0, len(lists)
    while first < n:
        room = int(np.searchsorted(work, work[first] + items, side="right")) - 1
        last = min(max(room, first + 1), n)
        yield first, lists.part(first, last)
        first = last


def _ranked(lists: Lists, depth: int | None, ties: str) -> Ranked:
    at, ends = nonzero(lists.grades, lists.offsets)
    owners = np.repeat(np.arange(len(lists)), np.diff(ends))
    grades = lists.grades[at]
    counts = _counts(owners, grades, lists)
    if lists.scores is not None:
        hits: list[Relevant] = []
        groups: list[TieGroups] = []
        for first, part in _in_parts(lists, _CHUNK):
            assert part.scores is not None
            for found, tied in _sorted(part, part.scores, depth, ties):
                hits.append(found.moved(first))
                if tied is not None:
                    groups.append(tied.moved(first))
        return Ranked(lists, Relevant.join(hits), TieGroups.join(groups), counts)
    unjudged = None
    if lists.judged is not None:
        running = np.concatenate([[0], np.cumsum(~lists.judged)])
        unjudged = running[at] - running[lists.offsets[owners]]
    found = Relevant(owners, at - lists.offsets[owners], grades, unjudged)
    return Ranked(lists, found if depth is None else found.above(depth), TieGroups.none(), counts)


def _counts(owners: Indices, grades: Grades, lists: Lists) -> Lengths:
    """How many known items of each grade from 1 on each list has; [n, g + 1]."""
    n, unseen = len(lists), lists.unseen
    highest = int(grades.max(initial=1))
    if unseen is not None:
        highest = max(highest, int(np.flatnonzero(unseen.any(axis=0)).max(initial=0)))
    width = highest + 1
    cells = grades * np.intp(n)
    cells += owners
    # Grade by grade, since it is the numbers of one grade that are used together.
    counts: Lengths = np.bincount(cells, minlength=n * width).reshape(width, n).T
    if unseen is not None:
        counts += unseen[:, :width]
    return counts


def _sorted(
    lists: Lists, scores: Scores, depth: int | None, ties: str
) -> Iterator[tuple[Relevant, TieGroups | None]]:
    """Sort each list by score; lists of like length are sorted as the rows of one matrix."""
    lengths = np.diff(lists.offsets)
    keys = sort_keys(scores, lists.grades, lists.judged)
    for some in of_like_length(lengths):
        rows = key_rows(keys, lists.offsets, some)
        rows.sort(axis=1)
        width = rows.shape[1]
        top = width if depth is None else min(depth, width)
        codes = rows[:, :top].astype(np.uint8)
        codes &= PADDING
        open_ = may_be_open(rows, top)
        groups = None
        if len(open_):
            full_keys, full_codes = in_full(rows[open_], lists, scores, some[open_])
            if ties == "expected":
                groups = TieGroups.of(some[open_], full_keys, full_codes, top)
                codes[open_] = IRRELEVANT  # no hits
            elif ties == "worst":
                codes[open_] = settle_worst(full_keys, full_codes)[:, :top]
            else:
                codes[open_] = full_codes[:, :top]
        flat = codes.reshape(-1)
        at, _ = nonzero(flat < IRRELEVANT)
        row = at // top
        unjudged = None
        if lists.judged is not None:
            unjudged = np.cumsum(codes == UNJUDGED, axis=1).reshape(-1)[at]
        yield Relevant(some[row], at - row * top, IRRELEVANT - flat[at], unjudged), groups
