"""Rates compared epoch by epoch."""

from __future__ import annotations

import math
from fractions import Fraction

from streammetrics.experiments.strata import EpochCounts, rates_by_epoch
from streammetrics.kernels.inference.stratified import combined, rates
from streammetrics.kernels.inference.success_labels import Successes

TENTH = EpochCounts((90, 900), (11, 100), Fraction(1, 10))
HALF = EpochCounts((200, 1000), (200, 1000), 0.5)


def test_the_evidence_is_that_of_the_strata() -> None:
    found = rates_by_epoch({"ramp": TENTH, "full": HALF})
    strata = [rates(one.control, one.treatment) for one in (TENTH, HALF)]
    whole = combined([one for one in strata if one])
    assert found.evidence.effect_size == whole.effect
    assert found.evidence.std_error == math.sqrt(whole.variance)
    assert found.evidence.least_count == 211
    assert found.evidence.successes == (
        Successes(200, 200, 0.5),
        Successes(90, 11, Fraction(1, 10)),
    )
    assert (found.used, found.left_out) == (("full", "ramp"), ())


def test_an_epoch_that_one_arm_has_not_reached_is_left_out_and_said() -> None:
    opening = EpochCounts((7, 12), (0, 0), 0.9)
    found = rates_by_epoch({"ramp": TENTH, "z": opening})
    assert found.evidence == rates_by_epoch({"ramp": TENTH}).evidence
    assert (found.used, found.left_out) == (("ramp",), ("z",))


def test_the_least_count_is_of_successes_and_failures_of_either_arm() -> None:
    assert rates_by_epoch({"a": EpochCounts((95, 100), (50, 100))}).evidence.least_count == 5
    assert rates_by_epoch({"a": EpochCounts((50, 100), (3, 100))}).evidence.least_count == 3


def test_without_a_declared_share_there_are_no_labels() -> None:
    bare = EpochCounts((5, 10), (5, 10))
    assert rates_by_epoch({"a": bare}).evidence.successes is None
    assert rates_by_epoch({"a": TENTH, "b": bare}).evidence.successes is None
    assert rates_by_epoch({"a": EpochCounts((5, 10), (5, 10), 1.0)}).evidence.successes is None


def test_without_an_epoch_nothing_is_known() -> None:
    found = rates_by_epoch({})
    assert math.isnan(found.evidence.effect_size) and math.isnan(found.evidence.std_error)
    assert found.evidence.least_count == 0 and found.evidence.successes is None
