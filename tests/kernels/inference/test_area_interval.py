"""The interval of an area: the worked example, its guard, and what buckets add."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.area_interval import (
    area_bounds,
    hanley_mcneil_variance,
    score_bounds,
)
from streammetrics.kernels.inference.t_interval import EVERYTHING, critical, logit_bounds

Z = critical(0.95)
WORKED = 31 / 42, 0.022297808012094, 8.681519661


def test_the_worked_example_is_guarded() -> None:
    alone = logit_bounds(WORKED[0], math.sqrt(WORKED[1]), critical(0.95, WORKED[2]))
    assert (round(alone[0], 9), round(alone[1], 9)) == (0.327139390, 0.942314634)
    score = score_bounds(WORKED[0], 6, 7, Z)
    assert (round(score[0], 9), round(score[1], 9)) == (0.417899115, 0.913556160)
    found = area_bounds(*WORKED, (6, 7), 0.95)
    assert found == (*alone, True, False)


def test_the_guard_is_the_union_of_both() -> None:
    # Of three positives with the least variance, the score interval is the wider one.
    found = area_bounds(0.98, 1e-6, 20.0, (3, 500), 0.95)
    alone, score = logit_bounds(0.98, 1e-3, critical(0.95, 20.0)), score_bounds(0.98, 3, 500, Z)
    assert found[:2] == (min(alone[0], score[0]), max(alone[1], score[1])) == score
    # A variance that is wide on both sides holds the score interval.
    wide = area_bounds(0.6, 1.0, 20.0, (10, 10), 0.95)
    assert wide[:2] == logit_bounds(0.6, 1.0, critical(0.95, 20.0)) and wide.guarded


@pytest.mark.parametrize(
    ("area", "classes", "guarded"),
    [
        (0.75, (40.0, 1000.0), False),  # 40 · 1/4 = 10
        (0.75, (39.0, 1000.0), True),
        (0.25, (1000.0, 40.0), False),
        (0.25, (1000.0, 39.0), True),
    ],
)
def test_the_guard_stands_where_lost_rows_are_fewer_than_ten(
    area: float, classes: tuple[float, float], guarded: bool
) -> None:
    found = area_bounds(area, 0.001, 50.0, classes, 0.95)
    assert found.guarded == guarded
    if not guarded:
        assert found[:2] == logit_bounds(area, math.sqrt(0.001), critical(0.95, 50.0))


@pytest.mark.parametrize("variance", [0.0, math.nan])
def test_without_a_variance_the_score_interval_is_all(variance: float) -> None:
    found = area_bounds(0.75, variance, math.nan, (1000, 1000), 0.95)
    assert found[:2] == score_bounds(0.75, 1000, 1000, Z) and found.guarded


@pytest.mark.parametrize("area", [0.0, 1.0])
def test_an_area_at_the_edge_has_an_interval(area: float) -> None:
    lower, upper, guarded, _ = area_bounds(area, 0.0, math.nan, (20, 30), 0.95)
    assert guarded and 0 <= lower < upper <= 1 and area in (lower, upper)
    assert 0.02 < upper - lower < 0.3


def test_buckets_that_hide_more_than_a_quarter_of_an_error_widen_it() -> None:
    se = math.sqrt(0.001)
    for resolution, strict, widened in (
        (0.25 * se, False, False),
        (0.2501 * se, False, True),
        (1e-9, True, True),
        (0.0, True, False),
    ):
        found = area_bounds(
            0.75, 0.001, 50.0, (900, 900), 0.95, resolution=resolution, strict=strict
        )
        plain = area_bounds(0.75, 0.001, 50.0, (900, 900), 0.95)
        by = resolution if widened else 0.0
        assert found == (plain.lower - by, plain.upper + by, False, widened)


def test_a_widened_interval_stays_within_areas() -> None:
    assert area_bounds(0.9, 0.01, 9.0, (5, 5), 0.95, resolution=0.9)[:2] == (0.0, 1.0)


@pytest.mark.parametrize(
    "thin",
    [(math.nan, math.nan, math.nan, (0, 5)), (0.5, 0.1, 3.0, (0, 3)), (0.5, 0.1, 3.0, (3, 0))],
)
def test_without_a_class_nothing_is_known(
    thin: tuple[float, float, float, tuple[float, float]],
) -> None:
    assert area_bounds(*thin, 0.95) == (*EVERYTHING, False, False)


@given(st.floats(0, 1), st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_score_interval_ends_where_its_condition_does(area: float, p: float, n: float) -> None:
    lower, upper = score_bounds(area, p, n, Z)
    assert 0 <= lower <= area <= upper <= 1
    for inside, outside in ((lower, math.nextafter(lower, -1)), (upper, math.nextafter(upper, 2))):
        assert (area - inside) ** 2 <= Z * Z * hanley_mcneil_variance(inside, p, n) * (1 + 1e-9)
        if 0 <= outside <= 1:
            variance = hanley_mcneil_variance(outside, p, n)
            assert (area - outside) ** 2 >= Z * Z * variance * (1 - 1e-9)


def test_the_score_interval_is_not_symmetric_in_the_classes() -> None:
    assert score_bounds(0.9, 5, 500, Z) != score_bounds(0.9, 500, 5, Z)


def test_less_than_one_row_of_a_class_counts_as_one() -> None:
    assert score_bounds(0.9, 0.25, 500, Z) == score_bounds(0.9, 1, 500, Z)


@given(st.fractions(0, 1), st.integers(1, 1000), st.integers(1, 1000))
def test_the_variance_is_its_formula(area: Fraction, p: int, n: int) -> None:
    at = Fraction(float(area))
    q1, q2 = at / (2 - at), 2 * at**2 / (1 + at)
    wanted = (at * (1 - at) + (p - 1) * (q1 - at**2) + (n - 1) * (q2 - at**2)) / (p * n)
    assert math.isclose(hanley_mcneil_variance(float(area), p, n), wanted, rel_tol=1e-14)
