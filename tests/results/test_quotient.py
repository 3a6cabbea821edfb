from __future__ import annotations

import math
from fractions import Fraction

import pytest

from streammetrics.results.sums import Quotient

TOP, LEAST = Fraction(2) ** 1000, Fraction(1, 2**1000)


@pytest.mark.parametrize(
    ("top", "bottom", "expected"),
    [
        (Fraction(1), Fraction(3), 1 / 3),
        (Fraction(-1), Fraction(4), -0.25),
        (TOP, TOP * 2, 0.5),
        (TOP, LEAST, math.inf),
        (-TOP, LEAST, -math.inf),
        (LEAST, TOP, 0.0),
    ],
)
def test_the_exact_sums_are_divided_and_rounded_once(
    top: Fraction, bottom: Fraction, expected: float
) -> None:
    assert Quotient(0.0, 0.0, (top, bottom), rows=1).ratio == expected


def test_rounding_the_sums_first_would_give_another_value() -> None:
    tail = Fraction(1, 2**60)
    exact = (1 + tail + Fraction(1, 2**53), Fraction(1))
    assert Quotient(1.0, 1.0, exact, rows=3).ratio == 1.0000000000000002


@pytest.mark.parametrize(("top", "bottom"), [(0, 0), (1, 0), (-1, 0)])
def test_over_nothing_is_nan(top: int, bottom: int) -> None:
    exact = (Fraction(top), Fraction(bottom))
    assert math.isnan(Quotient(float(top), float(bottom), exact, rows=1).ratio)


@pytest.mark.parametrize(
    ("top", "bottom", "expected"),
    [(math.inf, 2.0, math.inf), (math.inf, -2.0, -math.inf), (3.0, math.inf, 0.0)],
)
def test_infinite_sums_divide_as_floats_do(top: float, bottom: float, expected: float) -> None:
    assert Quotient(top, bottom, None, rows=1).ratio == expected


@pytest.mark.parametrize(
    ("top", "bottom"), [(math.inf, math.inf), (math.inf, 0.0), (math.nan, 1.0), (1.0, math.nan)]
)
def test_infinite_sums_without_a_ratio_are_nan(top: float, bottom: float) -> None:
    assert math.isnan(Quotient(top, bottom, None, rows=1).ratio)


def test_without_rows_it_is_a_share_of_none() -> None:
    found = Quotient(0.0, 0.0, (Fraction(0), Fraction(0)), rows=0).interval()
    assert not found.defined and found.reason == "no rows"
