from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.kernels import ranked as module
from streammetrics.kernels.lists import Lists, Ranked
from streammetrics.kernels.ranked import ranked


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
    assert found.tied == ()


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
            where = found.tied[0].reciprocal_rank(1, None)[0] if found.tied else None
            value = 1 / (hits(found)[0][1] + 1) if where is None else where.item()
            assert value == 1 / (rank + 1)


def test_scores_are_compared_in_the_precision_that_they_came_in() -> None:
    close = [0.1, 0.1 + 1e-12]
    assert only(one([0, 1], close, np.float32)).tied[0].hit(1, 1).tolist() == [0.5]
    found = only(one([0, 1], close))
    assert (found.tied[0].hit(1, 1).tolist() if found.tied else [1.0]) == [1.0]


def test_infinite_scores_come_first_and_last_and_tie_among_each_other() -> None:
    inf = np.inf
    found = only(one([1, 0, 2, 0, 1], [-inf, 0.0, inf, -inf, 1e308]))
    [tied] = found.tied
    assert tied.begin.tolist() == [[0, 1, 2, 3, 3]]
    assert tied.end.tolist() == [[1, 2, 3, 5, 5]]


def test_a_score_of_minus_infinity_is_not_tied_with_the_end_of_a_shorter_list() -> None:
    grades = np.array([1, 0, 0, 1, 0, 0, 0, 0], np.uint8)
    scores = np.array([-np.inf, 1, 1, -np.inf, -np.inf, 3, 2, 1])
    found = only(Lists(grades, scores, np.array([0, 3, 8])))
    assert [tied.lists.tolist() for tied in found.tied] == [[1]]
    assert hits(found)[0] == (0, 2, 1)


def test_a_tie_that_reaches_in_from_below_the_cut_is_seen() -> None:
    # the three best scores are equal; the cut lies within them, after relevant items only
    found = only(one([1, 1, 0, 0], [0.5, 0.5, 0.5, 0.1]), depth=2)
    [tied] = found.tied
    assert tied.dcg(np.arange(16), 1).tolist() == [2 / 3]


def test_a_tie_below_the_cut_costs_nothing() -> None:
    found = only(one([1, 0, 1, 0], [0.9, 0.8, 0.1, 0.1]), depth=2)
    assert found.tied == ()


def test_minus_zero_and_zero_are_tied() -> None:
    found = only(one([1, 0], [-0.0, 0.0]))
    assert found.tied[0].hit(1, 1).tolist() == [0.5]


@pytest.mark.parametrize("chunk", [1, 10, 64])
def test_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 12, 50))])
    grades = rng.integers(0, 3, ends[-1]).astype(np.uint8)
    scores = rng.integers(0, 4, ends[-1]) / 3
    unseen = rng.integers(0, 3, (50, 2))
    lists = Lists(grades, scores, ends, unseen)

    def ranks() -> list[NDArray[np.int64]]:
        found = []
        for first, part in ranked(lists, None, "worst"):
            found.append(part.hits.lists + first)
            found.append(part.totals)
        return found

    whole = ranks()
    monkeypatch.setattr(module, "CHUNK_ITEMS", chunk)
    pieces = ranks()
    assert len(pieces) > len(whole)
    for i in range(2):
        joined = [np.sort(np.concatenate(x[i::2])) if i == 0 else np.concatenate(x[i::2])
                  for x in (whole, pieces)]  # fmt: skip
        assert joined[0].tolist() == joined[1].tolist()


def test_known_items_are_counted_by_grade_seen_or_not() -> None:
    unseen = np.array([[1, 2], [0, 0]])
    lists = Lists(np.array([1, 0, 3], np.uint8), None, np.array([0, 2, 3]), unseen)
    found = only(lists)
    assert found.totals.tolist() == [4, 1]
    assert found.counts[:, 1:].tolist() == [[2, 2, 0], [0, 0, 1]]


def test_a_huge_number_of_unseen_items_costs_nothing() -> None:
    lists = Lists(np.array([1], np.uint8), None, np.array([0, 1]), np.array([[1 << 50, 0]]))
    found = only(lists, depth=5)
    assert found.totals.tolist() == [(1 << 50) + 1]


def test_hits_within_a_cut_and_from_a_grade_on() -> None:
    found = only(one([3, 0, 1, 2], None))
    assert found.within(None).ranks.tolist() == [0, 2, 3]
    assert found.within(3).ranks.tolist() == [0, 2]
    assert found.within(None, 2).ranks.tolist() == [0, 3]
    assert found.within(3, 2).ranks.tolist() == [0]


def test_no_lists_and_empty_lists_have_no_hits() -> None:
    nothing = np.empty(0)
    assert list(ranked(Lists(np.empty(0, np.uint8), nothing, np.array([0])), 3, "best")) == []
    found = only(Lists(np.empty(0, np.uint8), nothing, np.array([0, 0, 0])))
    assert (found.n, hits(found), found.totals.tolist()) == (2, [], [0, 0])
