"""RelaImpr and its ends, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.curves.rela_impr import improvement
from streammetrics.kernels.exact.fraction_mean import ExactArea, FractionMean
from streammetrics.kernels.exact.rounding import ratio, rounded_down, rounded_up

HALF = Fraction(1, 2)
UNIT = st.fractions(0, 1, max_denominator=10**6)


def mean(value: Fraction) -> FractionMean:
    """The value; where it can be, as a sum with a third, which no fixed point has."""
    n, d = value.as_integer_ratio()
    return FractionMean({3: 1, 3 * d: 3 * n - d} if 3 * n >= d > 1 else {d: n}, 1)


def known(value: Fraction) -> ExactArea:
    return ExactArea(*[mean(value)] * 3)


def between(low: Fraction, value: Fraction, high: Fraction) -> ExactArea:
    return ExactArea(mean(value), mean(low), mean(high), bounded=True)


@given(UNIT, UNIT)
def test_areas_that_are_known_give_the_correctly_rounded_value(a: Fraction, b: Fraction) -> None:
    found = improvement(known(a), known(b))
    if b == HALF:
        assert all(map(math.isnan, found))
        return
    exact = (a - HALF) / (b - HALF) - 1
    assert found == (ratio(exact, Fraction(1)),) * 3


@pytest.mark.slow
@given(st.lists(UNIT, min_size=3, max_size=3), st.lists(UNIT, min_size=3, max_size=3))
def test_the_ends_are_the_nearest_floats_around_all_that_may_be(
    measured: list[Fraction], base: list[Fraction]
) -> None:
    a, b = sorted(measured), sorted(base)
    value, low, high = improvement(between(a[0], a[1], a[2]), between(b[0], b[1], b[2]))
    if b[0] == b[2] == HALF:
        assert all(map(math.isnan, (value, low, high)))
        return
    if b[1] == HALF:
        assert math.isnan(value)
    else:
        exact = (a[1] - HALF) / (b[1] - HALF) - 1
        assert value == ratio(exact, Fraction(1)) and low <= exact <= high
    if b[0] <= HALF <= b[2]:
        assert (low, high) == (-math.inf, math.inf)
        return
    corners = [(x - HALF) / (y - HALF) - 1 for x, y in product(a, b)]
    assert low == rounded_down(*min(corners).as_integer_ratio())
    assert high == rounded_up(*max(corners).as_integer_ratio())


def test_five_sixths_over_two_thirds_is_exactly_one() -> None:
    assert improvement(known(Fraction(5, 6)), known(Fraction(2, 3))) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("bits", [300, 1_100, 5_000])
def test_a_base_next_to_one_half_has_a_side(bits: int) -> None:
    near = HALF + Fraction(1, 3 << bits)
    value, low, high = improvement(known(near), known(near))
    assert (value, low, high) == (0.0, 0.0, 0.0)
    huge, _, _ = improvement(known(Fraction(1)), known(near))
    assert huge == (math.inf if bits > 1_020 else 3 * 2.0 ** (bits - 1))
    _, low, high = improvement(between(HALF, HALF, Fraction(1)), between(near, near, Fraction(1)))
    assert low == -1.0 and high >= 3 * 2.0 ** (min(bits, 1_000) - 1)


def test_what_is_undefined_has_no_improvement() -> None:
    nothing, half = ExactArea(bounded=True), known(HALF)
    for a, b in ((nothing, known(Fraction(1))), (known(Fraction(1)), nothing), (half, half)):
        assert all(map(math.isnan, improvement(a, b)))
