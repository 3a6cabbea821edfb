from __future__ import annotations

import math
from fractions import Fraction
from itertools import product as product_of

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.parts.exact_sums import SCALES, scaled_sum
from streammetrics.kernels.exact.exact_products import (
    exact_parts,
    ordinary,
    product,
    weighted,
)

usual = st.floats(-(2.0**500), 2.0**500).filter(lambda x: x == 0 or abs(x) > 2.0**-480)
finite = st.floats(allow_nan=False, allow_infinity=False)
BORDERS = (0.0, 1.5, 2.0**-480, math.nextafter(2.0**-480, 0), 2.0**480, math.nextafter(2.0**480, 0))
LEAST = Fraction(1, 2**1074)  # the least float


def total(parts: list[np.ndarray]) -> Fraction:  # type: ignore[type-arg]
    return sum((Fraction(part.item()) for part in parts), Fraction(0))


def whole(parts: list[tuple[int, np.ndarray]], row: int) -> Fraction:  # type: ignore[type-arg]
    """What a row is, of its parts and their scales."""
    sums = [Fraction(0)] * len(SCALES)
    for place, part in parts:
        sums[place] += Fraction(part[row].item())
    return scaled_sum(sums)


@given(st.lists(st.tuples(finite, finite, st.integers(1, 2**63 - 1)), min_size=1, max_size=4))
def test_products_of_any_two_floats_and_a_weight_are_exact(
    rows: list[tuple[float, float, int]],
) -> None:
    a, b = (np.array([row[i] for row in rows]) for i in (0, 1))
    units = np.array([row[2] for row in rows])
    for factor in (b, a, None):
        for weights in (units, None):
            parts = list(exact_parts(a, factor, weights, far=True))
            for i, (x, _, n) in enumerate(rows):
                y = 1 if factor is None else Fraction(factor[i].item())
                assert whole(parts, i) == Fraction(x) * y * (1 if weights is None else n)


def test_products_at_the_ends_of_every_scale_are_exact() -> None:
    for power, second in product_of((-1074, -481, -480, -1, 480, 1023), (-1074, -480, 479, 1023)):
        check_products(power, second)


def check_products(power: int, second_power: int) -> None:
    a = np.array([2.0**power, math.nextafter(2.0**power, 3 * 2.0**power / 2)])
    b = np.array([math.nextafter(2.0**second_power, 3 * 2.0**second_power / 2), 2.0**second_power])
    units = np.array([2**63 - 1, 2**63 - 1])
    parts = list(exact_parts(a, b, units, far=True))
    for i in (0, 1):
        exact = Fraction(a[i].item()) * Fraction(b[i].item()) * (2**63 - 1)
        assert whole(parts, i) == exact, (power, second_power)
    if ordinary(a) and ordinary(b):
        assert {place for place, _ in parts} == {0}
        parts = list(exact_parts(a, b, units, far=False))
        assert whole(parts, 0) == Fraction(a[0].item()) * Fraction(b[0].item()) * (2**63 - 1)


def test_ordinary_numbers_are_zero_or_of_middling_size() -> None:
    for x in BORDERS:
        expected = x == 0 or 2.0**-480 <= x < 2.0**480
        for sign in (1, -1):
            assert ordinary(np.array([1.0, sign * x])) == expected, x
            assert ordinary(np.array([0.0, sign * x])) == expected, x
    assert ordinary(np.empty(0)) and not ordinary(np.array([math.inf]))


def test_the_scale_of_a_row_does_not_depend_on_the_others() -> None:
    a, units = np.array([*BORDERS, 5e-324, 1.7e308]), np.full(8, 3)
    every = list(exact_parts(a, a, units, far=True))
    for i in range(len(a)):
        single_parts = list(exact_parts(a[[i]], a[[i]], units[[i]], far=True))
        assert [(p, x[0]) for p, x in single_parts] == [(p, x[i]) for p, x in every if x[i]]


@given(st.floats(0.5, 1), st.floats(0.5, 1), st.integers(400, 1074), st.integers(0, 1074))
def test_a_tiny_product_is_off_by_twice_the_least_float_at_most(
    a: float, b: float, i: int, j: int
) -> None:
    a, b = math.ldexp(a, -i), math.ldexp(b, -j)
    value = total(list(product(np.array([a]), np.array([b]))))
    assert abs(value - Fraction(a) * Fraction(b)) <= 2 * LEAST
    if i + j < 960:
        assert value == Fraction(a) * Fraction(b)


def test_large_products_are_exact_up_to_the_largest_float_and_then_infinite() -> None:
    x = np.array([1.1 * 2.0**511])
    assert total(list(product(x, x))) == Fraction(x[0].item()) ** 2
    for y in (2.0**512, 1.7e308, math.inf):
        high, low = product(np.array([y]), np.array([-y]))
        assert (high[0], low[0]) == (-math.inf, 0.0)


def test_a_product_with_one_large_factor_of_either_sign_is_exact() -> None:
    for x in (-1.7e308, 1.7e308):
        for pair in (
            product(np.array([x]), np.full(1, 0.3)),
            product(np.full(1, 0.3), np.array([x])),
        ):
            assert total(list(pair)) == Fraction(x) * Fraction(0.3)


def test_weights_are_exact() -> None:
    for units in (1, 3, 2**26 - 1, 2**26, 2**26 + 1, 2**28 - 1, 2**53, 2**53 + 1, 2**63 - 1):
        for x in (math.nextafter(1, 0), -math.nextafter(2.0**-480, 0), math.pi, 2.0**27 + 2.0**-25):
            assert total(weighted([np.array([x])], np.array([units]))) == Fraction(x) * units


def test_a_large_part_under_a_small_weight_is_exact_or_infinite() -> None:
    [high, *rest] = weighted([np.array([1.7e308, 1.0])], np.array([3, 3]))
    assert high[0] == math.inf and sum(part[0] for part in rest) == 0
    assert total(weighted([np.array([5e-324])], np.array([3]))) == 3 * LEAST


def test_an_infinite_part_is_infinite_under_any_weight() -> None:
    for of_infinity in (1, 2**33, 2**53 + 1, 2**62):
        for units in (1, 2**33, 2**53 + 1, 2**62):  # of a row in the same batch
            parts = weighted([np.array([math.inf, 1.0])], np.array([of_infinity, units]))
            assert sum(part[0] for part in parts) == math.inf
            assert sum(Fraction(part[1].item()) for part in parts) == units


def test_parts_that_are_all_zero_are_left_out() -> None:
    assert weighted([np.zeros(2)], np.array([1, 2])) == []
    x = np.array([0.0, 5e-324])
    assert [place for place, _ in exact_parts(x, x, None, far=True)] == [1]
