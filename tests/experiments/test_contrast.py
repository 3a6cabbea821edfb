"""One treatment on one metric, at one look."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import HistogramAUC, RankingMetrics, Ratio, UserGroups
from streammetrics.experiments import Contrast, Experiment, Horizon, Plan, Safeguard
from streammetrics.experiments.confidence_sequence import UNDECLARED
from tests.experiments.arms import area, clicks, grouped_clicks, plan, two


def only(experiment: Experiment) -> Contrast:
    (found,) = experiment.contrasts()
    return found


def test_real_clicks_look_convincing_once_and_not_always() -> None:
    found = only(two((46, 10_000), (69, 10_000)))
    assert f"{found.comparison.pvalue:.3f}" == "0.031"
    assert f"{found.anytime.p_value:.4f}" == "0.6073"
    assert found.name == "ctr.ratio/bts" and (found.n_eff, found.deff) == (20_000.0, 1.0)
    assert found.comparison.effect_size == 0.0023 and not found.anytime.gated


def test_without_a_horizon_there_is_none_and_the_reason_says_so() -> None:
    found = only(two((46, 10_000), (69, 10_000), horizon=Horizon()))
    assert (found.anytime.p_value, found.anytime.lower) == (1.0, -math.inf)
    assert found.anytime.reason == "neither a horizon nor an mde was declared before the data"
    assert "declared before the data" in UNDECLARED


def test_successes_alone_say_something_too_with_the_planned_shares() -> None:
    found = only(two((46, 10_000), (69, 10_000)))
    assert found.label is not None and found.label.lower < 1.5 < found.label.upper
    assert found.comparison.successes is not None
    assert found.comparison.successes[0].share == Fraction(1, 2)
    third = only(two((46, 20_000), (69, 10_000), shares={"random": 2, "bts": 1}))
    assert third.comparison.successes is not None
    assert third.comparison.successes[0].share == Fraction(1, 3)
    assert only(two((5, 10), (5, 10), shares={"random": 1})).label is None


@pytest.mark.parametrize(("least", "gated"), [(9, True), (10, False)])
def test_rates_wait_for_ten_successes_and_failures_in_each_arm(least: int, gated: bool) -> None:
    for arms in ((least, 500), (490, 500)), ((500 - least, 500), (100, 500)):
        found = only(two(*arms))
        assert found.anytime.gated == gated
        assert ("it needs 10" in found.anytime.reason) == gated


def wait(metric: Ratio | HistogramAUC | UserGroups | RankingMetrics) -> str:
    states = {"random": {"m": metric}, "bts": {"m": metric}}
    return only(Experiment(plan(decision=("m",)), {"": states})).anytime.reason


def lists(n: int) -> RankingMetrics:
    state = RankingMetrics(["NDCG@5"])
    labels = np.random.default_rng(1).integers(0, 2, (n, 5))
    labels[:, 0] = 1
    state.update(labels, np.random.default_rng(2).random((n, 5)))
    return state


def test_areas_wait_for_thirty_of_each_class_and_means_for_a_hundred_rows() -> None:
    assert "positives or negatives; it needs 30" in wait(area(1, 50, 1.0))
    assert wait(area(1, 100, 1.0)) == ""
    assert wait(lists(99)) == "an arm has 99 rows; it needs 100"
    assert wait(lists(100)) == ""


def test_users_wait_for_sixteen_groups() -> None:
    assert "groups of users with rows; it needs 16" in wait(grouped_clicks(1, 15, 0.4))
    assert wait(grouped_clicks(1, 400, 0.4)) == ""


def test_many_decisions_have_wider_intervals_that_hold_together() -> None:
    one = only(two((460, 9000), (690, 9000)))
    arms = {name: {"ctr": clicks(n, 9000)} for name, n in (("a", 460), ("b", 690), ("c", 500))}
    several = Plan(
        control="a",
        variants=("a", "b", "c"),
        decision=("ctr",),
        horizon=Horizon(units=15_000, baseline=0.00575),
    )
    first, second = Experiment(several, {"": arms}).contrasts()
    assert (first.treatment_variant, second.treatment_variant) == ("b", "c")
    assert several.alpha == pytest.approx(0.025, rel=1e-15)
    assert first.anytime.lower < one.anytime.lower and first.anytime.upper > one.anytime.upper
    assert several.horizon_of("ctr", "b").units == 10_000


def test_a_guardrail_is_read_from_the_side_of_harm() -> None:
    rail = Safeguard("ctr", margin=0.004)
    found = only(two((520, 10_000), (585, 10_000), decision=(), guardrails=(rail,)))
    assert (
        found.safeguard == replace(rail, higher_is_better=True)
        and found.guarded is not None
        and found.guarded.passed
    )
    assert found.anytime.lower == found.guarded.bound > -0.004
    assert found.anytime.log_e == found.guarded.log_e and found.label is None
    less = Safeguard("ctr", margin=0.004, higher_is_better=False)
    worse = only(two((520, 10_000), (585, 10_000), decision=(), guardrails=(less,)))
    assert worse.guarded is not None and not worse.guarded.passed
    assert worse.anytime.upper == worse.guarded.bound > 0
    waiting = only(two((1, 10), (1, 10), decision=(), guardrails=(rail,)))
    assert waiting.guarded is not None and waiting.guarded.gated and waiting.anytime.gated


def test_buckets_that_may_have_moved_the_effect_weaken_the_evidence() -> None:
    arms = {}
    for name, shift in (("random", 0.0), ("bts", 0.3)):
        rng, state = np.random.default_rng(3), HistogramAUC(resolution=0)
        labels = rng.integers(0, 2, 20_000)
        scores = 0.3 + 0.05 * rng.normal(shift * labels, 1.0)
        state.update(labels, np.clip(scores, 0, 1))
        arms[name] = {"auc": state}
    found = only(Experiment(plan(decision=("auc",), horizon=Horizon(mde=0.01)), {"": arms}))
    off = found.comparison.resolution
    assert off > 0 and found.anytime.upper - found.comparison.effect_size > off
    rail = plan(decision=(), guardrails=(Safeguard("auc", 0.01),), horizon=Horizon(mde=0.01))
    guarded = only(Experiment(rail, {"": arms})).guarded
    assert guarded is not None and guarded.bound < found.comparison.effect_size - off
