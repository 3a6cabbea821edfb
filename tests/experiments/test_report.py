"""The report of an experiment, with the looks and without."""

from __future__ import annotations

import math

from streammetrics import Ratio
from streammetrics.experiments import Experiment, Horizon, Monitor, Safeguard
from streammetrics.experiments.confidence_sequence import Anytime
from tests.experiments.arms import NAME, UP, area, clicks, finding, grouped_clicks, plan, two


def test_without_looks_it_is_what_there_is_now() -> None:
    experiment = two((46, 10_000), (69, 10_000))
    (found,) = experiment.report().findings
    now = found.contrast.anytime
    assert (found.anytime_lower, found.anytime_upper) == (now.lower, now.upper)
    assert (found.anytime_pvalue, found.e_value) == (now.p_value, now.e_value)
    assert experiment.readings() == {NAME: now}


def test_looks_decide_where_there_are_some() -> None:
    better = two((46, 10_000), (69, 10_000), **UP)
    found = finding(better, Anytime(-0.1, 0.3, 4.0), Anytime(0.1, 0.4, 2.0))
    assert (found.anytime_lower, found.anytime_upper) == (0.1, 0.3)
    assert (found.anytime_pvalue, found.e_value) == (math.exp(-4.0), math.exp(2.0))
    assert found.sentence.startswith("bts is better")
    untaken = {NAME: Monitor().watched("x", 1, NAME)}
    (now,) = better.report(untaken).findings
    assert f"{now.anytime_pvalue:.4f}" == "0.6073"


def test_several_metrics_are_corrected_and_guardrails_are_not_among_them() -> None:
    arms = {
        "random": {"ctr": clicks(460, 9000), "auc": area(1, 900, 0.8), "gauc": area(5, 900, 0.8)},
        "bts": {"ctr": clicks(690, 9000), "auc": area(2, 900, 0.8), "gauc": area(6, 900, 0.8)},
    }
    many = plan(decision=("ctr", "auc.gini"), guardrails=(Safeguard("gauc", 0.2),))
    found = Experiment(many, {"": arms}).report()
    names = [one.contrast.name for one in found.findings]
    assert names == [NAME, "auc.gini/bts", "gauc.auc/bts"]
    assert found.findings[0].holm == 2 * found.findings[0].anytime_pvalue
    assert [one.e_bh for one in found.findings] == [True, False, None]
    assert found.findings[2].holm is None


def test_of_some_of_the_decisions_alone_nothing_is_corrected() -> None:
    arms = {
        "random": {"ctr": clicks(460, 9000), "auc": area(1, 900, 0.8)},
        "bts": {"ctr": clicks(690, 9000), "auc": area(2, 900, 0.8)},
    }
    experiment = Experiment(plan(decision=("ctr", "auc")), {"": arms})
    whole, some = experiment.report().findings, experiment.outcome(("auc",)).report().findings
    assert [one.contrast for one in some] == [whole[1].contrast]
    assert (some[0].holm, some[0].e_bh) == (None, None) and whole[1].holm is not None


def test_notes_say_what_was_left_out_and_what_is_taken_as_independent() -> None:
    arms = {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}
    late = {"random": {"ctr": clicks(4, 9)}}
    found = Experiment(plan(), {"start": arms, "late": late}).report()
    assert found.notes == (
        "The sample ratio is not checked: units are not counted.",
        "Epochs left out of a comparison, as an arm has too little in them: late.",
        "Rows are taken as independent: right only if no unit has several.",
    )
    users = {
        "random": {"ctr": grouped_clicks(1, 90, 0.2)},
        "bts": {"ctr": grouped_clicks(2, 90, 0.2)},
    }
    assert len(Experiment(plan(cluster="groups"), {"": users}).report().notes) == 1


def test_a_note_names_what_is_no_rate_and_has_the_horizon_of_one() -> None:
    arms = {
        "random": {"ctr": clicks(460, 9000), "auc": area(1, 900, 0.8)},
        "bts": {"ctr": clicks(690, 9000), "auc": area(2, 900, 0.8)},
    }
    rails = (Safeguard("auc", 0.02), Safeguard("auc.gini", 0.02))
    *_, note = Experiment(plan(guardrails=rails), {"": arms}).report().notes
    assert note == (
        "The horizon and baseline are those of a rate, which auc, auc.gini is not: its "
        "always-valid interval may be far wider than it need be; before the data, declare the "
        "least effect on it that matters, in mdes of the config or horizons of a Plan."
    )
    own = {"auc": Horizon(mde=0.02)}
    *_, note = Experiment(plan(guardrails=rails, horizons=own), {"": arms}).report().notes
    assert note.startswith("The horizon and baseline are those of a rate, which auc.gini is not")
    for fine in (
        plan(guardrails=rails, horizons={**own, "auc.gini": Horizon(mde=0.04)}),
        plan(guardrails=rails, horizon=Horizon(mde=0.02)),
        plan(),
    ):
        *_, note = Experiment(fine, {"": arms}).report().notes
        assert note.startswith("Rows are taken as independent")


def test_a_mean_is_no_rate_either() -> None:
    states = {}
    for variant in ("random", "bts"):
        states[variant] = {"ctr": clicks(460, 9000), "revenue": Ratio()}
        states[variant]["revenue"].update([0.0, 12.5] * 200)
    found = Experiment(plan(decision=("ctr", "revenue")), {"": states}).report()
    assert found.notes[-1].startswith(
        "The horizon and baseline are those of a rate, which revenue is"
    )


def test_no_rows_are_no_reason_to_doubt_a_horizon() -> None:
    empty = {"random": {"ctr": clicks(0, 0)}, "bts": {"ctr": clicks(0, 0)}}
    for states in ({}, {"": empty}, {"": {"random": {"ctr": clicks(4, 90)}}}):
        notes = Experiment(plan(), states).report().notes
        assert not any("of a rate" in one for one in notes)


def test_rows_are_called_independent_where_they_are_not_in_groups() -> None:
    arms = {"random": grouped_clicks(1, 300, 0.1), "bts": grouped_clicks(2, 300, 0.1, first=10**6)}
    grouped = {"": {name: {"ctr": state} for name, state in arms.items()}}
    rows = {"": {name: {"ctr": state.metric_state()} for name, state in arms.items()}}
    for states, cluster, said in (
        (grouped, "none", False),
        ({"": {"random": grouped[""]["random"]}}, "none", False),
        (rows, "groups", True),
        ({}, "groups", False),
    ):
        notes = Experiment(plan(cluster=cluster), states).report().notes
        assert any(note.startswith("Rows are taken as independent") for note in notes) is said
