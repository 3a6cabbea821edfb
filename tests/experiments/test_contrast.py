"""One treatment on one metric, at one look."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import HistogramAUC
from streammetrics.experiments import Experiment, Horizon, Plan, Safeguard
from tests.experiments.arms import clicks, only, plan, two


def test_real_clicks_look_convincing_once_and_not_always() -> None:
    found = only(two((46, 10_000), (69, 10_000)))
    assert f"{found.comparison.pvalue:.3f}" == "0.031"
    assert f"{found.anytime.p_value:.4f}" == "0.6073"
    assert found.name == "ctr.ratio/bts" and (found.n_eff, found.deff) == (20_000.0, 1.0)
    assert found.comparison.effect_size == 0.0023 and not found.anytime.gated


def test_successes_alone_say_something_too_with_the_planned_shares() -> None:
    found = only(two((46, 10_000), (69, 10_000)))
    assert found.label is not None and found.label.lower < 1.5 < found.label.upper
    assert found.comparison.successes is not None
    assert found.comparison.successes[0].share == Fraction(1, 2)
    third = only(two((46, 20_000), (69, 10_000), shares={"random": 2, "bts": 1}))
    assert third.comparison.successes is not None
    assert third.comparison.successes[0].share == Fraction(1, 3)
    assert only(two((5, 10), (5, 10), shares={"random": 1})).label is None


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
