"""CUPED between groups of users: by comparison and by plan."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from streammetrics import Ratio, UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.experiments import (
    Covariate,
    Experiment,
    Horizon,
    Plan,
    PlannedCovariate,
    UserTotals,
    compare,
    user_slope,
)
from streammetrics.experiments.contrast import Contrast
from tests.expected import examples_of

USERS = 2000
THETA = 1.25


def habits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids of users, what they did before, and after: most of it is their habit."""
    rng = np.random.default_rng(seed)
    before = rng.gamma(2.0, 1.0, USERS)
    return np.arange(USERS) + seed * 10**6, before, THETA * before + rng.normal(0.0, 1.0, USERS)


def counted(users: np.ndarray, values: np.ndarray, salt: str = "streammetrics") -> UserGroups:
    state = UserGroups(Ratio(), salt=salt)
    state.update(groups=users, numerators=values)
    return state


ARMS = {name: habits(seed) for seed, name in ((1, "a"), (2, "b"))}
PLAN = Plan(
    control="a",
    variants=("a", "b"),
    decision=("revenue",),
    horizon=Horizon(mde=0.1),
    cluster="groups",
    covariates={"revenue": PlannedCovariate("before", THETA)},
)


@cache
def state(arm: str, metric: str) -> UserGroups:
    users, before, after = ARMS[arm]
    return counted(users, before if metric == "before" else after)


def states() -> dict[str, dict[str, UserGroups]]:
    return {arm: {name: state(arm, name) for name in ("before", "revenue")} for arm in ARMS}


def covariate(control: Accumulator, treatment: Accumulator) -> Covariate:
    return Covariate(control=control, treatment=treatment)


def only(plan: Plan, epochs: dict[str, dict[str, dict[str, UserGroups]]]) -> Contrast:
    (contrast,) = Experiment(plan, epochs).contrasts()
    return contrast


def test_what_was_known_before_is_taken_out() -> None:
    (a, b) = states().values()
    plain, history = compare(a["revenue"], b["revenue"]), covariate(a["before"], b["before"])
    comparison = compare(a["revenue"], b["revenue"], covariate=history)
    assert comparison.method == "cuped" and 0.4 < comparison.std_error / plain.std_error < 0.85
    assert abs(comparison.effect_size) < 3 * comparison.std_error
    width = comparison.effect_size_ci_upper - comparison.effect_size_ci_lower
    assert width < plain.effect_size_ci_upper - plain.effect_size_ci_lower
    assert math.isclose(
        comparison.treatment - comparison.control, comparison.effect_size, rel_tol=1e-12
    )
    itself = compare(a["revenue"], b["revenue"], covariate=covariate(a["revenue"], b["revenue"]))
    assert abs(itself.effect_size) < 1e-12 and itself.std_error < 1e-12


def test_rows_without_groups_or_with_other_groups_are_refused() -> None:
    (a, b) = states().values()
    plain = covariate(Ratio(), Ratio())
    with pytest.raises(SettingsError, match="UserGroups"):
        compare(a["revenue"], b["revenue"], covariate=plain)
    few = covariate(UserGroups(Ratio(), 16), UserGroups(Ratio(), 16))
    with pytest.raises(SettingsError, match="same buckets"):
        compare(a["revenue"], b["revenue"], covariate=few)
    salted = [counted(users, before, "other") for users, before, _ in ARMS.values()]
    with pytest.raises(SettingsError, match=r"same buckets and salt.*'other'"):
        compare(a["revenue"], b["revenue"], covariate=covariate(*salted))
    none = covariate(a["revenue"].empty(), b["revenue"].empty())
    comparison = compare(a["revenue"], b["revenue"], covariate=none)
    assert math.isnan(comparison.effect_size) and math.isnan(comparison.pvalue)


