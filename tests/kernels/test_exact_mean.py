"""Weighted means of areas, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels import exact_mean
from streammetrics.kernels.exact_mean import mean_area

RNG = np.random.default_rng(5)
WEIGHTS = pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])
Group = tuple[int, int, int]  # 2U, positives, negatives


def expected(groups: list[Group], weight: str) -> float:
    total = weights = Fraction(0)
    for u, p, n in groups:
        if p and n:
            w = {"impressions": p + n, "positives": p, "uniform": 1}[weight]
            total, weights = total + w * Fraction(u, 2 * p * n), weights + w
    mean = total / weights
    return mean.numerator / mean.denominator


def computed(groups: list[Group], weight: str, large: frozenset[int] = frozenset()) -> float:
    u = np.array([0 if i in large else g[0] for i, g in enumerate(groups)], np.int64)
    p, n = (np.array([g[i] for g in groups], np.int64) for i in (1, 2))
    return mean_area(u, p, n, {i: groups[i][0] for i in large}, weight)


@WEIGHTS
@pytest.mark.parametrize("top", [2, 30, 2**20, 2**30])
def test_the_mean_is_correctly_rounded(weight: str, top: int) -> None:
    for size in (1, 2, 50, 400):
        p, n = RNG.integers(0, top, (2, size)).tolist()
        p[0] = n[0] = 1
        u = [int(RNG.random() * 2 * a * b) for a, b in zip(p, n, strict=True)]
        groups = list(zip(u, p, n, strict=True))
        assert computed(groups, weight) == expected(groups, weight)


@WEIGHTS
def test_the_order_of_groups_does_not_show(weight: str) -> None:
    groups = [
        (int(RNG.integers(0, 2 * p * n)), p, n) for p, n in RNG.integers(1, 99, (200, 2)).tolist()
    ]
    values = {computed([groups[i] for i in RNG.permutation(200)], weight) for _ in range(20)}
    assert len(values) == 1


@WEIGHTS
def test_large_groups_are_exact(weight: str) -> None:
    p, n = 2**40 + 1, 2**41 + 3
    groups = [(2 * p * n // 3, p, n), (1, 1, 1), (7, 0, 3), (p * n // 7, p, n), (5, 2**33, 0)]
    large = frozenset({0, 3, 4})
    assert computed(groups, weight, large) == expected(groups, weight)


@WEIGHTS
def test_a_mean_half_way_between_two_floats_is_exact(weight: str) -> None:
    # (2**53 + 1) / 2**54: thirds cancel, so that no fixed point has enough bits to tell.
    n = 3 << 53
    groups = [((2**53 + 1) * 2 + 1, 1, n // 2), ((2**53 + 1) * 4 - 1, 1, n // 2)]
    assert computed(groups, weight, frozenset({0, 1})) == expected(groups, weight)


def test_a_mean_that_fixed_point_cannot_round_is_still_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact_mean, "_BITS", (4,))
    groups = [
        (int(RNG.integers(0, 2 * p * n)), p, n) for p, n in RNG.integers(1, 99, (200, 2)).tolist()
    ]
    assert computed(groups, "uniform") == expected(groups, "uniform")


@WEIGHTS
def test_all_zero_is_zero_and_all_one_is_one(weight: str) -> None:
    assert computed([(0, 3, 7), (0, 1, 1)], weight) == 0.0
    assert computed([(42, 3, 7), (2, 1, 1)], weight) == 1.0


@WEIGHTS
@pytest.mark.parametrize("groups", [[], [(0, 3, 0)], [(0, 0, 4), (0, 1, 0)]])
def test_without_a_group_of_both_labels_there_is_no_mean(weight: str, groups: list[Group]) -> None:
    assert math.isnan(computed(groups, weight))
