"""Tables by rank: correct to their last digits, and the same however they grow."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking import rank_tables as tables
from streammetrics.kernels.ranking.rank_tables import (
    Growing,
    continuation,
    discount_totals,
    discounts,
    expected_examined,
    harmonics,
    reciprocals,
    stop_probability,
)


def test_the_two_parts_of_a_discount_are_correct_to_60_binary_digits() -> None:
    exact = Context(prec=60)
    upper, lower = tables.discounts(3000)
    for rank in (*range(1, 60), 997, 1023, 1024, 2999):
        value = Fraction(exact.divide(exact.ln(Decimal(2)), exact.ln(Decimal(rank + 1))))
        a, b = Fraction(float(upper[rank - 1])), Fraction(float(lower[rank - 1]))
        assert abs(value - a - b) <= Fraction(1, 2**61)
    assert (upper * 2**30 == np.rint(upper * 2**30)).all()
    assert (lower * 2.0**60 == np.rint(lower * 2.0**60)).all()
    assert (np.abs(lower) <= 2.0**-31).all()


def test_totals_of_discounts_are_exact() -> None:
    for parts, totals in zip(tables.discounts(500), tables.discount_totals(500), strict=True):
        total = Fraction(0)
        for i in range(500):
            assert totals[i] == total
            total += Fraction(float(parts[i]))


def exactly(pair: Pair, i: int) -> Fraction:
    return Fraction(float(pair.high[i])) + Fraction(float(pair.low[i]))


def test_reciprocals_are_correct_to_106_bits_and_their_sums_to_90() -> None:
    (high, low), sums, exact = reciprocals(500), harmonics(500), Fraction(0)
    for i in range(500):
        assert abs(exactly(sums, i) - exact) < Fraction(1, 2**90)
        term = Fraction(1, i + 1)
        assert high[i] == float(term) and low[i] == float(term - Fraction(float(high[i])))
        exact += term


def test_powers_are_correct_to_104_bits_however_small_and_their_sums_to_88() -> None:
    for p in ("0.8", "0.0001", "0.30000000000000004"):
        powers, exact = continuation(float(p))(500), Fraction(1)
        for i in range(500):
            assert float(powers.high[i]) == float(exact), (p, i)
            if exact > Fraction(1, 2**900):  # what a power leaves out is a number of its own
                assert abs(exactly(powers, i) / exact - 1) < Fraction(1, 2**104), (p, i)
            exact *= Fraction(p)
    sums, exact = expected_examined(0.99)(300), Fraction(0)
    for i in range(300):
        assert abs(exactly(sums, i) - exact) < Fraction(1, 2**88)
        exact += Fraction("0.99") ** i


def test_what_is_below_every_double_is_zero() -> None:
    powers = continuation(0.5)(3_000)
    assert powers.high[1_074] == 5e-324
    assert not powers.high[1_075:].any()
    assert not powers.low[1_075:].any()


def test_the_decimal_that_a_number_prints_as_is_meant() -> None:
    assert float(continuation(0.8)(2).high[1]) == 0.8
    assert exactly(continuation(0.8)(2), 1) != Fraction(0.8)
    assert abs(exactly(stop_probability(0.8), 0) - Fraction(1, 5)) < Fraction(1, 2**104)


def test_a_table_grows_to_what_is_asked_for_and_is_made_once() -> None:
    sizes: list[int] = []

    def make(n: int) -> Pair:
        sizes.append(n)
        return Pair(np.arange(float(n)), np.zeros(n))

    table = Growing(make)
    assert len(table(3).high) == 128
    assert table(128) is table(1)
    assert len(table(129).high) == 256
    assert len(table(1000).high) == 1000
    assert sizes == [128, 256, 1000]


def test_longer_tables_begin_as_shorter_ones_do_and_cannot_be_written() -> None:
    plain = (discounts, discount_totals, reciprocals, harmonics)
    for number, table in enumerate((*plain, continuation(0.8), expected_examined(0.8))):
        before = table(100)
        n = len(before[0])
        longer = table(n + 1)
        assert len(longer[0]) > n
        assert all(np.array_equal(a, b[:n]) for a, b in zip(before, longer, strict=True)), number
        assert not longer[0].flags.writeable
