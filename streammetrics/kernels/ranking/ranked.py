"""From graded lists to the ranks of their relevant items, many lists at a time.

Lists are sorted as the rows of a matrix of 64-bit keys. A key has the score, high to low, in its
upper 59 bits and a code of the grade, the best first, in the lower 5, so one sort without indices
ranks a list. Scores that differ only in the dropped bits are compared in full afterwards, only in
lists where they can matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.score_bits import Scores, codes_of
from streammetrics.kernels.ranking.graded_lists import Lengths, Lists, Ranked, Relevant
from streammetrics.kernels.ranking.positions import nonzero
from streammetrics.kernels.ranking.ties import (
    CODE_BITS,
    IRRELEVANT,
    PADDING,
    UNJUDGED,
    Grades,
    Indices,
    Keys,
    TieGroups,
    settle_worst,
)

CODE: Final = np.uint64(PADDING)  # the bits of a key that hold the code
LAST: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # above the key of any item, even at a score of -inf
NARROWEST: Final = 8  # items; a shorter list costs as much
_NUMBERS: Final = (1 << 26) - 1  # relevant items whose numbers fit below a score of 32 bits
_PADS: Final = np.array([0, LAST], np.uint64)

T = TypeVar("T", bound=np.generic)


def sort_keys(
    scores: Scores,
    grades: Grades,
    judged: NDArray[np.bool_] | None,
    relevant: Indices | None = None,
    number_bits: int = 0,
) -> Keys:
    """Keys that sort by score, high to low, and in a tie by grade, best first; of any shape.

    number_bits: of float32, the bits below score and grade, which hold the number of an item among
    the `relevant` ones, subtracted from the highest one.
    """
    # Without a sign bit, as for probabilities, the bits are in order.
    signed = bool(scores.view(f"i{scores.itemsize}").min(initial=0) < 0)
    codes = codes_of(scores) if signed else scores.view(f"u{scores.itemsize}")
    keys = codes.astype(np.uint64)
    top, judgement = LAST >> np.uint64(1), np.uint64(1 << number_bits)
    if scores.dtype == np.float32:  # `top`, so that no key has the upper bits of `LAST`
        keys <<= np.uint64(CODE_BITS + number_bits)
    else:  # the code replaces the last 5 of 64 bits; `full_ranks` restores them where it matters
        keys &= ~CODE
        top = LAST if signed else top  # its upper bits are those of a NaN
    if number_bits:
        labels = grades[relevant] * judgement
        labels += np.arange(len(labels), dtype=np.uint64)
        keys[relevant] += labels
    else:
        keys += grades
    if judged is not None:
        keys += judged * judgement if number_bits else judged
        return np.subtract(top, keys, out=keys)
    return np.subtract(top - judgement, keys, out=keys)


def key_rows(keys: Keys, offsets: Lengths, list_numbers: Indices) -> Keys:
    """The keys of these lists as the rows of a matrix, padded with `LAST`; a view of keys if they
    form a matrix already."""
    starts = offsets[list_numbers]
    lengths = offsets[list_numbers + 1] - starts
    width = int(lengths.max())
    if lengths.min() == width and (np.diff(starts) == width).all():
        return keys[int(starts[0]) : int(starts[-1]) + width].reshape(-1, width)
    rows = windows(keys, starts, width)
    rows |= windows(np.repeat(_PADS, width), width - lengths, width)
    return rows


def windows(values: NDArray[T], starts: Lengths, width: int) -> NDArray[T]:
    """`width` values from each start on, as rows; undefined beyond the last value.

    Copying whole rows of overlapping windows is several times faster than indexing items.
    """
    last = len(values) - width
    every = np.ndarray((last + 1, width), values.dtype, values, 0, 2 * values.strides)
    rows = every[np.minimum(starts, last)]
    for i in np.flatnonzero(starts > last).tolist():
        rows[i, : len(values) - starts[i]] = values[starts[i] :]
    return rows


def groups_of_length(lengths: Lengths) -> Iterator[Indices]:
    """Groups of non-empty lists of similar length, for matrices of which half may be padding."""
    n, longest = len(lengths), int(lengths.max(initial=0))
    if longest and n * longest <= max(2 * int(lengths.sum()), n * NARROWEST) and lengths.all():
        yield np.arange(n)
        return
    low, high = 0, NARROWEST
    while low < longest:
        group = np.flatnonzero((lengths > low) & (lengths <= high))
        if len(group):
            yield group
        low, high = high, 2 * high


def may_be_open(rows: Keys, top: int) -> Indices:
    """Rows whose order within the first `top` may be open because of ties.

    With the best grade first, a tie of unequal grades that reaches into the top appears there as
    two neighbours of equal score and unequal grade, or as a relevant last item whose score
    continues below the cut.
    """
    head = np.ascontiguousarray(rows[:, : top + 1])
    flat = head.reshape(-1)
    if (flat[1:] ^ flat[:-1]).min(initial=LAST) > CODE:  # no equal scores: the usual case
        return np.empty(0, np.intp)
    step = head[:, : top - 1] ^ head[:, 1:top]
    step -= np.uint64(1)  # equal keys wrap around to the maximum
    open_ = (step < CODE).any(axis=1)
    if top < head.shape[1]:
        last = head[:, top - 1]
        continues = (last ^ head[:, top]) <= CODE
        open_ |= continues & ((last & CODE) < IRRELEVANT)
    return np.flatnonzero(open_)


def full_ranks(
    rows: Keys, lists: Lists, scores: Scores, list_numbers: Indices
) -> tuple[Keys, Grades]:
    """Keys and codes [s, w] of sorted rows, with equal keys exactly where scores are equal."""
    keys, grades = rows & ~CODE, (rows & CODE).astype(np.uint8)
    if scores.dtype == np.float32:  # all 32 bits are in the key
        return keys, grades
    column = np.arange(rows.shape[1])
    starts = lists.offsets[list_numbers, None]
    places = np.minimum(starts + column, len(scores) - 1)
    beyond = starts + column >= lists.offsets[list_numbers + 1, None]
    exact = (~codes_of(scores[places.ravel()])).astype(np.uint64).reshape(places.shape)
    exact[beyond] = LAST
    step = np.sort(exact, axis=1)
    step = step[:, 1:] ^ step[:, :-1]
    step -= np.uint64(1)
    hidden = np.flatnonzero((step < CODE).any(axis=1))
    if len(hidden):
        codes = IRRELEVANT - lists.grades[places[hidden]]
        if lists.judged is not None:
            codes += ~lists.judged[places[hidden]]
        codes[beyond[hidden]] = PADDING
        order = np.lexsort((codes, exact[hidden]), axis=1)
        keys[hidden] = np.take_along_axis(exact[hidden], order, axis=1)
        grades[hidden] = np.take_along_axis(codes, order, axis=1)
    return keys, grades


BLOCK: Final = 1 << 20  # items measured at a time, so that the cost of calls is negligible
_CHUNK: Final = 1 << 17  # items sorted at a time; their keys take one megabyte


def ranked(lists: Lists, depth: int | None, ties: str) -> Iterator[tuple[int, Ranked]]:
    """Rank block by block: the number of each block's first list, and the block.

    depth: ranks beyond it are ignored; None: no limit. ties: the order of equal scores, "expected"
    (the mean over all orders), "worst" or "best".
    """
    for first, block in _part_ranks(lists, BLOCK):
        yield first, _ranked(block, depth, ties)


def _part_ranks(lists: Lists, items: int) -> Iterator[tuple[int, Lists]]:
    """Parts of about `items` items, each with the number of its first list."""
    work = lists.offsets + np.arange(len(lists) + 1) * NARROWEST
    first, n = 0, len(lists)
    while first < n:
        room = int(np.searchsorted(work, work[first] + items, side="right")) - 1
        last = min(max(room, first + 1), n)
        yield first, lists.part(first, last)
        first = last


def _ranked(lists: Lists, depth: int | None, ties: str) -> Ranked:
    relevant_items = indices, ends = nonzero(lists.grades, lists.offsets)
    owners = np.repeat(np.arange(len(lists)), np.diff(ends))
    grades = lists.grades[indices]
    counts = _counts(owners, grades, lists)
    if lists.scores is not None:
        hits: list[Relevant] = []
        groups: list[TieGroups] = []
        for first, part in _part_ranks(lists, _CHUNK):
            assert part.scores is not None
            item = int(lists.offsets[first])
            of_part = indices[ends[first] : ends[first + len(part)]] - item
            for relevant, tied in _sorted(part, part.scores, of_part, depth, ties):
                hits.append(relevant.moved(first, item))
                if tied is not None:
                    groups.append(tied.moved(first))
        tie_groups = TieGroups.join(groups)
        return Ranked(lists, Relevant.join(hits), tie_groups, counts, relevant_items, ties)
    unjudged = None
    if lists.judged is not None:
        running = np.concatenate([[0], np.cumsum(~lists.judged)])
        unjudged = running[indices] - running[lists.offsets[owners]]
    relevant = Relevant(owners, indices - lists.offsets[owners], grades, unjudged, indices)
    hits_above = relevant if depth is None else relevant.above(depth)
    return Ranked(lists, hits_above, TieGroups.none(), counts, relevant_items)


def _counts(owners: Indices, grades: Grades, lists: Lists) -> Lengths:
    """The number of known items of each grade from 1 on, for each list; [n, g + 1]."""
    n, unseen = len(lists), lists.unseen
    highest = int(grades.max(initial=1))
    if unseen is not None:
        highest = max(highest, int(np.flatnonzero(unseen.any(axis=0)).max(initial=0)))
    width = highest + 1
    cells = grades * np.intp(n)
    cells += owners
    # Stored by grade, because the counts of one grade are used together.
    counts: Lengths = np.bincount(cells, minlength=n * width).reshape(width, n).T
    if unseen is not None:
        counts += unseen[:, :width]
    return counts


def _sorted(
    lists: Lists, scores: Scores, relevant: Indices, depth: int | None, ties: str
) -> Iterator[tuple[Relevant, TieGroups | None]]:
    """Sort each list by score; lists of similar length are sorted as the rows of one matrix."""
    lengths = np.diff(lists.offsets)
    shift = 0
    if lists.subtopics is not None and scores.dtype == np.float32 and len(relevant) <= _NUMBERS:
        shift = max(1, len(relevant).bit_length())
    keys = sort_keys(scores, lists.grades, lists.judged, relevant, shift)
    for list_numbers in groups_of_length(lengths):
        rows = key_rows(keys, lists.offsets, list_numbers)
        rows.sort(axis=1)
        width = rows.shape[1]
        top = width if depth is None else min(depth, width)
        head = rows[:, : top + 1] >> np.uint64(shift) if shift else rows
        codes = head[:, :top].astype(np.uint8)
        codes &= PADDING
        open_ = may_be_open(head, top)
        groups = None
        if len(open_):
            open_rows = rows[open_] >> np.uint64(shift)
            full_keys, full_codes = full_ranks(open_rows, lists, scores, list_numbers[open_])
            if ties == "expected":
                groups = TieGroups.from_rows(list_numbers[open_], full_keys, full_codes, top)
                codes[open_] = IRRELEVANT  # no hits
            elif ties == "worst":
                codes[open_] = settle_worst(full_keys, full_codes)[:, :top]
            else:
                codes[open_] = full_codes[:, :top]
        flat = codes.reshape(-1)
        indices, _ = nonzero(flat < IRRELEVANT)
        row = indices // top
        ranks = indices - row * top
        unjudged = items = None
        if lists.judged is not None:
            unjudged = np.cumsum(codes == UNJUDGED, axis=1).reshape(-1)[indices]
        if shift:
            numbers = ~rows[row, ranks] & np.uint64((1 << shift) - 1)
            items = relevant[numbers.astype(np.intp)]
            flat_head = head.reshape(-1)
            if np.count_nonzero(flat_head[1:] == flat_head[:-1]):
                items[_repeats(head)[row]] = -1
        yield (
            Relevant(list_numbers[row], ranks, IRRELEVANT - flat[indices], unjudged, items),
            groups,
        )


def _repeats(head: Keys) -> NDArray[np.bool_]:
    """Whether relevant items of a row have equal scores and grades; [s]."""
    same = head[:, 1:] == head[:, :-1]
    same &= (head[:, 1:] & CODE) < IRRELEVANT
    repeats: NDArray[np.bool_] = same.any(axis=1)
    return repeats
