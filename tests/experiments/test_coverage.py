"""Intervals hold the truth as often as they say, and tests are wrong no more often.

The simulations of docs/inference.md, with fewer replicates: `python -m benchmarks.coverage` runs
all. They are seeded, so that a test fails where a formula has changed and never by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.coverage import (
    areas,
    daily_units,
    exposed,
    fading,
    hooks,
    looks,
    one_look,
    overlapping,
    pairs,
    planned,
    policies,
    ramps,
    sparse,
    units,
    uplifts,
    users,
    verdicts,
)
from benchmarks.coverage.streams import linear, logarithmic
from benchmarks.coverage.table import Row
from streammetrics import ExactAUC, HistogramAUC, Ratio, UnitMean, Units, UserGroups, compare
from streammetrics.combine.units import UnitsResult
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.experiments import Experiment, Horizon, Plan, SampleRatio
from streammetrics.experiments.assignment import log_e_by_day
from streammetrics.kernels.inference.dirichlet_multinomial import Crossed, log_e_of_independence
from streammetrics.kernels.inference.interaction import four_cells, log_e_of_interaction
from streammetrics.kernels.inference.variances import jackknife_variance
from tests.experiments.arms import units as units_of

REPLICATES = 160


def means(
    once: Callable[[np.random.Generator], Sequence[float]], replicates: int = REPLICATES
) -> list[float]:
    """The mean of each outcome."""
    return Row("in CI", once, replicates, 1).run(replicates)


def by_chance(p: float, replicates: int = REPLICATES) -> float:
    """How far a share may be from p in one of 1,000 simulations."""
    return 3.3 * math.sqrt(p * (1 - p) / replicates)


def is_near(share: float, p: float, replicates: int = REPLICATES) -> bool:
    return abs(share - p) <= by_chance(p, replicates)


FIGURES = {
    "rate": partial(one_look.rate, 0.05),
    "F1 of a rare class": partial(one_look.rates_of_classes, "f1", one_look.f_truth(1)),
    "macro F1": one_look.macro_f1,
    "AUC": partial(one_look.area, 0.75, 0.2),
    "GAUC": one_look.user_areas,
    "log loss": one_look.log_loss,
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_interval_of_independent_rows_holds_the_truth_in_95_of_100(name: str) -> None:
    (coverage,) = means(lambda rng: [FIGURES[name](rng, 1_000)])
    assert is_near(coverage, 0.95)


@pytest.mark.parametrize(
    ("name", "power"),
    [
        ("rate 30 %, +10 %, treatment 10 %, power .8", 0.8),
        ("mean, normal, +10 %, power .95", 0.95),
        ("AUC .75, +.03, 20 % positives", 0.8),
    ],
)
def test_planned_units_find_the_planned_effect_as_often_as_planned(name: str, power: float) -> None:
    plan, draw = planned.PLANS[name]
    daily, _, single = means(partial(planned.with_effect, plan(), draw), 60)
    assert is_near(daily, power, 60) and is_near(single, power, 60)


def test_an_a_a_test_of_independent_rows_alarms_in_5_of_100_and_a_true_effect_is_held() -> None:
    difference, lift, alarms, _ = means(partial(one_look.rates, 0.05, 0.05, 9000, 1000))
    assert is_near(difference, 0.95) and is_near(lift, 0.95) and is_near(alarms, 0.05)
    difference, lift, power, _ = means(partial(one_look.rates, 0.05, 0.06, 10_000, 10_000))
    assert is_near(difference, 0.95) and is_near(lift, 0.95)
    assert is_near(power, 0.876)  # the normal power of 0.01 with this error


@pytest.mark.parametrize(
    ("once", "replicates", "least_deff", "most_deff", "most_of_rows"),
    [
        (partial(users.clicking, 1000, "lognormal", False), 120, 4, 10, 0.7),
        (partial(users.ranked, 300, 1.0), 60, 1.2, 4, 0.93),
        (partial(users.listed, 300), 50, 4, 9, 0.7),
    ],
    ids=["heavy users", "AUC", "NDCG"],
)
def test_groups_of_users_hold_the_truth_where_rows_as_independent_do_not(
    once: Callable[[np.random.Generator], Sequence[float]],
    replicates: int,
    least_deff: float,
    most_deff: float,
    most_of_rows: float,
) -> None:
    of_rows, of_users, deff, wider = means(once, replicates)
    assert is_near(of_users, 0.95, replicates)
    assert of_rows < most_of_rows
    assert least_deff < deff < most_deff
    assert wider > 1.05


def test_what_users_did_before_makes_the_error_smaller_and_as_honest() -> None:
    *_, without = means(one_look.alike, 20)
    coverage, _, alarms, error = means(one_look.cuped, 40)
    assert is_near(coverage, 0.95, 40) and is_near(alarms, 0.05, 40)
    assert error < 0.92 * without


def test_twenty_looks_fool_a_z_test_and_not_a_confidence_sequence() -> None:
    stream = partial(looks.stream, 0.05, linear(10_000, 20))
    naive, last, *sequences, width = means(stream, 80)
    assert is_near(naive, 0.24804, 80)  # Armitage, McPherson and Rowe 1969
    assert is_near(last, 0.05, 80)
    assert all(alarms <= 0.05 for alarms in sequences)
    assert 1.5 < width < 1.65


def test_the_burn_in_keeps_early_looks_at_a_small_arm_from_alarms() -> None:
    sizes = logarithmic(10_000, 40)
    by_itself, at_once, after_10, _ = means(partial(looks.burn_in, 0.05, 0.02, sizes), 150)
    assert by_itself > 0.05 >= at_once >= after_10


def test_looks_at_users_need_both_their_groups_and_a_sequence() -> None:
    naive, _, _, sequence = means(partial(users.peeked, True, 4), 40)
    assert naive > 0.12
    assert sequence <= 0.05


def test_a_ramp_with_a_trend_deceives_where_epochs_are_pooled() -> None:
    ramp = ramps.Ramp((0.02, 0.1, 0.5), (0.03, 0.08))
    pooled, _, by_epoch, sequence, label = means(partial(ramps.look_at, ramp, 20_000, 1), 25)
    assert pooled > 0.5
    assert by_epoch <= 0.05 + by_chance(0.05, 25)
    assert sequence <= 0.05 and label <= 0.05


def test_the_sample_ratio_may_be_looked_at_and_still_sees_a_wrong_one() -> None:
    fair = partial(units.sample_ratio, (0.5, 0.5), 0.5, linear(10_000, 20))
    chi_square, _, _, alarms = means(fair, 80)
    assert chi_square > 0.15
    assert alarms <= 0.01
    *_, alarms = means(partial(units.sample_ratio, (0.5, 0.5), 0.55, linear(10_000, 40)), 20)
    assert alarms == 1


def test_arms_that_are_made_of_sums_are_those_of_an_experiment() -> None:
    rng, over = np.random.default_rng(5), []
    settings = Plan(control="a", variants=("a", "b"), decision=("m",), horizon=Horizon(mde=0.1))
    for n in (80, 400, 3000, 20_000):
        arms, states, counted = [], {}, {}
        for name, first, rows in (("a", 0, 9 * n), ("b", 10**7, n)):
            users = np.arange(first, first + rows)
            values = np.where(rng.random(rows) < 0.05, rng.lognormal(0, 1, rows), 0.0)
            state = UserGroups(Ratio())
            state.update(groups=users, numerators=values)
            states[name], counted[name] = {"m": state}, units_of(range(first, first + rows))
            groups = unit_hashes(users, salt_word("streammetrics"), "users").astype(np.int64) & 63
            y, counts = np.bincount(groups, values, minlength=64), np.bincount(groups, minlength=64)
            arms.append(sparse.of_groups(y[None], counts[None]))
        (contrast,) = Experiment(settings, {"": states}, {"": counted}).contrasts()
        control, treatment = arms
        effect = treatment.value[0] - control.value[0]
        error = math.sqrt(control.variance[0] + treatment.variance[0])
        assert contrast.comparison.effect_size == pytest.approx(effect, rel=1e-12)
        assert contrast.comparison.std_error == pytest.approx(error, rel=1e-9)
        over.append(bool((control.ready(treatment) & treatment.ready(control))[0]))
        assert contrast.anytime.gated is not over[-1]
        variance = sparse.together(control, treatment)
        assert contrast.comparison.anytime_error == pytest.approx(math.sqrt(variance[0]), rel=1e-9)
        alarm = sparse.Alarms(control, treatment, variance, Horizon(mde=0.1).v_opt).alarm(0)
        assert not over[-1] or alarm == (contrast.anytime.p_value <= 0.05)
    assert over == [False, False, False, True]


SPARSE_ROWS = {row.name: row for table in (sparse.ZEROS, sparse.SPARSE) for row in table.rows}


@pytest.mark.parametrize(
    "name",
    [
        "equal; 1 %; 5 %",
        "Pareto, a 2.5; 1 %; 5 %",
        "Matthews, recall 3 %; 5 %",
    ],
)
def test_the_burn_in_keeps_sparse_values_from_alarms_and_a_hundred_rows_do_not(name: str) -> None:
    rows_alone, *_, ten, always, _ = SPARSE_ROWS[name].run(120)
    assert rows_alone > 0.08
    assert ten <= always <= 0.05 + by_chance(0.05, 120)


@pytest.mark.parametrize(
    ("once", "least_wider"),
    [
        (partial(pairs.areas, ExactAUC(), 300), 1.8),
        (partial(pairs.areas, HistogramAUC(), 1000), 1.8),
        (partial(pairs.areas_within_users, 100), 1.6),
        (partial(pairs.losses, 500), 2.0),
        (partial(pairs.lists, 150), 1.4),
    ],
    ids=["AUC", "AUC on a grid", "GAUC", "log loss", "MRR"],
)
def test_two_models_on_the_same_rows_are_held_in_95_of_100_by_narrower_intervals(
    once: Callable[[np.random.Generator], Sequence[float]], least_wider: float
) -> None:
    unpaired, paired, wider = means(once, 150)
    assert is_near(paired, 0.95, 150) and wider > least_wider
    assert unpaired > 0.99, "an interval for independent arms is too wide"


def test_the_uplift_of_a_part_with_few_successes_is_held_and_by_the_jackknife_alone_is_not() -> (
    None
):
    rare = uplifts.Trial(5_000, 1, 0.05, 0.02, 0.0, 0.0)
    true = rare.truth
    effect, part, symmetric = means(lambda rng: uplifts.effect_and_top(rare.state(rng), true), 40)
    assert is_near(effect, 0.95, 40) and is_near(part, 0.95, 40)
    assert symmetric < 0.75


def test_the_credit_of_complete_sessions_may_be_watched() -> None:
    ended, *_ = means(partial(policies.sessions, 150), 60)
    assert ended <= 0.05 + by_chance(0.05, 60)


def test_the_sample_ratio_by_day_is_wrong_as_seldom_as_it_says() -> None:
    fair = means(partial(daily_units.daily, 1_000, 0.5, 0.5), 300)
    assert fair[0] <= 0.05 + by_chance(0.05, 300) and fair[1] <= 0.001 + by_chance(0.001, 300)
    bad = means(partial(daily_units.daily, 10_000, 0.5, 0.45), 40)
    assert bad[2] == 1.0 and 6 < bad[3] < 11


def test_the_simulated_sample_ratio_is_that_of_the_library() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 400, (2, 5, 3)).astype(float)
    evidence = daily_units.log_e(*counts)
    check = SampleRatio({"a": 1, "b": 1})
    for index in np.ndindex(evidence.shape):
        a, b = (int(count[index]) for count in counts)
        assert math.isclose(
            evidence[index], check.at({"a": a, "b": b}).log_e, rel_tol=1e-6, abs_tol=1e-6
        )
    ends = counts.sum(axis=2).astype(int)
    ids = iter(range(10**6))
    days = {
        day: {
            name: unit_counts([next(ids) for _ in range(n)])
            for name, n in zip("ab", pair, strict=True)
        }
        for day, pair in enumerate(ends.T.tolist())
    }
    by_day = log_e_by_day({"a": 1, "b": 1}, days, np.empty(0, np.uint64))
    total = check.at(dict(zip("ab", ends.sum(axis=1).tolist(), strict=True))).log_e
    assert by_day is not None
    last = float(daily_units.of_looks(*counts)[-1, -1])
    assert math.isclose(last, np.logaddexp(total, by_day) - math.log(2), rel_tol=1e-6)


def unit_counts(ids: Sequence[int]) -> UnitsResult:
    state = Units()
    state.update(ids)
    return state.compute()


def test_an_experiment_without_an_effect_sends_a_hook_as_rarely_as_planned_and_harm_sends_one() -> (
    None
):
    *_, either, _ = means(partial(hooks.sends, 2, 0.0, 0.0), 20)
    assert either <= 0.05
    worse, _, _, share = means(partial(hooks.sends, 2, 0.0, -0.39 * hooks.RATE), 5)
    assert worse == 1
    assert share < 0.5


def test_constant_effects_are_not_taken_back_and_effects_that_end_are() -> None:
    for errors in (2.8, 3.5, 4.2, 6):
        shown, former, now = means(partial(fading.fading, errors, fading.constant), 400)
        assert shown > 0.4 and former > 0.15 and now == 0.0
    ended = partial(fading.step_effect, 0.25, 0.0)
    assert means(partial(fading.fading, 20, ended), 200)[2] == 1.0


SETTINGS = {row.name: row for row in verdicts.VERDICTS.rows}


@pytest.mark.parametrize(
    "name",
    [
        "rows, lognormal, σ 2; 5 %",
        "rows, Pareto, a 1.5; 98 %",
        "rows, a rate of 1 %; 2 %",
        "users with 30 rows, rates Beta(0.1, 1.9); 5 %",
    ],
)
def test_a_verdict_is_seldom_wrong_where_each_arm_by_itself_is_often(name: str) -> None:
    """The second figure is the gauge broken on purpose: the variance of each arm by itself."""
    wrong, by_itself, guardrail, *_ = SETTINGS[name].run(150)
    assert by_itself > 0.2
    assert wrong <= 0.05 and guardrail <= 0.05


@pytest.mark.parametrize("share", ["5 %", "50 %"])
def test_a_treatment_that_ends_all_events_is_found_in_every_simulation(share: str) -> None:
    for values in ("rows, a rate of 5 %", "users with 30 rows, rates Beta(0.1, 1.9)"):
        *_, power, _, judged = SETTINGS[f"{values}, all events end; {share}"].run(40)
        assert power == judged == 1, values


OF_AREAS = {row.name: row for row in areas.AREAS.rows}


def test_areas_over_users_are_seldom_wrong_where_by_rows_or_all_users_they_often_are() -> None:
    name = "30 % and 3 % positives, 4 and 60 rows, far apart; 5 %"
    by_itself, by_rows, _, used, *_ = OF_AREAS[name].run(150)
    assert by_itself > 0.08 and by_rows > 0.06 and used <= 0.05
    *_, by_users, power = OF_AREAS["1 % and 10 % positives, 10 rows; 5 %"].run(40)
    assert by_users < 0.1 and power > 0.6


def test_looks_at_areas_are_those_of_their_groups() -> None:
    crowd, users = areas.Crowd(0.2), 300
    whole_area = areas.area_of(crowd, np.random.default_rng(2), np.array([users]))
    rng = np.random.default_rng(2)
    who, positive, levels = crowd.draw(rng, users)
    groups = rng.integers(0, sparse.K, users)[who]

    def area(rows: NDArray[np.bool_]) -> ExactAUC:
        state = ExactAUC()
        state.update(positive[rows].astype(int), levels[rows].astype(float))
        return state

    whole = area(groups >= 0).compute()
    left = [float(area(groups != g).compute().auc) for g in np.unique(groups).tolist()]
    assert whole_area.value[0] == pytest.approx(whole.auc, rel=1e-12)
    assert whole_area.alone[0] == pytest.approx(whole.interval().se ** 2, rel=1e-9)
    assert whole_area.variance[0] == pytest.approx(jackknife_variance(left).variance, rel=1e-9)
    assert whole_area.positive[0].sum() == positive.sum()


@pytest.mark.parametrize(
    "pairs_of",
    [
        overlapping.users_with_an_event,
        overlapping.clicks_of_heavy_users,
        overlapping.amounts_of_users,
    ],
)
def test_each_of_twenty_experiments_over_the_same_users_is_wrong_as_rarely_as_alone(
    pairs_of: overlapping.Pairs,
) -> None:
    replicates = 20
    naive, by_experiment, _, adjusted = means(
        partial(overlapping.twenty, pairs_of, 0.5), replicates
    )
    many = replicates * overlapping.EXPERIMENTS  # nearly independent, given what the users do
    assert by_experiment <= 0.05 + by_chance(0.05, many) and naive > 0.2
    assert adjusted <= 0.05 + by_chance(0.05, replicates)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_arms_of_two_experiments_that_are_independent_are_an_alarm_in_one_of_1000(
    share: float,
) -> None:
    def ever(rng: np.random.Generator) -> list[float]:
        cells = np.array([(1 - share) ** 2, share * (1 - share), share * (1 - share), share**2])
        looks_at = np.cumsum([rng.multinomial(n, cells) for n in logarithmic(20_000, 40)], axis=0)
        evidence = [
            log_e_of_independence(
                [Crossed(look.reshape(2, 2).tolist(), (1 - share, share), (1 - share, share))]
            )
            for look in looks_at
        ]
        return [float(max(evidence) >= math.log(20)), float(max(evidence) >= math.log(1000))]

    seldom, alarm = means(ever, 60)
    assert seldom <= 0.05 + by_chance(0.05, 60) and alarm <= 0.001 + by_chance(0.001, 60)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("values", ["orders", "amounts"])
def test_two_experiments_without_an_interaction_show_one_in_at_most_5_of_100(
    values: str, share: float
) -> None:
    v_opt = 0.5 * 3_000 * share * (1 - share) / (0.16 if values == "orders" else 4.7)

    def ever(rng: np.random.Generator) -> list[float]:
        cells = 2 * (rng.random(3_000) < share) + (rng.random(3_000) < 0.5)
        drawn = rng.random(3_000) < 0.2 if values == "orders" else rng.lognormal(0, 1, 3_000)
        ready, shown = False, False
        for n in np.cumsum(logarithmic(3_000, 40)).tolist():
            result = four_cells(drawn[:n].astype(float), np.ones(n), cells[:n])
            if result.few is None:
                arguments = result.effect, result.variance, result.df, v_opt, 0.05
                ready, shown = True, shown or log_e_of_interaction(*arguments) >= math.log(20)
        return [float(ready), float(shown)]

    ready, shown = means(ever, 100)
    assert ready > 0.5 and shown <= 0.05 + by_chance(0.05, 100)


def test_looks_at_exposed_units_are_those_of_an_experiment_on_states() -> None:
    scene, looks = exposed.Scene(units=3_000, zipf=2.5), np.array([6.0, 12.0, 20.0, 29.0])
    rows = exposed.drawn(scene, 0.3, np.random.default_rng(1), lift=0.5)
    hashes = unit_hashes(np.arange(scene.units), salt_word("streammetrics"), "units")
    rows = replace(rows, groups=hashes.astype(np.int64) & 63)
    plans, compared = exposed.plans_of(scene, 0.3), 0
    for rule in (exposed.so_far, exposed.closed):
        entry_looks = rule(rows, looks)
        pairs_at = exposed.pairs(rows, entry_looks, len(looks), plans, 0.3)
        for look in range(len(looks)):
            states = UnitMean(), UnitMean()
            for state, treated in zip(states, (False, True), strict=True):
                units = np.flatnonzero((entry_looks.units <= look) & (rows.treated == treated))
                state.update(units, np.zeros(len(units)))
                counted = (entry_looks.outcomes <= look) & (rows.treated[rows.unit] == treated)
                state.update(rows.unit[counted], rows.amount[counted])
            for pair, view in zip(pairs_at, ("mean", "rate"), strict=True):
                value = float(pair.treatment.value[look] - pair.control.value[look])
                if not states[0].compute().units:
                    assert math.isnan(value)
                    continue
                comparison = compare(*states, view=view)
                assert comparison.effect_size == pytest.approx(value, rel=1e-9)
                error = math.sqrt(pair.variance()[look])
                assert comparison.anytime_error == pytest.approx(error, rel=1e-9)
                center = float(exposed.center(pair)[look])
                assert comparison.evidence.center == pytest.approx(center, rel=1e-9)
                compared += 1
    assert compared == 12


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("kind", ["mean", "rate"])
def test_exposed_units_without_an_effect_are_seldom_said_to_differ(
    kind: Literal["mean", "rate"], share: float
) -> None:
    scene = exposed.Scene(zipf=2.5, first=True)
    _, growing, closed, *_ = means(lambda rng: exposed.watched(kind, scene, share, rng), 80)
    assert growing <= 0.05 and closed <= 0.05


def test_an_arm_that_only_delays_outcomes_differs_so_far_and_not_in_the_end() -> None:
    seventh, *_, end, so_far, closed = means(partial(exposed.delayed, 3.0, 0.5), 40)
    assert seventh < 0.4 and so_far > 0.9
    assert abs(end - 1) < 0.03 and closed <= 0.05
