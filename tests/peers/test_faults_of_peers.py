"""Mistakes that others made, by name: each is shown, and none is made here.

Where a peer is installed its own answer is shown. The rules of torchrec, which is not, are written
out in the test, and so are those of torchmetrics: its answers are in test_faults_of_torch.py and
test_faults_of_torch_lists.py. That ranx shows the order of tied rows, and loses what follows a list
with nothing relevant, is in test_ranx.py.
"""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from streammetrics import GroupedAUC, GroupedScores
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
    Measure,
    P,
    PooledHR,
    R,
    RankingMetrics,
    RPrec,
)

pytestmark = pytest.mark.slow

EVERY: list[Measure] = [
    *(m @ 3 for m in (NDCG, DCG, CG, MRR, HR, PooledHR, P, R, AP, ERR, RBP)),
    *(RPrec, Bpref, AP, AP(denominator="min") @ 3, MRR, NDCG(gain="linear")),
]


def ranked(
    labels: list[int], scores: list[float], measures: list[Measure] = EVERY, ties: str = "expected"
) -> RankingMetrics:
    metric = RankingMetrics(measures, ties=ties)
    metric.update([labels], [scores])
    return metric


def test_relevant_items_with_scores_at_or_below_0_count() -> None:
    labels, scores = [1, 0, 1, 0, 1], [0.5, 0.25, 0.0, -0.25, -0.5]
    # torchmetrics takes an item for relevant only where its score is above 0.
    ranks = [rank for rank in range(1, 6) if labels[rank - 1] and scores[rank - 1] > 0]
    theirs = sum(Fraction(i, rank) for i, rank in enumerate(ranks, 1)) / len(ranks)
    assert theirs == 1
    assert ranked(labels, scores).compute()[AP] == float(
        Fraction(1 + Fraction(2, 3) + Fraction(3, 5), 3)
    )


def test_a_constant_added_to_all_scores_of_a_list_changes_no_bit() -> None:
    labels, scores = [1, 0, 2, 0, 1, 3], [0.5, 0.25, 0.25, -0.25, -0.5, 4.0]
    states = {ranked(labels, [s + shift for s in scores]).digest() for shift in (0, 8, -8, -4)}
    assert len(states) == 1


def test_a_constant_scorer_has_the_same_tie_rule_in_every_measure() -> None:
    labels, scores = [1, *[0] * 19], [0.5] * 20
    # One programme, two rules: in MRR only higher scores go before, NDCG sorts with the last first.
    first = 1 + sum(s > scores[0] for s in scores)
    place = np.argsort(scores, kind="stable")[::-1].tolist().index(0) + 1
    assert (1 / first, place > 10) == (1.0, True)  # MRR@10 is 1 where NDCG@10 is 0
    result = ranked(labels, scores, [MRR @ 10, NDCG @ 10, HR @ 10, P @ 10]).compute()
    assert result[HR @ 10] == 1 / 2  # among the first 10 of 20
    assert result[P @ 10] == 1 / 20
    assert result[MRR @ 10] == float(sum(Fraction(1, rank) for rank in range(1, 11)) / 20)
    wanted = math.fsum(1 / math.log2(rank + 1) for rank in range(1, 11)) / 20
    assert abs(result[NDCG @ 10] - wanted) <= 4 * math.ulp(wanted)


def test_four_tied_items_of_which_one_is_relevant() -> None:
    result = ranked([0, 0, 1, 0], [0.5] * 4, [MRR, NDCG @ 1]).compute()
    assert (round(result[MRR], 6), result[NDCG @ 1]) == (0.520833, 0.25)


def test_ir_measures_has_a_greater_rr_with_a_cut_than_without_and_we_have_one_tie_rule() -> None:
    # Without a cut trec_eval answers, the greater id first; with one MS MARCO's, the smaller.
    tied = {"1": {"a": 1.0, "b": 1.0}}
    asked = [ir_measures.RR, ir_measures.RR @ 10]
    theirs = ir_measures.calc_aggregate(asked, {"1": {"a": 1}}, tied)
    assert [theirs[measure] for measure in asked] == [1 / 2, 1]
    for ties, wanted in (("worst", 1 / 2), ("expected", 3 / 4), ("best", 1)):
        result = ranked([1, 0], [1.0, 1.0], [MRR, MRR @ 10], ties).compute()
        assert result[MRR] == result[MRR @ 10] == wanted


