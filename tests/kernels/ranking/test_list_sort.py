from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.kernels.ranking.ranked import (
    LAST,
    in_full,
    key_rows,
    may_be_open,
    of_like_length,
    sort_keys,
    windows,
)
from streammetrics.kernels.ranking.ties import IRRELEVANT, PADDING, UNJUDGED, Keys

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
    known = None if judged is None else np.array(judged)
    return sort_keys(np.array(scores, kind), np.array(grades, np.uint8), known)


def keys_of(
    scores: Sequence[float], grades: Sequence[int], kind: type[np.floating], **more: Any
) -> list[int]:
    found: list[int] = keys(scores, grades, kind, **more).tolist()
    return found


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_keys_ascend_as_scores_descend_whatever_the_grades(kind: type[np.floating]) -> None:
    for scores in (INTERESTING, INTERESTING[:8]):  # with negative ones and without
        for grades in ([0, 15] * 7, [15, 0] * 7):
            found = keys_of(scores, grades[: len(scores)], kind)
            assert found == sorted(set(found))
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
    groups = [some.tolist() for some in of_like_length(lengths)]
    assert groups == [[1, 2, 8], [3, 4], [5], [6]]
    assert [some.tolist() for some in of_like_length(np.array([20, 60]))] == [[0, 1]]
    assert list(of_like_length(np.array([0, 0]))) == []
    assert list(of_like_length(np.empty(0, np.int64))) == []


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
    untied = np.sort(keys([9.0, 8.0, 7.0][: len(scores)], grades))
    rows = np.stack([untied, np.sort(keys(scores, grades)), untied])
    assert may_be_open(rows, top).tolist() == ([1] if is_open else [])
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
    some = np.array([0, 1, 2])
    rows = key_rows(sort_keys(scores, grades, judged), offsets, some)
    rows.sort(axis=1)
    full, codes = in_full(rows, lists, scores, some)
    for i in range(3):
        a, b = offsets[i : i + 2]
        code = np.where(judged[a:b], IRRELEVANT - grades[a:b], UNJUDGED)
        expected = sorted(zip((-scores[a:b]).tolist(), code.tolist(), strict=True))
        ties = np.unique(np.array([score for score, _ in expected]), return_counts=True)[1]
        assert np.unique(full[i, : b - a], return_counts=True)[1].tolist() == ties.tolist()
        assert (np.diff(full[i].astype(np.float64)) >= 0).all()
        assert codes[i, : b - a].tolist() == [code for _, code in expected]
        assert (codes[i, b - a :] == PADDING).all()
