from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from streammetrics.kernels.ranking import ranked as module
from streammetrics.kernels.ranking.graded_lists import Lists, Ranked
from streammetrics.kernels.ranking.hits import hit, reciprocal_rank
from streammetrics.kernels.ranking.ranked import ranked


def only(lists: Lists, depth: int | None = None, ties: str = "expected") -> Ranked:
    [(first, found)] = list(ranked(lists, depth, ties))
    assert first == 0
    return found


def one(
    grades: list[int], scores: list[float] | None, kind: type[np.floating] = np.float64
) -> Lists:
    array = None if scores is None else np.array(scores, kind)
    return Lists(np.array(grades, np.uint8), array, np.array([0, len(grades)]))


def hits(found: Ranked) -> list[tuple[int, int, int]]:
    columns = (found.hits.lists, found.hits.ranks, found.hits.grades)
    return list(zip(*(c.tolist() for c in columns), strict=True))


def test_hits_are_the_relevant_items_in_the_order_of_their_ranks() -> None:
    found = only(one([0, 2, 0, 1], [0.1, 0.2, 0.3, 0.4]))
    assert hits(found) == [(0, 0, 1), (0, 2, 2)]
    assert len(found.ties) == 0


def test_lists_that_came_ranked_keep_their_order() -> None:
    lists = Lists(np.array([0, 3, 1, 0, 0, 2], np.uint8), None, np.array([0, 3, 3, 6]))
    assert hits(only(lists)) == [(0, 1, 3), (0, 2, 1), (2, 2, 2)]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_list_is_sorted_by_its_own_scores(kind: type[np.floating]) -> None:
    rng = np.random.default_rng(4)
    sizes = rng.choice([0, 1, 2, 7, 8, 9, 16, 17, 40, 300], 200)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.standard_normal(ends[-1]).astype(kind)
    grades = rng.choice([0, 0, 1, 4], ends[-1]).astype(np.uint8)
    found = only(Lists(grades, scores, ends))
    got: dict[int, list[tuple[int, int]]] = {}
    for row, rank, grade in hits(found):
        got.setdefault(row, []).append((rank, grade))
    for i, (a, b) in enumerate(pairwise(ends.tolist())):
        ordered = grades[a:b][np.argsort(-scores[a:b])].tolist()
        assert got.get(i, []) == [(rank, grade) for rank, grade in enumerate(ordered) if grade]


def test_doubles_that_differ_in_the_last_bit_alone_are_not_tied() -> None:
    low = 0.3
    high = float(np.nextafter(low, 1))
    for ties in ("expected", "worst", "best"):
        for scores, rank in (([low, high], 1), ([high, low], 0)):
            found = only(one([1, 0], scores), ties=ties)
            assert reciprocal_rank(found, 1, None).high.tolist() == [1 / (rank + 1)]


def test_scores_are_compared_in_the_precision_that_they_came_in() -> None:
    close = [0.1, 0.1 + 1e-12]
    assert hit(only(one([0, 1], close, np.float32)), 1, 1).high.tolist() == [0.5]
    assert hit(only(one([0, 1], close)), 1, 1).high.tolist() == [1.0]


def test_infinite_scores_come_first_and_last_and_tie_among_each_other() -> None:
    inf = np.inf
    ties = only(one([1, 0, 2, 0, 1], [-inf, 0.0, inf, -inf, 1e308])).ties
    assert ties.begins.tolist() == [0, 1, 3]
    assert ties.sizes.tolist() == [1, 1, 2]


def test_a_score_of_minus_infinity_is_not_tied_with_the_end_of_a_shorter_list() -> None:
    grades = np.array([1, 0, 0, 1, 0, 0, 0, 0], np.uint8)
    scores = np.array([-np.inf, 1, 1, -np.inf, -np.inf, 3, 2, 1])
    for judged in (None, np.array([True] * 4 + [False, True, True, True])):
        found = only(Lists(grades, scores, np.array([0, 3, 8]), judged=judged))
        assert found.ties.lists.tolist() == [1]
        assert (found.ties.begins.tolist(), found.ties.sizes.tolist()) == ([3], [2])
        assert hits(found) == [(0, 2, 1)]


def test_a_tie_that_reaches_in_from_below_the_cut_is_seen() -> None:
    # the three best scores are equal; the cut lies within them, after relevant items only
    ties = only(one([1, 1, 0, 0], [0.5, 0.5, 0.5, 0.1]), depth=2).ties
    assert (ties.sizes.tolist(), ties.relevant(1).tolist()) == ([3], [2])


def test_a_tie_below_the_cut_costs_nothing() -> None:
    assert len(only(one([1, 0, 1, 0], [0.9, 0.8, 0.1, 0.1]), depth=2).ties) == 0


def test_a_tie_of_one_grade_is_no_open_order() -> None:
    found = only(one([1, 1, 0, 0], [0.9, 0.9, 0.1, 0.1]))
    assert len(found.ties) == 0
    assert hits(found) == [(0, 0, 1), (0, 1, 1)]