@pytest.mark.parametrize("ties", ["expected", "worst", "best"])
def test_the_order_of_the_rows_changes_no_bit_of_any_measure(ties: str) -> None:
    rows = [(1, 0.5), (0, 0.5), (3, 0.5), (0, 0.25), (1, 0.25)]
    states = set()
    for order in itertools.permutations(rows):
        labels, scores = zip(*order, strict=True)
        states.add(ranked(list(labels), list(scores), ties=ties).digest())
    assert len(states) == 1


def test_all_measures_of_one_run_have_one_denominator() -> None:
    # One mean, two tools: pytrec_eval leaves out what was not returned, ir-measures counts it 0.
    judged, returned = {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 1.0}}
    by_list = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(returned)
    assert [found["map"] for found in by_list.values()] == [1.0]
    assert ir_measures.calc_aggregate([ir_measures.AP], judged, returned) == {ir_measures.AP: 0.5}
    for empty, lists in (("skip", 2), ("zero", 3)):
        metric = RankingMetrics(EVERY, empty=empty)
        # The relevant item is first, not returned, and unknown: all, nothing, and no question.
        metric.update([[1], [0], [0]], n_relevant=[1, 1, 0])
        result = metric.compute()
        assert (result.lists_kept, result.lists_empty) == (2, 1)
        for measure in (NDCG @ 3, MRR @ 3, HR @ 3, R @ 3, AP @ 3, RPrec, Bpref, DCG @ 3, CG @ 3):
            assert result[measure] == 1 / lists, measure
        assert result[P @ 3] == float(Fraction(1, 3 * lists))
        assert result[ERR @ 3] == float(Fraction(1, 16 * lists))
        assert result[RBP @ 3] == float(Fraction(1, 5 * lists))


def test_measures_of_different_grades_leave_out_the_same_lists() -> None:
    metric = RankingMetrics([MRR, MRR(rel=2)])
    metric.update([[1, 0], [0, 2], [0, 0]])  # no item of grade 2 in the first
    assert [metric.compute()[m] for m in (MRR, MRR(rel=2))] == [3 / 4, 1 / 4]
    assert metric.compute().lists_kept == 2


def test_a_session_over_two_batches_is_one_list() -> None:
    labels, scores = [0, 1, 1, 0], [0.9, 0.1, 0.8, 0.7]
    whole = ranked(labels, scores, [NDCG @ 3, MRR, HR @ 1]).compute()
    halves = RankingMetrics([NDCG @ 3, MRR, HR @ 1])
    halves.update([labels[:2], labels[2:]], [scores[:2], scores[2:]])
    assert halves.compute()[MRR] == 3 / 4  # as two lists, which is what others make of it
    metric = GroupedScores([NDCG @ 3, MRR, HR @ 1])
    metric.update(labels[:2], scores[:2], lists=[7, 7])
    metric.update(labels[2:], scores[2:], lists=[7, 7])
    result = metric.compute()
    assert (result.means, result.lists_kept) == (whole.means, 1)
    assert result[MRR] == 1 / 2


def test_users_of_one_class_leave_both_sums_and_are_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        theirs = [roc_auc_score(labels, [0.1, 0.2]) for labels in ([0, 1], [1, 1], [0, 0])]
    assert theirs[0] == 1 and math.isnan(np.mean(theirs))  # and their mean is nothing
    metric = GroupedAUC()
    metric.update([0, 1, 1, 1, 0, 0], [0.1, 0.2] * 3, groups=[1, 1, 2, 2, 3, 3])
    result = metric.compute()
    assert (result.gauc, result.groups, result.groups_one_class) == (1.0, 3, 2)


