"""The verdict on one comparison, and the reasons for which there is none yet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import Calibration, HistogramAUC, InputError, OffPolicy, Ratio, UserGroups
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import (
    Experiment,
    Finding,
    Horizon,
    Safeguard,
)
from streammetrics.experiments.one_look import Anytime
from tests.experiments.arms import (
    UP,
    area,
    clicks,
    finding,
    grouped_clicks,
    of_states,
    plan,
    two,
    units,
)

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
    "before the burn-in": (((4, 100), (9, 100)), {}, "not_started"),
    "no horizon": (((46, 10_000), (69, 10_000)), {"horizon": Horizon()}, "not_started"),
    "a guardrail before the burn-in": (
        ((4, 100), (9, 100)), {"decision": (), "guardrails": (Safeguard("ctr", 0.1),)},
        "not_started",
    ),
}  # fmt: skip


def test_one_word_for_a_comparison_and_its_directions() -> None:
    for name, (arms, settings, verdict) in VERDICT.items():
        outcome = finding(two(*arms, **settings))
        assert outcome.verdict == verdict and outcome.direction == outcome.contrast.direction, name
        assert ("better" in outcome.sentence) == (verdict == "better"), name


def spent(values: object, below: float = 1.0) -> UserGroups:
    """What each of 900 users spent."""
    state = UserGroups(Ratio())
    state.update(range(900), numerators=np.resize(values, 900), denominators=np.full(900, below))
    return state


def labelled(*labels: int) -> HistogramAUC:
    state = HistogramAUC()
    state.update(np.resize(labels, 100), np.linspace(0.1, 0.9, 100))
    return state


def test_where_nothing_is_started_it_says_what_is_missing() -> None:
    assert finding(Experiment(plan(), {})).verdict == "not_started"
    of_users = {"cluster": "groups", "horizon": Horizon(mde=0.1)}
    for settings, control, treatment, why in (
        ({}, clicks(0, 0), clicks(0, 0), "random and bts have no rows yet"),
        ({}, clicks(9, 90), clicks(0, 0), "bts has no rows yet"),
        ({}, clicks(0, 90), clicks(0, 90), "random and bts have no event yet"),
        ({}, clicks(90, 90), clicks(90, 90), "random and bts have no row without an event yet"),
        (
            {}, clicks(10, 90), clicks(0, 90),
            "at least 90 more rows of random before its rate can be judged: 5 events expected, "
            "needs 10",
        ),
        (of_users, labelled(0, 1), labelled(0), "bts has no positive yet"),
        (
            of_users, grouped_clicks(1, 90, 0.2), grouped_clicks(2, 5, 0.2, first=100),
            "an arm has too few groups of users: 5, needs 16",
        ),
        (of_users, spent([1, 0, 2]), spent([1, 0, 2], 0.0), "bts has no defined estimate yet"),
        (
            of_users, spent([1e308, 0]), spent([0, 1.5e308]),
            "the variance exceeds the range of float64",
        ),
    ):  # fmt: skip
        outcome = finding(of_states(control, treatment, **settings))
        assert (outcome.reason, outcome.verdict) == (why, "not_started")
        assert outcome.sentence.endswith(f" ctr (bts - random): {why}.")


def off_policy(n: int, seed: int, first: int = 0, wrong: float = 1.0) -> UserGroups:
    """The log of a policy that chose with the probability 1/2; logged: wrong times that."""
    rng, metric = np.random.default_rng(seed), UserGroups(OffPolicy())
    probabilities = {"logged": np.full(n, wrong / 2), "target": np.full(n, 0.5)}
    metric.update(first + rng.integers(0, 500, n), rewards=rng.random(n) < 0.3, **probabilities)
    return metric


def test_an_estimate_without_support_says_what_it_lacks() -> None:
    few, many = (off_policy(n, seed, seed * 1000) for n, seed in ((60, 1), (4_000, 2)))
    settings = {"cluster": "groups", "horizon": Horizon(mde=0.1)}
    why = "random has no defined estimate yet: the effective sample size is 60.0, needs 100"
    outcome = finding(of_states(few, many, **settings))
    assert outcome.sentence == f"Too early to judge ctr (bts - random): {why}."
    pair_outcome = finding(of_states(few, off_policy(60, 3, 3000), **settings))
    assert pair_outcome.reason == why.replace("random has", "random and bts have")
    fewer = finding(of_states(few, off_policy(90, 3, 3000), **settings))
    assert fewer.reason == f"{why}; {why.replace('random', 'bts').replace('60', '90')}"


def test_doubts_about_an_estimate_follow_its_sentence() -> None:
    arms = off_policy(4_000, 1), off_policy(4_000, 2, 1000, wrong=0.8)
    experiment = of_states(*arms, cluster="groups", horizon=Horizon(mde=0.02))
    doubt = "the mean weight is 1.25, over 3 standard errors of independent rows from 1"
    assert finding(experiment).sentence.endswith(f" Warning: of bts, {doubt}.")
    epochs = {name: dict(zip(("random", "bts"), [{"ctr": arm} for arm in arms], strict=True))
              for name in ("1", "2")}  # fmt: skip
    (outcome,) = Experiment(experiment.plan, epochs).report().findings
    assert outcome.sentence.endswith(f" Warning: of bts, {doubt}.")


def test_a_view_with_a_direction_needs_no_plan_for_it() -> None:
    auc = {"metric": "auc", "decision": ("auc",), "horizon": Horizon(mde=0.05)}
    arms = area(1, 3000, 0.2), area(2, 3000, 1.2)
    assert finding(of_states(*arms, **auc)).verdict == "better"
    assert finding(of_states(*arms, **auc, better={"auc": "lower"})).verdict == "worse"


def test_a_guardrail_of_a_loss_is_broken_when_it_rises() -> None:
    rails = {"guardrails": (Safeguard("cal.log_loss", 0.001),), "horizon": Horizon(mde=0.02)}
    arms = calibration(1.0, 1), calibration(1.8, 2)
    outcome = finding(of_states(*arms, "cal", decision=(), **rails))
    assert outcome.verdict == "broken" and outcome.contrast.safeguard is not None
    assert outcome.contrast.safeguard.higher_is_better is False


def test_a_guardrail_with_a_target_has_to_say_which_side_is_harm() -> None:
    def rail(higher: bool | None) -> Experiment:
        guardrails = (Safeguard("cal.ratio", 0.1, higher),)
        arms = calibration(1.0, 1), calibration(1.0, 2)
        return of_states(*arms, "cal", decision=(), guardrails=guardrails)

    with pytest.raises(SettingsError, match="higher_is_better, because the metric has a target"):
        rail(None).report()
    assert finding(rail(False)).verdict != "disbelieved"


def test_what_is_not_to_be_believed_has_no_other_verdict() -> None:
    uneven = two(*UP_ARMS, variant_ids=(range(5000), range(6000, 10_000)), **UP)
    assert finding(uneven).verdict == "disbelieved"
    apart = finding(two((46, 9000), (69, 9000)), Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
    assert (apart.verdict, apart.distrusted) == ("disbelieved", True)


def calibration(scale: float, seed: int, n: int = 20_000) -> Calibration:
    """Scores that are `scale` times too high."""
    rng, state = np.random.default_rng(seed), Calibration()
    true = rng.uniform(0.1, 0.4, n)
    state.update((rng.random(n) < true).astype(int), np.clip(true * scale, 0.0, 1.0))
    return state


def test_predicted_over_observed_and_its_reciprocal_never_contradict_each_other() -> None:
    settings = {"decision": ("cal.ratio", "cal.copc"), "horizon": Horizon(mde=0.05)}
    for control, treatment, verdicts in (
        (1.3, 1.05, ("better", "better")),
        (1.05, 1.3, ("worse", "worse")),
        (1.0, 0.7, ("worse", "worse")),
        (0.8, 1.25, ("higher", "lower")),  # equally far from 1
        (1.1, 1.1, ("no_difference_yet", "no_difference_yet")),
    ):
        arms = calibration(control, 1), calibration(treatment, 2)
        findings = of_states(*arms, "cal", **settings).report().findings
        assert tuple(entry.verdict for entry in findings) == verdicts, (control, treatment)
        for outcome in findings:
            assert (outcome.direction.better, outcome.direction.target) == ("target", 1.0)
            assert ("the target, 1." in outcome.sentence) == (
                outcome.verdict in ("better", "worse")
            )
            assert ("is not certain" in outcome.sentence) == (
                outcome.verdict in ("higher", "lower")
            )


def test_one_user_with_most_of_the_rows_is_named_first() -> None:
    heavy = UserGroups(Ratio())
    who = np.r_[np.zeros(600, int), np.arange(1, 900)]
    heavy.update(groups=who, numerators=np.resize([1.0, 1.0, 0.0], len(who)))
    of_users = {"cluster": "groups", "horizon": Horizon(mde=0.1)}
    light = grouped_clicks(1, 90, 0.2), grouped_clicks(2, 90, 0.2)
    report = of_states(light[0], heavy, **of_users).report()
    warning = "ne user or group of users has at least 40.8 % of the rows of bts"
    assert report.findings[0].sentence.startswith(f"O{warning}. bts is higher: ")
    assert report.recommendation.sentence.startswith(f"Decide: o{warning}; ctr is higher, but ")
    assert "ne user" not in finding(of_states(*light, **of_users)).sentence


def test_an_epoch_without_a_name_is_not_called_unnamed() -> None:
    states = {
        "": {"random": {"ctr": clicks(4, 9)}},
        "late": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}},
    }
    notes = Experiment(plan(), states).report().notes
    assert (
        "Epochs left out of a comparison, because an arm has too little data or no finite estimate "
        "in them: events without an epoch." in notes
    )
    epoch_notes = Experiment(plan(), {"": {"random": {"ctr": clicks(4, 9)}}}).report().notes
    assert not any("Epochs left out" in note for note in epoch_notes)


def test_a_name_that_no_state_has_is_refused_with_the_nearest() -> None:
    rates = (4, 9), (4, 9)
    with pytest.raises(SettingsError, match="got 'crt'; did you mean 'ctr'"):
        two(*rates, decision=("crt",)).report()
    later = two(*rates, decision=("auc.gini",))
    assert Experiment(later.plan, later.states, metrics=("auc",)).report()
    with pytest.raises(InputError, match="got 'ratoi'; did you mean 'ratio'"):
        two(*rates, decision=("ctr.ratoi",)).report()
    with pytest.raises(SettingsError, match="got 'bst'; did you mean 'bts'"):
        Experiment(plan(), {"bst": {"ctr": clicks(4, 9)}})
    with pytest.raises(SettingsError, match=r"^units\['may'\].*got 'bst'"):
        Experiment(plan(), {}, {"may": {"bst": units(range(3))}})
    with pytest.raises(SettingsError, match=r"^units: .*got 'bst'; did you mean 'bts'"):
        Experiment(plan(), {}, {"bst": units(range(3))})


def test_an_infinite_log_loss_is_no_matter_of_time() -> None:
    arms = Calibration(), Calibration()
    for state, sure in zip(arms, (0.1, 0.0), strict=True):
        state.update([1] + [0, 1] * 500, [sure] + [0.2, 0.7] * 500)
    report = of_states(*arms, "cal", decision=("cal",), horizon=Horizon(mde=0.01)).report()
    (outcome,) = report.findings
    why = "bts has an infinite estimate"
    assert outcome.sentence == f"No always-valid interval of cal (bts - random): {why}."
    assert report.recommendation.action == "check_setup"
    assert not any("Epochs left out" in note for note in report.notes)


def test_the_best_threshold_has_no_always_valid_interval_and_its_sentence_says_why() -> None:
    def outcome(view: str) -> Finding:
        watched = {"decision": (f"auc.{view}",), "horizon": Horizon(mde=0.1)}
        return finding(of_states(grouped_scores(0), grouped_scores(5_000), "auc", **watched))

    best = outcome("best_f_beta(2)")
    assert best.verdict == "not_started"
    assert best.sentence.startswith("No always-valid interval of auc.best_f_beta(2) (bts - random)")
    assert "the rows choose the threshold of this view" in best.sentence
    assert "If this is the only look" in best.sentence
    assert outcome("confusion(0.5).f_beta(2)").verdict != "not_started"
    # Nor over several epochs.
    arms = {"random": {"auc": grouped_scores(0)}, "bts": {"auc": grouped_scores(5_000)}}
    of_epochs = plan(decision=("auc.best_f_beta(2)",), horizon=Horizon(mde=0.1))
    pooled = finding(Experiment(of_epochs, {"1": arms, "2": arms}))
    assert "the rows choose the threshold of this view" in pooled.sentence


def grouped_scores(first: int) -> UserGroups:
    """Ten scored rows of each of 1,000 users."""
    rng, state = np.random.default_rng(first), UserGroups(HistogramAUC())
    scores, users = rng.random(10_000), first + rng.integers(0, 1_000, 10_000)
    state.update(users, labels=rng.random(10_000) < scores, scores=scores)
    return state


def test_a_table_never_has_crossed_ends_or_none_beside_a_sentence_with_numbers() -> None:
    experiment = two((46, 9000), (69, 9000), **UP)
    apart = finding(experiment, Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
    assert (apart.anytime_lower, apart.anytime_upper) == (-math.inf, math.inf)
    assert apart.reason == "the always-valid intervals of the looks exclude one another"
    gated = finding(experiment, Anytime(0.01, 0.06, 5.0), Anytime(gated=True, reason="r"))
    assert (gated.anytime_lower, gated.anytime_upper, gated.reason) == (0.01, 0.06, "")
    assert "+0.0100 to +0.0600" in gated.sentence
    for outcome in (apart, gated):
        assert not outcome.anytime_lower > outcome.anytime_upper


def test_a_rate_that_moves_by_a_factor_of_five_says_to_check_the_logging_first() -> None:
    wide = {"horizon": Horizon(units=20_000, baseline=0.05), **UP}
    for control, treatment, doubt in (
        (100, 500, "ctr rises by a factor of 5"),
        (500, 100, "ctr falls by a factor of 5"),
        (101, 500, ""),
        (1000, 1020, ""),
    ):
        report = two((control, 10_000), (treatment, 10_000), **wide).report()
        (outcome,) = report.findings
        assert outcome.check_logging == doubt
        assert outcome.sentence.startswith(f"Check the logging first: {doubt}. bts is ") == bool(
            doubt
        )
        assert ("heck the logging first" in report.recommendation.sentence) == bool(doubt)
        if treatment == 100:
            assert report.recommendation.action == "do_not_ship"


def test_one_metric_decides_and_is_a_guardrail() -> None:
    for name in ("ctr.ratio", "ctr"):
        settings = {"guardrails": (Safeguard(name, 0.01),), "horizon": Horizon(mde=0.02), **UP}
        report = two((3000, 20_000), (3600, 20_000), **settings).report()
        assert [(outcome.contrast.name, outcome.verdict) for outcome in report.findings] == [
            ("ctr.ratio/bts", "better"),
            ("ctr.ratio/bts (guardrail)", "kept"),
        ]
        assert report.recommendation.action == "ship"
    report = two((3600, 20_000), (3000, 20_000), **settings).report()
    assert [outcome.verdict for outcome in report.findings] == ["worse", "broken"]
    assert "guardrail ctr is broken and ctr is worse" in report.recommendation.sentence


def test_nothing_is_shipped_before_the_planned_days() -> None:
    better = two((3000, 20_000), (3600, 20_000), min_days=14, horizon=Horizon(mde=0.02), **UP)
    for days, action, ending in (
        (0.5, "wait", "Wait: ctr is better, but only 0 of the planned 14 days are certainly over."),
        (None, "wait", "but it is unknown how many of the planned 14 days are certainly over."),
        (14.0, "ship", "Ship: ctr is better."),
    ):
        recommendation = better.report(days=days).recommendation
        assert recommendation.action == action and recommendation.sentence.endswith(ending)
    worse = two((3600, 20_000), (3000, 20_000), min_days=14, horizon=Horizon(mde=0.02), **UP)
    assert worse.report(days=1.0).recommendation.action == "do_not_ship"


@pytest.mark.parametrize("required", [True, False])
def test_harm_below_the_margin_is_not_said_to_be_none(required: bool) -> None:
    rail = Safeguard("x", 0.03, required=required)
    arms = {"random": (1000, 1000), "bts": (1300, 750)}
    states = {
        name: {"ctr": clicks(ctr, 10_000), "x": clicks(x, 10_000)}
        for name, (ctr, x) in arms.items()
    }
    declared = plan(guardrails=(rail,), horizon=Horizon(mde=0.01), **UP)
    guarded = Experiment(declared, states).report().findings[1]
    assert guarded.verdict == "open" and guarded.anytime_upper < 0
    clause = "Some harm to x (bts - random) is shown, but not as much as its margin"
    if required:
        clause = "It is not shown yet that x (bts - random) keeps its guardrail"
    assert guarded.sentence.startswith(f"{clause}: harm of at least 0.0")
    assert " is shown, and harm of up to 0.0" in guarded.sentence
