"""Epochs of allocation, each compared with itself."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from pytest import approx

from streammetrics import Ratio, UserGroups
from streammetrics.experiments.arm import Arm, arm_of, no_arm
from streammetrics.experiments.strata import (
    Stratum,
    by_epoch,
    combined,
)
from streammetrics.kernels.inference.variances import jackknife_variance
from tests.experiments.arms import area, clicks, grouped_clicks

RAMP = {"10 %": ((90, 900), (10, 100)), "50 %": ((200, 1000), (200, 1000))}


def read(*states: Ratio | UserGroups) -> tuple[Arm, ...]:
    return tuple(arm_of(state, None, 0.95) for state in states)


def pairs(
    counts: dict[str, tuple[tuple[int, int], tuple[int, int]]],
) -> dict[str, tuple[Arm, Arm]]:
    arms = {name: read(clicks(*a), clicks(*b)) for name, (a, b) in counts.items()}
    return {name: (a, b) for name, (a, b) in arms.items()}


def sizes(arms: dict[str, tuple[Arm, Arm]]) -> dict[str, int]:
    return {name: a.rows + b.rows for name, (a, b) in arms.items()}


def test_a_ramp_with_a_drifting_rate_has_no_effect() -> None:
    arms = pairs(RAMP)
    found = by_epoch(arms, sizes(arms))
    assert found is not None and found.effect == 0.0
    assert found.used == ("10 %", "50 %") and found.left_out == ()
    assert found.control.method == "stratified" and found.control.counted == (290, 1610)


def test_rates_of_epochs_have_the_variance_of_half_a_success_more() -> None:
    arms = pairs({**RAMP, "none yet": ((0, 40), (0, 60))})
    found = by_epoch(arms, sizes(arms))
    assert found is not None and found.effect == 0.0
    variance = 0.0
    for a, b in arms.values():
        weight = (a.rows + b.rows) / sum(sizes(arms).values())
        for arm in (a, b):
            hits, n = arm.share or (0, 1)
            p = (hits + 0.5) / (n + 1)
            variance += weight**2 * p * (1 - p) / n
    assert found.control.variance + found.treatment.variance == approx(variance, rel=1e-12)


def test_one_epoch_is_itself_and_its_variance_that_of_the_share() -> None:
    arms = pairs({"all": ((46, 10_000), (69, 10_000))})
    found = by_epoch(arms, sizes(arms))
    assert found is not None and found.effect == 0.0023 and found.used == ("all",)
    assert math.isclose(found.control.variance, 0.0046 * 0.9954 / 10_000, rel_tol=1e-15)
    assert found.control.lower == arms["all"][0].lower


def test_an_epoch_with_one_arm_is_left_out() -> None:
    arms = {**pairs(RAMP), "late": (arm_of(clicks(3, 9), None, 0.95), no_arm("ratio"))}
    found = by_epoch(arms, sizes(arms))
    assert found is not None and found.effect == 0.0 and found.left_out == ("late",)
    alone = by_epoch({"late": arms["late"]}, {"late": 9})
    assert alone is not None and alone.left_out == ("late",) and math.isnan(alone.effect)
    assert by_epoch({}, {}) is None


def test_an_epoch_without_units_is_left_out() -> None:
    arms = pairs(RAMP)
    found = by_epoch(arms, {"10 %": 0, "50 %": 5})
    assert found is not None and found.used == ("50 %",)


def test_what_rows_say_leaves_no_epoch_out_but_too_few_rows_of_a_class_do() -> None:
    whole, few = area(1, 400, 1.0), area(2, 12, 9.0)
    first, second = arm_of(whole, None, 0.95), arm_of(area(3, 400, 1.0), None, 0.95)
    arms = {"a": (first, second), "b": (arm_of(few, None, 0.95), second)}
    found = by_epoch(arms, {"a": 800, "b": 412})
    assert found is not None and found.used == ("a",) and found.left_out == ("b",)
    none_clicked = pairs({"a": ((5, 50), (5, 50)), "b": ((0, 50), (0, 50))})
    both = by_epoch(none_clicked, {"a": 1, "b": 1})
    assert both is not None and both.used == ("a", "b")


def test_users_of_two_epochs_are_left_out_of_both_at_once() -> None:
    first = grouped_clicks(1, 900, 0.1), grouped_clicks(2, 900, 0.1, first=1000)
    second = grouped_clicks(3, 900, 0.2), grouped_clicks(4, 900, 0.2, first=1000)
    arms = {"a": read(*first), "b": read(*second)}
    found = by_epoch({name: (a, b) for name, (a, b) in arms.items()}, {"a": 100, "b": 300})
    assert found is not None and found.control.groups == 64
    one, other = (state.compute().replicates() for state in (first[0], second[0]))
    by_hand = [0.25 * x + 0.75 * y for x, y in zip(one, other, strict=True)]
    expected = jackknife_variance(by_hand).variance
    assert math.isclose(found.control.variance, expected, rel_tol=1e-12)
    assert found.control.df == 63.0 and found.control.deff > 1


def test_a_group_without_rows_in_an_epoch_leaves_that_epoch_as_it_is() -> None:
    few, many = grouped_clicks(1, 20, 0.3), grouped_clicks(2, 900, 0.3)
    arms = {"a": read(few, many), "b": read(many, many)}
    found = by_epoch({name: (a, b) for name, (a, b) in arms.items()}, {"a": 1, "b": 1})
    assert found is not None and found.control.groups == 64
    assert found.control.replicates is not None
    weights = few.compute().weights
    empty = next(i for i, weight in enumerate(weights) if not weight)
    alone = many.compute().replicates()[empty]
    assert math.isclose(
        found.control.replicates[empty] or 0.0, (few.compute().estimate + alone) / 2, rel_tol=1e-12
    )


def test_epochs_of_users_in_one_group_are_left_out() -> None:
    one = UserGroups(Ratio())
    one.update(users=[1] * 20, numerators=np.arange(20) % 2)
    many = grouped_clicks(2, 300, 0.3)
    arms = {"a": read(one, many), "b": read(many, many)}
    found = by_epoch({name: (a, b) for name, (a, b) in arms.items()}, {"a": 20, "b": 1})
    assert found is not None and found.used == ("b",)


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    found = combined([Stratum(10, 0, 0.25, 5.0), Stratum(30, 0, 0.125, 60.0), Stratum(40, 0, 0.5)])
    parts = [0.125**2 * 0.25, 0.375**2 * 0.125, 0.25 * 0.5]
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 60)
    assert math.isclose(found.df, expected, rel_tol=1e-14)


def test_epochs_in_any_order_give_the_same_bits() -> None:
    strata = [Stratum(n, 0.1 * n, 0.3 / n, 3.0 + n) for n in (3, 7, 11, 190)]
    assert len({combined(order) for order in permutations(strata)}) == 1


def test_undefined_strata_stay_undefined() -> None:
    for strata in (
        [],
        [Stratum(0, 0.5, 0.5)],
        [Stratum(5, math.nan, 1.0)],
        [Stratum(5, 0.0, math.nan), Stratum(5, 0.0, 1.0)],
        [Stratum(5, 0.0, math.inf)],
    ):
        found = combined(strata)
        assert all(map(math.isnan, (found.effect, found.variance, found.df))), strata