@pytest.mark.parametrize("labels", [[0, 1, 1], [1, 1, 0], [1, 0, 1]])
def test_a_user_with_equal_scores_has_one_half_and_stays(labels: list[int]) -> None:
    # torchrec's GAUC steps through the sorted rows as if no two scores were equal, so the order
    # in which the rows came is the area.
    pairs = [(i, j) for i in range(3) for j in range(3) if labels[i] > labels[j]]
    stepped = sum(i < j for i, j in pairs) / len(pairs)
    assert stepped == {(0, 1, 1): 0, (1, 1, 0): 1, (1, 0, 1): 0.5}[labels[0], labels[1], labels[2]]
    metric = GroupedAUC(weight="uniform")
    metric.update([*labels, 0, 1], [0.3] * 3 + [0.1, 0.2], groups=[1, 1, 1, 2, 2])
    assert roc_auc_score(labels, [0.3] * 3) == 1 / 2
    assert (metric.compute().gauc, metric.compute().groups_kept) == (3 / 4, 2)


def test_a_user_over_two_batches_is_one_user() -> None:
    metric = GroupedAUC()
    metric.update([1, 0], [0.5, 0.4], groups=[1, 1])
    metric.update([1, 0], [0.3, 0.2], groups=[1, 1])
    assert metric.compute().gauc == 3 / 4  # a mean over batches has two areas of 1
    assert metric.compute().groups == 1


def test_scores_that_differ_beyond_float32_are_not_tied() -> None:
    # trec_eval keeps scores as float32: it takes b, the greater id, for the first.
    close = {"1": {"a": 1.0 + 1e-9, "b": 1.0}}
    found = pytrec_eval.RelevanceEvaluator({"1": {"a": 1}}, {"recip_rank"}).evaluate(close)
    assert found["1"]["recip_rank"] == 1 / 2
    assert ranked([1, 0], [1.0 + 1e-9, 1.0], [MRR]).compute()[MRR] == 1
    assert ranked([1, 0], [5e-324, 0.0], [MRR]).compute()[MRR] == 1


@pytest.mark.parametrize(("score_type", "area"), [("float32", 0.5), ("float64", 1.0)])
def test_the_precision_in_which_grouped_scores_are_compared_is_printed(
    score_type: str, area: float
) -> None:
    metric = GroupedAUC(score_type=score_type)
    metric.update([1, 0], [1.0 + 1e-9, 1.0], groups=[1, 1])
    result = metric.compute()
    assert (result.gauc, result.compared_as) == (area, score_type)
    assert f"scores compared as {score_type}" in result.exactness
    lists = GroupedScores([MRR], score_type=score_type)
    lists.update([1, 0], [1.0 + 1e-9, 1.0], lists=[1, 1])
    assert lists.compute()[MRR] == (1 + area) / 2
    assert lists.compute().compared_as == score_type


def test_ap_with_a_cut_is_over_all_known_items_or_the_smaller_of_both_and_never_over_hits() -> None:
    # torchmetrics divides by the hits among the first k: 0.504 where others had 0.280.
    for grades, unseen in (([1, 0, 0], 1), ([0, 1, 1], 3)):
        known = sum(grades) + unseen
        found = [Fraction(sum(grades[:i]), i) for i in range(1, 4) if grades[i - 1]]
        values = []
        for measure in (AP @ 3, AP(denominator="min") @ 3):
            metric = RankingMetrics([measure])
            metric.update([[*grades, 0, 0]], n_relevant=[known])
            values.append(metric.compute()[measure])
        assert values == [float(sum(found) / known), float(sum(found) / min(known, 3))]
        assert sum(found) / len(found) > max(values)
    metric = RankingMetrics([AP @ 3, AP(denominator="min") @ 3])
    metric.update([[1, 0, 0]], n_relevant=[7])
    assert list(metric.compute().values()) == [1 / 7, 1 / 3]


def test_finding_one_more_relevant_item_never_lowers_ap_with_a_cut() -> None:
    # Over hits it does: one at rank 1 has 1, and with another at rank 10 it has 0.6.
    one, two = [1, *[0] * 9], [1, *[0] * 8, 1]
    over_hits = [Fraction(1), (1 + Fraction(2, 10)) / 2]
    assert over_hits[1] < over_hits[0]
    for measure in (AP @ 10, AP(denominator="min") @ 10):
        found = []
        for grades in (one, two):
            metric = RankingMetrics([measure])
            metric.update([grades], n_relevant=[2])
            found.append(metric.compute()[measure])
        assert found == [0.5, 0.6]
