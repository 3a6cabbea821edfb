"""Means of fractions, rounded once however they lie."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.exact import fraction_mean
from streammetrics.kernels.exact.fraction_mean import FractionMean, mean_of, rounded
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

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
    (low, below), (high, above) = mean.between(bits)
    exact = exactly(mean)
    assert Fraction(low, below) <= exact <= Fraction(high, above)
    assert Fraction(high - low, above) <= Fraction(len(sums), total << bits)


@pytest.mark.parametrize(
    "sums",
    [
        {3: 1, 6: 4},  # 1, in thirds, which no fixed point has
        {3: 2**53 + 1, 3 << 53: 2**54 + 2**53 - 2 * (2**53 + 1)},
        {7: 3, 21: 5, 42: 8},
    ],
)
def test_a_mean_that_fixed_point_cannot_round_is_still_exact(sums: dict[int, int]) -> None:
    mean = FractionMean(sums, 1)
    exact = exactly(mean)
    for rounding in (ratio, rounded_down, rounded_up):
        assert rounded(mean, rounding) == rounding(exact.numerator, exact.denominator)


def test_a_mean_half_way_between_two_floats_goes_to_the_even_one() -> None:
    # (2**53 + 1) / 2**54 in thirds.
    mean = FractionMean({3: 1, 3 << 54: 3 * (2**53 + 1) - (1 << 54)}, 1)
    assert exactly(mean) == Fraction(2**53 + 1, 2**54)
    assert rounded(mean) == 0.5


@given(SUMS, TOTALS)
def test_few_bits_give_the_same(sums: dict[int, int], total: int) -> None:
    mean = FractionMean(sums, total)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fraction_mean, "BITS", (4,))
        few = rounded(mean)
    assert few == rounded(mean)


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
