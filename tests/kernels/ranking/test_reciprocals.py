from fractions import Fraction

from streammetrics.kernels.ranking.rank_tables import harmonics, reciprocals


def test_a_reciprocal_and_what_it_leaves_out_are_correct_to_106_bits() -> None:
    high, low = reciprocals(3000)
    for i in range(3000):
        exact = Fraction(1, i + 1)
        assert high[i] == float(exact)
        assert low[i] == float(exact - Fraction(float(high[i])))


def test_sums_of_reciprocals_are_correct_to_90_bits() -> None:
    high, low = harmonics(2000)
    exact = Fraction(0)
    for i in range(2000):
        assert abs(Fraction(float(high[i])) + Fraction(float(low[i])) - exact) < Fraction(1, 2**90)
        exact += Fraction(1, i + 1)
