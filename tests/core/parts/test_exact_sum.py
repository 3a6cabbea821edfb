"""Exact sums against `fractions.Fraction`, whatever the size, order, split and path."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics import Ratio
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.exact_sum import _FEW_SLOTS, ExactSum, ExactSumColumn
from streammetrics.core.parts.exact_sums import (
    ExactSums,
    ExactSumsColumn,
    NamedSumsColumn,
    add_whole,
    require_whole,
)
from streammetrics.core.parts.float_bits import (
    BITS,
    CHUNK,
    UNIT,
    Units,
    as_units,
    largest,
    limbs_of,
    settled,
    sum_by_exponent,
    sum_by_levels,
    sum_by_levels_in_slots,
    sums_by_slot,
)
from streammetrics.kernels.exact.rounding import ratio

Floats = NDArray[np.float64]
LARGEST = 1.7976931348623157e308
LEAST = 5e-324
ANY = st.floats(allow_nan=False) | st.integers(-(1 << 60), 1 << 60).map(float)


def summed(values: Floats | list[float], width: int = 1) -> ExactSumColumn:
    column = ExactSumColumn(width)
    column.add(np.array(values, np.float64))
    return column


def fraction_of(values: Floats | list[float]) -> Fraction:
    of_denominator = Counter[int]()
    for top, bottom in map(float.as_integer_ratio, map(float, values)):
        of_denominator[bottom] += top
    return Fraction(sum(n * (2**1074 // d) for d, n in of_denominator.items()), 2**1074)


def encoded(column: ExactSumColumn | ExactSumsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def decoded(data: bytes, width: int) -> ExactSumColumn:
    reader = Reader(data)
    column = ExactSum().decode(None, width, reader)  # type: ignore[arg-type]
    reader.finish()
    return column


def samples() -> dict[str, Floats]:
    """Values that take each of the paths of `add`."""
    rng = np.random.default_rng(7)
    n = 3_000
    wild = rng.standard_normal(n) * 10.0 ** rng.uniform(-300, 300, n)
    bits = np.frombuffer(rng.bytes(8 * n), np.float64)
    return {
        "clicks": rng.integers(0, 2, n).astype(np.float64),
        "whole numbers of both signs": rng.integers(-(2**31), 2**31, n).astype(np.float64),
        "probabilities": rng.random(n),
        "amounts": np.round(rng.standard_normal(n) * 100, 2),
        "three levels": rng.random(n) * 2.0 ** rng.integers(-40, 0, n),
        "wild": wild,
        "cancelling": np.concatenate([wild, -wild, [1.0]]),
        "random bits": bits[np.isfinite(bits)],
        "subnormal": rng.integers(-9, 9, n) * LEAST,
        "largest": np.full(n, LARGEST),
        "zeros": np.array([0.0, -0.0] * 5),
        "zeros among others": np.array([0.0, 1.5, -0.0, 3e-9]),
        "a few large integers": np.array([2.0**80, 1.0, -(2.0**80), 3.0]),
    }


def test_sums_are_those_of_fractions_alone_and_in_few_or_many_slots() -> None:
    for name, values in samples().items():
        assert summed(values).fraction() == fraction_of(values), name
        for width in (3_000 // _FEW_SLOTS, 3_000 // _FEW_SLOTS + 1):
            slots = np.random.default_rng(2).integers(0, width, len(values))
            column, padded = ExactSumColumn(width), ExactSumColumn(4_000)
            column.add(values, slots)
            padded.add(values, slots)
            assert encoded(column) == encoded(padded.take(np.arange(width))), name


def test_infinities_and_few_small_values_go_to_their_slots() -> None:
    values = np.tile([0.3, 0.7, -0.2, 1e-250, 5e-324], 200)
    values[[7, 400]] = math.inf, -math.inf
    slots = np.arange(1000) % 3
    column = ExactSumColumn(3)
    column.add(values, slots)
    for slot in range(3):
        slot_values = values[slots == slot]
        assert column.finite_fraction(slot) == fraction_of(slot_values[np.isfinite(slot_values)])
    assert math.isnan(column.value(1))  # one of each sign
    assert [column.finite(slot) for slot in range(3)] == [True, False, True]


def test_the_exact_sum_drops_no_infinity() -> None:
    """A mean of [1, inf] that an author writes as fraction() / 2 must not be 0.5."""
    for values in ([1.0, math.inf], [1.0, -math.inf], [1.0, math.inf, -math.inf], [1.0, 2.0]):
        column = summed(np.array(values))
        exact = sum(values)  # small whole numbers and infinities, which floats add as they are
        assert repr(float(column.fraction())) == repr(exact)
        assert repr(ratio(column.fraction(), 2)) == repr(exact / 2)
        table = ExactSumsColumn(summed(np.array(values)), 1, 1)
        named_sums = NamedSumsColumn({"a": column}, 1)
        assert (
            repr([*table.fractions()])
            == repr([*named_sums.fractions()])
            == repr([column.fraction()])
        )
    assert summed(np.array([1.0, math.inf])).finite_fraction() == 1


@given(st.lists(st.lists(ANY, max_size=4), min_size=1, max_size=5))
def test_a_column_comes_back_from_its_bytes_and_a_sum_is_the_same_alone(
    sums: list[list[float]],
) -> None:
    column = ExactSumColumn(len(sums))
    for slot, values in enumerate(sums):
        column.add(np.array(values, np.float64), np.full(len(values), slot))
    data = encoded(column)
    copy = decoded(data, len(sums))
    assert encoded(copy) == data
    for slot in range(len(sums)):
        assert copy.finite_fraction(slot) == column.finite_fraction(slot)
        assert copy.value(slot) == column.value(slot) or math.isnan(column.value(slot))
        single_bytes = encoded(column.take(np.array([slot])))
        twice = encoded(column.take(np.array([slot, slot])))
        back = decoded(single_bytes, 1)
        assert encoded(decoded(twice, 2).take(np.array([1]))) == single_bytes == encoded(back)
        assert encoded(back.take(np.array([0, 0]))) == twice


def test_the_sum_is_rounded_once_to_the_nearest_even() -> None:
    for values, expected in (
        ([], 0.0),
        ([0.1] * 10, 1.0),
        ([1.0, 2**-53], 1.0),
        ([1.0, 2**-53, LEAST], 1.0000000000000002),
        ([1.0, 2**-52, 2**-53], 1.0000000000000004),
        ([LEAST, LEAST], 1e-323),
        ([LARGEST, LARGEST], math.inf),
        ([-LARGEST, -LARGEST], -math.inf),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([LARGEST, 2.0**970], math.inf),
        ([LARGEST, 2.0**969], LARGEST),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, LARGEST], -math.inf),
    ):
        assert summed(values).value() == expected
    assert math.isnan(summed([math.inf, -math.inf, 1.0]).value())
    assert math.copysign(1, summed([-0.0]).value()) == 1


def test_limbs_are_settled_before_they_overflow() -> None:
    column = summed([2.0**31 - 1])
    original = column.take(np.arange(1))
    for _ in range(70):  # doubles the sum and the load each time
        column.merge(column.take(np.arange(1)), np.zeros(1, np.intp))
    assert column.fraction() == original.fraction() * 2**70
    assert int(np.abs(column.limbs).max()) < 2**62


def test_a_sum_of_counts_takes_few_bytes() -> None:
    counts = summed([3.0] * 1000)
    assert len(encoded(counts)) <= 10
    assert counts.nbytes <= 24
    assert len(encoded(ExactSumColumn(1000))) <= 5


def test_chunks_of_every_kind_in_one_column_are_added_up() -> None:
    random = np.random.default_rng(5)
    near, wild = random.random(1 << 15), 10.0 ** random.uniform(-150, 150, 1 << 15)
    infinite = np.append(-near[1:], np.inf)
    for values in ([near, wild[:9]], [-near, infinite, near, wild]):
        column = summed(np.concatenate(values))
        finite_ones = [v for v in np.concatenate(values).tolist() if not math.isinf(v)]
        assert column.finite_fraction() == fraction_of(finite_ones)
        assert column.finite() == (infinite is not values[1])


def test_an_integer_is_the_sum_of_its_limbs_of_which_the_first_and_last_count() -> None:
    for units in (
        *(1, -1, 5 << 64, -(5 << 64), (1 << 96) - 1, -((1 << 33) + 1), 3**200, -(3**200) << 70),
    ):
        first, limbs = limbs_of(units)
        assert sum(limb << BITS * (first + i) for i, limb in enumerate(limbs)) == units
        assert limbs[0] and limbs[-1]
        assert all(abs(limb) < 1 << BITS for limb in limbs)


def test_settled_limbs_are_the_same_integers_and_below_their_ends() -> None:
    limbs = np.array([[1 << 40, -(1 << 50), 1 << 45], [-1, 0, 0], [7, 0, -(1 << 62)]])
    expected = [sum(x << BITS * i for i, x in enumerate(row)) for row in limbs.tolist()]
    rows = settled(limbs).tolist()
    assert [sum(x << BITS * i for i, x in enumerate(row)) for row in rows] == expected
    for row in rows:
        assert all(0 <= x < 1 << 32 for x in row[:-1])
        assert -(1 << 31) <= row[-1] < 1 << 31


# -- tables of sums --------------------------------------------------------------------------------


def table(cells: int, width: int = 1) -> ExactSumsColumn:
    return ExactSums(cells).empty(Ratio(), width)


def test_each_cell_has_the_exact_sum_of_its_values() -> None:
    rng, n = np.random.default_rng(3), 40_000
    for values in (
        rng.random(n),
        np.ldexp(rng.standard_normal(n), rng.integers(-900, 900, n)),
        np.where(np.arange(n) == n - 1, LEAST, 0.75),
    ):
        cells = rng.integers(0, 5, n)
        column, split, slotted = table(5), table(5), table(5, 3)
        column.add(values, cells)
        for cell, fraction in enumerate(column.fractions()):
            assert fraction == fraction_of(values[cells == cell])
        for piece in (slice(100, None), slice(0, 100)):
            split.add(values[piece], cells[piece])
        slotted.add(values, cells, np.full(n, 1))
        assert slotted.take(np.array([1])).fractions() == split.fractions() == column.fractions()


def test_a_table_without_cells_has_as_many_states_and_no_bytes_of_sums() -> None:
    column = ExactSums(0, 5).empty(Ratio(), 2)
    column.merge(column.take(np.array([1, 0])), np.array([0, 1]))
    column.widen(4)
    assert (column.width, column.fractions(3)) == (4, ())
    assert column.nbytes == column.total_count == 0
    reader = Reader(encoded(column))
    back = ExactSums(0).decode(Ratio(), 4, reader)
    reader.finish()
    assert back.width == 4 and encoded(back) == encoded(column) == encoded(table(0))


def test_integers_of_any_size_are_added_exactly_and_other_numbers_are_damage() -> None:
    random, sums, total = Random(5), table(3), [0, 0, 0]
    for _ in range(50):
        values = [random.getrandbits(random.choice((0, 1, 53, 54, 160, 900))) for _ in range(3)]
        add_whole(sums, values)
        total = [a + b for a, b in zip(total, values, strict=True)]
    assert [int(value) for value in sums.fractions()] == total
    require_whole(sums)
    for bad in (0.5, -1.0, math.inf):
        column = table(2)
        column.add(np.array([bad]), np.array([1]))
        with pytest.raises(StateError, match="not whole numbers"):
            require_whole(column)


# -- floats taken apart ----------------------------------------------------------------------------
finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


def total(rows: Units) -> Fraction:
    parts = zip(*(column.tolist() for column in rows), strict=True)
    return sum(
        (
            Fraction((-1 if sign else 1) * (units << shift), 1 << UNIT)
            for units, shift, sign in parts
        ),
        Fraction(0),
    )


@given(finite)
def test_units_at_their_positions_are_the_values(values: list[float]) -> None:
    array = np.array(values)
    expected = sum(map(Fraction, values), Fraction(0))
    assert total(as_units(array)) == expected
    assert total(sum_by_exponent(array)) == expected


@pytest.mark.parametrize("sign", [-1, 1])
def test_levels_give_the_exact_sum_whatever_the_sizes_of_the_values(sign: int) -> None:
    rng = np.random.default_rng(3)
    values = sign * np.append(rng.random((1 << 15) - 1), 1 - 2.0**-53)
    whole = sum(np.ldexp(values, 53).astype(np.int64).tolist())  # multiples of 2**-53
    assert sum_by_levels(values, 1.0) == whole << UNIT - 53
    # All of the greatest size that a level can have, and digits in all three levels.
    largest = np.full(1 << 15, values[-1])
    assert sum_by_levels(largest, 1.0) == sign * ((1 << 53) - 1) << UNIT - 53 + 15
    small = np.append(largest[:-1], sign * (1 + 2.0**-52) * 2.0**-85)
    less = sign * ((1 << 15) - 1) * ((1 << 53) - 1) << UNIT - 53
    assert sum_by_levels(small, 1.0) == less + (sign * ((1 << 52) + 1) << UNIT - 137)


def test_one_level_is_enough_for_few_bits() -> None:
    assert sum_by_levels(np.array([1.0, 0.0, -3.0, 2.5]), 3.0) == 1 << UNIT - 1
    assert sum_by_levels(np.array([-0.0, 1.0, -0.0]), 1.0) == 1 << UNIT


def test_levels_leave_a_few_values_to_be_added_one_by_one() -> None:
    values = np.array([1.0] * 99 + [1e-300] * 64)
    assert sum_by_levels(values, 1.0) == (99 + 64 * Fraction(1e-300)) * 2**UNIT


def test_levels_decline_what_they_cannot_sum_exactly() -> None:
    values = np.array([1.0] * 99 + [1e-300] * 65)
    assert sum_by_levels(values, 1.0) is None  # past the sample that is looked at first
    assert sum_by_levels(values[::-1], 1.0) is None
    assert sum_by_levels(np.array([1e300]), 1e300) is None
    assert sum_by_levels(np.array([1e-300]), 1e-300) is None


def test_levels_in_slots_and_what_they_leave_are_all_of_the_values() -> None:
    for spread in (0, 3, 30, 300):
        rng = np.random.default_rng(4)
        size, cells = rng.integers(-spread, 1, 1500), rng.integers(0, 7, 1500)
        values = np.ldexp(rng.standard_normal(1500), size)
        before = values.copy()
        top = float(np.abs(values).max())
        result = sum_by_levels_in_slots(values, partial(sums_by_slot, cells, 9), top, 100)
        assert np.array_equal(values, before)
        for cell in range(9):
            parts = [int(sums[cell]) * Fraction(2) ** exponent for sums, exponent in result.levels]
            parts += map(Fraction, result.rest[cells == cell].tolist())
            expected = sum(map(Fraction, values[cells == cell].tolist()), Fraction(0))
            assert sum(parts, Fraction(0)) == expected
        assert np.any(result.rest != 0) == (spread == 300)


def test_levels_in_slots_stop_where_few_values_are_left() -> None:
    values = np.array([0.5] * 99 + [1e-40])
    result = sum_by_levels_in_slots(values, partial(sums_by_slot, np.arange(100) % 2, 2), 0.5, 1)
    assert [(sums.tolist(), exponent) for sums, exponent in result.levels] == [
        ([50 << 36, 49 << 36], -37)
    ]
    assert np.flatnonzero(result.rest).tolist() == [99]


def test_levels_in_slots_leave_what_lies_at_the_ends_of_the_range() -> None:
    for top in (0.0, 1e-300, 1e300):
        values = np.array([top, -top])
        result = sum_by_levels_in_slots(values, np.copy, top, 0)
        assert result.levels == [] and np.array_equal(result.rest, values)


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
        for array in (np.array(values), np.array(values)[::-1], np.repeat(values, 2)[::2]):
            assert largest(array) == size


def test_products_are_added_without_rounding() -> None:
    a = np.array([0.1, -(2.0**700), 0.0, 2.0**-950, 1e16])
    b = np.array([0.3, 1.1, 5.0, 1.7, 1e16 + 2])
    column = ExactSumColumn(2)
    assert column.add_products(a, b).tolist() == (a * b).tolist()
    column.add_products(a, b, np.array([1, 0, 1, 0, 1]))
    products = [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert column.fraction(1) == sum(products[::2])
    assert column.fraction(0) == sum(products) + sum(products[1::2])


@pytest.mark.parametrize("n", [1, 2, 15, 64, 65])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 1023, CHUNK, CHUNK + 1])
def test_four_sums_for_each_slot_are_one(n: int, rows: int) -> None:
    rng = np.random.default_rng(n * rows)
    units = rng.integers(-(1 << 36), 1 << 36, rows, endpoint=True)
    for slots in (rng.integers(0, n, rows), np.zeros(rows, np.intp), np.full(rows, n - 1)):
        expected = np.zeros(n, np.int64)
        np.add.at(expected, slots, units)
        for exponent in (-700, -37, 600):
            sums = sums_by_slot(slots, n, np.ldexp(units, exponent), exponent)
            assert sums.tolist() == expected.tolist()


@given(st.lists(st.lists(ANY | st.sampled_from([math.inf, -math.inf]), max_size=4), max_size=6))
def test_infinities_are_counted_however_columns_meet(batches: list[list[float]]) -> None:
    """Columns with and without them are added, widened, merged, taken, written and read."""
    width = 3
    total, counts = ExactSumColumn(1), np.zeros((width, 2), np.int64)
    total.widen(width)
    for i, values in enumerate(batches):
        column = ExactSumColumn(i % width + 1)
        slots = np.arange(len(values)) % column.width
        column.add(np.array(values, np.float64), slots)
        column.encode(out := Writer())
        read = ExactSum().decode(Ratio(), column.width, Reader(out.bytes_()))
        assert read.infinities.tolist() == column.infinities[: column.width].tolist()
        total.merge(read if i % 2 else column, np.arange(column.width))
        for value, slot in zip(values, slots.tolist(), strict=True):
            counts[slot] += (value == -math.inf, value == math.inf)
        total = total.take(np.arange(width))
        assert total.infinities.tolist() == counts.tolist()
        assert total.infinite(np.arange(width)) == np.flatnonzero(counts.any(axis=1)).tolist()
    total.widen(8)
    assert total.infinities[:8].tolist() == [*counts.tolist(), *[[0, 0]] * 5]


def test_sums_without_infinities_hold_no_memory_for_them() -> None:
    column = ExactSumColumn(1000)
    column.add(np.ones(1000), np.arange(1000))
    column.merge(column.take(np.arange(1000)), np.arange(1000))
    column.encode(out := Writer())
    for sums in (column, ExactSum().decode(Ratio(), 1000, Reader(out.bytes_()))):
        assert sums.nbytes == sums.limbs.nbytes == 8000
    column.add(np.array([math.inf]), np.array([999]))
    assert column.nbytes == 8000 + 16_000
    assert column.infinite(np.arange(1000)) == [999]
