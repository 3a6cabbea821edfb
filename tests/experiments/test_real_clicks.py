"""Two policies of a real A/B test on clicks, against values that others computed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from streammetrics import ConfidenceSequence, Ratio
from streammetrics.experiments import Comparison, Experiment, Plan
from tests.expected import cases_of

Case = Mapping[str, Any]
ARMS = ("random", "bts")
PLAN = Plan(control="random", variants=ARMS, decision=("ctr",))
TUNED = 5000  # units at which gbstats was tuned


class Clicks:
    """The clicks of each policy, up to any day."""

    def __init__(self, path: Path) -> None:
        self.rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))

    def until(self, case: Case) -> dict[str, Ratio]:
        last_day = case.get("where", {}).get("ts_date_at_most", "9")
        states = {arm: Ratio() for arm in ARMS}
        for arm, state in states.items():
            rows = [r for r in self.rows if r["variant"] == arm and r["ts"][:10] <= last_day]
            state.update([row["label"] for row in rows])
        return states

    def compared(self, case: Case) -> Comparison:
        states = {"": {arm: {"ctr": state} for arm, state in self.until(case).items()}}
        (contrast,) = Experiment(PLAN, states).contrasts()
        return contrast.comparison


@pytest.fixture(scope="module")
def clicks(data: Path) -> Clicks:
    return Clicks(data / "obd_men_events.jsonl")


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    return list(cases_of(data, "obd_men_events"))


def cases_of_metric(cases: list[Case], metric: str) -> list[Case]:
    matches = [case for case in cases if case["metric"] == metric]
    assert matches
    return matches


def near(value: float, expected: float) -> bool:
    """Within eight last units: several roundings, each of one."""
    return abs(value - expected) <= 8 * math.ulp(expected)


def test_the_effect_and_the_lift_are_theirs_to_the_last_bit(
    clicks: Clicks, cases: list[Case]
) -> None:
    for case in cases_of_metric(cases, "ab_diff"):
        assert clicks.compared(case).effect_size == case["value"]
    for case in cases_of_metric(cases, "ab_lift"):
        assert near(1 + clicks.compared(case).rel_effect_size, 1 + case["value"])


def test_the_intervals_of_each_rate_and_of_their_difference_are_theirs(
    clicks: Clicks, cases: list[Case]
) -> None:
    for case in cases_of_metric(cases, "ab_wilson"):
        rate = clicks.until(case)[case["params"]["variant"]].confidence_interval()
        assert near(rate.lower, case["value"])
        assert near(rate.upper, case["upper"])
    for case in cases_of_metric(cases, "ab_ci_newcombe"):
        comparison = clicks.compared(case)
        assert comparison.effect_size_ci_lower == pytest.approx(case["value"], rel=1e-13)
        assert near(comparison.effect_size_ci_upper, case["upper"])


def test_the_standard_error_is_that_of_walds_interval(clicks: Clicks, cases: list[Case]) -> None:
    for case in cases_of_metric(cases, "ab_ci_wald"):
        reach = (case["upper"] - case["value"]) / 2
        error = clicks.compared(case).std_error * NormalDist().inv_cdf(0.975)
        assert error == pytest.approx(reach, rel=1e-13)


def test_each_day_the_confidence_sequence_is_theirs(clicks: Clicks, cases: list[Case]) -> None:
    """Their clock is users and ours is information, which is the same for one day's variance."""
    for case in cases_of_metric(cases, "ab_seq"):
        # Theirs is of each arm by itself; ours asks both together where they are not equally large.
        comparison = clicks.compared(case)
        error = comparison.std_error
        evidence = replace(comparison.evidence, std_error=error, df=comparison.df)
        sequence = ConfidenceSequence(v_opt=TUNED / error**2 / comparison.n)
        reading = sequence.at(evidence)
        assert reading.lower == pytest.approx(case["value"], rel=1e-13)
        assert reading.upper == pytest.approx(case["upper"], rel=1e-13)
        assert reading.p_value == pytest.approx(case["p_value"], rel=1e-13)
