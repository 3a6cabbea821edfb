"""Experiments of one stream, in which both variants compete for the same clicks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streammetrics import Accumulator, Interleaving, Ratio, Units, UserGroups, compare
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import (
    ConfidenceSequence,
    Covariate,
    Experiment,
    Horizon,
    Look,
    Monitor,
    Plan,
)

PLAN = Plan(
    control="old",
    variants=("old", "new"),
    decision=("interleaving",),
    horizon=Horizon(mde=0.03),
)


def stream(n: int, lift: float = 0.1, *, users: bool = True, seed: int = 1) -> Accumulator:
    rng = np.random.default_rng(seed)
    clicks = {"clicks_a": rng.poisson(0.4, n), "clicks_b": rng.poisson(0.4 + lift, n)}
    metric: Accumulator = UserGroups(Interleaving()) if users else Interleaving()
    metric.update(**({"groups": rng.integers(0, n // 5, n)} if users else {}), **clicks)
    return metric


@pytest.mark.parametrize("users", [True, False])
def test_a_preference_is_compared_with_0_and_has_its_own_error(users: bool) -> None:
    state = stream(3_000, users=users)
    comparison, interval = compare(state), state.compute().interval()
    assert (comparison.control, comparison.treatment, comparison.effect_size) == (
        0,
        interval.estimate,
        interval.estimate,
    )
    assert (comparison.std_error, comparison.n) == (interval.se, interval.n)
    assert comparison.df == pytest.approx(interval.df, rel=1e-12)
    bounds = comparison.effect_size_ci_lower, comparison.effect_size_ci_upper
    assert bounds == pytest.approx((interval.lower, interval.upper), rel=1e-9)
    assert math.isnan(comparison.rel_effect_size)


@pytest.mark.parametrize(
    ("state", "view"),
    [(Ratio(), None), (Interleaving(), "win_share_b"), (UserGroups(Ratio()), None)],
)
def test_one_state_whose_view_is_no_effect_is_refused(state: Accumulator, view: str | None) -> None:
    with pytest.raises(InputError, match=r"compare\(treatment\)") as caught:
        compare(state, view=view)
    only = caught.value.hint == "pass one; without it only preference is compared, with 0"
    assert only == (view is not None)


@pytest.mark.parametrize(
    "settings",
    [
        {"relative": True},
        {"paired": True},
        {"covariate": Covariate(control=Ratio(), treatment=Ratio())},
    ],
)
def test_one_state_has_no_lift_no_pair_and_no_covariate(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(SettingsError, match="preference is compared with 0") as caught:
        compare(stream(3_000), **settings)
    assert caught.value.where == f"compare({name})"
    assert compare(stream(3_000), **{name: None if name == "covariate" else False}).treatment


def test_two_preferences_are_compared_with_each_other_as_any_other_metric() -> None:
    a, b = stream(3_000, users=False), stream(3_000, 0.4, users=False, seed=2)
    comparison = compare(a, b)
    difference = b.compute().preference - a.compute().preference
    assert comparison.effect_size == pytest.approx(difference, rel=1e-12)
    assert comparison.std_error > compare(b).std_error


def test_the_report_of_one_stream_decides_by_the_preference() -> None:
    experiment = Experiment(PLAN, {"new": {"interleaving": stream(3_000)}})
    (contrast,) = experiment.contrasts()
    sequence = ConfidenceSequence(v_opt=PLAN.horizon.v_opt)
    look = sequence.at(compare(stream(3_000)))
    assert (contrast.anytime.lower, contrast.anytime.upper) == (look.lower, look.upper)
    (finding,) = experiment.report().findings
    assert finding.verdict == "better"
    assert finding.sentence.startswith(
        "new is better: the always-valid interval of interleaving (new"
    )
    assert experiment.report().recommendation.action == "ship"
    names = {contrast.name: contrast.anytime}
    watched = Monitor.of([Look.at("e", 1, {"log": 3_000}, names)]).watched("e", 1, contrast.name)
    assert (watched.lower, watched.looks) == (look.lower, 1)


@pytest.mark.parametrize(
    ("n", "users", "reason"),
    [
        (0, False, "new has no rows yet"),
        (60, True, "an arm has too few groups of users: 9, needs 16"),
        (
            60,
            False,
            "at least 100 more lists of new before its mean can be judged: 37 lists, needs 100",
        ),
    ],
)
def test_too_few_lists_wait_and_say_nothing_of_the_control(
    n: int, users: bool, reason: str
) -> None:
    state = stream(n, users=users) if n else Interleaving()
    (finding,) = Experiment(PLAN, {"new": {"interleaving": state}}).report().findings
    assert finding.verdict == "not_started"
    assert finding.sentence == f"Too early to judge interleaving (new - old): {reason}."


def test_a_share_of_wins_has_no_control_in_one_stream_and_the_sentence_says_what_has() -> None:
    plan = replace(PLAN, decision=("interleaving.win_share_b",))
    (finding,) = Experiment(plan, {"new": {"interleaving": stream(3_000)}}).report().findings
    assert finding.verdict == "not_started"
    assert finding.reason == (
        "old has no rows yet; if both variants are in the same rows, decide by preference"
    )


def test_the_label_reading_is_the_e_process_of_wins() -> None:
    state = stream(3_000, users=False)
    (contrast,) = Experiment(PLAN, {"new": {"interleaving": state}}).contrasts()
    label, result = contrast.label, state.compute()
    assert label is not None
    assert label.e_value == pytest.approx(result.e_value, rel=1e-9)
    assert label.lower < result.wins_b / result.wins_a < label.upper
    (contrast,) = Experiment(PLAN, {"new": {"interleaving": stream(3_000)}}).contrasts()
    of_users = contrast.label
    assert of_users is not None and of_users.e_value == label.e_value
    assert (of_users.lower, of_users.upper) == (-math.inf, math.inf)
    assert of_users.reason.startswith("users may have several lists")


def test_epochs_are_weighted_by_their_rows_and_no_group_of_the_control_is_missing() -> None:
    first, second = stream(4_000, seed=2), stream(2_000, 0.3, seed=3)
    states = {
        name: {"new": {"interleaving": state}} for name, state in (("1", first), ("2", second))
    }
    (contrast,) = Experiment(PLAN, states).contrasts()
    preferences = first.compute().preference, second.compute().preference
    assert contrast.comparison.effect_size == pytest.approx(
        (2 * preferences[0] + preferences[1]) / 3, rel=1e-12
    )
    assert contrast.comparison.epochs == ("1", "2")
    assert (contrast.comparison.control, contrast.comparison.groups) == (0, 64)
    assert 0 < contrast.comparison.std_error < compare(second).std_error
    assert contrast.label is not None and contrast.label.log_e > 0


def test_a_few_wins_among_many_ties_wait_because_no_other_arm_cancels_their_skewness() -> None:
    wins = np.arange(2_000) < 15
    metric = UserGroups(Interleaving())
    metric.update(np.arange(2_000), clicks_a=(~wins).astype(int), clicks_b=np.ones(2_000))
    (contrast,) = Experiment(PLAN, {"new": {"interleaving": metric}}).contrasts()
    assert contrast.anytime.gated
    reason = contrast.anytime.reason
    assert reason.startswith("the estimate rests on too few values: skewness number ")
    assert reason.endswith(", needs 40")


def test_units_are_checked_among_treatments_because_the_control_gets_none() -> None:
    plan = Plan(
        control="old",
        variants=("old", "new", "newer"),
        decision=("interleaving",),
        horizon=Horizon(mde=0.03),
    )
    states = {arm: {"interleaving": stream(500)} for arm in ("new", "newer")}
    units = {arm: Units() for arm in ("new", "newer")}
    units["new"].update(range(500))
    units["newer"].update(range(1_000, 1_520))
    sample_ratio = Experiment(plan, states, units).srm()
    assert (sample_ratio.counts, sample_ratio.alarm, sample_ratio.df) == (
        (("new", 500), ("newer", 520)),
        False,
        1,
    )
    experiment = Experiment(PLAN, {"new": states["new"]}, {"new": units["new"]})
    assert experiment.srm().reason == "only one arm has a share"
    assert experiment.report().recommendation.action != "check_setup"
    mixed = replace(PLAN, decision=("interleaving", "ctr"))
    arms = {"new": {**states["new"], "ctr": Ratio()}, "old": {"ctr": Ratio()}}
    assert dict(Experiment(mixed, arms, {"new": units["new"]}).srm().counts) == {
        "new": 500,
        "old": 0,
    }
