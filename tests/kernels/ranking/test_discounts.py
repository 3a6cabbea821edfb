from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from streammetrics.kernels.ranking import rank_tables as tables


def test_the_two_parts_of_a_discount_are_correct_to_60_binary_digits() -> None:
    exact = Context(prec=60)
    upper, lower = tables.discounts(3000)
    for rank in (*range(1, 200), 997, 1023, 1024, 2048, 2999):
        value = Fraction(exact.divide(exact.ln(Decimal(2)), exact.ln(Decimal(rank + 1))))
        a, b = Fraction(float(upper[rank - 1])), Fraction(float(lower[rank - 1]))
        assert abs(value - a - b) <= Fraction(1, 2**61)


def test_each_part_of_a_discount_has_30_binary_digits() -> None:
    upper, lower = tables.discounts(3000)
    assert (upper * 2**30 == np.rint(upper * 2**30)).all()
    assert (lower * 2.0**60 == np.rint(lower * 2.0**60)).all()
    assert (np.abs(lower) <= 2.0**-31).all()


def test_totals_of_discounts_are_exact() -> None:
    for parts, totals in zip(tables.discounts(2000), tables.discount_totals(2000), strict=True):
        total = Fraction(0)
        for i in range(2000):
            assert totals[i] == total
            total += Fraction(float(parts[i]))


def test_a_table_that_grew_begins_like_the_one_before() -> None:
    for table_of in (tables.discounts, tables.discount_totals):
        before = [table.copy() for table in table_of(1)]
        after = table_of(2 * len(before[0]) + 1)
        for a, b in zip(before, after, strict=True):
            assert len(b) >= 2 * len(a) + 1
            assert (b[: len(a)] == a).all()


def test_gains_are_those_of_the_two_conventions() -> None:
    assert tables.GAINS["exponential"].tolist() == [2**g - 1 for g in range(16)]
    assert tables.GAINS["linear"].tolist() == list(range(16))
