"""Information at the planned end."""

from __future__ import annotations

import math

import pytest

from streammetrics.experiments.plan import at_horizon, for_effect
from streammetrics.kernels.inference.tails import normal_isf, normal_sf


@pytest.mark.parametrize("share", [0.5, 0.1, 0.75])
def test_it_is_one_over_the_variance_of_the_difference(share: float) -> None:
    n, variance, deff = 20_000, 0.0475, 2.5
    expected = 1 / (variance * deff * (1 / (n * share) + 1 / (n * (1 - share))))
    found = at_horizon(n, variance, treatment_share=share, deff=deff)
    assert math.isclose(found, expected, rel_tol=1e-14)


def test_the_worked_experiment() -> None:
    assert f"{at_horizon(40_000, 0.0475):.6f}" == "210526.315789"


def test_a_fixed_test_then_has_the_power() -> None:
    error = 1 / math.sqrt(for_effect(0.01, alpha=0.1, power=0.9))
    assert math.isclose(normal_sf(normal_isf(0.05) - 0.01 / error), 0.9, rel_tol=1e-12)
    assert for_effect(-0.01) == for_effect(0.01)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_plan_gives_no_information(bad: float) -> None:
    assert math.isnan(at_horizon(bad, 0.1)) and math.isnan(at_horizon(10, bad))
    assert math.isnan(at_horizon(10, 0.1, deff=bad))
    assert math.isnan(at_horizon(10, 0.1, treatment_share=bad))
    assert bad == -1.0 or math.isnan(for_effect(bad))
