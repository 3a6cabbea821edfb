"""The verdict on one comparison, and the reasons for which there is none yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import Calibration, HistogramAUC, InputError, Ratio, UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import (
    Experiment,
    Horizon,
    Safeguard,
)
from streammetrics.experiments.confidence_sequence import Anytime
from tests.experiments.arms import UP, area, clicks, finding, grouped_clicks, plan, two, units

UP_ARMS, BOUNCE = ((460, 9000), (690, 9000)), ((1800, 9000), (2700, 9000))
TARGET = ((900, 9000), (1800, 9000))
SMALL = {"horizon": Horizon(mde=0.02)}
VERDICT: dict[str, tuple[tuple[tuple[int, int], tuple[int, int]], dict[str, Any], str]] = {
    "less is better, and it rises": (BOUNCE, {"lower_is_better": ("ctr",)}, "worse"),
    "said by its view": (BOUNCE, {"lower_is_better": ("ctr.ratio",)}, "worse"),
    "said by better": (BOUNCE, {"better": {"ctr": "lower"}}, "worse"),
    "more is better": (BOUNCE, UP, "better"),
    "a ratio has no direction": (UP_ARMS, {}, "higher"),
    "nor has what falls": (UP_ARMS[::-1], {}, "lower"),
    "declared to have none": (UP_ARMS, {"better": {"ctr": "none"}}, "higher"),
    "nearer to a target": (TARGET, {**SMALL, "better": {"ctr": 0.2}}, "better"),
    "farther from it": (TARGET, {**SMALL, "better": {"ctr": 0.1}}, "worse"),
    "farther from 0": (TARGET, {**SMALL, "better": {"ctr": 0}}, "worse"),
    "no difference": (((46, 10_000), (69, 10_000)), {}, "no_difference_yet"),
    "before the burn-in": (((4, 100), (20, 100)), {}, "not_started"),
    "no horizon": (((46, 10_000), (69, 10_000)), {"horizon": Horizon()}, "not_started"),
    "a guardrail before the burn-in": (
        ((4, 100), (20, 100)), {"decision": (), "guardrails": (Safeguard("ctr", 0.1),)},
        "not_started",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICT)
def test_one_word_for_a_comparison_and_its_directions(name: str) -> None:
    arms, settings, verdict = VERDICT[name]
    found = finding(two(*arms, **settings))
    assert found.verdict == verdict and found.direction == found.contrast.direction
    assert ("better" in found.sentence) == (verdict == "better")


def test_without_rows_nothing_is_started_and_it_says_what_is_missing() -> None:
    assert finding(Experiment(plan(), {})).verdict == "not_started"
    for arms, why in (
        (((0, 0), (0, 0)), "random and bts have no rows yet"),
        (((9, 90), (0, 0)), "bts has no rows yet"),
        (((0, 90), (0, 90)), "random and bts have no success yet"),
        (((20, 90), (0, 90)), "bts has no success yet"),
        (((90, 90), (20, 90)), "random has no failure yet"),
    ):
        found = finding(two(*arms))
        assert found.reason == why
        assert found.sentence == f"Too early to say of ctr (bts - random): {why}."


def test_a_view_with_a_direction_needs_no_plan_for_it() -> None:
    arms = {"random": {"auc": area(1, 3000, 0.2)}, "bts": {"auc": area(2, 3000, 1.2)}}
    auc = plan(decision=("auc",), horizon=Horizon(mde=0.05))
    assert finding(Experiment(auc, {"": arms})).verdict == "better"
    stated = plan(decision=("auc",), horizon=Horizon(mde=0.05), better={"auc": "lower"})
    assert finding(Experiment(stated, {"": arms})).verdict == "worse"


def test_a_guardrail_of_a_loss_is_broken_when_it_rises() -> None:
    arms = {"random": {"cal": calibration(1.0, 1)}, "bts": {"cal": calibration(1.8, 2)}}
    rail = Safeguard("cal.log_loss", 0.001)
    found = finding(Experiment(
        plan(decision=(), guardrails=(rail,), horizon=Horizon(mde=0.02)), {"": arms}
    ))  # fmt: skip
    assert found.verdict == "broken" and found.contrast.safeguard is not None
    assert found.contrast.safeguard.higher_is_better is False


def test_a_guardrail_with_a_target_has_to_say_which_side_is_harm() -> None:
    arms = {"random": {"cal": calibration(1.0, 1)}, "bts": {"cal": calibration(1.0, 2)}}
    silent = plan(decision=(), guardrails=(Safeguard("cal.ratio", 0.1),))
    with pytest.raises(SettingsError, match="higher_is_better, since the metric should be near"):
        Experiment(silent, {"": arms}).report()
    said = plan(decision=(), guardrails=(Safeguard("cal.ratio", 0.1, higher_is_better=False),))
    assert finding(Experiment(said, {"": arms})).verdict != "disbelieved"


def test_what_is_not_to_be_believed_has_no_other_verdict() -> None:
    states = {"": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}}
    counted = {"": {"random": units(range(5000)), "bts": units(range(6000, 10_000))}}
    assert finding(Experiment(plan(**UP), states, counted)).verdict == "disbelieved"
    apart = finding(two((46, 9000), (69, 9000)), Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
    assert (apart.verdict, apart.distrusted) == ("disbelieved", True)


@pytest.mark.parametrize(
    ("first", "last", "faded"),
    [
        (Anytime(0.02, 0.06, 5.0), Anytime(0.01, 0.05, 5.0), False),
        (Anytime(0.02, 0.06, 5.0), Anytime(-0.01, 0.05, 0.0), True),  # 0 is not excluded
        (Anytime(0.04, 0.07, 5.0), Anytime(0.01, 0.06, 3.0), True),  # 0.035 lies below 0.04
        (Anytime(0.02, 0.06, 5.0), Anytime(gated=True, reason="r"), True),
        (Anytime(0.02, 0.06, 5.0), Anytime(0.05, 0.09, 9.0), False),  # 0.07 lies above 0.06
    ],
)
def test_an_effect_that_the_last_look_does_not_bear_out_may_have_faded(
    first: Anytime, last: Anytime, faded: bool
) -> None:
    def mirrored(of: Anytime) -> Anytime:
        return Anytime(-of.upper, -of.lower, of.log_e, of.gated, of.reason)

    experiment = two((46, 10_000), (69, 10_000), **UP)
    up, down = (
        finding(experiment, first, last),
        finding(experiment, mirrored(first), mirrored(last)),
    )
    assert (up.faded, down.faded) == (faded, faded)
    assert (up.verdict, down.verdict) == (("faded", "faded") if faded else ("better", "worse"))
    for found in (up, down):
        assert ("may have faded" in found.sentence) == faded
        assert ("is better" in found.sentence or "is worse" in found.sentence) != faded
    assert ("may have grown" in up.sentence) == (last.lower == 0.05)


def test_a_guardrail_that_was_kept_is_open_where_the_last_look_does_not_keep_it() -> None:
    rail = two((520, 9000), (520, 9000), decision=(), guardrails=(Safeguard("ctr", 0.01),))
    kept, open_ = Anytime(-0.005, 0.02), Anytime(-0.02, 0.02)
    assert finding(rail, kept, kept).verdict == "kept"
    found = finding(rail, kept, open_)
    assert (found.verdict, found.faded) == ("open", True)
    assert found.sentence.startswith("We cannot tell any more whether ctr (bts - random) keeps")
    broken = finding(rail, Anytime(-0.04, -0.02), Anytime(-0.04, 0.0))
    assert (broken.verdict, broken.faded) == ("broken", True)
    assert "But the last look alone gives -0.04 to +0" in broken.sentence


def calibration(scale: float, seed: int, n: int = 20_000) -> Calibration:
    """Scores that are `scale` times too high."""
    rng, state = np.random.default_rng(seed), Calibration()
    true = rng.uniform(0.1, 0.4, n)
    state.update((rng.random(n) < true).astype(int), np.clip(true * scale, 0.0, 1.0))
    return state


@pytest.mark.parametrize(
    ("control", "treatment", "verdicts"),
    [
        (1.3, 1.05, ("better", "better")),
        (1.05, 1.3, ("worse", "worse")),
        (1.0, 0.7, ("worse", "worse")),
        (0.8, 1.25, ("higher", "lower")),  # equally far from 1
        (1.1, 1.1, ("no_difference_yet", "no_difference_yet")),
    ],
)
def test_predicted_over_observed_and_its_reciprocal_never_contradict_each_other(
    control: float, treatment: float, verdicts: tuple[str, str]
) -> None:
    arms = {"random": {"cal": calibration(control, 1)}, "bts": {"cal": calibration(treatment, 2)}}
    both = plan(decision=("cal.ratio", "cal.copc"), horizon=Horizon(mde=0.05))
    found = Experiment(both, {"": arms}).report().findings
    assert tuple(one.verdict for one in found) == verdicts
    for one in found:
        assert (one.direction.better, one.direction.target) == ("target", 1.0)
        certain = one.verdict in ("better", "worse")
        assert ("the target, 1." in one.sentence) == certain
        assert ("is not certain" in one.sentence) == (one.verdict in ("higher", "lower"))


def test_an_area_says_which_class_it_has_not_got() -> None:
    arms = {}
    for name, labels in (("random", [0, 1] * 50), ("bts", [0] * 100)):
        arms[name] = {"auc": HistogramAUC()}
        arms[name]["auc"].update(labels, np.linspace(0.1, 0.9, 100))
    found = finding(Experiment(plan(decision=("auc",), horizon=Horizon(mde=0.01)), {"": arms}))
    assert found.reason == "bts has no positive yet"


def test_few_users_are_called_few_users() -> None:
    states = {"random": grouped_clicks(1, 90, 0.2), "bts": grouped_clicks(2, 5, 0.2, first=100)}
    arms = {name: {"ctr": state} for name, state in states.items()}
    found = finding(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.reason.startswith("too few users: an arm has ")


def test_one_user_with_most_of_the_rows_is_said() -> None:
    heavy = UserGroups(Ratio())
    who = np.r_[np.zeros(9000, int), np.arange(1, 900)]
    heavy.update(groups=who, numerators=np.resize([0.0, 1.0, 0.0], len(who)))
    arms: dict[str, dict[str, Accumulator]] = {
        "random": {"ctr": grouped_clicks(1, 90, 0.2)}, "bts": {"ctr": heavy},
    }  # fmt: skip
    found = finding(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.sentence.endswith(
        " Beware: one user or group of users has 91 % of the rows of bts."
    )
    arms["bts"] = {"ctr": grouped_clicks(2, 90, 0.2)}
    found = finding(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert "Beware" not in found.sentence


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
    found = finding(Experiment(plan(cluster="groups", horizon=Horizon(mde=0.1)), {"": arms}))
    assert found.sentence == (
        "Too early to say of ctr (bts - random): bts has no defined estimate yet."
    )


def test_values_near_the_end_of_float64_have_no_variance() -> None:
    arms: dict[str, dict[str, Accumulator]] = {}
    for name, value in (("random", 1e308), ("bts", 1.5e308)):
        state = UserGroups(Ratio())
        state.update(range(900), numerators=[value] * 900)
        arms[name] = {"ctr": state}
    found = finding(Experiment(plan(cluster="groups", horizon=Horizon(mde=1.0)), {"": arms}))
    assert found.verdict == "not_started" and "beyond the range of float64" in found.sentence
