"""What is shown of exposed units is what plain Python says of their rows."""

from __future__ import annotations

import math
import random

import pytest
from streammetrics_consumers.model.generation import Generation, Pane
from streammetrics_consumers.query.experiment_plan import (
    DeclaredExperiment,
    counted_experiment,
    declared,
)
from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposedEffect
from streammetrics_consumers.query.exposed_reading import answer_of
from streammetrics_consumers.query.exposed_states import Days, closed_units

from streammetrics import PerKey, UnitMean
from tests.consumers.exposed_cohorts import (
    ARMS,
    BUCKETS,
    DAY_MS,
    PREFIX,
    Unit,
    mean_by_arm,
    metrics,
    states,
    units,
)

WEEK_MS = 7 * DAY_MS


def design(window_s: int | None = 7 * 86_400, **plan: object) -> DeclaredExperiment:
    declaration = declared(
        Generation(1, 1, True, None, tuple(metrics(window_s, **plan))), "checkout"
    )
    assert declaration is not None
    return declaration


def answer(
    population: list[Unit], closed_ms: int, window_s: int | None = 7 * 86_400, **plan: object
) -> ExposedAnswer:
    declaration = design(window_s, **plan)
    return answer_of(declaration, states(population, closed_ms), declaration.closed_by(closed_ms))


def by_metric(effects: tuple[ExposedEffect, ...]) -> dict[str, ExposedEffect]:
    return {f"{effect.metric}.{effect.view}": effect for effect in effects}


def test_a_declared_experiment_knows_its_exposures() -> None:
    declaration = design(units="closed")
    assert (
        declaration.is_exposed
        and declaration.window_ms == WEEK_MS
        and declaration.is_of_closed_units
    )
    assert declaration.plan.unit_view == "closed" and declaration.unit_metrics == (
        "revenue",
        "buyers",
    )
    so_far = design(None)
    assert so_far.plan.unit_view == "so_far" and so_far.window_ms is None
    assert declaration.fingerprint != so_far.fingerprint != design(None, units="closed").fingerprint


