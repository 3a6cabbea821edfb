"""The interval of an area: DeLong's variance pair by pair, the guard, and what buckets add."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.bounded import equal
from streammetrics.kernels.curves.area import area, pairs
from streammetrics.kernels.inference.area_interval import (
    AreaEstimate,
    area_bounds,
    hanley_mcneil_variance,
    many_area_bounds,
    placements,
    score_bound_columns,
    score_bounds,
)
from streammetrics.kernels.inference.t_interval import EVERYTHING, critical, logit_bounds

Z = critical(0.95)
WORKED = 31 / 42, 0.022297808012094, 8.681519661
POSITIVES = np.array([0, 1, 0, 1, 1, 0, 1, 1, 1])
NEGATIVES = np.array([1, 1, 1, 2, 0, 1, 1, 0, 0])

# -- DeLong's variance ---------------------------------------------------------------------------


def variance_of_mean(values: list[Fraction]) -> Fraction:
    n, mean = len(values), sum(values, Fraction(0)) / len(values)
    return sum(((x - mean) ** 2 for x in values), Fraction(0)) / (n - 1) / n


def test_a_worked_example_with_ties() -> None:
    estimate = placements(NEGATIVES, POSITIVES).estimate
    assert estimate.area == 31 / 42 == area(pairs(NEGATIVES, POSITIVES), bounded=False)[0]
    assert f"{estimate.variance:.15f}" == "0.022297808012094"
    assert estimate.resolution == 2 / 42 and round(estimate.df, 9) == 8.681519661


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=4, max_size=14).filter(
        lambda rows: 2 <= sum(row[0] for row in rows) <= len(rows) - 2
    )
)
def test_it_is_the_definition(rows: list[tuple[int, int]]) -> None:
    counts = np.zeros((2, 4), np.int64)
    np.add.at(counts, tuple(np.array(rows).T), 1)
    n_at, p_at = ([bucket for label, bucket in rows if label == cls] for cls in (0, 1))

    def won(p: int, n: int) -> Fraction:
        return Fraction((p > n) * 2 + (p == n), 2)

    of_p = [sum((won(p, n) for n in n_at), Fraction(0)) / len(n_at) for p in p_at]
    of_n = [sum((won(p, n) for p in p_at), Fraction(0)) / len(p_at) for n in n_at]
    a, b = variance_of_mean(of_p), variance_of_mean(of_n)
    estimate = placements(*counts).estimate
    assert estimate.area == float(sum(of_p) / len(of_p)) == float(sum(of_n) / len(of_n))
    assert estimate.variance == float(a + b)
    if a + b:
        df = (a + b) ** 2 / (a * a / (len(p_at) - 1) + b * b / (len(n_at) - 1))
        assert estimate.df == float(df)
    else:
        assert math.isnan(estimate.df)


def test_counts_past_int64_are_exact() -> None:
    billions = np.array([1, 2, 3, 4]) * 10**9
    sums = placements(billions[::-1], billions)
    estimate = sums.estimate
    assert (estimate.area, estimate.resolution, sums.half_wins) == (0.75, 0.1, 150 * 10**18)
    assert f"{estimate.variance:.18e}" == "1.100000000110000075e-11"
    counts = np.random.default_rng(1).integers(0, 2000, (2, 16_384))
    small, huge = placements(*counts), placements(*(counts * 10**9))
    assert (huge.estimate.area, huge.ties) == (small.estimate.area, small.ties * 10**18)
    assert huge.estimate.variance == pytest.approx(
        small.estimate.variance / 10**9, rel=1e-6
    )  # n - 1 is n, nearly
    # Units of weight beyond int64 in sum.
    once, often = (placements(NEGATIVES * k, POSITIVES * k).estimate for k in (1, 2**60))
    assert (often.area, often.resolution) == (once.area, once.resolution)
    assert once.variance / 2**60 * 0.8 < often.variance < once.variance / 2**60


def test_rows_of_one_class_or_one_row_of_a_class() -> None:
    for negatives, positives in (([0, 0], [0, 0]), ([0, 3], [0, 0]), ([0, 0], [2, 1])):
        estimate = placements(np.array(negatives), np.array(positives)).estimate
        assert all(
            map(math.isnan, (estimate.area, estimate.variance, estimate.df, estimate.resolution))
        )
    estimate = placements(np.array([3, 1]), np.array([0, 1])).estimate
    assert estimate.area == 0.875 and math.isnan(estimate.variance) and math.isnan(estimate.df)
    estimate = placements(np.array([3, 0]), np.array([0, 3])).estimate  # a perfect order
    assert (estimate.area, estimate.variance) == (1.0, 0.0) and math.isnan(estimate.df)


# -- the interval --------------------------------------------------------------------------------


def test_the_worked_example_is_guarded() -> None:
    logit = logit_bounds(WORKED[0], math.sqrt(WORKED[1]), critical(0.95, WORKED[2]))
    assert area_bounds(AreaEstimate(*WORKED, 6, 7), 0.95) == (*logit, True, False)


def test_the_guard_is_the_union_of_both() -> None:
    # Of three positives with the least variance, the score interval is the wider one.
    bounds = area_bounds(AreaEstimate(0.98, 1e-6, 20.0, 3, 500), 0.95)
    logit, score = logit_bounds(0.98, 1e-3, critical(0.95, 20.0)), score_bounds(0.98, 3, 500, Z)
    assert bounds[:2] == (min(logit[0], score[0]), max(logit[1], score[1])) == score
    # A variance that is wide on both sides holds the score interval.
    wide = area_bounds(AreaEstimate(0.6, 1.0, 20.0, 10, 10), 0.95)
    assert wide[:2] == logit_bounds(0.6, 1.0, critical(0.95, 20.0)) and wide.guarded


def test_the_guard_stands_where_lost_rows_are_fewer_than_ten() -> None:
    for given_area, classes, guarded in (
        (0.75, (40.0, 1000.0), False),  # 40 · 1/4 = 10
        (0.75, (39.0, 1000.0), True),
        (0.25, (1000.0, 40.0), False),
        (0.25, (1000.0, 39.0), True),
    ):
        bounds = area_bounds(AreaEstimate(given_area, 0.001, 50.0, *classes), 0.95)
        assert bounds.guarded == guarded, (given_area, classes)
        if not guarded:
            assert bounds[:2] == logit_bounds(given_area, math.sqrt(0.001), critical(0.95, 50.0))


def test_without_a_variance_the_score_interval_is_all() -> None:
    for variance in (0.0, math.nan):
        bounds = area_bounds(AreaEstimate(0.75, variance, math.nan, 1000, 1000), 0.95)
        assert bounds[:2] == score_bounds(0.75, 1000, 1000, Z) and bounds.guarded
    for edge in (0.0, 1.0):
        estimate = AreaEstimate(edge, 0.0, math.nan, 20, 30)
        lower, upper, guarded, _ = area_bounds(estimate, 0.95)
        assert guarded and 0 <= lower < upper <= 1 and edge in (lower, upper)
        assert 0.02 < upper - lower < 0.3


def test_buckets_that_hide_more_than_a_quarter_of_an_error_widen_it() -> None:
    se, exact = math.sqrt(0.001), AreaEstimate(0.75, 0.001, 50.0, 900, 900)
    plain = area_bounds(exact, 0.95)
    for resolution, widened in ((0.25 * se, False), (0.2501 * se, True)):
        bounds = area_bounds(exact._replace(resolution=resolution), 0.95)
        margin = resolution if widened else 0.0
        assert bounds == (plain.lower - margin, plain.upper + margin, False, widened)
    assert not area_bounds(AreaEstimate(0.75, 0.0, math.nan, 9, 9), 0.95).widened
    assert area_bounds(AreaEstimate(0.9, 0.01, 9.0, 5, 5, 0.9), 0.95)[:2] == (0.0, 1.0)


def test_without_a_class_nothing_is_known() -> None:
    for thin in ((math.nan, math.nan, math.nan), (0.5, 0.1, 3.0)):
        for classes in ((0, 3), (3, 0)):
            assert area_bounds(AreaEstimate(*thin, *classes), 0.95) == (*EVERYTHING, False, False)
    assert area_bounds(AreaEstimate(math.nan, 0.1, 3.0, 3, 3), 0.95) == (*EVERYTHING, False, False)


@given(st.floats(0, 1), st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_score_interval_ends_where_its_condition_does(area: float, p: float, n: float) -> None:
    lower, upper = score_bounds(area, p, n, Z)
    assert 0 <= lower <= area <= upper <= 1
    for inside, outside in ((lower, math.nextafter(lower, -1)), (upper, math.nextafter(upper, 2))):
        assert (area - inside) ** 2 <= Z * Z * hanley_mcneil_variance(inside, p, n) * (1 + 1e-9)
        if 0 <= outside <= 1:
            variance = hanley_mcneil_variance(outside, p, n)
            assert (area - outside) ** 2 >= Z * Z * variance * (1 - 1e-9)


def test_the_score_interval_takes_less_than_one_row_of_a_class_for_one() -> None:
    assert score_bounds(0.9, 0.25, 500, Z) == score_bounds(0.9, 1, 500, Z)
    assert score_bounds(0.9, 500, 0.25, Z) == score_bounds(0.9, 500, 1, Z)


@given(st.fractions(0, 1), st.integers(1, 1000), st.integers(1, 1000))
def test_the_variance_of_hanley_and_mcneil_is_its_formula(area: Fraction, p: int, n: int) -> None:
    auc = Fraction(float(area))
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    expected = (auc * (1 - auc) + (p - 1) * (q1 - auc**2) + (n - 1) * (q2 - auc**2)) / (p * n)
    assert math.isclose(hanley_mcneil_variance(float(area), p, n), expected, rel_tol=1e-14)


def test_guards_of_many_areas_are_those_of_each() -> None:
    rng = np.random.default_rng(3)
    areas = np.concatenate([rng.random(200), [0.0, 1.0, 0.5, 1e-300, np.nextafter(1.0, 0.0)]])
    positives, negatives = rng.integers(1, 50, len(areas)).astype(float), rng.random(len(areas)) * 9
    low, high = score_bound_columns(areas, positives, negatives, 1.96)
    bounds = [
        score_bounds(*numbers, 1.96)
        for numbers in zip(areas.tolist(), positives.tolist(), negatives.tolist(), strict=True)
    ]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == bounds


def test_intervals_of_many_areas_are_those_of_each() -> None:
    rng = np.random.default_rng(5)
    estimates = [
        AreaEstimate(area, variance, df, float(p), n, hidden)
        for area, variance, df, p, n, hidden in zip(
            [*rng.random(60), 0.0, 1.0, math.nan, 0.5, 0.5, 0.5],
            [*rng.random(60) / 300, 0.0, 0.1, math.nan, 0.1, 0.0, math.nan],
            [*(rng.random(60) * 99), math.nan, 5.0, math.nan, 0.5, math.nan, math.nan],
            [*rng.integers(0, 99, 60), 1, 2, 0, 3, 200, 1],
            [*(rng.random(60) * 9e2), 0.5, 2.0, 3.0, 4.0, 200.0, 1.0],
            [*rng.choice([0.0, 0.001, 0.5], 60), 0.1, 0.0, 0.0, 0.5, 0.25, 0.0],
            strict=True,
        )
    ]
    table = np.array(estimates).T
    together = zip(*(column.tolist() for column in many_area_bounds(table, 0.9)), strict=True)
    for estimate, bounds in zip(estimates, together, strict=True):
        single = area_bounds(estimate, 0.9)
        assert equal(bounds, tuple(single)), estimate
