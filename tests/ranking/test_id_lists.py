from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import RankingMetrics
from streammetrics.core.errors import InputError
from streammetrics.ranking.lists import id_lists


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


# -- scores by id, and ids of other types


def test_a_mapping_of_scores_is_ranked_by_them_and_not_by_its_order() -> None:
    metric = RankingMetrics(["MRR", "NDCG@3"])
    metric.update_ranked([{"a": 0.1, "b": 0.9, "c": -2}], [{"b": 2, "c": 1}])
    ranked = RankingMetrics(["MRR", "NDCG@3"])
    ranked.update_ranked([["b", "a", "c"]], [{"b": 2, "c": 1}])
    assert metric == ranked
    assert metric.compute()["MRR"] == 1.0


@pytest.mark.parametrize(("ties", "found"), [("expected", 0.75), ("worst", 0.5), ("best", 1.0)])
def test_equal_scores_of_a_mapping_are_ties(ties: str, found: float) -> None:
    metric = RankingMetrics(["MRR"], ties=ties)
    metric.update_ranked([{"a": 0.5, "b": 0.5}], [{"b"}])
    assert metric.compute()["MRR"] == found


def test_mappings_of_scores_and_ranked_ids_go_together() -> None:
    metric = RankingMetrics(["MRR"])
    metric.update_ranked([["x", "y"], {"a": -5, "b": 7.0}, []], [{"y"}, {"b"}, {"c"}])
    assert metric.compute()["MRR"] == 0.5  # of 1/2, 1 and 0


def test_an_id_of_score_minus_infinity_is_known_and_was_not_shown() -> None:
    metric = RankingMetrics(["R@3"])
    metric.update_ranked([{"a": 0.5, "b": -math.inf}], [["a", "b", "c", "d"]])
    assert metric.compute()["R@3"] == 0.25
    counted = RankingMetrics(["R@3"])
    counted.update([[1, 1]], [[0.5, -math.inf]], n_relevant=[4])
    assert counted == metric


@pytest.mark.parametrize(("bad", "got"), [(math.nan, "nan"), ("0.5", "'0.5'"), (None, "None")])
def test_a_score_that_is_no_number_is_refused_with_its_id(bad: Any, got: str) -> None:
    with pytest.raises(InputError, match=rf"lists\[1\]\['b'\].*got {got}") as caught:
        id_lists([["q"], {"a": 0.5, "b": bad}, {"c": bad}], [["q"], ["b"], ["c"]])
    assert caught.value.rows.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("ids", "truth", "fix"),
    [
        ([("a", 0.5), ("b", 0.25)], {"a"}, "dict(pairs), a mapping id -> score"),
        (["a", "b"], [("a", 1)], "dict(pairs), a mapping id -> grade"),
        ([1, 2], {"2"}, "convert the ids of one side"),
        (["1", "2"], {2: 1}, "convert the ids of one side"),
        (["1", 2], {"2"}, "convert the ids of one side"),
        ([b"a"], {"a"}, "convert the ids of one side"),
        ([True], {1}, "convert the ids of one side"),
        (np.array([1.0, 2.0]), {2}, 'astype("int64")'),
        (np.array([0.5, 0.25]), {"a"}, "a mapping id -> score"),
        ({1: 0.5, 2: 0.25}, {"2"}, "convert the ids of one side"),
    ],
)
def test_ids_that_cannot_be_those_of_the_truth_are_refused(ids: Any, truth: Any, fix: str) -> None:
    with pytest.raises(InputError, match=r"lists\[1\]") as caught:
        id_lists([[], ids, ["x"]], [{"x"}, truth, {"x"}])
    assert caught.value.hint.endswith(fix) or fix in caught.value.hint
    assert caught.value.rows.tolist() == [1]


def test_ids_of_numpy_are_those_of_python() -> None:
    truths = [{2}, {np.int64(2)}, np.array([2]), {"b": 1}, {np.str_("b")}]
    lists: list[Any] = [
        *(np.array([1, 2]), [1, 2], [np.int32(1), np.uint8(2)]),
        *(np.array(["a", "b"]), [np.str_("a"), "b"]),
    ]
    assert id_lists(lists, truths).grades.tolist() == [0, 1] * 5


def test_ids_of_a_list_of_which_nothing_is_known_may_be_of_any_type() -> None:
    assert id_lists([[1, 2], []], [[], ["a"]]).grades.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["lists", "truths"])
def test_mappings_by_query_are_refused_with_how_to_pair_them(name: str) -> None:
    columns: dict[str, Any] = {"lists": [["a"]], "truths": [["a"]]}
    columns[name] = {"q1": ["a"]}
    with pytest.raises(InputError, match=r"run\[q\] for q in truth") as caught:
        id_lists(**columns)
    assert caught.value.where == name
