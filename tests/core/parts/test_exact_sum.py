"""Exact sums against `fractions.Fraction`, whatever the size, order, split and path."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics import Ratio
from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.exact_sum import _FEW_SLOTS, ExactSum, ExactSumColumn
from streammetrics.core.parts.float_bits import BITS, in_limbs, settled

Floats = NDArray[np.float64]
LARGEST = 1.7976931348623157e308
LEAST = 5e-324
finite = st.floats(allow_nan=False, allow_infinity=False)
any_sum = st.lists(st.floats(allow_nan=False), max_size=12)


def summed(values: Floats | list[float], width: int = 1) -> ExactSumColumn:
    column = ExactSumColumn(width)
    column.add(np.array(values, np.float64))
    return column


def fraction_of(values: Floats | list[float]) -> Fraction:
    ratios = map(float.as_integer_ratio, map(float, values))
    return Fraction(sum(n * (2**1074 // d) for n, d in ratios), 2**1074)


def encoded(column: ExactSumColumn) -> bytes:
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


@pytest.mark.parametrize("name", samples())
def test_one_sum_equals_the_sum_of_fractions(name: str) -> None:
    values = samples()[name]
    assert summed(values).fraction() == fraction_of(values)


@pytest.mark.parametrize("name", samples())
@pytest.mark.parametrize("width", [3_000 // _FEW_SLOTS, 3_000 // _FEW_SLOTS + 1])
def test_few_slots_have_the_sums_of_many(name: str, width: int) -> None:
    values = samples()[name]
    slots = np.random.default_rng(2).integers(0, width, len(values))
    column, padded = ExactSumColumn(width), ExactSumColumn(4_000)
    column.add(values, slots)
    padded.add(values, slots)
    assert encoded(column) == encoded(padded.take(np.arange(width)))


def test_infinities_and_few_small_values_go_to_their_slots() -> None:
    values = np.tile([0.3, 0.7, -0.2, 1e-250, 5e-324], 200)
    values[[7, 400]] = math.inf, -math.inf
    slots = np.arange(1000) % 3
    column = ExactSumColumn(3)
    column.add(values, slots)
    for slot in range(3):
        own = values[slots == slot]
        assert column.fraction(slot) == fraction_of(own[np.isfinite(own)])
    assert math.isnan(column.value(1))  # one of each sign
    assert [column.finite(slot) for slot in range(3)] == [True, False, True]


@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=4), min_size=1, max_size=6))
def test_a_column_comes_back_from_its_bytes(sums: list[list[float]]) -> None:
    column = ExactSumColumn(len(sums))
    for slot, values in enumerate(sums):
        column.add(np.array(values, np.float64), np.full(len(values), slot))
    data = encoded(column)
    again = decoded(data, len(sums))
    assert encoded(again) == data
    for slot in range(len(sums)):
        assert again.fraction(slot) == column.fraction(slot)
        assert again.value(slot) == column.value(slot) or math.isnan(column.value(slot))


def test_widening_appends_empty_states() -> None:
    column = summed([0.1])
    column.widen(3)
    column.add(np.array([5.0]), np.array([2]))
    column.widen(9)
    assert [column.value(i) for i in range(9)] == [0.1, 0, 5, 0, 0, 0, 0, 0, 0]
    assert encoded(column.take(np.arange(1))) == encoded(summed([0.1]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
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
    ],
)
def test_the_sum_is_rounded_once_to_the_nearest_even(values: list[float], expected: float) -> None:
    assert summed(values).value() == expected


def test_both_infinities_are_nan() -> None:
    assert math.isnan(summed([math.inf, -math.inf, 1.0]).value())
    assert not summed([math.inf]).finite()
    assert summed([1.0]).finite()


def test_minus_zero_is_zero() -> None:
    assert encoded(summed([-0.0])) == encoded(ExactSumColumn(1))
    assert math.copysign(1, summed([-0.0]).value()) == 1


def test_limbs_are_settled_before_they_overflow() -> None:
    column = summed([2.0**31 - 1])
    one = column.take(np.arange(1))
    for _ in range(70):  # doubles the sum and the load each time
        column.merge(column.take(np.arange(1)), np.zeros(1, np.intp))
    assert column.fraction() == one.fraction() * 2**70
    assert int(np.abs(column.limbs).max()) < 2**62


def test_a_sum_of_counts_takes_few_bytes() -> None:
    counts = summed([3.0] * 1000)
    assert len(encoded(counts)) <= 10
    assert counts.nbytes <= 24
    assert len(encoded(ExactSumColumn(1000))) <= 5


def test_a_claim_of_a_huge_number_is_refused() -> None:
    for length, low in [(10**15, 0), (1, 10**15), (2**62, 2**62), (1, 272)]:
        out = Writer()
        out.ints(np.array([length]))
        out.ints(np.array([low]))
        out.ints(np.zeros(1, np.int64))
        out.ints(np.zeros(2, np.int64))
        out.raw(b"\1")
        with pytest.raises(StateError):
            decoded(out.bytes_(), 1)


def test_chunks_of_every_kind_in_one_column_are_added_up() -> None:
    random = np.random.default_rng(5)
    near, wild = random.random(1 << 15), 10.0 ** random.uniform(-150, 150, 1 << 15)
    infinite = np.append(-near[1:], np.inf)
    for values in ([near, wild[:9]], [-near, infinite, near, wild]):
        column = summed(np.concatenate(values))
        finite_ones = [v for v in np.concatenate(values).tolist() if not math.isinf(v)]
        assert column.fraction() == fraction_of(finite_ones)
        assert column.finite() == (infinite is not values[1])


VALUES = st.lists(
    st.floats(allow_nan=False, allow_infinity=True) | st.integers(-(1 << 60), 1 << 60).map(float),
    max_size=6,
)


def written(column: ExactSumColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def read(data: bytes, width: int) -> ExactSumColumn:
    reader = Reader(data)
    column = ExactSum().decode(Ratio(), width, reader)
    reader.finish()
    return column


@given(VALUES)
def test_a_sum_alone_is_what_it_is_beside_others(values: list[float]) -> None:
    one = ExactSumColumn(1)
    one.add(np.array(values, np.float64))
    alone = written(one)
    beside = read(written(one.take(np.array([0, 0]))), 2).take(np.array([1]))
    back = read(alone, 1)
    assert written(beside) == alone == written(back)
    assert written(back.take(np.array([0, 0]))) == written(one.take(np.array([0, 0])))
    assert back.value() == one.value() or math.isnan(one.value())


@pytest.mark.parametrize(
    "units", [1, -1, 5 << 64, -(5 << 64), (1 << 96) - 1, -((1 << 33) + 1), 3**200, -(3**200) << 70]
)
def test_an_integer_is_the_sum_of_its_limbs_of_which_the_first_and_last_count(units: int) -> None:
    first, limbs = in_limbs(units)
    assert sum(limb << BITS * (first + i) for i, limb in enumerate(limbs)) == units
    assert limbs[0] and limbs[-1]
    assert all(abs(limb) < 1 << BITS for limb in limbs)


def test_settled_limbs_are_the_same_integers_and_below_their_ends() -> None:
    limbs = np.array([[1 << 40, -(1 << 50), 1 << 45], [-1, 0, 0], [7, 0, -(1 << 62)]])
    wanted = [sum(x << BITS * i for i, x in enumerate(row)) for row in limbs.tolist()]
    found = settled(limbs).tolist()
    assert [sum(x << BITS * i for i, x in enumerate(row)) for row in found] == wanted
    for row in found:
        assert all(0 <= x < 1 << 32 for x in row[:-1])
        assert -(1 << 31) <= row[-1] < 1 << 31
