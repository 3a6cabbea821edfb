"""What is declared before the data."""

from __future__ import annotations

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Horizon, Safeguard
from tests.experiments.arms import plan


@pytest.mark.parametrize(
    "settings",
    [
        {"control": "other"},
        {"variants": ("random",)},
        {"variants": ("random", "bts", "bts")},
        {"decision": ("ctr", "ctr")},
        {"guardrails": (Safeguard("ctr"),)},
        {"level": 1.0},
        {"correction": "holm"},
        {"cluster": "users"},
        {"on_several_variants": "ignore"},
        {"shares": {"other": 1}},
        {"shares": {"random": -1, "bts": 2}},
        {"epoch_shares": {"a": {"random": 0}}},
    ],
)
def test_what_contradicts_itself_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        plan(**settings)


def test_decisions_share_the_level_and_guardrails_do_not_count() -> None:
    many = plan(decision=("ctr", "auc"), guardrails=(Safeguard("gauc"),))
    assert round(many.alpha, 12) == 0.025
    assert round(plan(decision=("ctr", "auc"), correction="none").alpha, 12) == 0.05


def test_shares_are_equal_unless_they_are_declared() -> None:
    assert plan().weights("any") == {"random": 1, "bts": 1}
    ramp = plan(shares={"random": 9, "bts": 1}, epoch_shares={"b": {"bts": 1}})
    assert ramp.weights("a") == {"random": 9, "bts": 1}
    assert ramp.weights("b") == {"random": 0, "bts": 1}


def test_a_horizon_of_all_units_is_that_of_the_two_arms() -> None:
    horizon = Horizon(units=10_000, baseline=0.1)
    assert plan(horizon=horizon).horizon_of("ctr", "bts") == horizon
    found = plan(
        variants=("random", "bts", "third"),
        horizon=horizon,
        shares={"random": 3, "bts": 1, "third": 4},
    ).horizon_of("ctr", "bts")
    assert (found.units, found.treatment_share) == (5000, 0.25)
    effect = Horizon(mde=0.01)
    many = plan(decision=("ctr", "auc"), horizons={"auc": effect}, horizon=horizon)
    assert many.horizon_of("auc", "bts") == effect
    assert many.horizon_of("ctr", "bts") == horizon


def test_a_horizon_of_a_metric_that_is_not_watched_is_refused() -> None:
    with pytest.raises(SettingsError, match="metrics of decision and guardrails"):
        plan(horizons={"ctr.ratio": Horizon(mde=0.01)})
    rails = (Safeguard("auc.gini"),)
    assert plan(guardrails=rails, horizons={"auc.gini": Horizon(mde=0.01)}).horizons


def test_only_a_baseline_makes_a_horizon_that_of_a_rate() -> None:
    assert plan().is_for_rates("ctr")
    others = [
        Horizon(),
        Horizon(mde=0.1),
        Horizon(units=100),
        Horizon(baseline=0.1),
        Horizon(units=100, baseline=0.1, variance=2.0),
    ]
    for horizon in others:
        assert not plan(horizon=horizon).is_for_rates("ctr")
        assert not plan(horizons={"ctr": horizon}).is_for_rates("ctr")


def test_epochs_have_their_declared_order_and_then_that_of_their_names() -> None:
    assert plan(epochs=("start", "2026")).ordered(["b", "2026", "a", "start"]) == [
        "start",
        "2026",
        "a",
        "b",
    ]