def test_the_slope_over_users_is_that_of_least_squares_with_an_arm_beside_it() -> None:
    totals = [UserTotals.of(before, after) for _, before, after in ARMS.values()]
    x = np.concatenate([before for _, before, _ in ARMS.values()])
    y = np.concatenate([after for _, _, after in ARMS.values()])
    arms = np.repeat([[1.0, 0.0], [0.0, 1.0]], USERS, axis=0)
    expected = np.linalg.lstsq(np.column_stack([arms, x]), y, rcond=None)[0][2]
    assert user_slope(totals) == pytest.approx(expected, rel=1e-12)
    halves = [
        UserTotals.of(before[:1000], after[:1000]) + UserTotals.of(before[1000:], after[1000:])
        for _, before, after in ARMS.values()
    ]
    assert user_slope(halves) == pytest.approx(user_slope(totals), rel=1e-14)
    assert user_slope([UserTotals.of([3.0, 3.0], [1.0, 2.0])]) == 0.0


def test_the_worked_examples_of_slopes_and_of_an_adjusted_effect(data: Path) -> None:
    adjusted, _, slope, *_ = examples_of(data, 9)
    inputs, expected = adjusted["inputs"], adjusted["value"]
    side, x, y = (np.ravel(inputs[name]) for name in ("arm", "x", "y"))
    totals = (
        UserTotals.of(x[side == 0], y[side == 0]),
        UserTotals.of(x[side == 1], y[side == 1]),
    )
    assert user_slope(totals) == pytest.approx(expected["slope"][0], rel=1e-9)

    def make_groups(values: np.ndarray, arm: int) -> UserGroups:
        state = UserGroups(Ratio(), 256)  # no two users of an arm are in one bucket
        state.update(7919 * np.flatnonzero(side == arm), numerators=values[side == arm])
        return state

    before = Covariate(control=make_groups(x, 0), treatment=make_groups(x, 1), users=totals)
    comparison = compare(make_groups(y, 0), make_groups(y, 1), covariate=before)
    assert comparison.effect_size == pytest.approx(expected["effect"], rel=1e-9)
    assert comparison.std_error == pytest.approx(expected["se"], rel=1e-9)

    (rows,) = slope["inputs"].values()
    of_rows = UserTotals.of([x for _, x, _ in rows], [y for _, _, y in rows])
    of_users = list({user: x for user, x, _ in rows}.values())
    once = replace(UserTotals.of(of_users, of_users), y=of_rows.y, xy=of_rows.xy)
    assert user_slope([once]) == pytest.approx(slope["value"], rel=1e-12)


def test_no_salt_moves_the_effect_where_the_totals_of_users_are_known() -> None:
    totals = tuple(UserTotals.of(before, after) for _, before, after in ARMS.values())
    effects, of_groups = set(), []
    for salt in ("one", "two"):
        x, y = (
            [counted(arm[0], arm[i], salt) for arm in ARMS.values()] for i in (1, 2)
        )  # control and treatment
        of_users = Covariate(control=x[0], treatment=x[1], users=(totals[0], totals[1]))
        effects.add(compare(y[0], y[1], covariate=of_users).effect_size)
        by_groups = compare(y[0], y[1], covariate=Covariate(control=x[0], treatment=x[1]))
        of_groups.append(by_groups.effect_size / by_groups.std_error)
    assert max(effects) - min(effects) < 1e-12
    assert max(of_groups) - min(of_groups) > 0.01


def test_a_plan_takes_its_covariate_out_by_the_frozen_slope() -> None:
    contrast, plain = only(PLAN, {"": states()}), only(replace(PLAN, covariates={}), {"": states()})
    (a, b) = states().values()
    by_hand = compare(
        a["revenue"],
        b["revenue"],
        covariate=Covariate(control=a["before"], treatment=b["before"], theta=THETA),
    )
    assert contrast.comparison.effect_size == pytest.approx(by_hand.effect_size, rel=1e-12)
    assert contrast.comparison.std_error == pytest.approx(by_hand.std_error, rel=1e-12)
    assert contrast.comparison.std_error < 0.7 * plain.comparison.std_error
    assert contrast.comparison.method == "cuped" and not contrast.anytime.gated
    assert (
        contrast.anytime.upper - contrast.anytime.lower < plain.anytime.upper - plain.anytime.lower
    )
    notes = Experiment(PLAN, {"": states()}).report().notes
    assert (
        "revenue is adjusted for the pre-exposure covariate before, with the slope 1.25 (CUPED)."
        in notes
    )


