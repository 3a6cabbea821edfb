"""Ranked lists as they arrive, graded or of ids: what they become, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.typing import ArrayLike

from streammetrics import GroupedAUC, GroupedScores, R, RankingMetrics
from streammetrics.core.errors import InputError
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking.id_lists import id_lists
from streammetrics.ranking.lists import graded_lists


def lists_of(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    n_relevant: ArrayLike | None = None,
    judged: ArrayLike | None = None,
    group_sizes: ArrayLike | None = None,
    graded_from: int = 16,
) -> Lists:
    arguments = (labels, scores, offsets, n_relevant, judged, group_sizes)
    return graded_lists(*arguments, graded_from=graded_from)


def test_a_matrix_and_flat_rows_with_offsets_are_the_same_lists() -> None:
    matrix = lists_of([[1, 0, 2], [0, 0, 1]], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    flat = lists_of([1, 0, 2, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], offsets=[0, 3, 6])
    for a, b in (
        (matrix.grades, flat.grades),
        (matrix.scores, flat.scores),
        (matrix.offsets, flat.offsets),
    ):
        assert np.array_equal(a, b)  # type: ignore[arg-type]


def test_lists_of_different_lengths_are_the_same_lists_in_every_library() -> None:
    labels: list[list[int]] = [[1, 0, 2], [], [1]]
    scores: list[list[float]] = [[0.5, 0.25, 0.125], [], [1.0]]
    flat = lists_of([1, 0, 2, 1], [0.5, 0.25, 0.125, 1.0], offsets=[0, 3, 3, 4])
    objects = np.empty(3, object)
    objects[:] = labels
    columns: list[tuple[Any, Any]] = [
        (labels, scores),
        (tuple(map(tuple, labels)), [np.array(row) for row in scores]),
        (objects, scores),
        (pandas.Series(labels), pandas.Series(scores)),
        (polars.Series(labels), polars.Series(scores)),
        (pyarrow.array(labels), pyarrow.chunked_array([scores[:1], scores[1:]])),
        (pyarrow.array([[15], *labels], pyarrow.large_list(pyarrow.int8()))[1:], scores),
    ]
    for label_column, score_column in columns:
        lists = lists_of(label_column, score_column, judged=[[True] * len(row) for row in labels])
        assert lists.grades.tolist() == flat.grades.tolist(), type(label_column)
        assert lists.offsets.tolist() == flat.offsets.tolist() == [0, 3, 3, 4]
        assert lists.scores is not None and lists.scores.tolist() == [0.5, 0.25, 0.125, 1.0]
    sizes = lists_of([1, 0, 2, 1], group_sizes=np.array([3, 0, 1], np.int32))
    assert sizes.offsets.tolist() == [0, 3, 3, 4]


def test_scores_that_floats_would_make_equal_are_refused_in_every_form() -> None:
    large, near = 2**53 + 1, 2.0**53
    arrays = np.empty(2, object)
    arrays[:] = [np.array([large, 1]), np.array([near])]
    columns: list[tuple[Any, Any, dict[str, Any]]] = [
        ([[1, 0]], [[large, near]], {}),
        ([[1, 0], [1]], [[large, near], [0.5]], {}),
        ([[1, 0], [1]], [np.array([large, 1]), np.array([near])], {}),
        ([[1, 0], [1]], arrays, {}),
        ([[1, 0], [1]], pandas.Series([[large, 1], [near]]), {}),
        ([1, 0], [large, near], {"offsets": [0, 2]}),
        ([1, 0], (large, near), {"group_sizes": [2]}),
    ]
    for labels, scores, ends in columns:
        with pytest.raises(InputError, match=f"float64 holds exactly.* got {large};") as error:
            RankingMetrics("DCG@1").update(labels, scores, **ends)
        assert error.value.rows.tolist() == [0]


def test_a_missing_list_or_item_of_a_column_is_refused() -> None:
    for column in (
        polars.Series([[1, 0], None, [1]]),
        pyarrow.array([[1, 0], None, [1]]),
        polars.Series([[1, 0], [None], [1]]),
        pyarrow.array([[1, 0], [None], [1]]),
    ):
        with pytest.raises(InputError) as raised:
            lists_of(column)
        assert raised.value.where.startswith("labels[1]") and raised.value.rows.tolist() == [1]


def test_group_sizes_that_came_as_offsets_are_recognized() -> None:
    with pytest.raises(InputError, match="pass the sizes of lists as group_sizes="):
        lists_of([1, 0, 1], offsets=[2, 1])


def test_group_sizes_in_place_of_ids_are_recognized() -> None:
    for metric in (GroupedScores(["MRR"]), GroupedAUC()):
        with pytest.raises(InputError, match="use RankingMetrics with group_sizes="):
            metric.update([1, 0, 1], [0.1, 0.2, 0.3], groups=[2, 1])
        with pytest.raises(InputError, match="pass arrays of equal length"):
            metric.update([1, 0, 1], [0.1, 0.2, 0.3], groups=[7, 8])


def test_a_matrix_that_is_not_contiguous_is_read_row_by_row() -> None:
    labels = np.arange(6, dtype=np.uint8).reshape(3, 2).T
    assert lists_of(labels, labels / 10).grades.tolist() == [0, 2, 4, 1, 3, 5]


def test_labels_of_every_kind_of_number_are_grades() -> None:
    for kind in (bool, np.int8, np.uint8, np.int64, np.uint64, np.float32, float):
        lists = lists_of(np.array([[1, 0]], kind))
        assert lists.grades.dtype == np.uint8
        assert lists.grades.tolist() == [1, 0], kind


def test_lists_without_items_are_lists_and_there_may_be_none() -> None:
    for width in (0, 1, 3):
        assert len(lists_of(np.empty((0, width), np.int64))) == 0
    assert len(lists_of(np.empty((4, 0), np.int64))) == 4
    assert len(lists_of([], offsets=[0, 0, 0])) == 2


@pytest.mark.parametrize(
    ("arguments", "where", "expected", "rows"),
    [
        ({"labels": [1, 0]}, "labels", "with offsets", []),
        ({"labels": 1}, "labels", "with offsets", []),
        ({"labels": [[1, 0], 1]}, "labels[1]", "a list in each row", [1]),
        ({"labels": [[1, [0]], [1]]}, "labels", "array", []),
        ({"labels": [[1, 0], [99]]}, "labels[1][0]", "0 to 15", [1]),
        ({"labels": [[1, 0], [1]], "scores": [[1, 2], [1, 2]]}, "scores[1]", "1 values", [1]),
        ({"labels": [[1, 0], [1]], "scores": [[1, 2]]}, "scores", "2 lists", []),
        ({"labels": [[1, 0], [1]], "scores": [[1, 2], ["x"]]}, "scores[1][0]", "numbers", [1]),
        ({"labels": [[1, 0], [1]], "offsets": [0, 2, 3]}, "labels", "for each list", []),
        ({"labels": [[1, 0]], "scores": [[1, 2], [1]]}, "scores", "1 lists", []),
        ({"labels": [1, 0], "group_sizes": [1]}, "group_sizes", "sum to 2", []),
        ({"labels": [1, 0], "group_sizes": [3, -1]}, "group_sizes[0]", "sizes from 0 to 2", [0, 1]),
        ({"labels": [1], "group_sizes": [1], "offsets": [0, 1]}, "group_sizes", "or group", []),
        ({"labels": [[1, 0]], "offsets": [0, 2]}, "labels", "[lists, items]", []),
        ({"labels": [[0, 1], [2, 16], [-1, 0]]}, "labels[1, 1]", "0 to 15", [1, 2]),
        ({"labels": [[0, 0.5]]}, "labels[0, 1]", "0 to 15", [0]),
        ({"labels": [[0, float("nan")]]}, "labels[0, 1]", "0 to 15", [0]),
        ({"labels": [["a", "b"]]}, "labels[0, 0]", "0 to 15", [0]),
        ({"labels": [0, 1, 99], "offsets": [0, 1, 1, 3]}, "labels[2] (list 2)", "0 to 15", [2]),
        ({"labels": [[0, 1]], "scores": [0.1, 0.2]}, "scores", "the shape of labels", []),
        ({"labels": [[0, 1]], "scores": [[0.1, 0.2, 0.3]]}, "scores", "shape of labels", []),
        (
            {"labels": [[0, 1], [0, 1]], "scores": [[0.1, 0.2], [float("nan"), 0.3]]},
            "scores[1, 0]",
            "numbers",
            [1],
        ),
        ({"labels": [[0, 1]], "scores": [["x", "y"]]}, "scores[0, 0]", "numbers", [0]),
        ({"labels": [0, 1], "offsets": [0, 1]}, "offsets", "from 0 to 2", []),
        ({"labels": [0, 1], "offsets": [1, 2]}, "offsets", "from 0 to 2", []),
        ({"labels": [0, 1], "offsets": []}, "offsets", "from 0 to 2", []),
        ({"labels": [0, 1], "offsets": [0, 2, 1, 2]}, "offsets[2]", "do not decrease", [1]),
        ({"labels": [0, 1], "offsets": [0.0, 2.0]}, "offsets[0]", "integers", []),
        ({"labels": [[0, 1]], "n_relevant": [1, 1]}, "n_relevant", "n_relevant [1]", []),
        ({"labels": [[1, 1], [1, 0]], "n_relevant": [1, 1]}, "n_relevant[0]", "at least", [0]),
        ({"labels": [[1, 1], [1, 0]], "n_relevant": [2, -1]}, "n_relevant[1]", "at least", [1]),
        ({"labels": [[1]], "n_relevant": [2**21]}, "n_relevant[0]", "at most 1048576 more", [0]),
        ({"labels": [[1]], "n_relevant": [[2**70]]}, "n_relevant[0]", "64 bits", [0]),
        ({"labels": [[3]], "n_relevant": [[0, 1]]}, "n_relevant[0]", "grades up to 3", [0]),
        ({"labels": [[1, 2]], "n_relevant": [[1, 0]]}, "n_relevant[0]", "at least", [0]),
        (
            {"labels": [[0], [0]], "n_relevant": [[1, 1], [1, 0.5]]},
            "n_relevant[0]",
            "64 bits",
            [0, 1],
        ),
        ({"labels": [[0, 1]], "judged": [True, True]}, "judged", "the shape of labels", []),
        ({"labels": [[0, 1]], "judged": [[0, 1]]}, "judged", "booleans", []),
        ({"labels": [[0, 1]], "judged": [[True], [1, 2]]}, "judged", "1 lists", []),
        (
            {"labels": [[0, 1], [1, 1]], "judged": [[False, True], [True, False]]},
            "labels[1, 1]",
            "0 for an item that is not judged",
            [1],
        ),
        (
            {"labels": [0, 1], "offsets": [0, 1, 2], "judged": [True, False]},
            "labels[1] (list 1)",
            "0 for an item that is not judged",
            [1],
        ),
        ({"labels": [[1]], "n_relevant": [[[1]]]}, "n_relevant", "n_relevant [1]", []),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_its_lists(
    arguments: dict[str, ArrayLike], where: str, expected: str, rows: list[int]
) -> None:
    with pytest.raises(InputError) as raised:
        lists_of(**arguments)  # type: ignore[arg-type]
    error = raised.value
    assert error.where == where
    assert expected in error.expected
    assert error.rows.tolist() == rows


def test_a_number_of_relevant_items_counts_those_that_the_list_lacks() -> None:
    lists = lists_of([[1, 0], [0, 0], [1, 1]], n_relevant=[3, 0, 2])
    assert lists.unseen is not None
    assert lists.unseen[:, 1].tolist() == [2, 0, 0]
    assert lists.unseen.sum() == 2
    assert lists.unseen.shape == (3, 16)


def test_relevant_items_may_be_numbered_by_grade() -> None:
    lists = lists_of([[1, 3], [0, 0]], n_relevant=[[1, 2, 1], [0, 0, 5]], graded_from=2)
    assert lists.unseen is not None
    assert lists.unseen[:, :4].tolist() == [[0, 0, 2, 0], [0, 0, 0, 5]]
    assert not lists.unseen[:, 4:].any()


def test_who_judged_is_said_for_each_label() -> None:
    matrix = lists_of([[1, 0], [0, 0]], judged=[[True, False], [True, True]])
    flat = lists_of([1, 0, 0, 0], offsets=[0, 2, 4], judged=np.array([True, False, True, True]))
    for lists in (matrix, flat):
        assert lists.judged is not None
        assert lists.judged.tolist() == [True, False, True, True]
    assert lists_of([[1, 0]]).judged is None


def test_a_mere_number_does_not_say_how_many_reach_a_grade_above_the_lowest() -> None:
    metric = RankingMetrics([R(rel=2)])
    with pytest.raises(InputError, match="only their number") as raised:
        metric.update([[1, 0], [0, 1]], n_relevant=[1, 3])
    assert raised.value.rows.tolist() == [1]
    metric.update([[1, 0]], n_relevant=[[1, 2]])
    assert metric.compute()[R(rel=2)] == 0.0


def test_a_mere_number_is_ambiguous_for_a_graded_list_that_lacks_some() -> None:
    with pytest.raises(InputError, match="only their number") as raised:
        lists_of([[2, 1], [2, 1], [1, 0]], n_relevant=[2, 3, 3], graded_from=2)
    assert raised.value.rows.tolist() == [1]
    assert lists_of([[2, 1]], n_relevant=[3]).unseen is not None


# -- lists of ids


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


def test_equal_scores_of_a_mapping_are_ties() -> None:
    for ties, expected in (("expected", 0.75), ("worst", 0.5), ("best", 1.0)):
        metric = RankingMetrics(["MRR"], ties=ties)
        metric.update_ranked([{"a": 0.5, "b": 0.5}], [{"b"}])
        assert metric.compute()["MRR"] == expected


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
        ([1, 2], {"2"}, "convert the ids on one side"),
        (["1", "2"], {2: 1}, "convert the ids on one side"),
        (["1", 2], {"2"}, "convert the ids on one side"),
        ([b"a"], {"a"}, "convert the ids on one side"),
        ([True], {1}, "convert the ids on one side"),
        (np.array([1.0, 2.0]), {2}, 'astype("int64")'),
        (np.array([0.5, 0.25]), {"a"}, "a mapping id -> score"),
        ({1: 0.5, 2: 0.25}, {"2"}, "convert the ids on one side"),
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
