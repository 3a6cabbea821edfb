"""Scores and probabilities: which floats are taken, which form they get, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics.core.checks import numbers, probabilities, scores
from streammetrics.core.errors import InputError

Check = Callable[..., Any]
NAN, INF = float("nan"), float("inf")


def refused(check: Check, values: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        check(values, "name", **options)
    error = caught.value
    assert all((error.expected, error.got, error.where, error.hint))
    assert error.where.startswith("name")
    return error


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        *(("f2", "f4"), (">f2", "f4"), ("f4", "f4"), (">f4", "f4"), ("f8", "f8"), (">f8", "f8")),
        *(("i1", "f8"), ("u2", "f8"), ("i8", "f8"), ("?", "f8"), ("O", "f8")),
    ],
)
@pytest.mark.parametrize("check", [scores, probabilities, numbers])
def test_scores_are_float32_or_float64(check: Check, dtype: str, wide: str) -> None:
    made = check(np.array([0, 1, 1], dtype), "name")
    assert made.dtype == np.dtype(wide)
    assert made.dtype.isnative
    assert made.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_scores_in_their_final_form_are_not_copied(dtype: str) -> None:
    values = np.array([0.25, 0.5], dtype)
    for check in (scores, probabilities, numbers):
        assert check(values, "name") is values


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "f8"])
@pytest.mark.parametrize("check", [scores, probabilities])
def test_nan_is_refused_with_all_its_rows(check: Check, dtype: str) -> None:
    error = refused(check, np.array([0, NAN, 1, NAN], dtype))
    assert error.rows.tolist() == [1, 3]
    assert error.got == "nan"
    assert error.where == "name[1]"
    assert refused(scores, np.array([INF, -INF, NAN], dtype)).rows.tolist() == [2]


def test_numbers_may_be_nan() -> None:
    assert np.isnan(numbers([NAN, 1], "name")[0])


def test_infinities_and_the_largest_floats_are_scores_without_a_warning() -> None:
    for dtype in ("f4", "f8"):
        top = np.finfo(dtype).max
        values = np.array([INF, -INF, top, top, -top, top], dtype)
        assert scores(values).tolist() == values.tolist()


def test_a_score_past_float64_is_refused() -> None:
    for check in (scores, probabilities, numbers):
        assert refused(check, [0.5, 10**400]).rows.tolist() == [1]
        assert refused(check, [0.5, -(10**400)]).rows.tolist() == [1]


def test_long_doubles_are_refused_where_they_would_be_rounded_in_silence() -> None:
    if np.dtype(np.longdouble).itemsize > 8:
        refused(scores, np.array([0.5], np.longdouble))


def test_decimals_and_fractions_are_no_scores() -> None:
    for half in (Decimal("0.5"), Fraction(1, 2)):
        assert refused(scores, [0.5, half]).rows.tolist() == [1]


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8", ">f8", "O"])
def test_minus_zero_is_the_probability_zero(dtype: str) -> None:
    made = probabilities(np.array([-0.0, 0.5, -0.0], dtype))
    assert np.signbit(made).tolist() == [False] * 3


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_probabilities_lie_from_0_to_1(dtype: str) -> None:
    kind = np.dtype(dtype).type
    least, one = np.finfo(kind).smallest_subnormal, kind(1)
    ends = np.array([0, least, np.nextafter(one, kind(0)), 1], dtype)
    assert probabilities(ends) is ends
    outside = [-least, np.nextafter(one, kind(2)), INF, -INF, -1]
    for bad in outside:
        error = refused(probabilities, np.array([0.5, bad, -0.0], dtype))
        assert error.rows.tolist() == [1]
        assert 'range="real"' in error.hint


def test_probabilities_of_a_stride_are_looked_at_one_by_one() -> None:
    values = np.array([0.5, 7, 0.25, 7], np.float32)
    assert probabilities(values[::2]).tolist() == [0.5, 0.25]
    assert refused(probabilities, values[1::2]).rows.tolist() == [0, 1]
