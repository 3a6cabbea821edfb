"""Lists that weigh by the examination of their logged rank: by hand, by users, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    NDCG,
    InputError,
    Paired,
    RankingMetrics,
    SettingsError,
    UserGroups,
    load,
)

LABELS = [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
SCORES = [[0.2, 0.9, 0.1], [0.3, 0.1, 0.8], [0.5, 0.4, 0.3]]
POSITIONS = [1, 3, 2]
WEIGHTS = np.array([1, 4, 2])


def fed(measures: Any = "mrr", examination: Any = (1, 0.5, 0.25), **more: Any) -> RankingMetrics:
    metric = RankingMetrics(measures, examination=examination)
    metric.update(LABELS, SCORES, positions=POSITIONS, **more)
    return metric


def test_the_mean_weighs_a_click_by_one_over_the_examination_of_its_logged_rank() -> None:
    assert fed().compute()["mrr"] == (1 / 2 + 4 + 2 / 2) / 7
    plain = RankingMetrics("ndcg@2")
    plain.update(LABELS, SCORES)
    even = fed("ndcg@2", (1, 1, 1))
    assert even.compute()["ndcg@2"] == plain.compute()["ndcg@2"]
    assert even != plain and load(even.to_bytes()) == even


def test_the_interval_is_that_of_a_ratio_of_lists() -> None:
    values = np.array([1 / 2, 1, 1 / 2])
    interval = fed().compute().interval("mrr")
    mean = (WEIGHTS * values).sum() / WEIGHTS.sum()
    residuals = WEIGHTS * (values - mean) / WEIGHTS.sum()
    assert interval.se == pytest.approx(math.sqrt(3 / 2 * (residuals**2).sum()), rel=1e-12)
    assert interval.n == 3


def test_users_and_two_models_weigh_the_same() -> None:
    rng = np.random.default_rng(2)
    labels = np.eye(4, dtype=int)[rng.integers(0, 4, 300)]
    scores, second_scores = rng.random((300, 4)), rng.random((300, 4))
    positions = rng.integers(1, 4, 300)
    users = UserGroups(RankingMetrics("mrr", examination=(1, 0.6, 0.3)))
    users.update(groups=list(range(300)), labels=labels, scores=scores, positions=positions)
    single_metric = RankingMetrics("mrr", examination=(1, 0.6, 0.3))
    single_metric.update(labels, scores, positions=positions)
    assert users.compute().value["mrr"] == single_metric.compute()["mrr"]
    pair = Paired(RankingMetrics("mrr", examination=(1, 0.6, 0.3)))
    pair.update(labels=labels, scores_a=scores, scores_b=second_scores, positions=positions)
    single_metric.reset()
    single_metric.update(labels, second_scores, positions=positions)
    assert pair.compute().b == single_metric.compute()["mrr"]


def test_ranked_ids_have_positions_too() -> None:
    metric = RankingMetrics("mrr", examination=(1, 0.5))
    metric.update_ranked([["a", "b"], ["c"], ["d"]], [["b"], ["c"], []], positions=[2, 1, 0])
    assert metric.compute()["mrr"] == (2 / 2 + 1) / 3
    assert metric.compute().lists_empty == 1


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (None, "got no positions"),
        ([1, 3], "expected 3 values"),
        ([1, 0, 2], r"positions\[1\].*got 0"),
        ([1, 4, 2], r"positions\[1\].*got 4"),
        ([1, -1, 2], r"positions\[1\].*got -1"),
        ([1, 1.5, 2], "positions"),
    ],
)
def test_positions_that_fit_no_list_or_no_rank_are_refused(positions: Any, message: str) -> None:
    metric = fed()
    before = metric.to_bytes()
    with pytest.raises(InputError, match=message):
        metric.update(LABELS, SCORES, positions=positions)
    assert metric.to_bytes() == before


def test_positions_need_an_examination_and_no_empty_list_can_weigh() -> None:
    with pytest.raises(InputError, match="got positions alone"):
        RankingMetrics("mrr").update(LABELS, SCORES, positions=POSITIONS)
    with pytest.raises(SettingsError, match="has no position"):
        RankingMetrics("mrr", examination=(1,), empty="zero")
    for examination in ((), (0,), (1.5,), ("1",), "log", 0.5, (math.nan,)):
        with pytest.raises(SettingsError, match=r"RankingMetrics\.examination"):
            RankingMetrics("mrr", examination=examination)  # type: ignore[arg-type]


def test_a_state_without_examination_has_the_bytes_that_it_always_had() -> None:
    state = RankingMetrics([NDCG @ 3])
    assert b"examination" not in state.to_bytes() and "examination" not in repr(state)
    assert b"examination" in fed().to_bytes()
