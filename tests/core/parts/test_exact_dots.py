from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.core.parts.exact_dots import Dot, add_dots
from streammetrics.core.parts.exact_sum import ExactSumColumn

Floats = NDArray[np.float64]


def hostile(n: int) -> Iterator[Floats]:
    """Columns of numbers that are easy, of every size, at edges, or suddenly different."""
    rng = np.random.default_rng(11)
    usual, rows = rng.standard_normal(n), np.arange(n)
    yield usual
    yield np.full(n, 2.0**53 - 1)  # all digits as large as they can be
    yield 2 - rng.random(n) / 8  # first digits that are all large
    yield np.full(n, -(2.0**62) * (1 - 2.0**-53))
    yield 2.0**53 * rng.choice([-1, 1], n) + rng.integers(-3, 4, n)
    yield np.where(rng.random(n) < 0.5, -0.0, np.round(usual))
    yield np.where(rows == n // 2, 2.0**140, usual)
    yield np.where(rows < 8192, 0.0, usual)  # one digit, then many
    yield usual * 2.0 ** rng.integers(-60, 60, n)
    yield rng.choice([2.0**-149, 2.0**-150, 2.0**149, 2.0**150 - 2.0**97, 2.0**151], n)
    yield np.where(rng.random(n) < 0.1, 5e-324 * rng.integers(0, 4, n), usual)
    yield np.full(n, 1.7e308)


def fractions(values: NDArray[np.generic]) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


@pytest.mark.parametrize("n", [0, 1, 3, 700, 8_300])
def test_sums_of_products_are_those_of_fractions_and_left_rows_are_told(n: int) -> None:
    columns = [*hostile(n)]
    flags = np.where(np.arange(n) % 3 == 0, -1, 1).astype(np.int8)
    complete = 0
    for shift in (1, 4):
        for a, b in zip(columns, columns[shift:] + columns[:shift], strict=True):
            sums = [ExactSumColumn(1) for _ in range(4)]
            dots = [Dot(sums[0], a, b), Dot(sums[1], b), Dot(sums[2], a, a, -1)]
            left = add_dots([*dots, Dot(sums[3], flags, a)])
            assert np.array_equal(left, np.unique(left))
            complete += not len(left)
            rows = np.delete(np.arange(n), left)
            x, y, signs = fractions(a[rows]), fractions(b[rows]), flags[rows].tolist()
            assert [column.finite_fraction() for column in sums] == [
                sum(map(Fraction.__mul__, x, y), Fraction(0)),
                sum(y, Fraction(0)),
                -sum((v * v for v in x), Fraction(0)),
                sum((v * sign for v, sign in zip(x, signs, strict=True)), Fraction(0)),
            ]
    assert complete >= 5  # what is usual is not left to slower ways


@pytest.mark.parametrize("n", [1, 3, 700, 8_300])
def test_sums_of_squares_and_cubes_are_those_of_fractions(n: int) -> None:
    complete = 0
    for x in hostile(n):
        sums = [ExactSumColumn(1) for _ in range(3)]
        squares, cubes = Dot(sums[1], x, squared=True), Dot(sums[2], x, x, squared=True)
        left = add_dots([Dot(sums[0], x), squares, cubes])
        complete += not len(left)
        values = fractions(np.delete(x, left))
        for power, column in enumerate(sums, 1):
            assert column.finite_fraction() == sum((v**power for v in values), Fraction(0))
    assert complete >= 5


def test_sums_of_many_rows_are_those_of_one_product_after_another() -> None:
    usual, *_, sudden, varied, _, _, _ = hostile(70_000)
    for a, b in ((usual, varied), (sudden, usual)):
        together, one_by_one = ExactSumColumn(1), ExactSumColumn(1)
        left = add_dots([Dot(together, a, b)])
        together.add_products(a[left], b[left])
        one_by_one.add_products(a, b)
        assert together.finite_fraction() == one_by_one.finite_fraction()
