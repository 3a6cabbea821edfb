"""What is declared before the data."""

from __future__ import annotations

import math

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Horizon, Safeguard
from streammetrics.present.direction import LOWER, NONE, Direction
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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"decision": "ctr"}, r"decision: expected a tuple of names, got 'ctr'; write \('ctr',\)"),
        ({"variants": "ab"}, r"variants: expected a tuple of names, got 'ab'"),
        ({"decision": (1,)}, "decision: expected a tuple of names"),
        ({"lower_is_better": "ctr"}, r"lower_is_better: .*write \('ctr',\)"),
        ({"lower_is_better": ("crt",)}, "lower_is_better: .* got 'crt'; did you mean 'ctr'?"),
        ({"better": {"crt": "lower"}}, "better: .* got 'crt'; did you mean 'ctr'?"),
        ({"better": {"ctr": "lowr"}}, "better .ctr.: .* got 'lowr'; did you mean 'lower'?"),
        ({"better": {"ctr": True}}, "better .ctr.: .* got True"),
        ({"better": {"ctr": math.nan}}, "better .ctr.: .* got nan"),
        ({"better": {"ctr": "higher"}, "lower_is_better": ("ctr",)}, "as in lower_is_better"),
        ({"better": ("ctr",)}, "better: expected directions by metric"),
        ({"control": "randm"}, "control: .* got 'randm'; did you mean 'random'?"),
        ({"shares": {"random": 1, "bst": 1}}, "shares: .* got 'bst'; did you mean 'bts'?"),
        ({"epoch_shares": {"a": {"bst": 1}}}, "epoch_shares .a.: .*did you mean 'bts'?"),
        ({"horizons": {"crt": Horizon(mde=1)}}, "horizons: .* got 'crt'; did you mean 'ctr'?"),
        ({"guardrails": (Safeguard("auc"),), "lower_is_better": ("au",)}, "did you mean 'auc'?"),
        ({"guardrails": Safeguard("auc")}, "guardrails: expected a tuple of Safeguard"),
        ({"guardrails": ("auc",)}, "guardrails: expected a tuple of Safeguard, got 'auc'"),
        (
            {"guardrails": (Safeguard("auc", 0.1, True),), "lower_is_better": ("auc",)},
            "guardrails .auc.: expected one direction",
        ),
        ({"correction": "bonferoni"}, "correction: .*did you mean 'bonferroni'?"),
    ],
)
def test_a_slip_is_named_with_the_nearest_name(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        plan(**settings)


def test_a_margin_has_no_sign() -> None:
    with pytest.raises(SettingsError, match=r"Safeguard\('auc'\).margin: .* got -0.01; .*sign"):
        Safeguard("auc", -0.01)
    with pytest.raises(SettingsError, match="margin"):
        Safeguard("auc", math.nan)


def test_a_direction_is_declared_for_a_metric_or_for_one_of_its_views() -> None:
    def said(own: Direction = NONE, **settings: object) -> str:
        return str(plan(**settings).direction_of("ctr", "ctr", "ratio", own))

    assert (said(), said(LOWER)) == ("none", "lower")
    assert said(lower_is_better=("ctr",)) == said(lower_is_better=("ctr.ratio",)) == "lower"
    assert said(LOWER, better={"ctr": "higher"}) == "higher"
    assert said(LOWER, better={"ctr": "none"}) == "none"
    assert said(better={"ctr": 0.5}) == "target 0.5"
    both = plan(better={"ctr": "lower", "ctr.ratio": "higher"})
    assert str(both.direction_of("ctr", "ctr", "ratio", NONE)) == "lower"  # as it is named


def test_a_plan_without_a_metric_is_refused() -> None:
    with pytest.raises(SettingsError, match="decision: expected a metric, or a guardrail"):
        plan(decision=())
