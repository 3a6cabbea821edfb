"""RankingMetrics and GroupedAUC beside scikit-learn.

Its measures take a whole list with its scores; what the list lacks is not known to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    label_ranking_average_precision_score,
    ndcg_score,
    roc_auc_score,
)

from streammetrics import GroupedAUC
from streammetrics.ranking import AP, DCG, MRR, NDCG, Measure, RankingMetrics
from tests.peers.judged_lists import UNIT, near

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
Grades = NDArray[np.int64]

CUTS = (1, 3, 10, None)
GAINS: dict[str, Callable[[Grades], Grades]] = {
    "linear": lambda grades: grades,
    "exponential": lambda grades: 2**grades - 1,
}


def lists(*, tied: bool) -> list[tuple[Grades, Floats]]:
    """Grades from 0 to 4 and scores around 0, in a few values where they are tied."""
    rng = np.random.default_rng(5)
    found = [
        (np.array([0, 0, 0]), np.array([0.5, -0.5, 0.0])),  # nothing relevant
        (np.array([4, 4, 4, 4]), np.array([-1.0, -2.0, 0.0, -4.0])),
        (np.array([0, 1]), np.array([-1e-300, 0.0])),  # distinct, and not above 0
        (np.array([0, 1]), np.array([1.0, 1.0 + 2**-52])),  # the least difference
    ]
    if tied:
        found += [
            (np.array([0, 0, 3, 0]), np.zeros(4)),  # a constant scorer
            (np.array([1, 0]), np.array([-0.0, 0.0])),  # equal
        ]
    for _ in range(120):
        n = int(rng.integers(2, 61))
        grades = rng.integers(0, 5, n) * (rng.random(n) < rng.random())
        scores = rng.integers(-3, 4, n) / 4 if tied else rng.permutation(n) / 8 - n / 16
        found.append((grades, scores))
    return found


def ours(measure: Measure, grades: Grades, scores: Floats, ties: str = "expected") -> float:
    metric = RankingMetrics([measure], ties=ties, empty="zero")
    metric.update([grades], [scores])
    return metric.compute()[measure]


def cut(measure: Measure, k: int | None) -> Measure:
    return measure if k is None else measure @ k


def tied_error(gains: Grades) -> float:
    """What scikit-learn's mean over tied orders may lose, at most.

    It takes differences of a running sum of the discounts, so its error is not a share of the
    value: n roundings of that sum, which is less than n, each in a difference of two, times the
    gains of the list.
    """
    n = len(gains)
    return 2 * n * n * UNIT * float(gains.sum())


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize("gain", GAINS)
def test_dcg_and_ndcg_of_distinct_scores_are_theirs_but_for_their_roundings(
    gain: str, k: int | None
) -> None:
    for grades, scores in lists(tied=False):
        gains = GAINS[gain](grades)
        dcg = dcg_score([gains], [scores], k=k, ignore_ties=True)
        ndcg = ndcg_score([gains], [scores], k=k, ignore_ties=True)
        assert near(ours(cut(DCG(gain=gain), k), grades, scores), dcg, len(grades) + 3)
        assert near(ours(cut(NDCG(gain=gain), k), grades, scores), ndcg, 2 * len(grades) + 7)


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize("gain", GAINS)
def test_dcg_and_ndcg_of_tied_scores_are_theirs_the_mean_over_all_orders(
    gain: str, k: int | None
) -> None:
    for grades, scores in lists(tied=True):
        gains = GAINS[gain](grades)
        dcg = dcg_score([gains], [scores], k=k)
        error = tied_error(gains)
        assert abs(ours(cut(DCG(gain=gain), k), grades, scores) - dcg) <= error
        ideal = dcg_score([gains], [gains], k=k, ignore_ties=True)
        if ideal:
            ndcg = ndcg_score([gains], [scores], k=k)
            mine = ours(cut(NDCG(gain=gain), k), grades, scores)
            assert abs(mine - ndcg) <= error / ideal + 8 * UNIT


def test_their_mean_ndcg_counts_a_list_with_nothing_relevant_as_0() -> None:
    grades = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 1]])
    scores = np.array([[0.5, 0.25, 0.0], [0.5, 1.0, 0.0], [3.0, 2.0, 1.0]])
    theirs = ndcg_score(grades, scores)
    for empty, lists_counted in (("zero", 3), ("skip", 2)):
        metric = RankingMetrics([NDCG(gain="linear")], empty=empty)
        metric.update(grades, scores)
        assert near(metric.compute()['NDCG(gain="linear")'], theirs * 3 / lists_counted, 12)
        assert metric.compute().lists_empty == 1


def test_their_ideal_is_of_the_list_and_ours_is_of_all_known_items() -> None:
    grades, scores = np.array([[1, 0, 0]]), np.array([[3.0, 2.0, 1.0]])
    assert ndcg_score(grades, scores) == 1.0
    metric = RankingMetrics([NDCG @ 3])
    metric.update(grades, scores, n_relevant=[3])
    assert round(metric.compute()[NDCG @ 3], 6) == 0.469279


def test_ap_of_distinct_scores_is_theirs_but_for_their_roundings() -> None:
    checked = 0
    for grades, scores in lists(tied=False):
        if not grades.any():
            continue
        # A step of recall is a difference of two rounded quotients below 1: 3 roundings of 1 for
        # each item, and one of the product.
        theirs = average_precision_score(grades > 0, scores)
        assert abs(ours(AP, grades, scores) - theirs) <= (4 * len(grades) + 4) * UNIT
        checked += 1
    assert checked > 100


def test_their_ap_takes_tied_items_at_once_and_ours_is_the_mean_over_their_orders() -> None:
    grades, scores = np.array([1, 0]), np.array([0.5, 0.5])
    assert average_precision_score(grades, scores) == 1 / 2
    assert ours(AP, grades, scores) == 3 / 4  # of 1 and 1/2


def test_their_label_ranking_ap_takes_the_worst_of_tied_ranks() -> None:
    for grades, scores in lists(tied=True):
        one = np.zeros(len(grades), np.int64)
        one[len(grades) // 2] = 1
        theirs = label_ranking_average_precision_score([one], [scores])
        assert ours(MRR, one, scores, "worst") == theirs
    assert label_ranking_average_precision_score([[0, 0, 0, 1]], [[1.0] * 4]) == 1 / 4
    assert round(ours(MRR, np.array([0, 0, 0, 1]), np.ones(4)), 6) == 0.520833


@pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])
@pytest.mark.parametrize("tied", [False, True])
def test_grouped_auc_is_the_weighted_mean_of_their_areas(weight: str, tied: bool) -> None:
    users = lists(tied=tied)
    metric = GroupedAUC(weight=weight, score_type="float64")
    areas, weights, rows = [], [], 0
    for user, (grades, scores) in enumerate(users):
        labels = np.minimum(grades, 1)
        metric.update(labels, scores, groups=np.full(len(labels), user))
        rows += len(labels)
        if 0 < labels.sum() < len(labels):
            areas.append(roc_auc_score(labels, scores))
            weights.append(
                {"impressions": len(labels), "positives": labels.sum(), "uniform": 1}[weight]
            )
    result = metric.compute()
    assert (result.groups, result.groups_kept) == (len(users), len(areas))
    theirs = math.fsum(np.multiply(areas, weights)) / math.fsum(weights)
    # A trapezoid for each score: 6 roundings of rates up to 1, and an addition.
    assert abs(result.gauc - theirs) <= (7 * 60 + 4) * UNIT


def test_the_area_of_each_user_is_theirs_but_for_their_roundings() -> None:
    for tied in (False, True):
        for grades, scores in lists(tied=tied):
            labels = np.minimum(grades, 1)
            if 0 < labels.sum() < len(labels):
                metric = GroupedAUC(score_type="float64")
                metric.update(labels, scores, groups=np.zeros(len(labels), np.int64))
                theirs = roc_auc_score(labels, scores)
                assert abs(metric.compute().gauc - theirs) <= (7 * len(labels) + 1) * UNIT
