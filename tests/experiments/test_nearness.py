"""Which arm is nearer to a target: only where both intervals leave no doubt."""

from __future__ import annotations

import math

import pytest

from streammetrics.experiments import Horizon
from streammetrics.experiments.monitor import distances, treatment_is_nearer
from streammetrics.kernels.inference.normal_mixture import multiplier, tuned
from tests.experiments.arms import two

N, MDE = 9000, 0.02


@pytest.mark.parametrize("target", [0.0, 0.2])
def test_both_arms_hold_at_half_of_the_error(target: float) -> None:
    seen = set()
    for successes in range(1200, 2700, 10):
        arms = (1800, N), (successes, N)
        (found,) = two(*arms, horizon=Horizon(mde=MDE), better={"ctr": target}).contrasts()
        v_opt, bounds = 2 * (found.horizon.v_opt or 0.0), []
        for count, n in arms:
            value, error = count / n, math.sqrt(count * (n - count) / n**3)
            if target:
                value, error = math.log(value / target), error / value
            scaled = v_opt * target * target if target else v_opt
            reach = multiplier(1 / error**2, tuned(scaled, 0.025), 0.025) * error
            bounds.append((max(0.0, abs(value) - reach), abs(value) + reach))
        (a, b), nearer = bounds, treatment_is_nearer(found)
        assert nearer == (True if b[1] < a[0] else False if a[1] < b[0] else None)
        seen.add(nearer)
    # The control lies on 0.2, so that nothing is nearer to that.
    assert seen == ({None, False} if target else {None, True, False})


def test_what_is_not_known_well_enough_is_as_near_as_can_be_and_as_far() -> None:
    (found,) = two((0, 10), (5, 10), better={"ctr": 0.5}).contrasts()
    assert found.pair is not None and treatment_is_nearer(found) is None
    for arm, target in ((found.pair.control, 0.5), (found.pair.treatment, -0.5)):
        assert distances(arm, target, 100.0, 0.05) == (0.0, math.inf)
    (silent,) = two((1800, N), (2700, N), horizon=Horizon(), better={"ctr": 0.5}).contrasts()
    assert treatment_is_nearer(silent) is None
