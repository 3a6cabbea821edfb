"""DeLong's variance against its definition, pair by pair, and past the range of int64."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.kernels.curves.area import area, pairs
from streammetrics.kernels.inference.area_interval import (
    grouped_placements,
    placements,
    placements_covariance,
)
from streammetrics.kernels.inference.clustered_variance import jackknife_variance, spread_variance

Ints = NDArray[np.int64]
Rows = list[tuple[int, int, int]]

SCORES = [0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4, 0.5, 0.6, 0.7, 0.7, 0.8, 0.9]
SECOND = [0.2, 0.1, 0.3, 0.3, 0.5, 0.3, 0.4, 0.6, 0.4, 0.6, 0.8, 0.7, 0.9]
LABELS = [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1]
POSITIVES = np.array([0, 1, 0, 1, 1, 0, 1, 1, 1])
NEGATIVES = np.array([1, 1, 1, 2, 0, 1, 1, 0, 0])

rows_of_two = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=14
).filter(lambda rows: 2 <= sum(row[0] for row in rows) <= len(rows) - 2)


def joint(rows: Rows) -> tuple[Ints, Ints]:
    counts = np.zeros((2, 4, 4), np.int64)
    np.add.at(counts, tuple(np.array(rows).T), 1)
    return counts[0], counts[1]


def components(rows: Rows, model: int) -> tuple[list[Fraction], list[Fraction]]:
    """V10 of each positive and V01 of each negative, by comparing every pair."""
    positions = [[row[1 + model] for row in rows if row[0] == label] for label in (0, 1)]

    def won(p: int, n: int) -> Fraction:
        return Fraction((p > n) * 2 + (p == n), 2)

    of_p = [
        sum((won(p, n) for n in positions[0]), Fraction(0)) / len(positions[0])
        for p in positions[1]
    ]
    of_n = [
        sum((won(p, n) for p in positions[1]), Fraction(0)) / len(positions[1])
        for n in positions[0]
    ]
    return of_p, of_n


def covariance(a: list[Fraction], b: list[Fraction]) -> Fraction:
    mean_a, mean_b, n = sum(a) / len(a), sum(b) / len(b), len(a)
    sum_ = sum(((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)), Fraction(0))
    return sum_ / (n - 1) / n


def test_a_worked_example_with_ties() -> None:
    found = placements(NEGATIVES, POSITIVES)
    assert found.area == 31 / 42 == area(pairs(NEGATIVES, POSITIVES))
    assert f"{found.variance:.15f}" == "0.022297808012094"
    assert [f"{part:.15f}" for part in found.variances] == [
        "0.015873015873016",
        "0.006424792139078",
    ]
    assert found.resolution == 2 / 42 and round(found.df, 9) == 8.681519661


def test_two_models_of_the_same_rows() -> None:
    ranked = [np.unique(scores, return_inverse=True)[1] for scores in (SCORES, SECOND)]
    counts = np.zeros((2, 9, 9), np.int64)
    np.add.at(counts, (np.array(LABELS), *ranked), 1)
    first, second = (placements(*counts.sum(axis=axis)) for axis in (2, 1))
    both = placements_covariance(*counts)
    assert first == placements(NEGATIVES, POSITIVES)
    assert round(second.area, 12) == 0.714285714286
    assert f"{second.variance:.14f}" == f"{0.024792139077853876:.14f}"
    assert f"{both:.15f}" == "0.020455404383976"
    assert round(math.sqrt(first.variance + second.variance - 2 * both), 11) == 0.07860749533


@pytest.mark.parametrize("scale", [2**20, 2**60])
def test_counts_of_any_size_are_exact(scale: int) -> None:
    # The areas are the same, and the variance falls with the rows: P S10 has P² / (P - 1).
    once, often = placements(NEGATIVES, POSITIVES), placements(NEGATIVES * scale, POSITIVES * scale)
    assert (often.area, often.resolution) == (once.area, once.resolution)
    a, b = (Fraction(part) for part in once.variances)
    wanted = a * 5 / (6 * scale - 1) + b * 6 / (7 * scale - 1)
    assert math.isclose(often.variance, wanted, rel_tol=1e-15)
    both = np.diag(NEGATIVES * scale), np.diag(POSITIVES * scale)
    assert placements_covariance(*both) == often.variance
    groups = [np.array([counts, counts]) * (scale // 2) for counts in (NEGATIVES, POSITIVES)]
    found = grouped_placements(*groups)
    assert (found.area, found.influences, found.replicates) == (
        once.area, [0.0, 0.0], [once.area] * 2,
    )  # fmt: skip


def test_sums_past_int64_are_exact() -> None:
    billions = np.array([1, 2, 3, 4]) * 10**9
    found = placements(billions[::-1], billions)
    assert (found.area, found.resolution, found.half_wins) == (0.75, 0.1, 150 * 10**18)
    assert f"{found.variance:.18e}" == "1.100000000110000075e-11"


@given(rows_of_two)
def test_it_is_the_definition(rows: Rows) -> None:
    negatives, positives = joint(rows)
    (p_a, n_a), (p_b, n_b) = components(rows, 0), components(rows, 1)
    found = placements(negatives.sum(axis=1), positives.sum(axis=1))
    a, b = covariance(p_a, p_a), covariance(n_a, n_a)
    assert found.area == float(sum(p_a) / len(p_a)) == float(sum(n_a) / len(n_a))
    assert (found.variances, found.variance) == ((float(a), float(b)), float(a + b))
    both = covariance(p_a, p_b) + covariance(n_a, n_b)
    assert placements_covariance(negatives, positives) == float(both)
    if a + b:
        df = (a + b) ** 2 / (a * a / (len(p_a) - 1) + b * b / (len(n_a) - 1))
        assert found.df == float(df)
    else:
        assert math.isnan(found.df)


@given(rows_of_two, st.lists(st.integers(0, 2), min_size=14, max_size=14))
def test_groups_are_left_out_and_linearised(rows: Rows, of: list[int]) -> None:
    parts = [[row for row, g in zip(rows, of, strict=False) if g == group] for group in range(3)]
    tables = [joint(part) if part else (np.zeros((4, 4), np.int64),) * 2 for part in parts]
    negatives, positives = (np.array([t[i].sum(axis=1) for t in tables]) for i in (0, 1))
    found = grouped_placements(negatives, positives)
    (of_p, of_n), met = components(rows, 0), [part for part in parts if part]
    at, p, n = sum(of_p) / len(of_p), len(of_p), len(of_n)
    assert found.area == float(at)
    value = dict(zip([r for r in rows if r[0]], of_p, strict=True))
    value |= dict(zip([r for r in rows if not r[0]], of_n, strict=True))
    # Rows of one label and score have one value, whatever the second model says of them.
    for group, influence, left in zip(met, found.influences, found.replicates, strict=True):
        assert influence == float(sum(((value[r] - at) / (p if r[0] else n) for r in group),
                                      Fraction(0)))  # fmt: skip
        others = [row for part in met if part is not group for row in part]
        labels = {row[0] for row in others}
        if labels == {0, 1}:
            rest = components(others, 0)[0]
            assert left == float(sum(rest) / len(rest))
        else:
            assert math.isnan(left)


def test_groups_without_rows_are_left_out() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 9, (2, 5, 8))
    wider = np.zeros((2, 9, 8), np.int64)
    wider[:, 2:7] = counts
    assert grouped_placements(*wider) == grouped_placements(*counts)


def test_users_alone_in_their_groups_have_about_delongs_variance() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 600)
    positions = np.clip(np.rint(rng.normal(labels, 1.0) * 4 + 16), 0, 31).astype(int)
    counts = np.zeros((2, 600, 32), np.int64)
    counts[labels, np.arange(600), positions] = 1
    rows, groups = placements(*counts.sum(axis=1)), grouped_placements(*counts)
    assert math.isclose(spread_variance(groups.influences).variance, rows.variance, rel_tol=0.01)
    assert math.isclose(jackknife_variance(groups.replicates).variance, rows.variance, rel_tol=0.02)


@pytest.mark.parametrize(
    ("negatives", "positives"), [([0, 0], [0, 0]), ([0, 3], [0, 0]), ([0, 0], [2, 1])]
)
def test_without_a_class_there_is_no_area(negatives: list[int], positives: list[int]) -> None:
    found = placements(np.array(negatives), np.array(positives))
    unknown = found.area, found.variance, *found.variances, found.df, found.resolution
    assert all(map(math.isnan, unknown))
    both = np.diag(negatives), np.diag(positives)
    assert math.isnan(placements_covariance(*both))
    in_groups = grouped_placements(np.array([negatives]), np.array([positives]))
    assert math.isnan(in_groups.area) and all(map(math.isnan, in_groups.replicates))


def test_with_one_row_of_a_class_there_is_an_area_and_no_variance() -> None:
    found = placements(np.array([3, 1]), np.array([0, 1]))
    assert found.area == 0.875 and math.isnan(found.variance) and math.isnan(found.df)
    assert math.isnan(placements_covariance(np.diag([3, 1]), np.diag([0, 1])))


def test_perfect_order_has_no_variance_and_no_degrees_of_freedom() -> None:
    found = placements(np.array([3, 0]), np.array([0, 3]))
    assert (found.area, found.variance) == (1.0, 0.0) and math.isnan(found.df)


def test_buckets_without_rows_change_nothing() -> None:
    met = (POSITIVES + NEGATIVES) > 0
    wide = np.zeros((2, 2 * len(met)), np.int64)
    wide[0, ::2], wide[1, ::2] = NEGATIVES, POSITIVES
    assert placements(*wide) == placements(NEGATIVES[met], POSITIVES[met])


def test_counts_of_any_size_have_the_area_and_the_ties_of_small_ones() -> None:
    counts = np.random.default_rng(1).integers(0, 2000, (2, 16_384))
    small, huge = placements(*counts), placements(*(counts * 10**9))
    assert (huge.area, huge.ties) == (small.area, small.ties * 10**18)
    assert huge.variance == pytest.approx(small.variance / 10**9, rel=1e-6)  # n - 1 is n, nearly
