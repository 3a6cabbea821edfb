"""Floats taken apart add up to themselves."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.parts.float_bits import (
    UNIT,
    Units,
    largest,
    sum_by_exponent,
    sum_by_levels,
    sum_by_levels_in_cells,
    take_apart,
)

finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


def total(rows: Units) -> Fraction:
    parts = zip(*(column.tolist() for column in rows), strict=True)
    return sum(
        (Fraction((-1 if sign else 1) * (units << at), 1 << UNIT) for units, at, sign in parts),
        Fraction(0),
    )


@given(finite)
def test_units_at_their_positions_are_the_values(values: list[float]) -> None:
    array = np.array(values)
    expected = sum(map(Fraction, values), Fraction(0))
    assert total(take_apart(array)) == expected
    assert total(sum_by_exponent(array)) == expected


def test_levels_give_floats_of_the_same_exact_sum() -> None:
    values = np.random.default_rng(3).random(1 << 15)
    sums = sum_by_levels(values, float(values.max()))
    assert sums is not None
    whole = sum(np.ldexp(values, 53).astype(np.int64).tolist())  # multiples of 2**-53
    assert sum(map(Fraction, sums)) == Fraction(whole, 1 << 53)


def test_one_level_is_enough_for_few_bits() -> None:
    assert sum_by_levels(np.array([1.0, 0.0, -3.0, 2.5]), 3.0) == [0.5]
    assert sum_by_levels(np.array([-0.0, 1.0, -0.0]), 1.0) == [1.0]


def test_levels_decline_what_they_cannot_sum_exactly() -> None:
    values = np.array([1.0] * 99 + [1e-300])
    assert sum_by_levels(values, 1.0) is None  # past the sample that is looked at first
    assert sum_by_levels(values[::-1], 1.0) is None
    assert sum_by_levels(np.array([1e300]), 1e300) is None
    assert sum_by_levels(np.array([1e-300]), 1e-300) is None


def test_levels_in_cells_and_what_they_leave_are_all_of_the_values() -> None:
    for spread in (0, 3, 30, 300):
        rng = np.random.default_rng(4)
        size, cells = rng.integers(-spread, 1, 1500), rng.integers(0, 7, 1500)
        values = np.ldexp(rng.standard_normal(1500), size)
        before = values.copy()
        found = sum_by_levels_in_cells(values, cells, 9, float(np.abs(values).max()))
        assert np.array_equal(values, before)
        for cell in range(9):
            parts = [float(sums[cell]) for sums in found.sums] + found.rest[cells == cell].tolist()
            expected = sum(map(Fraction, values[cells == cell].tolist()), Fraction(0))
            assert sum(map(Fraction, parts), Fraction(0)) == expected
        assert np.any(found.rest != 0) == (spread == 300)


def test_levels_in_cells_stop_where_few_values_are_left() -> None:
    values = np.array([0.5] * 99 + [1e-40])
    found = sum_by_levels_in_cells(values, np.arange(100) % 2, 2, 0.5)
    assert [sums.tolist() for sums in found.sums] == [[25.0, 24.5]]
    assert np.flatnonzero(found.rest).tolist() == [99]


def test_levels_in_cells_leave_what_lies_at_the_ends_of_the_range() -> None:
    for top in (0.0, 1e-300, 1e300):
        values = np.array([top, -top])
        found = sum_by_levels_in_cells(values, np.array([0, 1]), 2, top)
        assert found.sums == [] and np.array_equal(found.rest, values)


def test_the_largest_size_is_found_whatever_the_signs() -> None:
    for values, size in (
        ([0.5, 3.0, 2.0], 3.0),
        ([-0.5, 3.0, -2.0], 3.0),
        ([0.5, -3.0, 2.0], 3.0),
        ([-0.5, -3.0], 3.0),
        ([0.0, -0.0], 0.0),
        ([-0.0], 0.0),
        ([5e-324, -0.0], 5e-324),
        ([-math.inf, 1.0], math.inf),
        ([math.inf, -1.0], math.inf),
        ([1e308, -1.7e308], 1.7e308),
    ):
        for some in (np.array(values), np.array(values)[::-1], np.repeat(values, 2)[::2]):
            assert largest(some) == size