def test_minus_zero_and_zero_are_tied() -> None:
    for kind in (np.float32, np.float64):
        assert hit(only(one([1, 0], [-0.0, 0.0], kind)), 1, 1).high.tolist() == [0.5]


@pytest.mark.parametrize("ties", ["worst", "best"])
def test_unjudged_items_above_a_relevant_one_are_counted(ties: str) -> None:
    judged = np.array([False, True, False, True, True, True])
    grades = np.array([0, 1, 0, 0, 2, 1], np.uint8)
    scores = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.8])
    for values, order in ((scores, slice(None)), (None, [0, 1, 5, 2, 3, 4])):
        lists = Lists(grades[order], values, np.array([0, 6]), judged=judged[order])
        found = only(lists, ties=ties)
        assert found.hits.ranks.tolist() == [1, 2, 5]
        assert found.hits.unjudged is not None
        assert found.hits.unjudged.tolist() == [1, 1, 2]


@pytest.mark.parametrize("size", [1, 10, 64])
def test_how_many_items_are_sorted_at_a_time_changes_nothing(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 12, 50))])
    grades = rng.integers(0, 3, ends[-1]).astype(np.uint8)
    scores = rng.integers(0, 4, ends[-1]) / 3
    unseen = rng.integers(0, 3, (50, 16))
    lists = Lists(grades, scores, ends, unseen)

    def found() -> tuple[list[tuple[int, int, int]], list[list[int]]]:
        every, counts = [], []
        for first, part in ranked(lists, None, "worst"):
            every += [(first + row, rank, grade) for row, rank, grade in hits(part)]
            counts += np.pad(part.counts, ((0, 0), (0, 16 - part.counts.shape[1]))).tolist()
        return sorted(every), counts

    whole = found()
    assert len(whole[0]) == np.count_nonzero(grades)
    monkeypatch.setattr(module, "_CHUNK", size)
    assert found() == whole
    monkeypatch.setattr(module, "BLOCK", 2 * size)
    assert found() == whole
    assert len(list(ranked(lists, None, "worst"))) > 1


def test_known_items_are_counted_by_grade_seen_or_not() -> None:
    unseen = np.zeros((2, 16), np.int64)
    unseen[0, :3] = 4, 1, 2
    grades, judged = np.array([1, 0, 0, 3], np.uint8), np.array([True, True, False, True])
    found = only(Lists(grades, None, np.array([0, 3, 4]), unseen, judged))
    assert found.counts[:, 1:].tolist() == [[2, 2, 0], [0, 0, 1]]
    assert found.relevant.tolist() == [4, 1]
    assert found.judged.tolist() == [9, 1]
    assert [found.known(rel).tolist() for rel in (1, 2, 3, 4, 15)] == [
        [4, 1], [2, 1], [0, 1], [0, 0], [0, 0],
    ]  # fmt: skip


def test_a_huge_number_of_unseen_items_costs_nothing() -> None:
    unseen = np.zeros((1, 16), np.int64)
    unseen[0, 1] = 1 << 50
    lists = Lists(np.array([1], np.uint8), None, np.array([0, 1]), unseen)
    assert only(lists, depth=5).relevant.tolist() == [(1 << 50) + 1]


def test_hits_within_a_cut_and_from_a_grade_on() -> None:
    found = only(one([3, 0, 1, 2], None))
    assert found.within(None).ranks.tolist() == [0, 2, 3]
    assert found.within(3).ranks.tolist() == [0, 2]
    assert found.within(None, 2).ranks.tolist() == [0, 3]
    assert found.within(3, 2).ranks.tolist() == [0]


def test_hits_within_a_cut_of_each_list() -> None:
    lists = Lists(np.ones(6, np.uint8), None, np.array([0, 3, 3, 6]))
    found = only(lists).within(np.array([2, 5, 0]))
    assert (found.lists.tolist(), found.ranks.tolist()) == ([0, 0], [0, 1])


def test_the_first_hits_and_how_many_are_above_each() -> None:
    lists = Lists(np.array([0, 1, 1, 0, 2, 0, 1], np.uint8), None, np.array([0, 3, 4, 7]))
    found = only(lists).hits
    assert found.positions.tolist() == [0, 1, 0, 1]
    assert (found.firsts().lists.tolist(), found.firsts().ranks.tolist()) == ([0, 2], [1, 0])


def test_no_lists_and_empty_lists_have_no_hits() -> None:
    nothing = np.empty(0)
    assert list(ranked(Lists(np.empty(0, np.uint8), nothing, np.array([0])), 3, "best")) == []
    found = only(Lists(np.empty(0, np.uint8), nothing, np.array([0, 0, 0])))
    assert (found.n, hits(found), found.relevant.tolist()) == (2, [], [0, 0])
