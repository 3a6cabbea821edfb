"""The circuit breaker over a real broker: twenty experiments, one arm that converts 39 % less, a
receiver that fails twice, and workers that are killed all the while."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.consumers.breaker_run import besieged

pytestmark = pytest.mark.faults


@pytest.mark.kafka
def test_the_bad_arm_is_reported_in_time_whatever_is_killed(kafka: str, tmp_path: Path) -> None:
    outcome = besieged(kafka, tmp_path, rate=5_000, seconds=0, kills=4)
    assert list(outcome.problems()) == []
    sys.stdout.write(f"{outcome.text()}\n")
