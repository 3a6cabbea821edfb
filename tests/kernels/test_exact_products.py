from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.double_double import Pair
from streammetrics.kernels.exact_products import product, squared, weighted

ordinary = st.floats(-(2.0**500), 2.0**500).filter(lambda x: x == 0 or abs(x) > 2.0**-480)
LEAST = Fraction(1, 2**1074)  # the least float


def total(parts: list[np.ndarray]) -> Fraction:  # type: ignore[type-arg]
    return sum((Fraction(part.item()) for part in parts), Fraction(0))


@given(ordinary, ordinary)
def test_a_product_of_ordinary_numbers_is_exact(a: float, b: float) -> None:
    assert total(list(product(np.array([a]), np.array([b])))) == Fraction(a) * Fraction(b)


@given(ordinary, st.integers(-53, -53 + 10))
def test_a_square_of_a_pair_is_exact(high: float, shift: int) -> None:
    low = math.ldexp(high, shift - 1) if abs(high) > 2.0**-400 else 0.0
    parts = squared(Pair(np.array([high]), np.array([low])))
    assert total(parts) == (Fraction(high) + Fraction(low)) ** 2


@given(st.floats(0.5, 1), st.floats(0.5, 1), st.integers(400, 1074), st.integers(0, 1074))
def test_a_tiny_product_is_off_by_twice_the_least_float_at_most(
    a: float, b: float, i: int, j: int
) -> None:
    a, b = math.ldexp(a, -i), math.ldexp(b, -j)
    found = total(list(product(np.array([a]), np.array([b]))))
    assert abs(found - Fraction(a) * Fraction(b)) <= 2 * LEAST
    if i + j < 960:
        assert found == Fraction(a) * Fraction(b)


def test_large_squares_are_exact_up_to_the_largest_float_and_then_infinite() -> None:
    x = 1.1 * 2.0**511
    assert total(squared(Pair(np.array([x]), np.zeros(1)))) == Fraction(x) ** 2
    for y in (2.0**512, 1.7e308, math.inf):
        high, low = product(np.array([y]), np.array([-y]))
        assert (high[0], low[0]) == (-math.inf, 0.0)
        [infinite] = squared(Pair(np.array([y]), np.array([-1.0])))
        assert infinite[0] == math.inf


def test_a_product_with_one_large_factor_of_either_sign_is_exact() -> None:
    for x in (-1.7e308, 1.7e308):
        for pair in (
            product(np.array([x]), np.full(1, 0.3)),
            product(np.full(1, 0.3), np.array([x])),
        ):
            assert total(list(pair)) == Fraction(x) * Fraction(0.3)


@given(ordinary, st.integers(1, 2**63 - 1))
def test_weights_up_to_the_largest_count_are_exact(x: float, units: int) -> None:
    found = weighted([np.array([x])], np.array([units]))
    assert total(found) == Fraction(x) * units
    [same] = weighted([np.array([x])], None)
    assert same[0] == x


def test_an_infinite_part_is_infinite_under_any_weight() -> None:
    for units in (1, 2**53 + 1, 2**62, 2**33):
        parts = weighted([np.array([math.inf, 1.0])], np.array([units, units]))
        assert sum(part[0] for part in parts) == math.inf
        assert sum(Fraction(part[1].item()) for part in parts) == units


def test_parts_that_are_all_zero_are_left_out() -> None:
    assert squared(Pair(np.zeros(2), np.zeros(2))) == []
    assert len(squared(Pair(np.array([0.5, 2.0]), np.zeros(2)))) == 1
