"""Of which exposed units an experiment's means and rates of units are, and what its notes say."""

from __future__ import annotations

import dataclasses
import math

import pytest

from streammetrics import Ratio, SettingsError, UnitMean, UnitRate, Units
from streammetrics.experiments import (
    Anytime,
    Experiment,
    Horizon,
    Look,
    Monitor,
    Plan,
    Safeguard,
    Watched,
)

EPOCHS = ("start", "later")


def states(first: int, n: int, bought: int) -> dict[str, UnitMean | UnitRate | Ratio]:
    """Of n units from the first one on, of which some bought."""
    units = [*range(first, first + n)]
    values = [float(i < bought) for i in range(n)]
    mean, rate, ratio = UnitMean(), UnitRate(), Ratio()
    mean.update(units, values)
    rate.update(units, values)
    ratio.update(values)
    return {"revenue": mean, "buyers": rate, "ctr": ratio}


def units_from(first: int, n: int) -> Units:
    units = Units()
    units.update([*range(first, first + n)])
    return units


def experiment(view: str, decision: tuple[str, ...] = ("revenue", "buyers", "ctr")) -> Experiment:
    """Of 300 and 320 units in the first epoch, and in the next 40 and 50 of 1,000 and 1,100."""
    plan = Plan(
        control="a",
        variants=("a", "b"),
        decision=decision,
        horizon=Horizon(mde=0.1),
        epochs=EPOCHS,
        unit_view=view,  # type: ignore[arg-type]
    )
    first = {"a": states(0, 300, 60), "b": states(1000, 320, 90)}
    later = {"a": states(2000, 40, 9), "b": states(4000, 50, 9)}
    exposed = {
        "start": {"a": units_from(0, 300), "b": units_from(1000, 320)},
        "later": {"a": units_from(2000, 1000), "b": units_from(4000, 1100)},
    }
    return Experiment(plan, {"start": first, "later": later}, exposed)


def notes(view: str, decision: tuple[str, ...] = ("revenue", "buyers", "ctr")) -> list[str]:
    return [note for note in experiment(view, decision).report().notes if "exposed" in note]


def test_the_notes_say_that_an_effect_so_far_may_not_be_the_final_one() -> None:
    assert notes("so_far") == [
        "revenue and buyers: of all exposed units, each with what it did so far. Where an arm only "
        "delays what units do, such an effect is not the final one."
    ]
    assert notes("closed") == [
        "revenue and buyers: of the units whose window after the exposure is over, each with its "
        "final value; units that were exposed later are not compared yet."
    ]


@pytest.mark.parametrize(("view", "decision"), [("seen", ("revenue",)), ("so_far", ("ctr",))])
def test_no_note_without_exposures_or_without_a_metric_of_units(
    view: str, decision: tuple[str, ...]
) -> None:
    assert notes(view, decision) == []


def test_epochs_of_closed_units_have_the_weight_of_these() -> None:
    so_far, closed = experiment("so_far"), experiment("closed")
    weights = [contrast.pair.weights for contrast in closed.contrasts() if contrast.pair]
    assert weights[0] == weights[1] == [620 / 710, 90 / 710]
    assert weights[2] == [620 / 2720, 2100 / 2720]  # rows know nothing of closed units
    assert next(c.pair.weights for c in so_far.contrasts() if c.pair) == [620 / 2720, 2100 / 2720]
    assert [contrast.units for contrast in closed.contrasts()] == [710, 710, 2720]
    assert [contrast.units for contrast in so_far.contrasts()] == [2720, 2720, 2720]


def watched_of(*effects: tuple[float, float]) -> Watched:
    """Looks with these intervals, of which the first had the most evidence."""
    looks = [
        Look.at("", 1, {"log": i}, {"c": Anytime(low, high, 9.0 - i)})
        for i, (low, high) in enumerate(effects)
    ]
    return Monitor.of(looks).watched("", 1, "c")


def test_an_effect_so_far_is_read_at_the_last_look_and_never_contradicts_itself() -> None:
    outcome = experiment("so_far").outcome()
    watched = {c.name: watched_of((0.3, 0.5), (0.05, 0.1)) for c in outcome.contrasts}
    watched |= {
        c.name + " (since the decision)": watched_of((-0.2, -0.1)) for c in outcome.contrasts
    }
    mean, rate, rows = outcome.report(watched).findings
    for finding in (mean, rate):
        assert (finding.anytime_lower, finding.anytime_upper) == (0.05, 0.1)
        assert finding.verdict == "higher" and not finding.faded
        assert finding.anytime_pvalue == pytest.approx(math.exp(-9))
        assert math.isnan(finding.since_effect)
    assert rows.verdict == "faded"  # an effect on rows that were counted does not change
    closed = experiment("closed").outcome().report(watched)
    assert {finding.verdict for finding in closed.findings} == {"faded"}


@pytest.mark.parametrize(("view", "stored"), [("so_far", 1), ("closed", 2)])
def test_no_look_at_an_effect_so_far_stores_its_decision(view: str, stored: int) -> None:
    outcome = experiment(view).outcome()
    strong = [dataclasses.replace(c, anytime=Anytime(0.1, 0.2, 9.0)) for c in outcome.contrasts]
    names = dataclasses.replace(outcome, contrasts=tuple(strong)).readings()
    assert sum(name.startswith("revenue.mean/b") for name in names) == stored


def test_a_guardrail_is_kept_by_the_last_look_and_the_note_says_that_it_may_still_break() -> None:
    plan = dataclasses.replace(
        experiment("so_far").plan,
        decision=("buyers",),
        guardrails=(Safeguard("revenue", 0.5),),
    )
    report = dataclasses.replace(experiment("so_far"), plan=plan).report()
    rail = report.findings[1]
    assert rail.verdict == "kept" and "the last look excludes" in rail.sentence
    assert any(note.endswith("a guardrail that is kept may still break.") for note in report.notes)


def test_another_view_is_refused() -> None:
    with pytest.raises(SettingsError, match="unit_view"):
        experiment("now")
