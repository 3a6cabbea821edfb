"""The units of a test that is looked at daily: invariances, other programs' numbers, refusals."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from streammetrics import (
    ExactQuantiles,
    HistogramAUC,
    Interleaving,
    Moments,
    Ratio,
    UnitMean,
    UserGroups,
    plan_test,
)
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import ConfidenceSequence, Evidence, Horizon, PlannedTest
from tests.experiments.arms import clicks

NORMAL = NormalDist()


def rate_plan(**design: object) -> PlannedTest:
    arguments = {"rate": 0.05, "lift": 0.1, "units_per_day": 10_000, **design}
    return plan_test(**arguments)  # type: ignore[arg-type]


def test_one_look_has_the_classical_number_of_two_rates_with_own_variances() -> None:
    z = NORMAL.inv_cdf(0.975) + NORMAL.inv_cdf(0.8)
    variance = 0.05 * 0.95 + 0.06 * 0.94
    assert rate_plan(lift=None, effect=0.01).one_look.control == math.ceil(
        variance * (z / 0.01) ** 2
    )
    assert rate_plan(lift=None, effect=0.002).one_look.treatment == 189_936


def test_one_look_has_the_classical_number_of_two_means() -> None:
    z = NORMAL.inv_cdf(0.975) + NORMAL.inv_cdf(0.9)
    planned = plan_test(mean=10.0, std=40.0, effect=2.0, power=0.9, share=0.25)
    traffic = (z * 40.0 / 2.0) ** 2 * (1 / 0.75 + 1 / 0.25)
    assert planned.one_look.control == math.ceil(traffic * 0.75)
    assert planned.one_look.treatment == math.ceil(traffic * 0.25)


@pytest.mark.parametrize("design", [{"rate": 0.05}, {"mean": 3.0, "std": 9.0}])
def test_half_the_effect_takes_about_four_times_the_units(design: dict[str, float]) -> None:
    whole, half = (plan_test(**design, lift=lift).size.units for lift in (0.1, 0.05))  # type: ignore[arg-type]
    assert half / whole == pytest.approx(4.0, rel=0.06)  # of a rate its variance changes, too


@pytest.mark.parametrize(
    "design",
    [{"rate": 0.05}, {"mean": 3.0, "std": 9.0}, {"auc": 0.7, "positives": 0.1}],
)
def test_swapped_shares_change_nothing_but_the_names_of_the_arms(design: dict[str, float]) -> None:
    few, many = (
        plan_test(**design, effect=0.02, units_per_day=1_000, share=share)  # type: ignore[arg-type]
        for share in ((0.9, 0.1), (0.1, 0.9))
    )
    assert (few.size.control, few.size.treatment) == (many.size.treatment, many.size.control)
    assert few.size.days == pytest.approx(many.size.days, rel=1e-12)


def test_a_rate_and_the_rate_of_the_others_are_planned_alike() -> None:
    events = rate_plan(lift=None, effect=0.004)
    complement = rate_plan(rate=0.95, lift=None, effect=-0.004)
    assert events.size.units == pytest.approx(complement.size.units, abs=2)
    assert events.one_look.units == pytest.approx(complement.one_look.units, abs=2)
    assert events.gates[0].rows == pytest.approx(complement.gates[0].rows)


def test_more_power_or_a_higher_level_needs_more_units() -> None:
    by_power = [rate_plan(power=power).size.units for power in (0.5, 0.7, 0.8, 0.9, 0.99)]
    by_level = [rate_plan(level=level).size.units for level in (0.8, 0.9, 0.95, 0.999)]
    assert by_power == sorted(set(by_power)) and by_level == sorted(set(by_level))


def test_the_scale_of_a_mean_does_not_matter_for_relative_effects() -> None:
    plans = [
        plan_test(mean=3.0 * s, std=9.0 * s, lift=0.02, units_per_day=5_000) for s in (1.0, 2.0**20)
    ]
    assert plans[0].size == plans[1].size and plans[0].one_look == plans[1].one_look


def test_more_looks_need_fewer_units_than_one_and_more_than_the_classical_number() -> None:
    once, weekly, daily = (
        rate_plan(units_per_day=pace).size.units for pace in (None, 30_000, 5_000)
    )
    assert once > weekly > daily > rate_plan().one_look.units


def test_a_single_look_finds_the_effect_with_its_power_by_the_sequence_itself() -> None:
    """The estimate that the sequence just excludes is as far from the truth as the power says."""
    planned = plan_test(mean=0.0, std=1.0, effect=0.1, power=0.9)
    error = math.sqrt(1 / planned.size.control + 1 / planned.size.treatment)
    far = 0.1 - NORMAL.inv_cdf(0.9) * error
    sequence = ConfidenceSequence(horizon=planned.horizon)
    look = sequence.at(Evidence(effect_size=far, std_error=error, least_count=1_000))
    assert look.lower == pytest.approx(0.0, abs=1e-5)


def test_a_part_of_the_traffic_takes_as_many_units_and_longer() -> None:
    whole, part = (
        rate_plan(units_per_day=2_000),
        rate_plan(units_per_day=20_000, share=(0.05, 0.05)),
    )
    assert whole.size.units == pytest.approx(part.size.units, abs=2)
    assert whole.size.days == pytest.approx(part.size.days)
    assert part.gates[0].shares == (0.05, 0.05)


def test_a_state_of_independent_rows_plans_as_its_numbers_do() -> None:
    state = clicks(5_000, 100_000)
    planned = plan_test(state, lift=0.1, days=10)
    assert planned.size == rate_plan().size and planned.one_look == rate_plan().one_look
    assert (planned.units_per_day, planned.unit, planned.watched) == (10_000, "rows", "ratio")


def test_users_take_as_many_more_rows_as_the_design_effect_says() -> None:
    rng, users = np.random.default_rng(1), 20_000
    state = UserGroups(Ratio())
    clicked = rng.random(10 * users) < np.repeat(rng.beta(0.5, 9.5, users), 10)
    state.update(np.repeat(np.arange(users), 10), numerators=clicked)
    rate, deff = state.compute().interval().estimate, state.compute().deff
    planned = plan_test(state, lift=0.1)
    from_rate = plan_test(rate=rate, lift=0.1, deff=deff)
    assert planned.one_look.units == pytest.approx(from_rate.one_look.units, rel=1e-9)
    assert (
        1.0 < planned.size.units / from_rate.size.units < 1.1
    )  # by the degrees of freedom of groups


def test_the_skewness_of_an_earlier_period_opens_the_gate_of_a_mean_and_its_rate_has_its_own() -> (
    None
):
    state, rng = Moments(), np.random.default_rng(3)
    state.update(np.where(rng.random(50_000) < 0.05, rng.lognormal(0, 1, 50_000), 0.0))
    mean, rate = plan_test(state, lift=0.2, days=5).gates
    values = state.compute()
    by_number = plan_test(mean=values.mean, std=values.std, skewness=values.skewness, lift=0.2)
    assert mean.rows == pytest.approx(by_number.gates[0].rows, rel=1e-9)
    assert rate.watched == "above_zero" and rate.guardrail is not None
    assert rate.rows < mean.rows and rate.days == (rate.rows / 0.5 / 10_000,) * 2


def test_nothing_is_found_before_the_gate_is_open() -> None:
    skew, even = (
        plan_test(mean=1.0, std=1.0, lift=1.0, skewness=gamma, units_per_day=100)
        for gamma in (20.0, 0.0)
    )
    assert even.size.control < skew.gates[0].rows == pytest.approx(4_000)
    assert skew.size.control == pytest.approx(4_000, abs=1)


def test_a_ratio_is_planned_by_its_residuals() -> None:
    alike = (
        plan_test(mean=0.05, std=0.4, lift=0.1),
        plan_test(ratio=0.05, std=1.2, denominator=3.0, lift=0.1),
    )
    assert alike[0].size.units == alike[1].size.units


def test_areas_are_planned_by_pairs_of_rows() -> None:
    few, even = (
        plan_test(auc=0.75, positives=share, effect=0.01).one_look.units for share in (0.02, 0.5)
    )
    assert few > 9 * even
    assert plan_test(auc=0.75, positives=0.5, lift=0.04).effect == pytest.approx(0.01)


def test_buckets_that_hide_a_part_of_the_effect_take_more_units() -> None:
    coarse, fine = HistogramAUC(resolution=3), HistogramAUC()
    rng = np.random.default_rng(1)
    labels = rng.random(50_000) < 0.3
    scores = 1 / (1 + np.exp(-rng.standard_normal(50_000) - labels))
    for state in (coarse, fine):
        state.update(labels=labels, scores=scores)
    moved = coarse.compute().interval("auc").resolution
    few, many = (plan_test(state, effect=4 * moved).size.units for state in (fine, coarse))
    assert many > 2 * few
    with pytest.raises(SettingsError, match="the buckets of the state can show"):
        plan_test(coarse, effect=moved)


def test_units_that_return_take_at_least_the_days_of_the_pace() -> None:
    state = UnitMean()
    state.update(units=np.arange(1_000), values=np.random.default_rng(1).gamma(2, 1, 1_000))
    slow, fixed = (
        plan_test(state, lift=0.02, **pace) for pace in ({"days": 7}, {"units_per_day": 100})
    )  # type: ignore[arg-type]
    assert slow.days_are_least and "takes at least these days" in " ".join(str(slow).split())
    assert not fixed.days_are_least


def test_the_table_says_what_units_days_and_gates() -> None:
    text = str(rate_plan())
    for part in (
        "rate 0.05",
        "+0.005 (+10 %)",
        "power 80 %",
        "looked at daily",
        "one look",
        "days",
    ):
        assert part in text
    assert "day 1 of" in text and "pace so far" not in text
    assert "days" not in str(rate_plan(units_per_day=None)).splitlines()[1]


def test_columns_have_the_figures_of_the_plan() -> None:
    planned = rate_plan()
    columns = planned.to_dict()
    figures = dict(zip(columns["name"], columns["value"], strict=True))
    assert figures["control"] == planned.size.control
    assert figures["one_look.treatment"] == planned.one_look.treatment
    assert figures["gate.rate.days"] == planned.gates[0].days[1]
    unknown = rate_plan(units_per_day=None).to_dict()
    index = unknown["name"].index("days")
    assert unknown["value"][index] is None and unknown["reason"][index]


def test_the_horizon_is_that_of_the_effect_and_makes_the_sequence() -> None:
    planned = rate_plan(power=0.9)
    assert planned.horizon == Horizon(mde=planned.effect, power=0.9, alpha=1.0 - planned.level)


GOOD = {"rate": 0.05, "lift": 0.1}


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"lift": 0.1}, "plan_test"),
        ({"rate": 0.05}, "plan_test"),
        ({**GOOD, "mean": 1.0}, "plan_test"),
        ({**GOOD, "effect": 0.1}, "plan_test"),
        ({**GOOD, "rate": 1.0}, "rate"),
        ({**GOOD, "rate": "5 %"}, "rate"),
        ({**GOOD, "lift": 0.0}, "lift"),
        ({**GOOD, "lift": math.inf}, "lift"),
        ({**GOOD, "lift": 19.0}, "lift"),
        ({"rate": 0.05, "effect": -0.05}, "effect"),
        ({**GOOD, "power": 0.3}, "power"),
        ({**GOOD, "level": 1.0}, "level"),
        ({**GOOD, "share": 1.0}, "share"),
        ({**GOOD, "share": (0.6, 0.6)}, "share"),
        ({**GOOD, "share": (0.2, 0.2, 0.2)}, "share"),
        ({**GOOD, "share": "half"}, "share"),
        ({**GOOD, "units_per_day": 0}, "units_per_day"),
        ({**GOOD, "days": 7}, "days"),
        ({**GOOD, "std": 1.0}, "std"),
        ({**GOOD, "deff": 0.5}, "deff"),
        ({**GOOD, "skewness": 2.0}, "skewness"),
        ({**GOOD, "denominator": 2.0}, "denominator"),
        ({**GOOD, "positives": 0.5}, "positives"),
        ({"mean": 1.0, "lift": 0.1}, "std"),
        ({"mean": 0.0, "std": 1.0, "lift": 0.1}, "lift"),
        ({"ratio": 1.0, "std": 1.0, "lift": 0.1, "denominator": 0.0}, "denominator"),
        ({"auc": 0.7, "effect": 0.01}, "positives"),
        ({"auc": 0.7, "positives": 1.0, "effect": 0.01}, "positives"),
        ({"auc": 0.5, "positives": 0.5, "lift": 0.01}, "lift"),
    ],
)
def test_settings_that_contradict_or_lack_something_are_refused(
    settings: dict[str, object], where: str
) -> None:
    with pytest.raises(SettingsError) as error:
        plan_test(**settings)  # type: ignore[arg-type]
    assert where in error.value.where and error.value.hint


def test_a_state_is_planned_by_itself() -> None:
    state = clicks(50, 1_000)
    for settings in ({"std": 1.0}, {"deff": 2.0}, {"units_per_day": 10, "days": 1}, {"rate": 0.1}):
        with pytest.raises(SettingsError):
            plan_test(state, lift=0.1, **settings)  # type: ignore[arg-type]


def test_states_from_which_nothing_follows_are_refused_with_the_reason() -> None:
    quantiles, won = ExactQuantiles(), Interleaving()
    quantiles.update(range(1_000))
    won.update(clicks_a=[1, 0] * 50, clicks_b=[0, 1] * 50)
    for state, words in (
        (Ratio(), "update it with the rows"),
        (quantiles, "quantile"),
        (won, "itself an effect"),
        (clicks(0, 100), "variance is 0"),
    ):
        with pytest.raises(InputError, match=words):
            plan_test(state, effect=0.01)


@pytest.mark.parametrize("std", [0.01, 1e-10])
@pytest.mark.parametrize("units_per_day", [None, 1_000])
def test_an_effect_that_the_first_look_finds_is_found_when_the_gate_opens(
    std: float, units_per_day: float | None
) -> None:
    planned = plan_test(mean=100.0, std=std, effect=1.0, units_per_day=units_per_day)
    assert (planned.size.control, planned.one_look.control) == (100, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 0.1, "lift": 0.1, "share": math.inf},
        {"mean": 1e200, "effect": 0.5, "std": 1e-300},
        {"mean": 1e200, "lift": 3.0, "std": 1e308},
        {"mean": 1.0, "effect": 1.0, "std": 1e200},
        {"mean": 1.0, "effect": 1e10, "std": 1e-150, "units_per_day": 1},
    ],
)
def test_what_is_beyond_the_floats_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        plan_test(**settings)  # type: ignore[arg-type]
