"""What is declared before the data: horizons, directions, shares, guardrails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Horizon, Safeguard
from streammetrics.experiments.horizon import at_horizon, for_effect
from streammetrics.kernels.inference.tails import normal_isf, normal_sf
from streammetrics.present.view import LOWER, NONE, Direction
from tests.experiments.arms import plan


def test_a_horizon_of_units_is_tuned_at_its_half() -> None:
    horizon = Horizon(units=10_000, baseline=0.00575)
    assert horizon.v_opt == 0.5 * at_horizon(10_000, 0.00575 * (1 - 0.00575))
    assert horizon.reason == ""
    whole = Horizon(units=10_000, variance=0.2, treatment_share=0.1, deff=2.0, optimize_at=1.0)
    assert whole.v_opt == at_horizon(10_000, 0.2, treatment_share=0.1, deff=2.0)


def test_an_effect_that_matters_stands_for_both() -> None:
    horizon = Horizon(mde=0.002, alpha=0.1, power=0.9)
    assert horizon.v_opt == 0.5 * for_effect(0.002, alpha=0.1, power=0.9)


def test_without_it_there_is_none_and_the_reason_says_why() -> None:
    for horizon, word in (
        (Horizon(), "neither"),
        (Horizon(baseline=0.1), "neither"),
        (Horizon(units=100), "baseline"),
        (Horizon(units=100, baseline=0.0), "positive"),
        (Horizon(units=0, baseline=0.5), "positive"),
        (Horizon(mde=0.0), "positive"),
    ):
        assert horizon.v_opt is None and word in horizon.reason, horizon


def test_what_can_be_no_horizon_is_refused() -> None:
    for wrong, expected in (
        ({"mde": -1.0}, r"Horizon\(mde\): expected a size of at least 0, got -1"),
        *(
            ({"mde": 0.1, setting: 0.1}, f"got {setting}, mde; leave out")
            for setting in ("units", "baseline", "variance")
        ),
        ({"mde": 0.1, "units": 9.0, "baseline": 0.1}, "got units, baseline, mde"),
        (
            {"units": math.nan, "baseline": 0.5},
            "a finite number, at least 0, got nan",
        ),
        (
            {"units": -5.0, "baseline": 0.5},
            "a finite number, at least 0, got -5.0",
        ),
        ({"units": 9.0, "variance": -1.0}, "variance.: expected a finite number, at least 0"),
        ({"mde": math.nan}, "mde.: expected a finite number, at least 0, got nan"),
        ({"units": 9.0, "baseline": 2.0}, "baseline.: expected a rate from 0 to 1, got 2.0; pass"),
        *(
            ({"units": 9.0, "baseline": 0.5, setting: value}, rf"Horizon\({setting}\): expected")
            for setting in ("treatment_share", "deff", "alpha", "power", "optimize_at")
            for value in ("0.5", None, 0, -2, math.nan, math.inf, 10**400)
        ),
        *(
            ({"mde": 0.1, setting: 1.5}, rf"{setting}.: expected a number .* got 1.5; pass")
            for setting in ("treatment_share", "alpha", "power", "optimize_at")
        ),
    ):
        with pytest.raises(SettingsError, match=expected):
            Horizon(**wrong)  # type: ignore[arg-type]


def test_the_information_is_one_over_the_variance_of_the_difference() -> None:
    n, variance, deff = 20_000, 0.0475, 2.5
    for share in (0.5, 0.1, 0.75):
        expected = 1 / (variance * deff * (1 / (n * share) + 1 / (n * (1 - share))))
        information = at_horizon(n, variance, treatment_share=share, deff=deff)
        assert math.isclose(information, expected, rel_tol=1e-14), share
    assert f"{at_horizon(40_000, 0.0475):.6f}" == "210526.315789"
    for bad in (0.0, -1.0, math.nan, math.inf):
        assert math.isnan(at_horizon(bad, 0.1)) and math.isnan(at_horizon(10, bad))
        assert math.isnan(at_horizon(10, 0.1, deff=bad))
        assert math.isnan(at_horizon(10, 0.1, treatment_share=bad))
        assert bad == -1.0 or math.isnan(for_effect(bad))


def test_a_fixed_test_then_has_the_power() -> None:
    error = 1 / math.sqrt(for_effect(0.01, alpha=0.1, power=0.9))
    assert math.isclose(normal_sf(normal_isf(0.05) - 0.01 / error), 0.9, rel_tol=1e-12)
    assert for_effect(-0.01) == for_effect(0.01)


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
    arm_horizon = plan(
        variants=("random", "bts", "third"),
        horizon=horizon,
        shares={"random": 3, "bts": 1, "third": 4},
    ).horizon_of("ctr", "bts")
    assert (arm_horizon.units, arm_horizon.treatment_share) == (5000, 0.25)
    effect = Horizon(mde=0.01)
    many = plan(decision=("ctr", "auc"), horizons={"auc": effect}, horizon=horizon)
    assert many.horizon_of("auc", "bts") == effect
    assert many.horizon_of("ctr", "bts") == horizon


def test_only_a_baseline_makes_a_horizon_that_of_a_rate() -> None:
    assert plan().is_for_rates("ctr")
    horizons = [
        Horizon(),
        Horizon(mde=0.1),
        Horizon(units=100),
        Horizon(baseline=0.1),
        Horizon(units=100, baseline=0.1, variance=2.0),
    ]
    for horizon in horizons:
        assert not plan(horizon=horizon).is_for_rates("ctr")
        assert not plan(horizons={"ctr": horizon}).is_for_rates("ctr")


def test_epochs_have_their_declared_order_and_then_that_of_their_names() -> None:
    assert plan(epochs=("start", "2026")).ordered(["b", "2026", "a", "start"]) == [
        "start",
        "2026",
        "a",
        "b",
    ]


def test_a_slip_is_named_with_the_nearest_name() -> None:
    for settings, message in (
        ({"decision": "ctr"}, r"decision: expected a tuple of names, got 'ctr'; write \('ctr',\)"),
        ({"variants": "ab"}, r"variants: expected a tuple of names, got 'ab'"),
        ({"decision": (1,)}, "decision: expected a tuple of names"),
        ({"decision": ()}, "decision: expected a metric, or a guardrail"),
        ({"decision": ("ctr", "ctr")}, "decision"),
        ({"variants": ("random",)}, "variants"),
        ({"variants": ("random", "bts", "bts")}, "variants"),
        ({"guardrails": (Safeguard("auc"), Safeguard("auc"))}, "guardrails: expected each metric"),
        ({"min_days": 0}, "min_days: expected a whole number of days, at least 1, got 0"),
        ({"min_days": True}, "min_days: .* got True"),
        ({"level": 1.0}, "level"),
        ({"cluster": "users"}, "cluster"),
        ({"on_several_variants": "ignore"}, "on_several_variants"),
        ({"shares": {"random": -1, "bts": 2}}, "shares"),
        ({"epoch_shares": {"a": {"random": 0}}}, "epoch_shares"),
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
        ({"horizons": {"ctr.ratio": Horizon(mde=1)}}, "metrics of decision and guardrails"),
    ):
        with pytest.raises(SettingsError, match=message):
            plan(**settings)
    for margin in (-0.01, math.nan):
        with pytest.raises(
            SettingsError, match=rf"Safeguard\('auc'\).margin: .* got {margin}; .*sign"
        ):
            Safeguard("auc", margin)
    rails = (Safeguard("auc.gini"),)
    assert plan(guardrails=rails, horizons={"auc.gini": Horizon(mde=0.01)}).horizons


def test_a_direction_is_declared_for_a_metric_or_for_one_of_its_views() -> None:
    def direction(metric_direction: Direction = NONE, **settings: object) -> str:
        return str(plan(**settings).direction_of("ctr", "ctr", "ratio", metric_direction))

    assert (direction(), direction(LOWER)) == ("none", "lower")
    assert (
        direction(lower_is_better=("ctr",)) == direction(lower_is_better=("ctr.ratio",)) == "lower"
    )
    assert direction(LOWER, better={"ctr": "higher"}) == "higher"
    assert direction(LOWER, better={"ctr": "none"}) == "none"
    assert direction(better={"ctr": 0.5}) == "target 0.5"
    design = plan(better={"ctr": "lower", "ctr.ratio": "higher"})
    assert str(design.direction_of("ctr", "ctr", "ratio", NONE)) == "lower"  # as it is named


def test_shares_of_numpy_are_kept_as_numbers_of_python() -> None:
    shares = {"random": np.uint64(9), "bts": np.float32(0.5)}
    declared = plan(shares=shares, epoch_shares={"b": shares}, min_days=np.int64(3))
    for weights in (declared.weights("a"), declared.weights("b")):
        assert weights == {"random": 9, "bts": 0.5}
        assert [type(weight) for weight in weights.values()] == [int, float]
    assert type(declared.min_days) is int
    horizon = Horizon(units=np.float32(100), variance=np.float32(0.5), deff=np.int64(2))
    assert horizon == Horizon(units=100.0, variance=0.5, deff=2)
    assert [type(number) for number in (horizon.units, horizon.variance)] == [float, float]


def test_information_that_is_too_large_for_a_float_is_none() -> None:
    horizon = Horizon(units=100, baseline=0.1, deff=5e-324)
    assert horizon.v_opt is None and "finite" in horizon.reason


@pytest.mark.parametrize("ending", ["(guardrail)", "(decided)", "(since the decision)"])
def test_a_variant_has_no_name_that_the_looks_give_to_readings_of_another(ending: str) -> None:
    with pytest.raises(SettingsError, match="variants: expected names that do not end in"):
        plan(variants=("random", "bts", f"bts {ending}"))
