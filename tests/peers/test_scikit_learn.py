"""RankingMetrics and GroupedAUC beside scikit-learn, whose measures take a whole list."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import GroupedAUC
from streammetrics.ranking import AP, DCG, MRR, NDCG, Measure, RankingMetrics
from tests.peers.judged_lists import UNIT, near
from tests.requirements import Later

sk = Later("sklearn.metrics")


Floats = NDArray[np.float64]
Grades = NDArray[np.int64]

CUTS = (1, 10, None)
GAINS: dict[str, Callable[[Grades], Grades]] = {
    "linear": lambda grades: grades,
    "exponential": lambda grades: 2**grades - 1,
}


@cache
def lists(*, tied: bool) -> list[tuple[Grades, Floats]]:
    """Grades from 0 to 4 and scores around 0, in a few values where they are tied."""
    rng = np.random.default_rng(5)
    pairs = [
        (np.array([0, 0, 0]), np.array([0.5, -0.5, 0.0])),  # nothing relevant
        (np.array([4, 4, 4, 4]), np.array([-1.0, -2.0, 0.0, -4.0])),
        (np.array([0, 1]), np.array([-1e-300, 0.0])),  # distinct, and not above 0
        (np.array([0, 1]), np.array([1.0, 1.0 + 2**-52])),  # the least difference
    ]
    if tied:
        pairs += [
            (np.array([0, 0, 3, 0]), np.zeros(4)),  # a constant scorer
            (np.array([1, 0]), np.array([-0.0, 0.0])),  # equal
        ]
    for _ in range(30):
        n = int(rng.integers(2, 61))
        grades = rng.integers(0, 5, n) * (rng.random(n) < rng.random())
        scores = rng.integers(-3, 4, n) / 4 if tied else rng.permutation(n) / 8 - n / 16
        pairs.append((grades, scores))
    return pairs


def value_of(measure: Measure, grades: Grades, scores: Floats, ties: str = "expected") -> float:
    metric = RankingMetrics([measure], ties=ties, empty="zero")
    metric.update([grades], [scores])
    return metric.compute()[measure]


@pytest.mark.parametrize("k", CUTS)
@pytest.mark.parametrize("gain", GAINS)
def test_dcg_and_ndcg_are_theirs_but_for_their_roundings(gain: str, k: int | None) -> None:
    dcg, ndcg = (
        measure if k is None else measure @ k for measure in (DCG(gain=gain), NDCG(gain=gain))
    )
    for grades, scores in lists(tied=False):
        gains, n = [GAINS[gain](grades)], len(grades)
        peer_value = sk.dcg_score(gains, [scores], k=k, ignore_ties=True)
        assert near(value_of(dcg, grades, scores), peer_value, n + 3)
        peer_value = sk.ndcg_score(gains, [scores], k=k, ignore_ties=True)
        assert near(value_of(ndcg, grades, scores), peer_value, 2 * n + 7)
    for grades, scores in lists(tied=True):  # the mean over all orders
        gains = [GAINS[gain](grades)]
        # Differences of a running sum of discounts: n roundings of it, each in a difference of
        # two, times the gains of the list.
        error = 2 * len(grades) ** 2 * UNIT * float(gains[0].sum())
        assert abs(value_of(dcg, grades, scores) - sk.dcg_score(gains, [scores], k=k)) <= error
        ideal = sk.dcg_score(gains, gains, k=k, ignore_ties=True)
        if ideal:
            peer_value = sk.ndcg_score(gains, [scores], k=k)
            assert abs(value_of(ndcg, grades, scores) - peer_value) <= error / ideal + 8 * UNIT


def test_ap_and_the_worst_mrr_are_theirs() -> None:
    for grades, scores in lists(tied=False):
        if grades.any():
            # A step of recall is a difference of two rounded quotients below 1: 3 roundings of 1
            # for each item, and one of the product.
            peer_value = sk.average_precision_score(grades > 0, scores)
            assert abs(value_of(AP, grades, scores) - peer_value) <= (4 * len(grades) + 4) * UNIT
    for grades, scores in lists(tied=True):
        labels = np.zeros(len(grades), np.int64)
        labels[len(grades) // 2] = 1
        peer_value = sk.label_ranking_average_precision_score([labels], [scores])
        assert value_of(MRR, labels, scores, "worst") == peer_value


@pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])
@pytest.mark.parametrize("tied", [False, True])
def test_grouped_auc_is_the_weighted_mean_of_their_areas(weight: str, tied: bool) -> None:
    users = lists(tied=tied)
    metric = GroupedAUC(weight=weight, score_type="float64")
    areas, weights = [], []
    for user, (grades, scores) in enumerate(users):
        labels, group_metric = np.minimum(grades, 1), GroupedAUC(score_type="float64")
        metric.update(labels, scores, groups=np.full(len(labels), user))
        if 0 < labels.sum() < len(labels):
            group_metric.update(labels, scores, groups=np.zeros(len(labels), np.int64))
            areas.append(sk.roc_auc_score(labels, scores))
            assert (
                abs(float(group_metric.compute().gauc) - areas[-1]) <= (7 * len(labels) + 1) * UNIT
            )
            sizes = {"impressions": len(labels), "positives": labels.sum(), "uniform": 1}
            weights.append(sizes[weight])
    result = metric.compute()
    assert (result.groups, result.groups_kept) == (len(users), len(areas))
    peer_value = math.fsum(np.multiply(areas, weights)) / math.fsum(weights)
    # A trapezoid for each score: 6 roundings of rates up to 1, and an addition.
    assert abs(float(result.gauc) - peer_value) <= (7 * 60 + 4) * UNIT
