"""Before the burn-in nothing is said: estimates that rest on few values, however many rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from streammetrics import (
    MRR,
    BinaryConfusion,
    MulticlassConfusion,
    RankingMetrics,
    Ratio,
    UserGroups,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.experiments import ConfidenceSequence, Evidence, Horizon, compare
from streammetrics.experiments.arm import arm_of, kish_number, needed, no_arm, skewness_number
from streammetrics.experiments.contrast import Contrast
from tests.experiments.arms import area, clicks, grouped_clicks, of_states, only


def revenue(users: int, spent: list[float], first: int = 0) -> UserGroups:
    """What each user spent: the first of them these amounts, the others nothing."""
    state = UserGroups(Ratio())
    values = np.zeros(users)
    values[: len(spent)] = spent
    state.update(groups=np.arange(first, first + users), numerators=values)
    return state


def contrast(control: Accumulator, treatment: Accumulator, metric: str = "m") -> Contrast:
    settings = {"decision": (metric,), "horizon": Horizon(mde=0.1)}
    return only(of_states(control, treatment, "m", **settings))


def test_one_purchase_in_a_small_arm_is_not_called_a_difference() -> None:
    control = revenue(4000, np.random.default_rng(1).normal(20, 2, 40).tolist())
    found = contrast(control, revenue(200, [0.5], first=10**6))
    assert found.comparison.pvalue < 1e-6  # which is why it must not be said
    assert found.anytime.gated and found.anytime.p_value == 1.0
    assert (found.anytime.lower, found.anytime.upper) == (-math.inf, math.inf)
    assert found.anytime.reason.startswith(
        "an arm's estimate rests on too few values: skewness number 1"
    )


def cells(tp: int) -> BinaryConfusion:
    state = BinaryConfusion()
    for truth, predicted, n in ((1, 1, tp), (0, 1, 5), (1, 0, 400), (0, 0, 4000)):
        state.update([truth] * n, [float(predicted)] * n)
    return state


def lists(n: int, found: int, empty: str = "zero") -> RankingMetrics:
    """Of n lists so many with something relevant, at ranks 1 to 4 in turn."""
    state, labels = RankingMetrics([MRR], empty=empty), np.zeros((n, 5), int)
    labels[np.arange(found), np.arange(found) % 4] = 1
    state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (n, 1)))
    return state


def near_one(others: int) -> RankingMetrics:
    """Of 1,000 lists all but so many have the relevant item first."""
    state, labels = RankingMetrics([MRR]), np.zeros((1000, 5), int)
    labels[:, 0] = 1
    labels[:others] = [0, 0, 1, 0, 0]
    state.update(labels, np.tile(np.arange(5.0, 0.0, -1.0), (1000, 1)))
    return state


def few_users() -> UserGroups:
    """Four of 200 users, with 20 clicks each."""
    state, users = UserGroups(Ratio()), np.repeat(np.arange(200), 20)
    state.update(groups=users, numerators=(users < 4).astype(int))
    return state


def spent(buyers: int) -> list[float]:
    return np.random.default_rng(buyers).gamma(8, 2, buyers).tolist()


FEW_VALUES = "an arm's mean rests on too few values: effective number {}, needs 20"
CELLS = "an arm has too few rows that decide the metric: {}, needs 10"
NINE = "an arm has too few successes or failures: 9, needs 10"
MANY_CLICKS = "an arm has too few effective successes or failures: 2, needs 10"


def test_each_kind_of_metric_waits_for_its_number_of_values() -> None:
    rich = revenue(4000, spent(300))
    for name, metric, state, other, why in (
        ("9 successes", "m", clicks(9, 500), None, NINE),
        ("9 failures", "m", clicks(491, 500), None, NINE),
        ("10 successes", "m", clicks(10, 500), clicks(10, 100_000), ""),
        ("10 failures", "m", clicks(490, 500), None, ""),
        ("an area", "m", area(1, 50, 1.0), None, "positives or negatives: 22, needs 30"),
        ("more of it", "m", area(1, 100, 1.0), None, ""),
        ("99 lists", "m", lists(99, 99), None, "too few rows or lists: 99, needs 100"),
        ("100 lists", "m", lists(100, 100), None, ""),
        ("few hits", "m", lists(3000, 12), lists(3000, 60), FEW_VALUES.format(9.1)),
        ("hits enough", "m", lists(3000, 60), None, ""),
        ("19 that are not 1", "m", near_one(19), near_one(500), ", needs 20"),
        ("21 that are not 1", "m", near_one(21), near_one(500), ""),
        (
            "15 users",
            "m",
            grouped_clicks(1, 15, 0.4),
            None,
            "too few groups of users: 11, needs 16",
        ),
        ("400 users", "m", grouped_clicks(1, 400, 0.4), None, ""),
        ("users of many clicks", "m", few_users(), grouped_clicks(2, 900, 0.1), MANY_CLICKS),
        ("3 buyers", "m", revenue(4000, spent(3)), rich, "needs 10"),
        ("300 buyers", "m", rich, None, ""),
        ("nobody buys", "m", rich, revenue(4000, []), "says nothing about other rows"),
        ("F1 of 9", "m.f1", cells(9), None, CELLS.format(9)),
        ("F1 of 12", "m.f1", cells(12), None, ""),
        ("mcc of 5", "m.mcc", cells(12), None, CELLS.format(5)),
        ("balanced of 5", "m.balanced_accuracy", cells(12), None, CELLS.format(5)),
    ):
        found = contrast(state, other or state.copy(), metric).anytime
        assert found.reason.endswith(why), name
        assert found.gated == bool(found.reason) == bool(why), name


def test_what_is_counted_is_divided_by_the_design_effect() -> None:
    arm = arm_of(few_users(), None, 0.95)
    assert min(arm.counted) == 80 and arm.deff > 8
    assert arm.least == math.floor(80 / arm.deff) < 10


def test_a_small_arm_needs_more_values_than_one_of_two_equal_ones() -> None:
    assert [needed(a, b) for a, b in ((5, 5), (2, 8), (1, 19), (8, 2))] == pytest.approx(
        [10.0, 25.6, 36.1, 10.0], rel=1e-15
    )
    small, large = (
        replace(
            no_arm(""), value=0.5, variance=0.1, rows=rows, replicates=(*[1.0] * 25, *[0.0] * 5_000)
        )
        for rows in (1000, 9000)
    )
    assert small.no_sequence(small) == "" and large.no_sequence(small) == ""
    assert small.no_sequence(large).endswith("skewness number 25.3, needs 32.4")


def test_the_skewness_number_of_rare_ones_is_their_number_at_any_scale() -> None:
    for scale in (1.0, 1e-200, 1e200):
        found = skewness_number([scale] * 7 + [0.0] * 50_000)
        assert found == pytest.approx(7.0, rel=1e-3)
    assert skewness_number([-1.0, 0.0, 1.0]) == math.inf
    assert skewness_number([0.5] * 64) == skewness_number([]) == 0.0
    assert skewness_number([1.0, math.nan, 2.0]) == 0.0
    assert kish_number(100, 0.0, 0.0) == 0.0 and kish_number(9, 2.0, 0.0) == 9.0


def test_parts_of_a_result_wait_for_their_cells_too() -> None:
    state = MulticlassConfusion(3)
    for truth, predicted, n in ((0, 0, 900), (1, 1, 500), (0, 1, 90), (2, 2, 4), (2, 0, 40)):
        state.update([truth] * n, [predicted] * n)
    result = state.compute()
    assert result.least_cell("rates(2).f1") == 4 and result.least_cell("rates(2)") is None
    assert result.least_cell("mcc") == 130 and result.least_cell("accuracy") is None
    assert 3 <= (result.least_cell("macro_f1") or 0) < 10  # the rare class decides it
    assert (result.least_cell("f1(weighted)") or 0) > 30


def test_a_sequence_that_is_asked_by_itself_waits_as_well() -> None:
    look = compare(revenue(4000, [20.0] * 40), revenue(200, [0.5], first=10**6))
    found = ConfidenceSequence(v_opt=100.0).at(look)
    assert found.gated and found.reason == look.no_sequence != ""
    plain = Evidence(effect_size=0.5, std_error=0.1, least_count=50)
    assert not ConfidenceSequence(v_opt=100.0).at(plain).gated
