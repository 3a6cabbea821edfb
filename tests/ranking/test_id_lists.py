from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.errors import InputError
from streammetrics.ranking.id_lists import id_lists


def test_ids_are_graded_by_their_truths() -> None:
    lists = id_lists([["b", "a", "x"], [], [7]], [{"a", "b", "c"}, {"q"}, {7: 3, 8: 2, 9: 0}])
    assert lists.grades.tolist() == [1, 1, 0, 3]
    assert lists.offsets.tolist() == [0, 3, 3, 4]
    assert lists.unseen is not None
    assert lists.unseen[:, :4].tolist() == [[0, 1, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]]
    assert not lists.unseen[:, 4:].any()


def test_what_no_truth_names_nobody_judged() -> None:
    lists = id_lists([["b", "x", "a"], ["c", "d"]], [{"a", "b"}, {"d": 0, "e": 0}])
    assert lists.judged is not None
    assert lists.judged.tolist() == [True, False, True, False, True]
    assert lists.grades.tolist() == [1, 0, 1, 0, 0]
    assert lists.unseen is not None
    assert lists.unseen[:, 0].tolist() == [0, 1]


def test_ids_may_come_in_arrays() -> None:
    lists = id_lists(np.array([[3, 1], [2, 9]]), [np.array([1]), np.array([2, 4])])
    assert lists.grades.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("lists", "truths", "where", "rows"),
    [
        ([["a"]], [], "truths", []),
        ([["a", "b", "a"], ["c"], ["d", "d"]], [set(), set(), set()], "lists[0]", [0, 2]),
        (["abc"], [{"a"}], "lists[0]", [0]),
        ([["a"]], ["abc"], "truths[0]", [0]),
        ([{"a", "b"}], [{"a"}], "lists[0]", [0]),
        ([["a"], [["b"]]], [set(), set()], "lists[1]", [1]),
        ([["a"], 5], [set(), set()], "lists[1]", [1]),
        ([["a"]], [{"a": 16}], "truths[0]['a']", [0]),
        ([["a"]], [{"a": 1.5}], "truths[0]['a']", [0]),
        ([["a"]], [{"a": True}], "truths[0]['a']", [0]),
        ([["a"]], [None], "truths[0]", [0]),
    ],
)
def test_ids_that_are_no_lists_are_refused(
    lists: list[list[str]], truths: list[set[str]], where: str, rows: list[int]
) -> None:
    with pytest.raises(InputError) as raised:
        id_lists(lists, truths)
    assert raised.value.where == where
    assert raised.value.rows.tolist() == rows
