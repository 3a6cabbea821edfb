"""The verdict on one comparison: one word, which every surface uses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import Calibration
from streammetrics.core.errors import SettingsError
from streammetrics.experiments import (
    VERDICTS,
    Experiment,
    Finding,
    Horizon,
    Look,
    Monitor,
    Safeguard,
)
from streammetrics.experiments.confidence_sequence import Anytime
from streammetrics.experiments.monitor import Watched
from tests.experiments.arms import area, clicks, plan, two, units

NAME = "ctr.ratio/bts"
UP = {"better": {"ctr": "higher"}}


def looks(*readings: Anytime) -> dict[str, Watched]:
    """What these looks say together."""
    rows = [Look.at("x", 1, {"a": i}, {NAME: one}) for i, one in enumerate(readings)]
    return {NAME: Monitor.of(rows).watched("x", 1, NAME)}


def one(experiment: Experiment, *readings: Anytime) -> Finding:
    (found,) = experiment.report(looks(*readings) if readings else None).findings
    assert found.verdict in VERDICTS
    return found


def test_a_bounce_rate_that_rises_is_worse_where_less_is_better() -> None:
    arms = (1800, 9000), (2700, 9000)
    assert one(two(*arms, lower_is_better=("ctr",))).verdict == "worse"
    assert one(two(*arms, better={"ctr": "lower"})).verdict == "worse"
    assert one(two(*reversed(arms), lower_is_better=("ctr.ratio",))).verdict == "better"
    assert one(two(*arms, **UP)).verdict == "better"


def test_a_ratio_has_no_direction_by_itself() -> None:
    up, down = one(two((460, 9000), (690, 9000))), one(two((690, 9000), (460, 9000)))
    assert (up.verdict, down.verdict, up.direction.better) == ("higher", "lower", "none")
    assert up.sentence.startswith("bts is higher: ") and "better" not in up.sentence
    none = two((460, 9000), (690, 9000), better={"ctr": "none"})
    assert one(none).verdict == "higher"


def test_a_view_with_a_direction_needs_no_plan_for_it() -> None:
    arms = {"random": {"auc": area(1, 3000, 0.2)}, "bts": {"auc": area(2, 3000, 1.2)}}
    auc = plan(decision=("auc",), horizon=Horizon(mde=0.05))
    assert one(Experiment(auc, {"": arms})).verdict == "better"
    stated = plan(decision=("auc",), horizon=Horizon(mde=0.05), better={"auc": "lower"})
    assert one(Experiment(stated, {"": arms})).verdict == "worse"


def test_nothing_is_started_before_there_is_an_interval() -> None:
    for experiment in (
        Experiment(plan(), {}),
        two((4, 100), (20, 100)),
        two((46, 10_000), (69, 10_000), horizon=Horizon()),
        two((4, 100), (20, 100), decision=(), guardrails=(Safeguard("ctr", 0.1),)),
    ):
        assert one(experiment).verdict == "not_started"
    assert one(two((46, 10_000), (69, 10_000))).verdict == "no_difference_yet"


def test_guardrails_are_kept_broken_or_open() -> None:
    def rail(margin: float, *arms: tuple[int, int]) -> str:
        return one(two(*arms, decision=(), guardrails=(Safeguard("ctr", margin),))).verdict

    assert rail(0.004, (520, 10_000), (585, 10_000)) == "kept"
    assert rail(0.001, (520, 10_000), (585, 10_000)) == "open"
    assert rail(0.001, (690, 9000), (460, 9000)) == "broken"


def test_a_guardrail_of_a_loss_is_broken_when_it_rises() -> None:
    arms = {"random": {"cal": calibration(1.0, 1)}, "bts": {"cal": calibration(1.8, 2)}}
    rail = Safeguard("cal.log_loss", 0.001)
    found = one(Experiment(
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
    assert one(Experiment(said, {"": arms})).verdict != "disbelieved"


def test_what_is_not_to_be_believed_has_no_other_verdict() -> None:
    states = {"": {"random": {"ctr": clicks(460, 9000)}, "bts": {"ctr": clicks(690, 9000)}}}
    counted = {"": {"random": units(range(5000)), "bts": units(range(6000, 10_000))}}
    assert one(Experiment(plan(**UP), states, counted)).verdict == "disbelieved"
    apart = one(two((46, 9000), (69, 9000)), Anytime(0.2, 0.3, 1.0), Anytime(0.0, 0.1, 2.0))
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
    up, down = one(experiment, first, last), one(experiment, mirrored(first), mirrored(last))
    assert (up.faded, down.faded) == (faded, faded)
    assert (up.verdict, down.verdict) == (("faded", "faded") if faded else ("better", "worse"))
    for found in (up, down):
        assert ("may have faded" in found.sentence) == faded
        assert ("is better" in found.sentence or "is worse" in found.sentence) != faded
    assert ("may have grown" in up.sentence) == (last.lower == 0.05)


def test_most_effects_that_faded_are_not_called_better() -> None:
    """An effect of the first 5,000 rows that is none afterwards: what is seen of all rows at the
    last look is far below what the looks together say."""
    rng, shown, better = np.random.default_rng(4), 0, 0
    for _ in range(30):
        counts = np.zeros(2, int)
        rows = []
        for i in range(20):
            rates = [0.1, 0.13] if i < 5 else [0.1, 0.1]
            counts += rng.binomial(1000, rates)
            arms = [(int(c), 1000 * (i + 1)) for c in counts]
            experiment = two(*arms, horizon=Horizon(mde=0.02), **UP)
            rows.append(Look.at("x", 1, {"a": i}, experiment.readings()))
        watched = {NAME: Monitor.of(rows).watched("x", 1, NAME)}
        (found,) = experiment.report(watched).findings
        if watched[NAME].first_reject is not None and found.verdict != "disbelieved":
            shown += 1
            better += found.verdict == "better"
            assert found.faded == (found.verdict == "faded") == ("faded" in found.sentence)
    assert shown >= 20
    assert better <= 0.2 * shown


def test_a_guardrail_that_was_kept_is_open_where_the_last_look_does_not_keep_it() -> None:
    rail = two((520, 9000), (520, 9000), decision=(), guardrails=(Safeguard("ctr", 0.01),))
    kept, open_ = Anytime(-0.005, 0.02), Anytime(-0.02, 0.02)
    assert one(rail, kept, kept).verdict == "kept"
    found = one(rail, kept, open_)
    assert (found.verdict, found.faded) == ("open", True)
    assert found.sentence.startswith("We cannot tell any more whether ctr (bts - random) keeps")
    broken = one(rail, Anytime(-0.04, -0.02), Anytime(-0.04, 0.0))
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


def test_a_plan_may_declare_a_target_of_its_own() -> None:
    near = two((900, 9000), (1800, 9000), horizon=Horizon(mde=0.02), better={"ctr": 0.2})
    assert one(near).verdict == "better"
    far = two((900, 9000), (1800, 9000), horizon=Horizon(mde=0.02), better={"ctr": 0.1})
    assert one(far).verdict == "worse"
    zero = two((900, 9000), (1800, 9000), horizon=Horizon(mde=0.02), better={"ctr": 0})
    assert one(zero).verdict == "worse"
    assert not math.isnan(zero.report().findings[0].direction.target or 0.0)
