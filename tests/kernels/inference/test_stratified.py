"""Epochs combined: weights, variances, and what pooling would have said."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

from streammetrics.kernels.inference.stratified import (
    Combined,
    Stratum,
    combined,
    smoothed_variance,
)


def test_weights_are_the_shares_of_all_units() -> None:
    found = combined([Stratum(10, 0.5, 0.25), Stratum(30, 0.25, 0.125)])
    assert found.effect == 0.25 * 0.5 + 0.75 * 0.25
    assert found.variance == 0.0625 * 0.25 + 0.5625 * 0.125
    assert (found.df, found.information) == (math.inf, 1 / found.variance)


def test_one_epoch_is_itself() -> None:
    assert combined([Stratum(7, 0.1, 0.3, 12.0)]) == Combined(0.1, 0.3, 12.0)


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    found = combined([Stratum(10, 0, 0.25, 5.0), Stratum(30, 0, 0.125, 60.0), Stratum(40, 0, 0.5)])
    parts = [0.125**2 * 0.25, 0.375**2 * 0.125, 0.25 * 0.5]
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 60)
    assert math.isclose(found.df, expected, rel_tol=1e-14)


def test_a_ramp_with_a_drifting_rate_has_no_effect() -> None:
    # 10 % of the units while the rate is 1 in 10, half of them while it is 1 in 5.
    strata = [
        Stratum(n + m, 0, smoothed_variance(a, n) + smoothed_variance(b, m))
        for (a, n), (b, m) in (((90, 900), (10, 100)), ((200, 1000), (200, 1000)))
    ]
    found = combined(strata)
    assert found.effect == 0.0
    pooled = 210 / 1100 - 290 / 1900
    assert pooled > 2.3 * math.sqrt(found.variance)


def test_half_a_success_smooths_the_variance() -> None:
    p, q = Fraction(1, 22), Fraction(5, 82)
    assert smoothed_variance(0, 10) == p * (1 - p) / 10
    assert smoothed_variance(2, 40) == q * (1 - q) / 40


def test_epochs_in_any_order_give_the_same_bits() -> None:
    strata = [Stratum(n, 0.1 * n, 0.3 / n, 3.0 + n) for n in (3, 7, 11, 190)]
    assert len({combined(order) for order in permutations(strata)}) == 1


def test_what_is_undefined_stays_so_and_has_no_clock() -> None:
    for strata in (
        [],
        [Stratum(0, 0.5, 0.5)],
        [Stratum(5, math.nan, 1.0)],
        [Stratum(5, 0.0, math.nan), Stratum(5, 0.0, 1.0)],
        [Stratum(5, 0.0, math.inf)],
    ):
        found = combined(strata)
        assert all(map(math.isnan, (found.effect, found.variance, found.df))), strata
        assert found.information == 0.0
    assert combined([Stratum(5, 0.5, 0.0)]).information == 0.0
