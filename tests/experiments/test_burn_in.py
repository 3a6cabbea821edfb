"""Before the burn-in nothing is said: estimates that rest on few values, however many rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import (
    MRR,
    BinaryConfusion,
    MulticlassConfusion,
    RankingMetrics,
    Ratio,
    Regression,
    UserGroups,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.experiments import ConfidenceSequence, Evidence, Experiment, Horizon, compare
from streammetrics.experiments.arm import Arm, arm_of, kish_number, needed, skewness_number
from streammetrics.experiments.contrast import Contrast
from tests.experiments.arms import clicks, grouped_clicks, plan


def revenue(users: int, spent: list[float], first: int = 0) -> UserGroups:
    """What each user spent: the first of them these amounts, the others nothing."""
    state = UserGroups(Ratio())
    values = np.zeros(users)
    values[: len(spent)] = spent
    state.update(users=np.arange(first, first + users), numerators=values)
    return state


def contrast(control: Accumulator, treatment: Accumulator, metric: str = "m") -> Contrast:
    arms = {"random": {"m": control}, "bts": {"m": treatment}}
    settings = plan(decision=(metric,), horizon=Horizon(mde=0.1))
    (found,) = Experiment(settings, {"": arms}).contrasts()
    return found


def test_one_purchase_in_a_small_arm_is_not_called_a_difference() -> None:
    control = revenue(4000, np.random.default_rng(1).normal(20, 2, 40).tolist())
    found = contrast(control, revenue(200, [0.5], first=10**6))
    assert found.comparison.pvalue < 1e-6  # which is why it must not be said
    assert found.anytime.gated and found.anytime.p_value == 1.0
    assert (found.anytime.lower, found.anytime.upper) == (-math.inf, math.inf)
    assert found.anytime.reason.startswith(
        "an arm's estimate rests on too few values: skewness number 1"
    )
    arms = {"random": {"m": control}, "bts": {"m": revenue(200, [0.5], first=10**6)}}
    (said,) = Experiment(plan(decision=("m",)), {"": arms}).report().findings
    assert "worse" not in said.sentence and "better" not in said.sentence


@pytest.mark.parametrize(("buyers", "gated"), [(3, True), (300, False)])
def test_revenue_waits_for_buyers_and_not_for_rows(buyers: int, gated: bool) -> None:
    rng = np.random.default_rng(2)
    arms = [revenue(4000, rng.gamma(8, 2, buyers).tolist(), first=i * 10**6) for i in (0, 1)]
    assert contrast(*arms).anytime.gated is gated


def test_one_large_purchase_among_many_makes_few_values_of_them() -> None:
    spent = np.random.default_rng(3).gamma(8, 2, 400)
    fine = [revenue(4000, spent.tolist(), first=i * 10**6) for i in (0, 1)]
    whale = revenue(4000, [*spent[:-1], 50_000.0], first=10**6)
    assert not contrast(*fine).anytime.gated
    assert contrast(fine[0], whale).anytime.gated and contrast(whale, fine[0]).anytime.gated


def test_a_small_arm_needs_more_values_than_one_of_two_equal_ones() -> None:
    assert [needed(a, b) for a, b in ((5, 5), (2, 8), (1, 19), (8, 2))] == pytest.approx(
        [10.0, 25.6, 36.1, 10.0], rel=1e-15
    )
    replicates = tuple([1.0] * 25 + [0.0] * 5_000)
    small = Arm(
        view="", value=0.5, variance=0.1, df=63.0, method="", rows=1000, n=1000, deff=math.nan,
        kind="mean", counted=(1000,), replicates=replicates,
    )  # fmt: skip
    large = Arm(
        view="", value=0.5, variance=0.1, df=63.0, method="", rows=9000, n=9000, deff=math.nan,
        kind="mean", counted=(9000,), replicates=replicates,
    )  # fmt: skip
    assert small.too_skew(small) == "" and large.too_skew(small) == ""
    assert small.too_skew(large).endswith("skewness number 25.3, needs 32.4")


def test_the_skewness_number_of_rare_ones_is_their_number_at_any_scale() -> None:
    for scale in (1.0, 1e-200, 1e200):
        found = skewness_number([scale] * 7 + [0.0] * 100_000)
        assert found == pytest.approx(7.0, rel=1e-3)
    assert skewness_number([-1.0, 0.0, 1.0]) == math.inf
    assert skewness_number([0.5] * 64) == skewness_number([]) == 0.0
    assert skewness_number([1.0, math.nan, 2.0]) == 0.0
    assert kish_number(100, 0.0, 0.0) == 0.0 and kish_number(9, 2.0, 0.0) == 9.0


def found(rows: list[tuple[int, int, int]]) -> BinaryConfusion:
    """Rows of truth, prediction and how many."""
    state = BinaryConfusion()
    for truth, predicted, n in rows:
        state.update([truth] * n, [float(predicted)] * n)
    return state


@pytest.mark.parametrize(
    ("tp", "view", "least"),
    [(3, "f1", 3), (9, "f1", 9), (12, "f1", 12), (12, "mcc", 5), (12, "balanced_accuracy", 5)],
)
def test_views_of_a_confusion_matrix_wait_for_their_least_cell(
    tp: int, view: str, least: int
) -> None:
    state = found([(1, 1, tp), (0, 1, 5), (1, 0, 400), (0, 0, 4000)])
    one = contrast(state, state.copy(), f"m.{view}")
    assert (one.comparison.kind, one.comparison.least_count) == ("cells", least)
    assert one.anytime.gated is (least < 10)
    if least < 10:
        why = f"an arm has {least} rows in the least cell that decides the metric; it needs 10"
        assert one.anytime.reason == why


def test_parts_of_a_result_wait_for_their_cells_too() -> None:
    state = MulticlassConfusion(3)
    for truth, predicted, n in ((0, 0, 900), (1, 1, 500), (0, 1, 90), (2, 2, 4), (2, 0, 40)):
        state.update([truth] * n, [predicted] * n)
    result = state.compute()
    assert result.least_cell("rates(2).f1") == 4 and result.least_cell("rates(2)") is None
    assert result.least_cell("mcc") == 130 and result.least_cell("accuracy") is None
    assert 3 <= (result.least_cell("macro_f1") or 0) < 10  # the rare class decides it
    assert (result.least_cell("f1(weighted)") or 0) > 30


def test_sparse_lists_wait_for_values_and_not_for_lists() -> None:
    def lists(n: int, hits: int) -> RankingMetrics:
        state, labels = RankingMetrics([MRR], empty="zero"), np.zeros((n, 5), int)
        labels[np.arange(hits), np.arange(hits) % 4] = 1
        state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (n, 1)))
        return state

    few, many = lists(3000, 12), lists(3000, 60)
    assert not contrast(many, many.copy(), "m.MRR").anytime.gated
    assert contrast(few, many, "m.MRR").anytime.reason.startswith(
        "an arm's mean rests on too few values: they weigh as much as 9.1 equal ones, needs 20"
    )


def test_means_near_one_wait_for_what_is_not_one() -> None:
    def lists(others: int) -> RankingMetrics:
        state, labels = RankingMetrics([MRR]), np.zeros((1000, 5), int)
        labels[:, 0] = 1
        labels[:others] = [0, 0, 1, 0, 0]
        state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (1000, 1)))
        return state

    assert contrast(lists(19), lists(500), "m.MRR").anytime.gated
    assert not contrast(lists(21), lists(500), "m.MRR").anytime.gated


def test_a_mean_error_of_a_few_large_ones_waits() -> None:
    def errors(large: int) -> Regression:
        state = Regression()
        state.update(np.zeros(2000), [100.0] * large + [0.01] * (2000 - large))
        return state

    assert contrast(errors(5), errors(5), "m.mae").anytime.gated
    assert not contrast(errors(30), errors(30), "m.mae").anytime.gated


def test_what_is_counted_is_divided_by_the_design_effect() -> None:
    state = UserGroups(Ratio())
    users = np.repeat(np.arange(200), 20)
    state.update(users=users, numerators=(users < 4).astype(int))  # 4 users with 20 clicks each
    arm = arm_of(state, None, 0.95)
    assert min(arm.counted) == 80 and arm.deff > 8
    assert arm.least == math.floor(80 / arm.deff) < 10
    assert contrast(state, grouped_clicks(2, 900, 0.1, first=10**6)).anytime.gated


def test_an_arm_without_variance_is_gated() -> None:
    bought = revenue(4000, np.random.default_rng(1).gamma(8, 2, 300).tolist())
    nobody = revenue(4000, [], first=10**6)
    one = contrast(bought, nobody)
    assert one.comparison.std_error > 0 and one.anytime.gated
    assert one.anytime.reason == "the variance of an arm is 0, which says nothing of other users"


def test_a_sequence_that_is_asked_by_itself_waits_as_well() -> None:
    look = compare(revenue(4000, [20.0] * 40), revenue(200, [0.5], first=10**6))
    found = ConfidenceSequence(v_opt=100.0).at(look)
    assert found.gated and found.reason == look.too_skew != ""
    plain = Evidence(effect_size=0.5, std_error=0.1, least_count=50)
    assert not ConfidenceSequence(v_opt=100.0).at(plain).gated


def test_rates_wait_for_ten_as_they_did() -> None:
    assert contrast(clicks(10, 500), clicks(10, 100_000)).anytime.gated is False
