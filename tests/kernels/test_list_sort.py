from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.list_sort import (
    LAST,
    as_rows,
    in_full,
    may_be_open,
    of_like_length,
    sort_keys,
)
from streammetrics.kernels.lists import Lists

INTERESTING = [
    np.inf, 1e38, 2.0, 1.5, 1.0, 0.1, 1e-45, 0.0, -1e-45, -0.1, -1.0, -1e38, -np.inf,
]  # fmt: skip


def keys_of(scores: list[float], grades: list[int], kind: type[np.floating]) -> list[int]:
    found: list[int] = sort_keys(np.array(grades, np.uint8), np.array(scores, kind), 0).tolist()
    return found


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_keys_ascend_as_scores_descend_whatever_the_grades(kind: type[np.floating]) -> None:
    for grades in ([0, 15] * 7, [15, 0] * 7, [3] * 14):
        keys = keys_of(INTERESTING, grades[:13], kind)
        assert keys == sorted(set(keys))
        assert keys[-1] < int(LAST)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_in_a_tie_the_best_grade_comes_first(kind: type[np.floating]) -> None:
    keys = keys_of([0.3] * 3 + [-0.0, 0.0], [15, 1, 0, 2, 2], kind)
    assert keys == sorted(keys)
    assert keys[3] == keys[4]


def test_the_keys_of_padding_stand_last() -> None:
    keys = sort_keys(np.zeros(1, np.uint8), np.array([-np.inf]), spare=2)
    assert keys[0] < keys[1] == keys[2] == LAST


def test_scores_stay_as_they_were() -> None:
    scores = np.array([0.5, -0.0])
    sort_keys(np.zeros(2, np.uint8), scores, 0)
    assert scores.tobytes() == np.array([0.5, -0.0]).tobytes()


def test_lists_become_rows_that_are_padded_to_the_longest() -> None:
    keys = np.array([1, 2, 3, 4, 5, 6, LAST, LAST, LAST], np.uint64)
    offsets = np.array([0, 3, 3, 4, 6])
    rows = as_rows(keys, offsets, np.array([0, 2, 3]))
    assert rows.tolist() == [[1, 2, 3], [4, LAST, LAST], [5, 6, LAST]]
    assert keys.tolist() == [1, 2, 3, 4, 5, 6, LAST, LAST, LAST]


def test_rows_with_as_many_places_as_there_are_items_are_padded_too() -> None:
    keys = np.array([1, 2, 3, 4, 5, 6, LAST, LAST, LAST], np.uint64)
    rows = as_rows(keys, np.array([0, 3, 5, 6]), np.array([0, 1]))
    assert rows.tolist() == [[1, 2, 3], [4, 5, LAST]]


def test_lists_of_one_length_are_rows_as_they_stand() -> None:
    keys = np.array([1, 2, 3, 4, LAST, LAST], np.uint64)
    assert as_rows(keys, np.array([0, 2, 2, 4]), np.array([0, 2])).tolist() == [[1, 2], [3, 4]]


def test_every_list_with_items_is_in_one_group_of_like_length() -> None:
    lengths = np.array([0, 1, 8, 9, 16, 17, 300, 0, 5])
    groups = [some.tolist() for some in of_like_length(lengths, 300)]
    assert groups == [[1, 2, 8], [3, 4], [5], [6]]
    assert [some.tolist() for some in of_like_length(np.array([20, 40]), 40)] == [[0, 1]]
    assert list(of_like_length(np.array([0, 0]), 0)) == []


@pytest.mark.parametrize(
    ("scores", "grades", "top", "is_open"),
    [
        ([0.9, 0.8, 0.7], [1, 0, 2], 3, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 3, True),
        ([0.9, 0.8, 0.8], [1, 2, 2], 3, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 1, False),
        ([0.9, 0.8, 0.8], [1, 0, 2], 2, True),
        ([0.5, 0.5, 0.5], [1, 1, 0], 1, True),
        ([0.5, 0.5, 0.5], [0, 0, 0], 1, False),
        ([0.5], [1], 1, False),
    ],
)
def test_a_list_is_open_where_a_tie_of_two_grades_reaches_into_the_top(
    scores: list[float], grades: list[int], top: int, is_open: bool
) -> None:
    keys = np.sort(sort_keys(np.array(grades, np.uint8), np.array(scores), 0))[None]
    assert may_be_open(keys, top).tolist() == ([0] if is_open else [])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_full_keys_are_equal_exactly_where_scores_are(kind: type[np.floating]) -> None:
    rng = np.random.default_rng(14)
    near = np.nextafter(kind(0.3), kind(1))
    scores = rng.choice(np.array([0.1, 0.3, near, -0.0, 0.0, -np.inf], kind), 400)
    grades = rng.integers(0, 4, 400).astype(np.uint8)
    lists = Lists(grades, scores, np.array([0, 7, 207, 400]))
    some = np.array([0, 1, 2])
    rows = as_rows(sort_keys(grades, scores, 200), lists.offsets, some)
    rows.sort(axis=1)
    keys, by_score = in_full(rows, lists, scores, some)
    for i in range(3):
        a, b = lists.offsets[i : i + 2]
        expected = sorted(zip(-scores[a:b], grades[a:b].tolist(), strict=True))
        ties = np.unique(np.array([score for score, _ in expected]), return_counts=True)[1]
        assert np.unique(keys[i, : b - a], return_counts=True)[1].tolist() == ties.tolist()
        at = 0
        for size in ties.tolist():
            some_grades = [grade for _, grade in expected[at : at + size]]
            assert sorted(by_score[i, at : at + size].tolist()) == sorted(some_grades)
            at += size
