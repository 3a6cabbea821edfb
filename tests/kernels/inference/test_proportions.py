"""Shares: worked values, exact coverage, and what is said of no rows."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.proportions import (
    effective_size,
    f_beta_variance,
    newcombe_bounds,
    share_variance,
    wilson_bounds,
)
from streammetrics.kernels.inference.t_interval import EVERYTHING, critical

Z = critical(0.95)


@given(st.integers(1, 10**12), st.floats(0, 1), st.floats(0.1, 8))
def test_wilson_solves_its_equation(n: int, share: float, q: float) -> None:
    s = round(share * n)
    p = s / n
    lower, upper = wilson_bounds(s, n, q)
    assert 0 <= lower <= p <= upper <= 1
    for end in (lower, upper):
        size, x = Fraction(n), Fraction(end)
        square = (Fraction(s, n) - x) ** 2
        expected = Fraction(q) ** 2 * x * (1 - x) / size
        slack = Fraction(1, 10**12) * (square + expected) + Fraction(1, 2**49) * abs(p - end)
        assert abs(square - expected) <= slack + Fraction(1, 2**100)


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-300, 1e-15))
def test_the_share_is_never_outside(n: int, share: float, q: float) -> None:
    s = round(share * n)
    lower, upper = wilson_bounds(s, n, q)
    assert 0 <= lower <= s / n <= upper <= 1


def test_wilson_of_clustered_rows_has_fewer_of_them() -> None:
    # Eight users with 17 clicks of 70 views, t with 7 degrees of freedom.
    n_eff = effective_size(17, 70, 0.052712918267**2)
    lower, upper = wilson_bounds(17, 70, critical(0.95, 7), n_eff=n_eff)
    assert (round(lower, 9), round(upper, 9)) == (0.141534336, 0.384248784)
    assert math.isclose(70 / n_eff, 1.057799724, rel_tol=1e-9)
    assert round(math.sqrt(17 * 53 / 70**3), 12) == 0.051252533181  # as if views were users


def test_a_share_of_0_or_1_takes_the_last_design_effect() -> None:
    assert effective_size(0, 100, 0.0, known_deff=4.0) == 25
    assert effective_size(100, 100, math.nan, known_deff=2.0) == 50
    assert effective_size(0, 100, 0.0, known_deff=0.5) == 100
    assert effective_size(0, 100, 0.0, known_deff=math.nan) == 100
    # Nor is a variance of 0 taken for certainty.
    assert effective_size(50, 100, 0.0) == effective_size(50, 100, math.nan) == 100


def test_no_rows_say_nothing() -> None:
    assert wilson_bounds(0, 0, Z) == EVERYTHING
    assert wilson_bounds(1, 2, math.nan) == wilson_bounds(1, 2, Z, n_eff=math.nan) == EVERYTHING
    assert wilson_bounds(1, 2, math.inf) == (0.0, 1.0)
    assert math.isnan(effective_size(0, 0, 0.1))
    assert share_variance(1, 1) == 0.0 and math.isnan(share_variance(0, 0))
    assert newcombe_bounds(math.nan, EVERYTHING, 0.5, (0.4, 0.6)) == EVERYTHING
    assert newcombe_bounds(0.5, (0.4, 0.6), 0.5, EVERYTHING) == EVERYTHING
    assert newcombe_bounds(0.5, (math.nan, 0.6), 0.5, (0.4, 0.6)) == EVERYTHING
    half = newcombe_bounds(0.5, (0.4, 0.6), 0.5, (0.4, math.inf), 0.5)
    assert half == (-newcombe_bounds(0.5, (0.4, 0.6), 0.5, (0.4, 0.6), 0.5)[1], math.inf)
    assert math.isnan(f_beta_variance(0, 0, 0, 1))
