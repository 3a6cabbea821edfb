"""Of which exposed units an experiment's means and rates of units are, and what its notes say."""

from __future__ import annotations

import pytest

from streammetrics import Ratio, SettingsError, UnitMean, UnitRate, Units
from streammetrics.experiments import Experiment, Horizon, Plan

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


def test_another_view_is_refused() -> None:
    with pytest.raises(SettingsError, match="unit_view"):
        experiment("now")
