from fractions import Fraction

import pytest

from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.rank_tables import comes, looks, stops


def exactly(pair: Pair, i: int) -> Fraction:
    return Fraction(float(pair.high[i])) + Fraction(float(pair.low[i]))


@pytest.mark.parametrize("p", ["0.8", "0.5", "0.95", "0.0001", "0.30000000000000004"])
def test_a_power_is_correct_to_104_bits_however_small_it_is(p: str) -> None:
    powers, exact = comes(float(p))(900), Fraction(1)
    for i in range(900):
        assert float(powers.high[i]) == float(exact)
        if exact > Fraction(1, 2**900):  # what a power leaves out is a number of its own
            assert abs(exactly(powers, i) / exact - 1) < Fraction(1, 2**104)
        exact *= Fraction(p)


@pytest.mark.parametrize("p", ["0.8", "0.99"])
def test_how_many_items_a_user_looks_at_is_the_sum_of_the_powers(p: str) -> None:
    sums, exact = looks(float(p))(600), Fraction(0)
    for i in range(600):
        assert abs(exactly(sums, i) - exact) < Fraction(1, 2**88)
        exact += Fraction(p) ** i


def test_what_is_below_every_double_is_zero() -> None:
    powers = comes(0.5)(3_000)
    assert powers.high[1_074] == 5e-324
    assert not powers.high[1_075:].any()
    assert not powers.low[1_075:].any()


def test_the_decimal_that_a_number_prints_as_is_meant() -> None:
    assert float(comes(0.8)(2).high[1]) == 0.8
    assert exactly(comes(0.8)(2), 1) != Fraction(0.8)
    assert abs(exactly(stops(0.8), 0) - Fraction(1, 5)) < Fraction(1, 2**104)
