"""The effect since the decision: constant effects stay, effects that end are found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.experiments import Experiment, Horizon, Report, Safeguard
from tests.experiments.arms import NAME, followed, two

PLAN = {"horizon": Horizon(mde=0.02), "better": {"ctr": "higher"}}


def looks(*counts: tuple[tuple[int, int], tuple[int, int]], **plan: object) -> list[Experiment]:
    """An experiment for each look; counts: the events and rows of both arms in each step."""
    steps = np.cumsum(np.array(counts), axis=0).tolist()
    return [two(tuple(a), tuple(b), **{**PLAN, **plan}) for a, b in steps]


UP = (3000, 20_000), (3600, 20_000)
SAME = (3000, 20_000), (3000, 20_000)
DOWN = (3000, 20_000), (2400, 20_000)


def test_the_increments_are_the_rows_since_the_decision() -> None:
    report = followed(looks(UP, SAME))
    (finding,) = report.findings
    assert finding.since_effect == pytest.approx(0.0, abs=2e-3)
    assert finding.since_lower < 0 < finding.since_upper
    comparison = finding.contrast.comparison
    assert comparison.effect_size == pytest.approx(0.015)
    error = (finding.since_upper - finding.since_lower) / 2
    whole = (finding.contrast.anytime.upper - finding.contrast.anytime.lower) / 2
    assert whole < error < 2 * whole


def test_an_effect_that_stays_is_shown_beside_the_verdict_and_changes_nothing() -> None:
    report = followed(looks(UP, UP, UP))
    (finding,) = report.findings
    assert (finding.verdict, finding.faded) == ("better", False)
    assert " Since the decision, the effect is +0.03 (" in finding.sentence
    assert finding.since_lower < 0.03 < finding.since_upper
    assert report.recommendation.action == "ship"


def test_a_look_that_alone_no_longer_excludes_zero_takes_nothing_back() -> None:
    start = (300, 2000), (400, 2000)
    report = followed(looks(start, ((3000, 20_000), (3040, 20_000))))
    (finding,) = report.findings
    assert not finding.contrast.anytime.lower > 0
    assert (
        finding.since_lower < finding.anytime_upper and finding.since_upper > finding.anytime_lower
    )
    assert (finding.verdict, finding.faded) == ("better", False)


def ended() -> Report:
    return followed(looks(UP, *[SAME] * 2, *[DOWN] * 2))


def test_an_effect_that_ends_is_found() -> None:
    report = ended()
    (finding,) = report.findings
    assert (finding.verdict, finding.faded) == ("faded", True)
    assert finding.sentence.startswith("The effect has changed since the decision, an assumption")
    assert (
        report.recommendation.sentence == "Wait: the effect on ctr has changed since the decision."
    )
    report = followed(looks(UP, SAME))
    (finding,) = report.findings
    assert (finding.verdict, finding.faded) == ("faded", True)
    assert "but since the decision the effect is -0.01" in finding.sentence
    assert report.recommendation.sentence == (
        "Wait: the effect on ctr has changed since the decision."
    )


def test_an_effect_that_grows_stays_and_is_said_to_have_grown() -> None:
    growth = (6000, 40_000), (8100, 40_000)
    (finding,) = followed(looks(UP, growth)).findings
    assert (finding.verdict, finding.faded) == ("better", False)
    outside = "The estimate now, +0.045, is outside the always-valid interval."
    assert finding.sentence.endswith(f": it has grown. {outside}")
    much_more = (6000, 40_000), (9600, 40_000)
    (finding,) = followed(looks(UP, much_more)).findings
    assert (finding.verdict, finding.faded) == ("faded", True)
    assert finding.sentence.startswith("The effect has changed since the decision, an assumption")
    assert " Since the decision, the effect is +0.09" in finding.sentence


def test_an_estimate_outside_its_interval_is_said_to_be_outside() -> None:
    steps = (
        ((1_200, 4_000), (1_440, 4_000)),
        ((1_800, 6_000), (2_160, 6_000)),
        ((1_800, 6_000),) * 2,
    )
    (finding,) = followed(looks(*steps, horizon=Horizon(mde=0.02))).findings
    assert not finding.since_lower <= finding.since_effect <= finding.since_upper
    assert finding.sentence.endswith(
        "Since the decision, the effect is +0.0339 to +0.0487, and +0.0302 at the last look alone. "
        "The estimate now, +0.0375, is outside the always-valid interval."
    )


def test_a_guardrail_fades_on_the_side_of_harm_only() -> None:
    rail: dict[str, object] = {"decision": (), "guardrails": (Safeguard("ctr", 0.01),)}
    steps = ((12_000, 80_000), (12_000, 80_000)), ((6000, 40_000), (5200, 40_000))
    (harm,) = followed(looks(*steps, **rail)).findings
    good = [(b, a) for a, b in steps]
    (gain,) = followed(looks(*good, **rail)).findings
    assert (harm.verdict, harm.faded) == ("open", True)
    assert harm.sentence.startswith("We can no longer tell whether ctr (bts - random) keeps")
    assert (gain.verdict, gain.faded) == ("kept", False)
    assert " Since the decision, the effect is +0.0" in gain.sentence
    turned = {**rail, "better": {}, "guardrails": (Safeguard("ctr", 0.01, False),)}
    (lower,) = followed(looks(*good, **turned)).findings
    assert (lower.verdict, lower.faded) == ("open", True)


def test_before_a_decision_and_without_looks_there_is_no_effect_since() -> None:
    (early,) = followed(looks(SAME, SAME)).findings
    (single,) = two(*UP, **PLAN).report().findings
    for finding in (early, single):
        assert math.isnan(finding.since_effect) and not finding.faded
        assert "Since the decision" not in finding.sentence
    assert set(two(*UP, **PLAN).readings()) == {NAME, f"{NAME} (decided)"}