def test_each_epoch_is_adjusted_by_itself() -> None:
    contrast = only(PLAN, {"one": states(), "two": states()})
    once = only(PLAN, {"": states()})
    assert contrast.comparison.method == "stratified"
    assert contrast.comparison.effect_size == pytest.approx(once.comparison.effect_size, rel=1e-12)


def test_an_arm_without_the_covariate_is_not_compared_as_if_it_had_one() -> None:
    arms = states()
    del arms["b"]["before"]
    contrast = only(PLAN, {"": arms})
    assert math.isnan(contrast.comparison.effect_size) and math.isnan(contrast.comparison.pvalue)
    assert contrast.anytime.reason == "the covariate has no rows in an arm"
    early = only(PLAN, {"old": arms, "new": states()})
    assert early.comparison.left_out == ("old",) and early.comparison.method == "cuped"
    assert only(PLAN, {"": {}}).anytime.gated


def test_the_totals_of_users_are_exact_so_that_shards_add_up_and_a_constant_has_no_slope() -> None:
    whole = UserTotals.of([0.1] * 13, range(13))
    assert UserTotals.of([0.1] * 5, range(5)) + UserTotals.of([0.1] * 8, range(5, 13)) == whole
    assert whole.xx == 13 * Fraction(0.1) ** 2 and user_slope([whole]) == 0.0
    x, y = np.arange(4.0), 2 * np.arange(4.0)
    for offset in (1e8, 1e15):
        assert user_slope([UserTotals.of(x + offset, y)]) == 2.0
    for unit in (2.0**-600, 2.0**600):
        assert user_slope([UserTotals.of(x * unit, y)]) == 2.0 / unit
    large = UserTotals.of([1e308, 1e308], [1, 2])
    assert large.x == 2 * Fraction(1e308) and large.xx == 2 * Fraction(1e308) ** 2
    assert user_slope([UserTotals.of(x * 1e-300, y * 1e300)]) == math.inf


def test_totals_that_can_be_read_once_have_the_slope_of_those_in_a_list() -> None:
    totals = [UserTotals.of(before, after) for _, before, after in ARMS.values()]
    assert user_slope(iter(totals)) == user_slope(totals)  # type: ignore[arg-type]
    (a, b) = states().values()
    history = covariate(a["before"], b["before"])
    expected = compare(a["revenue"], b["revenue"], covariate=replace(history, users=totals))
    once = replace(history, users=iter(totals))
    for _ in range(2):
        assert compare(a["revenue"], b["revenue"], covariate=once) == expected


def test_a_covariate_too_large_for_its_squares_gives_the_slope_of_a_smaller_unit() -> None:
    (a, b) = states().values()
    users = [ARMS[arm] for arm in ("a", "b")]
    large = covariate(*(counted(ids, before * 2.0**540) for ids, before, _ in users))
    comparison = compare(a["revenue"], b["revenue"], covariate=large)
    plain = compare(a["revenue"], b["revenue"], covariate=covariate(a["before"], b["before"]))
    assert math.isclose(comparison.effect_size, plain.effect_size, rel_tol=1e-9)
    assert math.isclose(comparison.std_error, plain.std_error, rel_tol=1e-9)


def test_slopes_and_names_that_are_none_are_refused() -> None:
    for theta in (math.nan, math.inf, "1", True, None):
        with pytest.raises(SettingsError, match="finite number"):
            PlannedCovariate("before", theta)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="metrics of decision and guardrails"):
        replace(PLAN, covariates={"revenu": PlannedCovariate("before", 1.0)})
    totals = UserTotals.of([1.0], [1.0])
    with pytest.raises(SettingsError, match="theta or users"):
        Covariate(control=Ratio(), treatment=Ratio(), theta=1.0, users=(totals, totals))
    with pytest.raises(InputError, match="x, row 1"):
        UserTotals.of([1.0, math.inf], [1.0, 2.0])
    with pytest.raises(InputError, match="one for each row of x"):
        UserTotals.of([1.0, 2.0], [1.0])
