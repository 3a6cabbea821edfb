"""RankingMetrics: definitions, exact sums, settings, and what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import ArrayLike

from streammetrics import GroupedScores, PerKey, SettingsError, evaluate
from streammetrics.core.errors import InputError
from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    P,
    PooledHR,
    R,
    RankingMetrics,
    RPrec,
)
from streammetrics.results.list_results import Averages

ALL = (
    *(measure @ 10 for measure in (NDCG, DCG, CG, MRR, HR, PooledHR, P, R, AP, ERR, RBP)),
    NDCG(gain="linear"),
    MRR(rel=2),
    AP(denominator="min") @ 3,
    RPrec,
    Bpref,
)


def result(labels: ArrayLike, scores: ArrayLike | None = None, **settings: str) -> Averages:
    metric = RankingMetrics(ALL, complete_lists=True, **settings)
    metric.update(labels, scores)
    return metric.compute()


# -- definitions ------------------------------------------------------------------------------


def test_a_constant_scorer_gets_the_same_rank_in_every_measure() -> None:
    labels, scores = [[0] * 12 + [1]], [[0.0] * 13]
    assert result(labels, scores, ties="worst")[MRR @ 10] == 0
    assert result(labels, scores, ties="worst")[NDCG @ 10] == 0
    assert result(labels, scores, ties="best")[MRR @ 10] == 1
    assert result(labels, scores, ties="best")[NDCG @ 10] == 1
    mean = result(labels, scores)
    assert 0 < mean[MRR @ 10] < mean[NDCG @ 10] < mean[HR @ 10] < 1


def test_a_list_shorter_than_the_cut_is_a_list() -> None:
    assert dict(result([[1]])) == dict.fromkeys(map(str, ALL), 1) | {
        "MRR(rel=2)": 0,
        "P@10": 0.1,
        "ERR@10": 1 / 16,
        "RBP@10": 0.2,
    }


# -- exactness --------------------------------------------------------------------------------


def test_the_mean_of_reciprocal_ranks_is_the_correctly_rounded_one() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        ranks = rng.integers(1, 40, rng.integers(1, 60))
        metric = RankingMetrics([MRR])
        for rank in ranks.tolist():
            metric.update([[0] * (rank - 1) + [1]])
        exact = sum(Fraction(1, rank) for rank in ranks.tolist()) / len(ranks)
        assert metric.compute()[MRR] == float(exact)


def test_squares_are_held_for_intervals() -> None:
    metric = RankingMetrics([MRR])
    metric.update([[0, 1], [1, 0]])
    metric.digest()
    [sums] = metric.moments.sums
    assert [column.fraction(0) for column in sums] == [Fraction(3, 2), Fraction(5, 4)]


def test_of_a_ratio_of_sums_the_products_are_held_too() -> None:
    metric = RankingMetrics([PooledHR @ 1])
    metric.update([[1, 1], [0, 1], [1, 2]], n_relevant=[2, 1, 2])
    metric.digest()
    [sums] = metric.moments.sums
    assert [column.fraction(0) for column in sums] == [2, 2, 5, 9, 4]
    assert metric.compute()[PooledHR @ 1] == 2 / 5


# -- being an accumulator ---------------------------------------------------------------------


def test_the_setting_empty_leaves_the_method_empty_as_it_is() -> None:
    metric = RankingMetrics([MRR], empty="zero")
    metric.update([[0]])
    identity = metric.empty()
    assert identity.settings() == metric.settings()
    assert identity.compute().rows == 0
    with pytest.raises(AttributeError):
        metric.empty = "skip"  # type: ignore[assignment]


# -- refused lists, and items that nobody judged ------------------------------------------------


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


def test_recall_needs_the_number_of_relevant_items_or_the_word_that_lists_are_complete() -> None:
    for measure in ("R", "R(rel=2)@1", "PooledHR@2", "F1@2", "RPrec", "SetF", "SetAP"):
        metric = RankingMetrics([measure, "MRR"])
        for rows in ([[1, 0], [0, 2]], [[0, 0]], [[1, 0]]):
            for scores in (None, np.zeros_like(rows, float)):
                with pytest.raises(InputError, match="of what was retrieved may lack") as raised:
                    metric.update(rows, scores)
        assert raised.value.where == "n_relevant"
        assert "n_relevant= (or judged=)" in raised.value.hint
        assert "complete_lists=True" in raised.value.hint
        metric.update([], n_relevant=[])
        metric.update([[1, 0]], n_relevant=[[4, 0]])
        metric.update([[1, 0]], judged=[[True, False]])
        metric.update_ranked([["a"]], [{"a", "b"}])
        complete = RankingMetrics([measure, "MRR"], complete_lists=True)
        complete.update([[1, 0], [0, 2]], [[0.5, -np.inf], [0.5, 0.2]])
        assert complete.compute().rows == 2
    RankingMetrics(["AP", "NDCG", "Bpref", "NumRel"]).update([[1, 0]])


def test_whether_lists_are_complete_is_no_part_of_a_state() -> None:
    metric, complete = (RankingMetrics(["R@2"], complete_lists=c) for c in (False, True))
    metric.update([[1, 0]], n_relevant=[1])
    complete.update([[1, 0]])
    assert metric == complete and metric + complete == complete + metric
    for state in (complete + RankingMetrics.from_bytes(metric.to_bytes()), complete.copy()):
        state.update([[0, 1]])  # goes on as declared
    keyed = pickle.loads(pickle.dumps(PerKey(complete.empty())))
    keyed.update(["a"], labels=[[1, 0]])
    with pytest.raises(SettingsError, match=r"measures=\('R@2',\)"):
        complete.merge(RankingMetrics(["R@3"]))


def test_a_recall_says_which_relevant_items_it_is_of() -> None:
    metric = RankingMetrics(["R@2", "R(rel=2)@1", "MRR"])
    assert "n_relevant" not in repr(metric.compute())
    metric.update([[2, 0], [0, 1]], n_relevant=[[0, 1], [1, 0]])
    by_row = GroupedScores(["R@2", "R(rel=2)@1"])
    by_row.update([2, 0], [0.5, 0.2], groups=[1, 1])
    note = "R@2, R(rel=2)@1: of the relevant items in the lists and those that n_relevant"
    for result in (metric.compute(), by_row.compute()):
        assert note in repr(result).replace("\n  ", " ")
    by_key = PerKey(RankingMetrics(["R@2", "MRR"]))
    by_key.update(["a", "b"], labels=[[2, 0], [0, 1]], n_relevant=[1, 2])
    assert "R@2: of the relevant items in the lists" in repr(by_key.compute())
    rank_metric = GroupedScores(["MRR", "AP", "RPrec"])
    rank_metric.update([2, 0], [0.5, 0.2], groups=[1, 1])
    assert "n_relevant" not in repr(rank_metric.compute())
    assert "n_relevant" not in repr(evaluate({"q": {"a": 1}}, {"q": ["a"]}, "recall@2"))
