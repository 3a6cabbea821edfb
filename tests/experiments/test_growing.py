"""Units whose values still grow are judged on the clock of the lift, each look by itself."""

from __future__ import annotations

import math

import pytest

from streammetrics import SettingsError, UnitMean, UnitRate, compare
from streammetrics.experiments import ConfidenceSequence, Experiment, Guardrail, Horizon, Plan
from streammetrics.experiments.monitor import Look, Monitor
from streammetrics.experiments.plan import UnitView


def arms(buyers: tuple[int, int]) -> tuple[UnitMean, UnitMean]:
    """10,000 units each, of whom so many of each hundred have bought for 3."""
    states = UnitMean(), UnitMean()
    for state, share, first in zip(states, buyers, (0, 1_000_000), strict=True):
        units = range(first, first + 10_000)
        state.update(units, [3.0 * (unit % 100 < share) for unit in units])
    return states


def experiment(buyers: tuple[int, int], unit_view: UnitView) -> Experiment:
    plan = Plan(
        control="old",
        variants=("old", "new"),
        decision=("spent",),
        horizon=Horizon(mde=0.1),
        better={"spent": "higher"},
        unit_view=unit_view,
    )
    old, new = arms(buyers)
    return Experiment(plan, {"old": {"spent": old}, "new": {"spent": new}})


def test_a_sequence_of_growing_values_needs_no_plan() -> None:
    old, new = arms((10, 13))
    reading = ConfidenceSequence(kind="growing").at(compare(old, new))
    assert reading.lower > 0 and not reading.reason
    assert reading.p_value < 0.05


def test_the_interval_excludes_0_where_the_evidence_says_so() -> None:
    for treated in range(10, 16):
        reading = ConfidenceSequence(kind="growing").at(compare(*arms((10, treated))))
        assert (reading.lower > 0) == (reading.log_e > math.log(20)), treated


def test_another_unit_of_the_values_changes_nothing() -> None:
    cents = []
    for scale in (1.0, 1024.0):
        states = UnitMean(), UnitMean()
        for state, share, first in zip(states, (10, 13), (0, 1_000_000), strict=True):
            units = range(first, first + 10_000)
            state.update(units, [scale * (unit % 100 < share) for unit in units])
        reading = ConfidenceSequence(kind="growing").at(compare(*states))
        cents.append((reading.lower / scale, reading.upper / scale, reading.log_e))
    assert cents[0] == cents[1]


def test_means_that_are_near_to_0_have_no_information_about_a_lift() -> None:
    states = UnitMean(), UnitMean()
    for state, first in zip(states, (0, 1_000_000), strict=True):
        units = range(first, first + 10_000)
        state.update(units, [1.0 if unit % 2 else -1.0 for unit in units])
    reading = ConfidenceSequence(kind="growing").at(compare(*states))
    assert reading.gated and "information about the lift" in reading.reason


def test_a_guardrail_of_growing_values_needs_no_plan() -> None:
    old, new = arms((10, 10))
    assert Guardrail(margin=0.2, kind="growing").at(compare(old, new)).passed
    assert not Guardrail(margin=0.01, kind="growing").at(compare(old, new)).passed
    with pytest.raises(SettingsError, match="growing"):
        Guardrail(margin=0.1, kind="label")  # type: ignore[arg-type]


def test_a_rate_before_its_burn_in_is_judged_by_its_events() -> None:
    states = UnitRate(), UnitRate()
    for state, events, first in zip(states, (0, 4), (0, 1_000_000), strict=True):
        state.update(range(first, first + 50), [float(unit < events) for unit in range(50)])
    reading = ConfidenceSequence(kind="growing").at(compare(*states))
    assert reading.gated and reading.lower == -math.inf


def test_looks_at_a_growing_effect_do_not_exclude_one_another() -> None:
    looks = {}
    views: tuple[UnitView, ...] = ("closed", "so_far")
    for name in views:
        early, late = experiment((1, 3), name), experiment((20, 60), name)
        taken = [
            Look.at("", 1, {"log": offset}, look.readings())
            for offset, look in enumerate([early, late])
        ]
        watched = {
            key: Monitor.of(taken).watched("", 1, key, alpha)
            for key, alpha in late.outcome().alphas.items()
        }
        (looks[name],) = late.report(watched).findings
    assert not looks["closed"].reading.consistent
    assert looks["so_far"].reading.consistent
    assert looks["so_far"].verdict == "better"
    assert looks["so_far"].reading.lower == looks["so_far"].contrast.anytime.lower
    assert math.isnan(looks["so_far"].since_effect)


def test_the_plan_says_which_clock_an_experiment_is_read_on() -> None:
    old, new = arms((10, 13))
    growing = ConfidenceSequence(kind="growing").at(compare(old, new))
    (contrast,) = experiment((10, 13), "so_far").contrasts()
    assert contrast.anytime == growing
    (contrast,) = experiment((10, 13), "closed").contrasts()
    assert contrast.anytime != growing
