"""Lists ranked many at a time; tests/ranking compares values with every order of small lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics.kernels.ranking import ranked as module
from streammetrics.kernels.ranking.graded_lists import Lists, Ranked
from streammetrics.kernels.ranking.hits import hit, reciprocal_rank
from streammetrics.kernels.ranking.ranked import (
    LAST,
    full_ranks,
    groups_of_length,
    key_rows,
    may_be_open,
    ranked,
    sort_keys,
    windows,
)
from streammetrics.kernels.ranking.ties import (
    IRRELEVANT,
    PADDING,
    UNJUDGED,
    Keys,
    TieGroups,
)


def only(lists: Lists, depth: int | None = None, ties: str = "expected") -> Ranked:
    [(first, result)] = list(ranked(lists, depth, ties))
    assert first == 0
    return result


def single_list(
    grades: list[int], scores: list[float] | None, kind: type[np.floating] = np.float64
) -> Lists:
    array = None if scores is None else np.array(scores, kind)
    return Lists(np.array(grades, np.uint8), array, np.array([0, len(grades)]))


def hits(result: Ranked) -> list[tuple[int, int, int]]:
    columns = (result.hits.lists, result.hits.ranks, result.hits.grades)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def test_doubles_that_differ_in_the_last_bit_alone_are_not_tied() -> None:
    low = 0.3
    high = float(np.nextafter(low, 1))
    for ties in ("expected", "worst", "best"):
        for scores, rank in (([low, high], 1), ([high, low], 0)):
            result = only(single_list([1, 0], scores), ties=ties)
            assert reciprocal_rank(result, 1, None).high.tolist() == [1 / (rank + 1)]


def test_scores_are_compared_in_the_precision_that_they_came_in() -> None:
    close = [0.1, 0.1 + 1e-12]
    assert hit(only(single_list([0, 1], close, np.float32)), 1, 1).high.tolist() == [0.5]
    assert hit(only(single_list([0, 1], close)), 1, 1).high.tolist() == [1.0]


def test_infinite_scores_come_first_and_last_and_tie_among_each_other() -> None:
    inf = np.inf
    ties = only(single_list([1, 0, 2, 0, 1], [-inf, 0.0, inf, -inf, 1e308])).ties
    assert ties.begins.tolist() == [0, 1, 3]
    assert ties.sizes.tolist() == [1, 1, 2]
    for kind in (np.float32, np.float64):
        assert hit(only(single_list([1, 0], [-0.0, 0.0], kind)), 1, 1).high.tolist() == [0.5]


def test_a_score_of_minus_infinity_is_not_tied_with_the_end_of_a_shorter_list() -> None:
    grades = np.array([1, 0, 0, 1, 0, 0, 0, 0], np.uint8)
    scores = np.array([-np.inf, 1, 1, -np.inf, -np.inf, 3, 2, 1])
    for judged in (None, np.array([True] * 4 + [False, True, True, True])):
        result = only(Lists(grades, scores, np.array([0, 3, 8]), judged=judged))
        assert result.ties.lists.tolist() == [1]
        assert (result.ties.begins.tolist(), result.ties.sizes.tolist()) == ([3], [2])
        assert hits(result) == [(0, 2, 1)]


@pytest.mark.parametrize("ties", ["worst", "best"])
def test_unjudged_items_above_a_relevant_one_are_counted(ties: str) -> None:
    judged = np.array([False, True, False, True, True, True])
    grades = np.array([0, 1, 0, 0, 2, 1], np.uint8)
    scores = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.8])
    for values, order in ((scores, slice(None)), (None, [0, 1, 5, 2, 3, 4])):
        lists = Lists(grades[order], values, np.array([0, 6]), judged=judged[order])
        result = only(lists, ties=ties)
        assert result.hits.ranks.tolist() == [1, 2, 5]
        assert result.hits.unjudged is not None
        assert result.hits.unjudged.tolist() == [1, 1, 2]


def test_how_many_items_are_sorted_at_a_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 12, 50))])
    grades = rng.integers(0, 3, ends[-1]).astype(np.uint8)
    scores = rng.integers(0, 4, ends[-1]) / 3
    unseen = rng.integers(0, 3, (50, 16))
    lists = Lists(grades, scores, ends, unseen)

    def summary() -> tuple[list[tuple[int, int, int]], list[list[int]]]:
        every, counts = [], []
        for first, part in ranked(lists, None, "worst"):
            every += [(first + row, rank, grade) for row, rank, grade in hits(part)]
            counts += np.pad(part.counts, ((0, 0), (0, 16 - part.counts.shape[1]))).tolist()
        return sorted(every), counts

    whole = summary()
    assert len(whole[0]) == np.count_nonzero(grades)
    for size in (1, 64):
        monkeypatch.setattr(module, "_CHUNK", size)
        monkeypatch.setattr(module, "BLOCK", 2 * size)
        assert summary() == whole
    assert len(list(ranked(lists, None, "worst"))) > 1


def test_known_items_are_counted_by_grade_seen_or_not() -> None:
    unseen = np.zeros((2, 16), np.int64)
    unseen[0, :3] = 4, 1, 2
    grades, judged = np.array([1, 0, 0, 3], np.uint8), np.array([True, True, False, True])
    result = only(Lists(grades, None, np.array([0, 3, 4]), unseen, judged))
    assert result.counts[:, 1:].tolist() == [[2, 2, 0], [0, 0, 1]]
    assert result.relevant.tolist() == [4, 1]
    assert result.judged.tolist() == [9, 1]
    assert [result.known(rel).tolist() for rel in (1, 2, 3, 4, 15)] == [
        [4, 1], [2, 1], [0, 1], [0, 0], [0, 0],
    ]  # fmt: skip


def test_hits_within_a_cut_and_from_a_grade_on() -> None:
    result = only(single_list([3, 0, 1, 2], None))
    assert result.within(None).ranks.tolist() == [0, 2, 3]
    assert result.within(3).ranks.tolist() == [0, 2]
    assert result.within(None, 2).ranks.tolist() == [0, 3]
    assert result.within(3, 2).ranks.tolist() == [0]


def test_hits_within_a_cut_of_each_list() -> None:
    lists = Lists(np.ones(6, np.uint8), None, np.array([0, 3, 3, 6]))
    result = only(lists).within(np.array([2, 5, 0]))
    assert (result.lists.tolist(), result.ranks.tolist()) == ([0, 0], [0, 1])


def test_no_lists_and_empty_lists_have_no_hits() -> None:
    nothing = np.empty(0)
    assert list(ranked(Lists(np.empty(0, np.uint8), nothing, np.array([0])), 3, "best")) == []
    result = only(Lists(np.empty(0, np.uint8), nothing, np.array([0, 0, 0])))
    assert (result.n, hits(result), result.relevant.tolist()) == (2, [], [0, 0])


KEYS = np.array([[3, 7, 7, 7], [5, 5, 9, 9]], np.uint64)
GRADES = np.array([[1, 2, 0, 0], [3, 1, 1, 0]], np.uint8)
CODES = IRRELEVANT - GRADES


def groups(depth: int = 4) -> TieGroups:
    return TieGroups.from_rows(np.array([4, 6]), KEYS, CODES, depth)


def test_some_groups_and_several_joined_are_groups() -> None:
    tied = groups()
    part = tied.take(np.array([1, 3]))
    assert part.sums(np.arange(16)).tolist() == tied.sums(np.arange(16))[[1, 3]].tolist()
    merged = TieGroups.join([part.moved(10), tied.take(np.array([0]))])
    assert merged.lists.tolist() == [14, 16, 4]
    assert merged.sums(np.arange(16)).tolist() == tied.sums(np.arange(16))[[1, 3, 0]].tolist()
    assert len(TieGroups.join([])) == len(TieGroups.none()) == 0
    assert TieGroups.none().relevant(1).tolist() == []


# Keys that sort by score.


INTERESTING = [
    np.inf, 1e38, 2.0, 1.5, 1.0, 0.1, 1e-45, 0.0, -1e-45, -0.1, -1.0, -1e38, -np.inf,
]  # fmt: skip


def keys(
    scores: Sequence[float],
    grades: Sequence[int],
    kind: type[np.floating] = np.float64,
    *,
    judged: Sequence[bool] | None = None,
) -> Keys:
    flags = None if judged is None else np.array(judged)
    return sort_keys(np.array(scores, kind), np.array(grades, np.uint8), flags)


def keys_of(
    scores: Sequence[float], grades: Sequence[int], kind: type[np.floating], **more: Any
) -> list[int]:
    codes: list[int] = keys(scores, grades, kind, **more).tolist()
    return codes


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_keys_ascend_as_scores_descend_whatever_the_grades(kind: type[np.floating]) -> None:
    for scores in (INTERESTING, INTERESTING[:8]):  # with negative ones and without
        for grades in ([0, 15] * 7, [15, 0] * 7):
            codes = keys_of(scores, grades[: len(scores)], kind)
            assert codes == sorted(set(codes))
    for judged in (None, [True], [False]):
        for score in (0.0, -0.0, np.inf, -np.inf, 1e-45):  # none is tied with the padding
            [key] = keys([score], [0], kind, judged=judged).tolist()
            assert key >> 5 < int(LAST) >> 5


def test_lists_become_rows_that_are_padded_to_the_longest() -> None:
    flat = np.array([1, 2, 3, 4, 5, 6], np.uint64)
    offsets = np.array([0, 3, 3, 4, 6])
    rows = key_rows(flat, offsets, np.array([0, 2, 3]))
    assert rows.tolist() == [[1, 2, 3], [4, LAST, LAST], [5, 6, LAST]]
    assert flat.tolist() == [1, 2, 3, 4, 5, 6]
    rows = key_rows(flat, np.array([0, 3, 5, 6]), np.array([0, 1]))  # as many places as items
    assert rows.tolist() == [[1, 2, 3], [4, 5, LAST]]
    deduplicate = key_rows(flat[:4], np.array([0, 2, 2, 4]), np.array([0, 2]))
    assert deduplicate.tolist() == [[1, 2], [3, 4]] and np.shares_memory(deduplicate, flat)


def test_windows_hold_what_comes_from_each_start_on() -> None:
    starts = [4, 0, 6, 5, 1]
    rows = windows(np.arange(7), np.array(starts), 3)
    assert rows.shape == (len(starts), 3)
    for row, start in zip(rows.tolist(), starts, strict=True):
        assert row[: 7 - start] == list(range(start, min(start + 3, 7)))


def test_every_list_with_items_is_in_one_group_of_like_length() -> None:
    lengths = np.array([0, 1, 8, 9, 16, 17, 300, 0, 5])
    groups = [group.tolist() for group in groups_of_length(lengths)]
    assert groups == [[1, 2, 8], [3, 4], [5], [6]]
    assert [group.tolist() for group in groups_of_length(np.array([20, 60]))] == [[0, 1]]
    assert list(groups_of_length(np.array([0, 0]))) == []
    assert list(groups_of_length(np.empty(0, np.int64))) == []


def test_a_list_is_open_where_a_tie_of_two_grades_reaches_into_the_top() -> None:
    for scores, grades, top, is_open in (
        ([0.9, 0.8, 0.7], [1, 0, 2], 3, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 3, True),
        ([0.9, 0.8, 0.8], [1, 2, 2], 3, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 1, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 2, True),
        ([0.5, 0.5, 0.5], [1, 1, 0], 1, True),
        ([0.5, 0.5, 0.5], [0, 0, 0], 1, False),
        ([0.5], [1], 1, False),
    ):
        untied = np.sort(keys([9.0, 8.0, 7.0][: len(scores)], grades))
        rows = np.stack([untied, np.sort(keys(scores, grades)), untied])
        assert may_be_open(rows, top).tolist() == ([1] if is_open else []), (scores, grades, top)
        assert may_be_open(rows[1:2], top).tolist() == ([0] if is_open else [])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_full_keys_are_equal_exactly_where_scores_are(kind: type[np.floating]) -> None:
    rng = np.random.default_rng(14)
    near = np.nextafter(kind(0.3), kind(1))
    scores = rng.choice(np.array([0.1, 0.3, near, -0.0, 0.0, -np.inf], kind), 400)
    grades = rng.integers(0, 4, 400).astype(np.uint8)
    judged = (grades > 0) | (rng.random(400) < 0.5)
    offsets = np.array([0, 7, 207, 400])
    lists = Lists(grades, scores, offsets, judged=judged)
    indices = np.array([0, 1, 2])
    rows = key_rows(sort_keys(scores, grades, judged), offsets, indices)
    rows.sort(axis=1)
    full, codes = full_ranks(rows, lists, scores, indices)
    for i in range(3):
        a, b = offsets[i : i + 2]
        code = np.where(judged[a:b], IRRELEVANT - grades[a:b], UNJUDGED)
        expected = sorted(zip((-scores[a:b]).tolist(), code.tolist(), strict=True))
        ties = np.unique(np.array([score for score, _ in expected]), return_counts=True)[1]
        assert np.unique(full[i, : b - a], return_counts=True)[1].tolist() == ties.tolist()
        assert (np.diff(full[i].astype(np.float64)) >= 0).all()
        assert codes[i, : b - a].tolist() == [code for _, code in expected]
        assert (codes[i, b - a :] == PADDING).all()
