"""Why nothing is said yet: what is the case, by the names of the variants."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import Calibration, HistogramAUC, InputError, Ratio, UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import Experiment, Finding, Horizon, Look, Monitor
from streammetrics.experiments.confidence_sequence import Anytime
from tests.experiments.arms import clicks, grouped_clicks, plan, two, units


def one(experiment: Experiment, *readings: Anytime) -> Finding:
    name = "ctr.ratio/bts"
    rows = [Look.at("x", 1, {"a": i}, {name: reading}) for i, reading in enumerate(readings)]
    watched = {name: Monitor.of(rows).watched("x", 1, name)} if rows else None
    (found,) = experiment.report(watched).findings
    return found


@pytest.mark.parametrize(
    ("arms", "why"),
    [
        (((0, 0), (0, 0)), "random and bts have no rows yet"),
        (((9, 90), (0, 0)), "bts has no rows yet"),
        (((0, 90), (0, 90)), "random and bts have no success yet"),
        (((20, 90), (0, 90)), "bts has no success yet"),
        (((90, 90), (20, 90)), "random has no failure yet"),
    ],
)
def test_rates_say_what_they_have_not_got(arms: tuple[tuple[int, int], ...], why: str) -> None:
    found = one(two(*arms))
    assert found.reason == why
    assert found.sentence == f"Too early to say of ctr (bts - random): {why}."


def test_an_area_says_which_class_it_has_not_got() -> None:
    arms = {}
    for name, labels in (("random", [0, 1] * 50), ("bts", [0] * 100)):
        arms[name] = {"auc": HistogramAUC()}
        arms[name]["auc"].update(labels, np.linspace(0.1, 0.9, 100))
    found = one(Experiment(plan(decision=("auc",), horizon=Horizon(mde=0.01)), {"": arms}))
    assert found.reason == "bts has no positive yet"


def test_few_users_are_called_few_users() -> None:
    states = {"random": grouped_clicks(1, 90, 0.2), "bts": grouped_clicks(2, 5, 0.2, first=100)}
    arms = {name: {"ctr": state} for name, state in states.items()}
    found = one(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.reason.startswith("too few users: an arm has ")


def test_one_user_with_most_of_the_rows_is_said() -> None:
    heavy = UserGroups(Ratio())
    who = np.r_[np.zeros(9000, int), np.arange(1, 900)]
    heavy.update(users=who, numerators=np.resize([0.0, 1.0, 0.0], len(who)))
    arms: dict[str, dict[str, Accumulator]] = {
        "random": {"ctr": grouped_clicks(1, 90, 0.2)}, "bts": {"ctr": heavy},
    }  # fmt: skip
    found = one(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.sentence.endswith(
        " Beware: one user or group of users has 91 % of the rows of bts."
    )
    arms["bts"] = {"ctr": grouped_clicks(2, 90, 0.2)}
    found = one(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert "Beware" not in found.sentence


def test_no_sentence_denies_a_look_that_was_taken() -> None:
    experiment = two((46, 10_000), (69, 10_000))
    for reading in (Anytime(), Anytime(gated=True, reason="an arm has 3 of them")):
        found = one(experiment, reading)
        assert found.verdict == "not_started" and "no look" not in found.sentence
        assert found.sentence.endswith(f"{reading.reason or 'the last look has no interval'}.")


def test_an_epoch_without_a_name_is_not_called_unnamed() -> None:
    states = {
        "": {"random": {"ctr": clicks(4, 9)}},
        "late": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}},
    }
    notes = Experiment(plan(), states).report().notes
    assert (
        "Epochs left out of a comparison, as an arm has too little in them: of events without an "
        "epoch." in notes
    )
    alone = Experiment(plan(), {"": {"random": {"ctr": clicks(4, 9)}}}).report().notes
    assert not any("Epochs left out" in note for note in alone)


def test_a_name_that_no_state_has_is_refused_with_the_nearest() -> None:
    states = {"": {"random": {"ctr": clicks(4, 9)}, "bts": {"ctr": clicks(4, 9)}}}
    with pytest.raises(SettingsError, match="got 'crt'; did you mean 'ctr'"):
        Experiment(plan(decision=("crt",)), states).report()
    assert Experiment(plan(decision=("auc.gini",)), states, metrics=("auc",)).report()
    with pytest.raises(InputError, match="got 'ratoi'; did you mean 'ratio'"):
        Experiment(plan(decision=("ctr.ratoi",)), states).report()
    with pytest.raises(SettingsError, match="got 'bst'; did you mean 'bts'"):
        Experiment(plan(), {"": {"bst": {"ctr": clicks(4, 9)}}})
    with pytest.raises(SettingsError, match=r"units\[''\].*got 'bst'; did you mean 'bts'"):
        Experiment(plan(), {}, {"": {"bst": units(range(3))}})


def test_an_infinite_log_loss_is_no_matter_of_time() -> None:
    arms = {}
    for name, sure in (("random", 0.1), ("bts", 0.0)):
        arms[name] = {"cal": Calibration()}
        arms[name]["cal"].update([1] + [0, 1] * 500, [sure] + [0.2, 0.7] * 500)
    settings = plan(decision=("cal",), horizon=Horizon(mde=0.01))
    report = Experiment(settings, {"start": arms}).report()
    (found,) = report.findings
    why = "bts has an infinite estimate"
    assert found.sentence == f"No always-valid interval of cal (bts - random): {why}."
    assert report.recommendation.action == "check_setup"
    assert not any("Epochs left out" in note for note in report.notes)


def test_an_estimate_that_is_undefined_is_said_of_its_arm() -> None:
    arms: dict[str, dict[str, Accumulator]] = {}
    for name, below in (("random", 1.0), ("bts", 0.0)):
        state = UserGroups(Ratio())
        state.update(range(900), numerators=[1.0, 0.0, 2.0] * 300, denominators=[below] * 900)
        arms[name] = {"ctr": state}
    found = one(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.sentence == (
        "Too early to say of ctr (bts - random): bts has no defined estimate yet."
    )


def test_values_near_the_end_of_float64_have_no_variance() -> None:
    arms: dict[str, dict[str, Accumulator]] = {}
    for name, value in (("random", 1e308), ("bts", 1.5e308)):
        state = UserGroups(Ratio())
        state.update(range(900), numerators=[value] * 900)
        arms[name] = {"ctr": state}
    found = one(Experiment(plan(cluster="groups", horizon=Horizon(mde=1.0)), {"": arms}))
    assert found.verdict == "not_started" and "beyond the range of float64" in found.sentence
