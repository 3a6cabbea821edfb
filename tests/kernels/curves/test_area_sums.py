"""The areas of groups: their means as fractions, and as sums of integers with their variance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.area_sums import (
    BITS,
    SPREAD_BITS,
    AreaSpread,
    AreaSums,
    area_of,
    area_spread,
    mean_area,
    sum_areas,
)
from streammetrics.kernels.curves.segments import GroupPairs
from streammetrics.kernels.exact.rounding import rounded

WEIGHTS = ["impressions", "positives", "uniform"]
NOBODY = GroupPairs(*[np.zeros(0, np.int64)] * 4, {})


def some_groups(n: int, seed: int, most: int = 40) -> GroupPairs:
    """Groups of up to `most` rows of each label; some have one label only."""
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, most, n), rng.integers(0, most, n)
    not_lost = (rng.random(n) * (p * q + 1)).astype(np.int64)
    ties = (rng.random(n) * (not_lost + 1)).astype(np.int64)
    return GroupPairs(not_lost, ties, p, q, {})


def rows_of(groups: GroupPairs) -> Iterator[tuple[int, int, int, int]]:
    """Pairs that are not lost, those that are tied, positives and negatives of each group."""
    columns = (groups.not_lost, groups.ties, groups.positives, groups.negatives)
    for g, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        pairs = groups.large.get(g)
        yield (pairs.wins + pairs.ties, pairs.ties, *row[2:]) if pairs else row


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


def split(groups: GroupPairs, place: int) -> list[GroupPairs]:
    """The groups before a place and after it, none of them large."""
    columns = (groups.not_lost, groups.ties, groups.positives, groups.negatives)
    parts = slice(place), slice(place, None)
    return [GroupPairs(*(column[part] for column in columns), {}) for part in parts]


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sums_of_parts_add_up_to_those_of_the_whole(weight: str) -> None:
    groups = some_groups(500, 3)
    for cut, bounded in ((0, True), (77, True), (77, False)):
        whole = sum_areas(groups, weight, bounded=bounded)
        parts = [sum_areas(part, weight, bounded=bounded) for part in split(groups, cut)]
        assert tuple(map(sum, zip(*parts, strict=True))) == tuple(whole)
    spreads = [area_spread(part, weight) for part in split(groups, 77)]
    assert tuple(map(sum, zip(*spreads, strict=True))) == area_spread(groups, weight)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("most", [3, 1 << 15, 1 << 30])
def test_each_area_is_rounded_once_to_96_digits(weight: str, most: int) -> None:
    groups = some_groups(50, most, min(most, 1 << 30))
    groups = replace(
        groups,
        not_lost=np.minimum(groups.not_lost, groups.positives * groups.negatives),
    )
    sums = sum_areas(groups, weight, bounded=True)
    total = value = low = high = 0
    for won, tied, p, q in rows_of(groups):
        if not p * q:
            continue
        w = {"impressions": p + q, "positives": p, "uniform": 1}[weight]
        total += w
        value += w * math.floor(
            (Fraction(2 * won - tied, 2 * p * q) * (1 << BITS)) + Fraction(1, 2)
        )
        low += w * math.floor(Fraction(won - tied, p * q) * (1 << BITS))
        high += w * math.ceil(Fraction(won, p * q) * (1 << BITS))
    assert sums == AreaSums(total, value, low, high)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_group_with_more_pairs_than_an_int64_has_counts_like_others(weight: str) -> None:
    groups = with_a_large_one(some_groups(20, 1))
    mean = sum_areas(groups, weight).mean(bounded=False)
    assert rounded(mean.value) == rounded(mean_area(groups, weight).value)
    p, n = np.array([1 << 31, 1]), np.array([1 << 32, 1])
    large = {0: Pairs(1 << 62, 0, 1 << 31, 1 << 32)}
    two = GroupPairs(np.array([0, 1]), np.array([0, 0]), p, n, large)
    assert area_spread(two, "uniform").variance == 0.0625  # 1/2 and 1


def test_the_mean_of_few_groups_is_the_exact_one_and_its_ends_hold_the_exact_ends() -> None:
    for seed in range(9):
        weight, groups = WEIGHTS[seed % 3], some_groups(1 + seed % 7, seed, 4 + seed % 30)
        exact = mean_area(groups, weight, bounded=True)
        mean = sum_areas(groups, weight, bounded=True).mean(bounded=True)
        assert mean.defined == exact.defined
        if not exact.defined:
            continue
        assert rounded(mean.value) == rounded(exact.value)
        low, high = Fraction(*exact.low.fraction()), Fraction(*exact.high.fraction())
        least, most = Fraction(*mean.low.fraction()), Fraction(*mean.high.fraction())
        assert low - Fraction(1, 1 << BITS) <= least <= low
        assert high <= most <= high + Fraction(1, 1 << BITS)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("most", [40, 1 << 30])
def test_the_spread_is_that_of_the_areas_cut_to_62_digits(weight: str, most: int) -> None:
    groups = with_a_large_one(some_groups(60, 9, most))
    y = yy = yn = nn = units = 0
    for won, tied, p, q in rows_of(groups):
        if p and q:
            w = {"impressions": p + q, "positives": p, "uniform": 1}[weight]
            area = ((2 * won - tied) << SPREAD_BITS) // (2 * p * q)
            y, yy, yn, nn = y + w * area, yy + (w * area) ** 2, yn + w * w * area, nn + w * w
            units += 1
    spread = area_spread(groups, weight)
    assert spread == AreaSpread(units, y, spread.n, yy, yn, nn)


def test_no_groups_have_no_sums() -> None:
    assert sum_areas(NOBODY, "uniform") == AreaSums(0, 0, 0, 0)
    assert not sum_areas(NOBODY, "uniform").mean(bounded=True).defined
    assert area_spread(NOBODY, "uniform") == AreaSpread(0, 0, 0, 0, 0, 0)
    assert math.isnan(AreaSpread(0, 0, 0, 0, 0, 0).variance)


def expected(groups: GroupPairs, weight: str, tied: Fraction) -> Fraction:
    total = weights = Fraction(0)
    for won, ties, p, q in rows_of(groups):
        if p * q:
            w = {"impressions": p + q, "positives": p, "uniform": 1}[weight]
            total += w * Fraction(won - ties + tied * ties, p * q)
            weights += w
    return total / weights


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_mean_and_its_ends_are_those_of_the_fractions(weight: str) -> None:
    single_group = GroupPairs(*(np.array([count]) for count in (1, 1, 1, 1)), {})
    for groups in (single_group, *(some_groups(200, 7, most) for most in (3, 2**20, 2**30))):
        mean = mean_area(groups, weight, bounded=True)
        ends = (mean.low, Fraction(0)), (mean.value, Fraction(1, 2)), (mean.high, Fraction(1))
        for end, tied in ends:
            assert Fraction(*end.fraction()) == expected(groups, weight, tied)
        point = mean_area(groups, weight)
        assert point.low == point.value == point.high and not point.bounded
        columns = groups.not_lost, groups.ties, groups.positives, groups.negatives
        turned = GroupPairs(*(column[::-1] for column in columns), {})
        assert mean_area(turned, weight) == point


@pytest.mark.parametrize("weight", WEIGHTS)
def test_large_groups_are_exact_beside_small_ones(weight: str) -> None:
    p, n = 2**40 + 1, 2**41 + 3
    large = {
        0: Pairs(p * n // 3, p * n // 5, p, n),
        3: Pairs(p * n // 7, 0, p, n),
        4: Pairs(0, 0, 2**33, 0),
    }
    columns = [0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [p, 1, 0, p, 2**33], [n, 1, 3, n, 0]
    groups = GroupPairs(*map(np.array, columns), large)
    mean = mean_area(groups, weight, bounded=True)
    for end, tied in ((mean.low, 0), (mean.value, Fraction(1, 2)), (mean.high, 1)):
        assert Fraction(*end.fraction()) == expected(groups, weight, Fraction(tied))


def test_the_area_of_one_group_is_that_of_its_pairs() -> None:
    area = area_of(Pairs(3, 2, 2, 4), bounded=True)
    fractions = [Fraction(*end.fraction()) for end in (area.low, area.value, area.high)]
    assert fractions == [Fraction(3, 8), Fraction(4, 8), Fraction(5, 8)]
    assert area_of(Pairs(3, 2, 2, 4)).low == area.value
    assert not area_of(Pairs(0, 0, 2, 0), bounded=True).defined


def test_without_a_group_of_both_labels_there_is_no_mean() -> None:
    for weight, (p, n) in product(WEIGHTS, (([], []), ([3], [0]), ([0, 1], [4, 0]))):
        none = np.zeros(len(p), np.int64)
        groups = GroupPairs(none, none, np.array(p, np.int64), np.array(n, np.int64), {})
        assert not mean_area(groups, weight, bounded=True).defined
