"""One rounding: to the nearest float, or to the side of a bound."""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.exact.rounding import over_root, ratio, rounded_down, rounded_up

counts = st.integers(-(2**70), 2**70)
sizes = st.integers(1, 2**70)
squares = st.integers(1, 2**280)


@given(counts, sizes)
def test_bounds_hold_the_ratio_and_are_the_nearest_that_do(top: int, bottom: int) -> None:
    exact = Fraction(top, bottom)
    low, high = rounded_down(top, bottom), rounded_up(top, bottom)
    assert Fraction(low) <= exact <= Fraction(high)
    assert Fraction(math.nextafter(low, math.inf)) > exact
    assert Fraction(math.nextafter(high, -math.inf)) < exact
    assert low <= ratio(top, bottom) <= high


def test_a_ratio_that_is_a_float_is_its_own_bound() -> None:
    assert rounded_down(3, 4) == rounded_up(3, 4) == 0.75
    assert rounded_down(0, 5) == rounded_up(0, 5) == 0.0
    assert rounded_down(5, 5) == rounded_up(5, 5) == 1.0


def test_past_the_largest_float_a_bound_is_still_one() -> None:
    assert rounded_down(10**400, 3) == sys.float_info.max and rounded_up(10**400, 3) == math.inf
    assert rounded_up(-(10**400), 3) == -sys.float_info.max
    assert rounded_down(-(10**400), 3) == -math.inf


@pytest.mark.parametrize(("top", "bottom"), [(10**400, 1), (Fraction(1, 2), Fraction(1, 10**400))])
def test_a_ratio_past_the_largest_float_is_infinite_on_its_side(
    top: int | Fraction, bottom: int | Fraction
) -> None:
    assert ratio(top, bottom) == ratio(-top, -bottom) == math.inf
    assert ratio(-top, bottom) == ratio(top, -bottom) == -math.inf


def test_no_bound_is_minus_zero() -> None:
    for zero in (rounded_down(0, 5), rounded_up(0, 5), over_root(0, 5), ratio(0, -5)):
        assert math.copysign(1, zero) == 1


def test_nothing_over_nothing_is_nan() -> None:
    assert math.isnan(ratio(0, 0))
    assert math.isnan(over_root(0, 0))


@given(counts, squares)
def test_a_ratio_to_a_root_is_the_nearest_float(top: int, square: int) -> None:
    wide = Context(prec=120)
    expected = wide.divide(Decimal(top), wide.sqrt(Decimal(square)))
    assert over_root(top, square) == float(expected)


@given(st.integers(1, 2**60), st.integers(1, 2**60))
def test_a_ratio_to_a_perfect_root_is_the_ratio(top: int, root: int) -> None:
    assert over_root(top, root * root) == top / root


@given(st.integers(2**52, 2**53 - 1), st.integers(0, 60))
def test_halfway_between_floats_goes_to_the_even_one(mantissa: int, scale: int) -> None:
    # (2 m + 1) / 2**(scale + 1) lies halfway between two floats.
    assert over_root(2 * mantissa + 1, 4 ** (scale + 1)) == (2 * mantissa + 1) / 2 ** (scale + 1)


def test_next_to_halfway_it_is_the_side_that_counts() -> None:
    even, far = 2**52 + 2, 2**40
    # Off (2 even + 1) / 2 by a part in 2**83, which no digit of the root shows.
    top = (2 * even + 1) * far
    assert over_root(top, 4 * far * far - 1) == even + 1
    assert over_root(top, 4 * far * far) == over_root(top, 4 * far * far + 1) == even
    assert over_root(-1, 4) == -0.5


def test_roots_past_the_largest_float_are_infinite() -> None:
    top = 2**2100
    assert (over_root(top, top), over_root(-top, top)) == (math.inf, -math.inf)
