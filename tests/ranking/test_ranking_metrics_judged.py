"""Lists that RankingMetrics refuses, and items that nobody judged."""

from __future__ import annotations

import pytest

from streammetrics.core.errors import InputError
from streammetrics.ranking import ERR, MRR, NDCG, Bpref, RankingMetrics


def test_a_refused_update_leaves_no_trace() -> None:
    metric = RankingMetrics([NDCG @ 10, MRR])
    metric.update([[1, 0]])
    before = metric.digest()
    with pytest.raises(InputError) as raised:
        metric.update([[1, 0], [1, 99]])
    assert raised.value.rows.tolist() == [1]
    with pytest.raises(InputError):
        metric.update_ranked([["a", "a"]], [{"a"}])
    assert metric.digest() == before


def test_a_grade_above_the_highest_of_a_measure_is_refused_and_changes_nothing() -> None:
    metric = RankingMetrics([ERR(max_grade=2) @ 3, NDCG])
    metric.update([[1, 2]])
    before = metric.digest()
    for refused in (
        lambda: metric.update([[0, 1], [3, 0]]),
        lambda: metric.update([[0, 1], [1, 0]], n_relevant=[[1, 0, 0], [1, 0, 1]]),
        lambda: metric.update_ranked([["a"], ["b"]], [{"a": 1}, {"c": 3}]),
    ):
        with pytest.raises(
            InputError, match=r"grades up to 2, the highest of ERR\(max_grade=2\)@3"
        ) as raised:
            refused()
        error = raised.value
        assert error.rows.tolist() == [1]
        assert all((error.expected, error.got, error.where, error.hint))
    assert metric.digest() == before


def test_an_item_that_nobody_judged_has_no_grade() -> None:
    metric = RankingMetrics([Bpref, MRR])
    with pytest.raises(InputError, match="0 where nobody judged") as raised:
        metric.update([[1, 0], [0, 2]], judged=[[True, False], [True, False]])
    assert (raised.value.where, raised.value.rows.tolist()) == ("labels[1, 1]", [1])
    for judged in ([[True]], [True, True], [[1, 1]], [["yes", "no"]]):
        with pytest.raises(InputError) as raised:
            metric.update([[1, 0]], judged=judged)
        assert raised.value.where == "judged"
    assert metric == metric.empty()


def test_items_that_nobody_judged_are_skipped_by_bpref_and_are_not_relevant() -> None:
    metric = RankingMetrics([Bpref, MRR])
    metric.update([[0, 0, 1, 0]], judged=[[False, True, True, False]])
    assert dict(metric.compute()) == {"Bpref": 0, "MRR": 1 / 3}
    same = RankingMetrics([Bpref, MRR])
    same.update_ranked([["x", "b", "a", "y"]], [{"a": 1, "b": 0}])
    assert same == metric
    without = RankingMetrics([Bpref])
    without.update([[0, 0, 1, 0]], judged=[[False, False, True, True]])
    assert without.compute()[Bpref] == 1
