"""Single values: numpy's scalars are Python's, and what is no number is none."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.core.conversion import as_float, exact, plain, whole


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.float32(0.1), 0.10000000149011612),
        (np.float16(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ((np.int64(1), (np.float32(0.5), "x")), (1, (0.5, "x"))),
        ([np.int64(1)], [1]),
    ],
)
def test_scalars_of_numpy_become_those_of_python_exactly(value: object, found: object) -> None:
    made = plain(value)
    assert made == found and type(made) is type(found)


def test_all_else_stays_as_it_is() -> None:
    for value in (np.longdouble(1), np.timedelta64(1, "s"), np.ones(2), None, object(), {"a": 1}):
        assert type(plain(value)) is type(value)


def test_whole_numbers_are_of_any_integer_type_and_no_others() -> None:
    assert [whole(v) for v in (3, np.int64(3), np.uint8(3), np.array(3))] == [3] * 4
    for value in (True, np.bool_(True), 3.0, "3", None, np.timedelta64(3), np.ones(2)):
        assert whole(value) is None


def test_exact_numbers_are_finite() -> None:
    half = Fraction(1, 2)
    for value in (0.5, np.float32(0.5), half, Decimal("0.5")):
        assert exact(value) == half
    nones: list[object] = [True, "0.5", None, math.nan, math.inf, Decimal("sNaN"), 1j]
    for none in nones:
        assert exact(none) is None
    assert exact(10**400) == 10**400


def test_floats_are_the_nearest_and_of_the_range() -> None:
    assert as_float(np.float32(0.1)) == float(np.float32(0.1))
    assert as_float(Fraction(1, 3)) == 1 / 3
    assert (as_float(-math.inf), str(as_float(-0.0))) == (-math.inf, "0.0")
    for value in (10**400, Fraction(10**400), math.nan, Decimal("sNaN"), True, "1", None, 1j):
        assert as_float(value) is None
