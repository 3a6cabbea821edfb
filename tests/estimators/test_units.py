"""Means over units: their interval, and why there is none."""

from __future__ import annotations

import pytest

from streammetrics import UnitMean
from streammetrics.estimators.request import NO_SPREAD
from streammetrics.estimators.units import TOO_CLOSE


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([5.0] * 200, NO_SPREAD),
        ([0.0] * 200, NO_SPREAD),
        ([1e15 + n % 3 for n in range(200)], TOO_CLOSE),
        ([n % 3 * 1e-300 for n in range(200)], TOO_CLOSE),
    ],
)
def test_the_variance_is_said_to_be_0_only_of_equal_groups(
    values: list[float], reason: str
) -> None:
    mean = UnitMean()
    mean.update([f"u{n}" for n in range(200)], values=values)
    assert mean.compute().interval("mean").reason == reason