@pytest.mark.parametrize("seed", range(6))
def test_closed_units_are_those_of_days_whose_window_is_over(seed: int) -> None:
    population = units(seed, 400, 12, WEEK_MS)
    closed_ms = random.Random(seed).randrange(8 * DAY_MS, 24 * DAY_MS)
    whole = answer(population, closed_ms)
    last = min((closed_ms - WEEK_MS) // DAY_MS - 1, 11)
    closed = [unit for unit in population if unit.exposed_ms < (last + 1) * DAY_MS]
    truth = mean_by_arm(closed, lambda *_: True)
    effect = by_metric(whole.beside)["revenue.mean"]
    assert effect.units == sum(n for n, _ in truth.values())
    for shown, arm in zip((effect.control, effect.treatment), ARMS, strict=True):
        assert shown == pytest.approx(truth[arm][1], rel=1e-12)
    assert (whole.closed_from_ms, whole.closed_to_ms) == (0, (last + 1) * DAY_MS)
    assert whole.units == "so_far" and "No verdict" in whole.other


@pytest.mark.parametrize("window_ms", [None, WEEK_MS, 5 * DAY_MS // 2])
@pytest.mark.parametrize("seed", range(4))
def test_days_since_the_exposure_are_of_units_for_which_they_are_over(
    seed: int, window_ms: int | None
) -> None:
    population = units(seed, 300, 9, window_ms)
    closed_ms = random.Random(seed).randrange(2 * DAY_MS, 30 * DAY_MS)
    window_s = None if window_ms is None else window_ms // 1000
    whole = answer(population, closed_ms, window_s)
    shown = {part.from_day: part for part in whole.since}
    expected = set()
    for name, (first, end) in BUCKETS.items():
        end_ms = min(end * DAY_MS, window_ms or 99 * DAY_MS)
        if first * DAY_MS >= end_ms or (window_ms is None and name == "16+"):
            continue
        last = (closed_ms - end_ms) // DAY_MS - 1
        cohorts = [unit for unit in population if unit.exposed_ms < (last + 1) * DAY_MS]
        acted = any(
            first * DAY_MS <= ms - u.exposed_ms < end_ms for u in population for ms, _ in u.events
        )
        if not cohorts or not acted:
            continue
        truth = mean_by_arm(cohorts, lambda _, since, a=first * DAY_MS, b=end_ms: a <= since < b)
        effect = by_metric(shown[first].effects)["revenue.mean"]
        assert effect.units == len(cohorts)
        for value, arm in zip((effect.control, effect.treatment), ARMS, strict=True):
            assert value == pytest.approx(truth[arm][1], rel=1e-12)
        expected.add(first)
        assert shown[first].to_day == -(-end_ms // DAY_MS)
    assert set(shown) == expected


def test_the_plan_decides_by_closed_units_if_it_says_so() -> None:
    population = units(3, 500, 10, WEEK_MS)
    declaration, sums = design(units="closed"), states(population, 15 * DAY_MS)
    panes = [(Pane(name, grouping, None, None), state) for (name, grouping), state in sums.items()]
    experiment, _ = counted_experiment(declaration, panes, declaration.closed_by(15 * DAY_MS))
    closed = [unit for unit in population if unit.exposed_ms < 8 * DAY_MS]
    truth = mean_by_arm(closed, lambda *_: True)
    contrast = next(c for c in experiment.contrasts() if c.name == "revenue.mean/new")
    assert contrast.comparison.control == pytest.approx(truth["control"][1], rel=1e-12)
    assert contrast.units == len(closed)
    assert sum(n for _, n in experiment.srm().counts) == len(population)  # of all exposures
    whole = answer_of(declaration, sums, declaration.closed_by(15 * DAY_MS))
    assert whole.units == "closed" and "exposed from 1970-01-01 to 1970-01-08" in whole.sentence
    so_far = mean_by_arm(population, lambda u, since: u.exposed_ms + since < 15 * DAY_MS)
    effect = by_metric(whole.beside)["revenue.mean"]
    assert (effect.units, effect.control) == (500, pytest.approx(so_far["control"][1], rel=1e-12))


def test_before_any_window_is_over_nothing_is_closed() -> None:
    whole = answer(units(1, 50, 2, WEEK_MS), 3 * DAY_MS)
    assert whole.beside == () and whole.closed_to_ms is None
    assert whole.other == "No unit's window of 7 days after its exposure is over."
    assert "for ever" in answer(units(1, 50, 2, None), 3 * DAY_MS, None).other
    declaration = design(units="closed")
    sums = states(units(1, 50, 2, WEEK_MS), 3 * DAY_MS)
    panes = [(Pane(name, grouping, None, None), state) for (name, grouping), state in sums.items()]
    contrasts = counted_experiment(declaration, panes, 3 * DAY_MS)[0].contrasts()
    assert {contrast.comparison.reason for contrast in contrasts} == {"no rows"}
    empty = answer_of(declaration, {}, None)
    assert (empty.since, empty.funnel, empty.beside, empty.reason) == ((), (), (), "")


def test_events_after_the_end_are_none_of_it_so_their_units_never_close() -> None:
    declaration = design(end=10 * DAY_MS)
    assert declaration.closed_by(40 * DAY_MS) == 10 * DAY_MS and declaration.closed_by(None) is None
    population = units(2, 300, 10, WEEK_MS)
    whole = answer_of(
        declaration, states(population, 10 * DAY_MS), declaration.closed_by(40 * DAY_MS)
    )
    assert whole.closed_to_ms == 3 * DAY_MS


def test_the_funnel_counts_units_exposed_active_and_converted() -> None:
    population = units(5, 200, 6, WEEK_MS)
    arms = {entry.variant: entry for entry in answer(population, 40 * DAY_MS).funnel}
    for arm in ARMS:
        arm_units = [unit for unit in population if unit.arm == arm]
        acted = sum(bool(unit.events) for unit in arm_units)
        bought = sum(any(value > 0 for _, value in unit.events) for unit in arm_units)
        assert (arms[arm].exposed, arms[arm].active) == (len(arm_units), acted)
        assert arms[arm].converted == {"revenue": bought, "buyers": bought}
        assert arms[arm].share_converted["buyers"] == bought / len(arm_units)


def test_each_effect_is_at_one_look_and_has_no_verdict() -> None:
    whole = answer(units(8, 400, 6, WEEK_MS), 40 * DAY_MS)
    effect = by_metric(whole.since[0].effects)["buyers.rate"]
    assert effect.effect_size_ci_lower < effect.effect_size < effect.effect_size_ci_upper
    assert effect.level == 0.95 and not hasattr(effect, "verdict")
    assert set(by_metric(whole.beside)) == {"revenue.mean", "revenue.rate", "buyers.rate"}


def test_cohorts_that_are_not_all_kept_apart_are_not_shown() -> None:
    population, declaration = units(4, 100, 6, WEEK_MS), design()
    sums = states(population, 40 * DAY_MS)
    state = PerKey(UnitMean(), max_keys=3)
    whole = sums[PREFIX + "revenue", 1]
    for key in whole.keys():  # noqa: SIM118
        values = [0.0]
        state.update([key], units=["x"], values=values)
    assert state.overflow_state() is not None and closed_units(state, 99 * DAY_MS, DAY_MS) is None
    shown = answer_of(declaration, {**sums, (PREFIX + "revenue", 1): state}, 40 * DAY_MS)
    assert shown.reason == "more cohorts than are kept apart: revenue"
    assert {effect.metric for part in shown.since for effect in part.effects} == {"buyers"}


def test_days_since_an_exposure_end_with_the_window() -> None:
    assert (
        Days.parse("16+").end_ms(None) is None
        and Days.parse("16+").end_ms(20 * DAY_MS) == 20 * DAY_MS
    )
    assert (
        Days.parse("4-7").end_ms(5 * DAY_MS) == 5 * DAY_MS
        and Days.parse("0").end_ms(None) == DAY_MS
    )
    assert not Days.parse("4-7").exist(4 * DAY_MS) and Days.parse("4-7").exist(4 * DAY_MS + 1)
    assert math.isnan(answer([], DAY_MS, None).window_s)
