"""Epochs of allocation, each compared with itself."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from pytest import approx

from streammetrics import Accumulator, HistogramAUC, Ratio, UserGroups
from streammetrics.experiments import Experiment, Horizon, Plan
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm, Arms, no_arm, pair_of
from streammetrics.experiments.difference import compared
from streammetrics.experiments.spread import spread_of
from streammetrics.experiments.strata import Part, combined, epoch_strata, smoothed_variance
from streammetrics.kernels.inference.variances import jackknife_variance
from tests.experiments.arms import area, clicks, grouped_clicks

MANY, CURVE = grouped_clicks(2, 300, 0.3), area(3, 400, 1.0)
RAMP = {"10 %": ((90, 900), (10, 100)), "50 %": ((200, 1000), (200, 1000))}


Rates = tuple[int, int]


def read(control: Accumulator, treatment: Accumulator) -> tuple[Arm, Arm]:
    return arm_of(control, None, 0.95), arm_of(treatment, None, 0.95)


def pairs(counts: dict[str, tuple[Rates, Rates]]) -> dict[str, tuple[Arm, Arm]]:
    return {name: read(clicks(*a), clicks(*b)) for name, (a, b) in counts.items()}


def stratified(arms: dict[str, tuple[Arm, Arm]], units: dict[str, int] | None = None) -> Arms:
    strata = epoch_strata(arms, sizes(arms) if units is None else units)
    assert strata is not None
    return strata


def sizes(arms: dict[str, tuple[Arm, Arm]]) -> dict[str, int]:
    return {name: a.counts.rows + b.counts.rows for name, (a, b) in arms.items()}


def test_a_ramp_with_a_drifting_rate_has_no_effect() -> None:
    arms = pairs(RAMP)
    strata = stratified(arms)
    assert strata.effect == 0.0
    assert strata.used == ("10 %", "50 %") and strata.left_out == ()
    assert strata.control.precision.method == "stratified" and strata.control.counts.counted == (
        290,
        1610,
    )


def test_rates_of_epochs_have_the_variance_of_half_a_success_more() -> None:
    arms = pairs({**RAMP, "none yet": ((0, 40), (0, 60))})
    strata = stratified(arms)
    assert strata.effect == 0.0
    variance = 0.0
    for a, b in arms.values():
        weight = (a.counts.rows + b.counts.rows) / sum(sizes(arms).values())
        for arm in (a, b):
            hits, n = arm.counts.share or (0, 1)
            p = (hits + 0.5) / (n + 1)
            variance += weight**2 * p * (1 - p) / n
    assert strata.control.precision.variance + strata.treatment.precision.variance == approx(
        variance, rel=1e-12
    )


def test_one_epoch_is_itself_and_its_variance_that_of_the_share() -> None:
    arms = pairs({"all": ((46, 10_000), (69, 10_000))})
    strata = stratified(arms)
    assert strata.effect == 0.0023 and strata.used == ("all",)
    assert math.isclose(strata.control.precision.variance, 0.0046 * 0.9954 / 10_000, rel_tol=1e-15)
    assert strata.control.precision.lower == arms["all"][0].precision.lower


def test_an_epoch_is_left_out_where_an_arm_has_too_little_and_never_for_what_its_rows_say() -> None:
    late, ramp = (arm_of(clicks(3, 9), None, 0.95), no_arm("ratio")), pairs(RAMP)
    scored, of_users = read(area(1, 400, 1.0), CURVE), read(MANY, MANY)
    group = UserGroups(Ratio())
    group.update(groups=[1] * 20, numerators=np.arange(20) % 2)
    for name, arms, units, left_out in (
        ("one arm", {**ramp, "late": late}, None, ("late",)),
        ("one arm alone", {"late": late}, None, ("late",)),
        ("no units", ramp, {"10 %": 0, "50 %": 5}, ("10 %",)),
        ("a class", {"a": scored, "b": read(area(2, 12, 9.0), CURVE)}, None, ("b",)),
        ("a group", {"a": read(group, MANY), "b": of_users}, None, ("a",)),
        ("no clicks", pairs({"a": ((5, 50), (5, 50)), "b": ((0, 50), (0, 50))}), None, ()),
    ):
        assert stratified(arms, units).left_out == left_out, name
    assert stratified({**ramp, "late": late}).effect == 0.0
    assert math.isnan(stratified({"late": late}).effect)
    assert epoch_strata({}, {}) is None


def test_where_all_epochs_are_left_out_the_effect_is_that_of_the_one_with_the_most_rows() -> None:
    empty = read(HistogramAUC(), HistogramAUC())
    most = read(area(1, 18, 1.0), area(2, 18, 1.0))
    less = read(area(3, 12, 1.0), area(4, 12, 1.0))
    arms = {"empty": empty, "less": less, "most": most}
    for names in permutations(arms):
        strata = stratified({name: arms[name] for name in names}, dict.fromkeys(names, 9))
        assert strata.effect == pair_of(*most).effect and strata.left_out == names
    assert stratified({"e": empty, "a": (most[0], empty[1])}).control.counts.rows == 18


def test_a_lack_of_rows_in_one_of_several_epochs_is_not_said_of_all() -> None:
    plan = Plan(
        control="a", variants=("a", "b"), decision=("m.auc",), horizon=Horizon(mde=0.2),
        epochs=("old", "new"),
    )  # fmt: skip
    rows, none = {"m": area(1, 18, 1.0)}, {"m": HistogramAUC()}

    def sentence(epochs: dict[str, dict[str, dict[str, HistogramAUC]]]) -> str:
        return Experiment(plan, epochs).report().findings[0].sentence

    apart = sentence({"old": {"a": rows, "b": none}, "new": {"a": none, "b": rows}})
    assert "b has no rows yet in one of 2 epochs that all have too few rows" in apart
    sentence_with_empty = sentence({"old": {"a": rows, "b": rows}, "new": {"a": none, "b": none}})
    assert "no rows yet" not in sentence_with_empty and "more rows" in sentence_with_empty
    nothing = sentence({"old": {"a": none, "b": none}, "new": {"a": none, "b": none}})
    assert nothing.endswith("a and b have no rows yet.")


def test_users_of_two_epochs_are_left_out_of_both_at_once() -> None:
    first = grouped_clicks(1, 900, 0.1), grouped_clicks(2, 900, 0.1, first=1000)
    second = grouped_clicks(3, 900, 0.2), grouped_clicks(4, 900, 0.2, first=1000)
    arms = {"a": read(*first), "b": read(*second)}
    strata = stratified(arms, {"a": 100, "b": 300})
    assert strata.control.groups == 64
    replicates_a, replicates_b = (state.compute().replicates() for state in (first[0], second[0]))
    by_hand = [0.25 * x + 0.75 * y for x, y in zip(replicates_a, replicates_b, strict=True)]
    expected = jackknife_variance(by_hand).variance
    assert math.isclose(strata.control.precision.variance, expected, rel_tol=1e-12)
    assert strata.control.precision.df == 63.0 and strata.control.precision.deff > 1


def test_a_group_without_rows_in_an_epoch_leaves_that_epoch_as_it_is() -> None:
    few, many = grouped_clicks(1, 20, 0.3), grouped_clicks(2, 900, 0.3)
    arms = {"a": read(few, many), "b": read(many, many)}
    strata = stratified(arms, {"a": 1, "b": 1})
    assert strata.control.groups == 64
    assert strata.control.without.replicates is not None
    weights = few.compute().weights
    empty = next(i for i, weight in enumerate(weights) if not weight)
    replicate = many.compute().replicates()[empty]
    assert math.isclose(
        strata.control.without.replicates[empty] or 0.0,
        (few.compute().estimate + replicate) / 2,
        rel_tol=1e-12,
    )


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    result = combined([Part(10, 0, 0.25, 5.0), Part(30, 0, 0.125, 60.0), Part(40, 0, 0.5)])
    parts = [0.125**2 * 0.25, 0.375**2 * 0.125, 0.25 * 0.5]
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 60)
    assert math.isclose(result.df, expected, rel_tol=1e-14)


def test_epochs_in_any_order_give_the_same_bits() -> None:
    strata = [Part(n, 0.1 * n, 0.3 / n, 3.0 + n) for n in (3, 7, 11, 190)]
    assert len({combined(order) for order in permutations(strata)}) == 1


def test_undefined_strata_stay_undefined() -> None:
    for strata in (
        [],
        [Part(0, 0.5, 0.5)],
        [Part(5, math.nan, 1.0)],
        [Part(5, 0.0, math.nan), Part(5, 0.0, 1.0)],
        [Part(5, 0.0, math.inf)],
    ):
        result = combined(strata)
        assert all(map(math.isnan, (result.effect, result.variance, result.df))), strata


def test_in_each_epoch_the_arms_are_asked_together() -> None:
    """V is that of each epoch by itself, with its weight; equal arms change nothing."""
    arms = pairs(RAMP)
    strata = stratified(arms)
    expected = 0.0
    for a, b in arms.values():
        weight = (a.counts.rows + b.counts.rows) / sum(sizes(arms).values())
        (s, n), (t, m) = a.counts.share or (0, 1), b.counts.share or (0, 1)
        variances = float(smoothed_variance(s, n)), float(smoothed_variance(t, m))
        expected += weight**2 * max(sum(variances), variances[0] * n / m + variances[1] * m / n)
    assert spread_of(strata).variance() == approx(expected, rel=1e-12)
    assert spread_of(strata).df() == math.inf
    back = stratified({name: (b, a) for name, (a, b) in arms.items()})
    assert spread_of(back).variance() == spread_of(strata).variance()
    assert back.effect == -strata.effect


def test_groups_of_several_epochs_are_scaled_in_each_of_them() -> None:
    """With one ratio of rows in both epochs it is as if the variance itself were scaled."""
    large, small = grouped_clicks(1, 900, 0.1), grouped_clicks(2, 90, 0.1, first=10**6)
    pair = read(large, small)
    strata = stratified({"a": pair, "b": pair}, {"a": 1, "b": 1})
    c, t = strata.control.precision.variance, strata.treatment.precision.variance
    assert spread_of(strata).variance() == approx(max(c + t, 10 * c + t / 10), rel=1e-12)
    pair_variance = spread_of(pair_of(*pair)).variance()
    assert spread_of(strata).variance() == approx(pair_variance, rel=1e-12)


def test_users_are_a_mass_beside_rows_and_whichever_gives_more_counts() -> None:
    control, treatment = read(grouped_clicks(1, 900, 0.1), grouped_clicks(2, 900, 0.1, first=10**6))
    by_rows = spread_of(pair_of(control, treatment)).variance()
    assert by_rows == control.precision.variance + treatment.precision.variance
    with_users = (
        arm.add_basis("users", users) for arm, users in ((control, 900.0), (treatment, 90.0))
    )
    expected = 10 * control.precision.variance + treatment.precision.variance / 10
    assert spread_of(pair_of(*with_users)).variance() == approx(expected, rel=1e-12)


def test_an_area_has_pairs_as_its_mass_and_not_rows() -> None:
    few, many = read(area(1, 4_000, 1.0), area(2, 400, 1.0))
    positives, negatives = few.counts.counted
    mass, second_mass = few.counts.masses["classes"], many.counts.masses["classes"]
    assert mass == positives * negatives / 4_000 and isinstance(second_mass, float)
    pooled = (
        few.precision.variance * mass / second_mass + many.precision.variance * second_mass / mass
    )
    expected = max(few.precision.variance + many.precision.variance, pooled)
    assert spread_of(pair_of(few, many)).variance() == approx(expected, rel=1e-12)


def test_an_interval_ends_where_no_epoch_has_values_and_not_where_the_first_has_none() -> None:
    rng, arms = np.random.default_rng(0), {}
    for epoch, most, lift in (("clicks", 1, 0), ("amounts", 8, 9)):
        states = []
        for arm in (0, 1):
            state, users = UserGroups(Ratio()), 1_000 * arm + np.arange(400) % 100
            state.update(users, numerators=rng.integers(0, most + 1, 400) + lift * arm)
            states.append(state)
        arms[epoch] = read(*states)
    in_order, reverse = (
        compared(stratified({epoch: arms[epoch] for epoch in order}), 0.95)
        for order in (["clicks", "amounts"], ["amounts", "clicks"])
    )
    assert in_order.effect_size_ci_lower < in_order.effect_size < in_order.effect_size_ci_upper
    assert in_order.effect_size_ci_upper == approx(reverse.effect_size_ci_upper)
