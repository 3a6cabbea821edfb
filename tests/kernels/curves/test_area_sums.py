"""Sums of the areas of groups: as integers, each area rounded once, whatever the split."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.area_sums import (
    BITS,
    SPREAD_BITS,
    AreaSpread,
    AreaSums,
    area_spread,
    area_sums,
)
from streammetrics.kernels.curves.exact_mean import mean_area
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.fraction_mean import rounded
from streammetrics.kernels.exact.rounding import rounded_down, rounded_up
from streammetrics.kernels.inference.sums_variance import ratio_variance

WEIGHTS = ["impressions", "positives", "uniform"]
NOT_LOST, TIES = np.array([3, 0, 1, 1]), np.array([1, 0, 1, 0])
P, N = np.array([2, 3, 1, 2]), np.array([2, 0, 1, 1])
AREAS = [Fraction(5, 8), Fraction(1, 2), Fraction(1, 2)]
NOBODY = GroupPairs(*[np.zeros(0, np.int64)] * 4, {})


def some_groups(n: int, seed: int, most: int = 40) -> GroupPairs:
    """Groups of up to `most` rows of each label; some have one label only."""
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, most, n), rng.integers(0, most, n)
    not_lost = (rng.random(n) * (p * q + 1)).astype(np.int64)
    ties = (rng.random(n) * (not_lost + 1)).astype(np.int64)
    return GroupPairs(not_lost, ties, p, q, {})


def with_a_large_one(groups: GroupPairs) -> GroupPairs:
    """The same, with a group of more pairs than an int64 holds at its end."""
    pairs = Pairs((1 << 61) + 12345, 17, 1 << 31, (1 << 32) + 1)
    arrays = (
        np.append(array, value)
        for array, value in zip(
            (groups.not_lost, groups.ties, groups.positives, groups.negatives),
            (0, 0, pairs.positives, pairs.negatives),
            strict=True,
        )
    )
    return GroupPairs(*arrays, {len(groups.ties): pairs})


def split(groups: GroupPairs, at: int) -> tuple[GroupPairs, GroupPairs]:
    """The groups before a place and after it, none of them large."""

    def piece(here: slice) -> GroupPairs:
        return GroupPairs(
            groups.not_lost[here],
            groups.ties[here],
            groups.positives[here],
            groups.negatives[here],
            {},
        )

    return piece(slice(at)), piece(slice(at, None))


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("bounded", [False, True])
def test_sums_of_parts_add_up_to_those_of_the_whole(weight: str, bounded: bool) -> None:
    groups = some_groups(500, 3)
    whole = area_sums(groups, weight, bounded=bounded)
    for at in (0, 1, 77, 500):
        parts = [area_sums(part, weight, bounded=bounded) for part in split(groups, at)]
        assert tuple(map(sum, zip(*parts, strict=True))) == tuple(whole)
    spreads = [area_spread(part, weight) for part in split(groups, 77)]
    assert tuple(map(sum, zip(*spreads, strict=True))) == area_spread(groups, weight)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("most", [3, 40, 1 << 15, 1 << 20, 1 << 30])
def test_each_area_is_rounded_once_to_96_digits(weight: str, most: int) -> None:
    groups = some_groups(50, most, min(most, 1 << 30))
    groups = replace(
        groups,
        not_lost=np.minimum(groups.not_lost, groups.positives * groups.negatives),
    )
    found = area_sums(groups, weight, bounded=True)
    total = value = low = high = 0
    rows = zip(groups.not_lost, groups.ties, groups.positives, groups.negatives, strict=True)
    for won, tied, p, q in (map(int, row) for row in rows):
        if not p * q:
            continue
        w = {"impressions": p + q, "positives": p, "uniform": 1}[weight]
        total += w
        value += w * math.floor(
            (Fraction(2 * won - tied, 2 * p * q) * (1 << BITS)) + Fraction(1, 2)
        )
        low += w * math.floor(Fraction(won - tied, p * q) * (1 << BITS))
        high += w * math.ceil(Fraction(won, p * q) * (1 << BITS))
    assert found == AreaSums(total, value, low, high)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_group_with_more_pairs_than_an_int64_has_counts_like_others(weight: str) -> None:
    groups = with_a_large_one(some_groups(20, 1))
    mean = area_sums(groups, weight).mean(bounded=False)
    assert rounded(mean.value) == rounded(mean_area(groups, weight).value)
    p, n = np.array([1 << 31, 1]), np.array([1 << 32, 1])
    large = {0: Pairs(1 << 62, 0, 1 << 31, 1 << 32)}
    two = GroupPairs(np.array([0, 1]), np.array([0, 0]), p, n, large)
    assert area_spread(two, "uniform").variance == 0.0625  # 1/2 and 1


@pytest.mark.parametrize("n", [10_000, pytest.param(300_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("bounded", [False, True])
def test_the_mean_of_many_groups_is_the_exact_one_to_the_last_bit(
    n: int, weight: str, bounded: bool
) -> None:
    groups = some_groups(n, 5)
    exact = mean_area(groups, weight, bounded=bounded)
    found = area_sums(groups, weight, bounded=bounded).mean(bounded=bounded)
    assert rounded(found.value) == rounded(exact.value)
    assert rounded(found.low, rounded_down) == rounded(exact.low, rounded_down)
    assert rounded(found.high, rounded_up) == rounded(exact.high, rounded_up)


@pytest.mark.parametrize("seed", range(48))
def test_the_mean_of_few_groups_is_the_exact_one_and_its_ends_hold_the_exact_ends(
    seed: int,
) -> None:
    weight = WEIGHTS[seed % 3]
    groups = some_groups(1 + seed % 7, seed, 4 + seed % 30)
    exact = mean_area(groups, weight, bounded=True)
    found = area_sums(groups, weight, bounded=True).mean(bounded=True)
    assert found.defined == exact.defined
    if exact.defined:
        assert rounded(found.value) == rounded(exact.value)
        low, high = Fraction(*exact.low.fraction()), Fraction(*exact.high.fraction())
        least, most = Fraction(*found.low.fraction()), Fraction(*found.high.fraction())
        assert low - Fraction(1, 1 << BITS) <= least <= low
        assert high <= most <= high + Fraction(1, 1 << BITS)


def test_means_that_lie_on_a_float_are_that_float() -> None:
    p, q = np.array([1, 1, 3]), np.array([3, 3, 1])
    thirds = GroupPairs(np.array([1, 2, 3]), np.zeros(3, np.int64), p, q, {})
    assert rounded(area_sums(thirds, "uniform").mean(bounded=False).value) == 2 / 3
    assert rounded(mean_area(thirds, "uniform").value) == 2 / 3


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_spread_is_the_variance_of_a_ratio_of_groups(weight: str) -> None:
    w = {"impressions": [4, 2, 3], "positives": [2, 1, 2], "uniform": [1, 1, 1]}[weight]
    wa = [one * area for one, area in zip(w, AREAS, strict=True)]
    pairs = (wa, wa), (wa, w), (w, w)
    squares = [sum(map(operator.mul, a, b)) for a, b in pairs]
    found = area_spread(GroupPairs(NOT_LOST, TIES, P, N, {}), weight)
    exact = ratio_variance(3, sum(wa), sum(w), (squares[0], squares[1], squares[2]))
    assert found.units == 3 and found.variance == exact  # these areas are binary fractions


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("most", [40, 1 << 17, 1 << 30])
def test_the_spread_is_that_of_the_areas_cut_to_62_digits(weight: str, most: int) -> None:
    groups = with_a_large_one(some_groups(60, 9, most))
    y = yy = yn = nn = units = 0
    for g in range(len(groups.ties)):
        p, q = int(groups.positives[g]), int(groups.negatives[g])
        pairs = groups.large.get(g)
        twice = 2 * int(groups.not_lost[g]) - int(groups.ties[g])
        twice = twice if pairs is None else 2 * pairs.wins + pairs.ties
        if p and q:
            w = {"impressions": p + q, "positives": p, "uniform": 1}[weight]
            area = (twice << SPREAD_BITS) // (2 * p * q)
            y, yy, yn, nn = y + w * area, yy + (w * area) ** 2, yn + w * w * area, nn + w * w
            units += 1
    found = area_spread(groups, weight)
    assert found == AreaSpread(units, y, found.n, yy, yn, nn)


def test_groups_of_equal_areas_have_no_spread() -> None:
    p = np.array([1, 2, 3])
    thirds = GroupPairs(p, np.zeros(3, np.int64), p, np.array([3, 3, 3]), {})
    assert area_spread(thirds, "impressions").variance == 0


def test_no_groups_have_no_sums() -> None:
    assert area_sums(NOBODY, "uniform") == AreaSums(0, 0, 0, 0)
    assert not area_sums(NOBODY, "uniform").mean(bounded=True).defined
    assert area_spread(NOBODY, "uniform") == AreaSpread(0, 0, 0, 0, 0, 0)
    assert math.isnan(AreaSpread(0, 0, 0, 0, 0, 0).variance)
