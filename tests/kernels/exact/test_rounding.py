"""Ratios and means of fractions that are rounded once, and to the side that keeps a bound."""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.exact.rounding import (
    FractionMean,
    mean_of,
    quotient_by_root,
    ratio,
    rounded,
    rounded_down,
    rounded_up,
)

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


def test_past_the_largest_float_a_bound_is_still_one() -> None:
    assert rounded_down(10**400, 3) == sys.float_info.max and rounded_up(10**400, 3) == math.inf
    assert rounded_up(-(10**400), 3) == -sys.float_info.max
    assert rounded_down(-(10**400), 3) == -math.inf


def test_a_ratio_past_the_largest_float_is_infinite_on_its_side() -> None:
    for top, bottom in ((10**400, 1), (Fraction(1, 2), Fraction(1, 10**400))):
        assert ratio(top, bottom) == ratio(-top, -bottom) == math.inf
        assert ratio(-top, bottom) == ratio(top, -bottom) == -math.inf


def test_no_bound_is_minus_zero() -> None:
    for zero in (rounded_down(0, 5), rounded_up(0, 5), quotient_by_root(0, 5), ratio(0, -5)):
        assert math.copysign(1, zero) == 1


def test_nothing_over_nothing_is_nan() -> None:
    assert math.isnan(ratio(0, 0))
    assert math.isnan(quotient_by_root(0, 0))


@given(counts, squares)
def test_a_ratio_to_a_root_is_the_nearest_float(top: int, square: int) -> None:
    wide = Context(prec=120)
    expected = wide.divide(Decimal(top), wide.sqrt(Decimal(square)))
    assert quotient_by_root(top, square) == float(expected)


def test_next_to_halfway_it_is_the_side_that_counts() -> None:
    even, far = 2**52 + 2, 2**40
    # Off (2 even + 1) / 2 by a part in 2**83, which no digit of the root shows.
    top = (2 * even + 1) * far
    assert quotient_by_root(top, 4 * far * far - 1) == even + 1
    assert quotient_by_root(top, 4 * far * far) == quotient_by_root(top, 4 * far * far + 1) == even
    assert quotient_by_root(-1, 4) == -0.5


SUMS = st.dictionaries(st.integers(1, 2**40), st.integers(0, 2**60), min_size=1, max_size=30)
TOTALS = st.integers(1, 2**50)


def exactly(mean: FractionMean) -> Fraction:
    return sum((Fraction(n, d) for d, n in mean.sums.items()), Fraction(0)) / mean.total


@given(SUMS, TOTALS)
def test_each_way_of_rounding_is_that_of_the_fraction(sums: dict[int, int], total: int) -> None:
    mean = FractionMean(sums, total)
    exact = exactly(mean)
    assert Fraction(*mean.fraction()) == exact
    for rounding in (ratio, rounded_down, rounded_up):
        assert rounded(mean, rounding) == rounding(exact.numerator, exact.denominator)


@given(SUMS, TOTALS, st.integers(0, 200))
def test_a_mean_lies_between_its_ends(sums: dict[int, int], total: int, bits: int) -> None:
    mean = FractionMean(sums, total)
    (low, below), (high, above) = mean.enclosing(bits)
    exact = exactly(mean)
    assert Fraction(low, below) <= exact <= Fraction(high, above)
    assert Fraction(high - low, above) <= Fraction(len(sums), total << bits)


def test_a_mean_that_fixed_point_cannot_round_is_still_exact() -> None:
    for sums in (
        {3: 1, 6: 4},  # 1, in thirds, which no fixed point has
        {3: 2**53 + 1, 3 << 53: 2**54 + 2**53 - 2 * (2**53 + 1)},
        {7: 3, 21: 5, 42: 8},
    ):
        mean = FractionMean(sums, 1)
        exact = exactly(mean)
        for rounding in (ratio, rounded_down, rounded_up):
            assert rounded(mean, rounding) == rounding(exact.numerator, exact.denominator)


def test_thousands_of_denominators_are_joined_in_a_moment() -> None:
    sums = {(1 << 30) + 2 * i + 1: i + 1 for i in range(3_000)}
    numerator, denominator = FractionMean(sums, 1).fraction()
    assert math.isclose(numerator / denominator, sum(n / d for d, n in sums.items()))


def test_the_mean_of_fractions_is_weighted_and_rounded_once() -> None:
    terms = [(Fraction(1, 3), 1), (Fraction(2, 7), 5), (Fraction(0), 2), (Fraction(1), 1)]
    exact = sum(value * weight for value, weight in terms) / 9
    assert rounded(mean_of(terms)) == float(exact)
    assert Fraction(*mean_of(terms).fraction()) == exact
    assert mean_of([]).total == 0
