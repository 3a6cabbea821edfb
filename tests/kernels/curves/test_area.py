"""Areas in integers, against every pair counted one by one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.area import Pairs, area, area_bounds, gini, gini_bounds, pairs
from tests.oracles import binary


def counted(negatives: list[int], positives: list[int]) -> Pairs:
    return pairs(np.array(negatives, np.int64), np.array(positives, np.int64))


def by_score(rows: list[binary.Row]) -> Pairs:
    positions = sorted({s for _, s in rows})
    return counted([rows.count((0, s)) for s in positions], [rows.count((1, s)) for s in positions])


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
        ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], 0.875),
        ([0, 1, 1, 0, 0, 1, 1], [0.3, 0.5, 0.5, 0.5, 0.5, 0.7, 0.8], 10 / 12),
        ([1, 0, 1, 0], [0.3, 0.3, 0.3, 0.3], 0.5),
        ([1, 0, 0], [0.5, 0.5, 1.0], 0.25),
        ([1, 0, 0], [1e-10, 0.0, 0.0], 1.0),
        ([0, 0, 1, 1], [-90.0, 80.0, 1000.0, 2000.0], 1.0),
    ],
)
def test_worked_values(labels: list[int], scores: list[float], expected: float) -> None:
    assert area(by_score(list(zip(labels, scores, strict=True)))) == expected


def test_every_small_sample_has_the_area_of_its_pairs() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 6):
        found = by_score(rows)
        assert (found.wins, found.ties, found.all) == binary.pair_counts(rows)
        exact = binary.area(rows)
        if exact is None:
            assert math.isnan(area(found)) and math.isnan(gini(found))
            assert all(map(math.isnan, (*area_bounds(found), *gini_bounds(found))))
        else:
            assert area(found) == float(exact)
            assert gini(found) == float(2 * exact - 1)


def test_bounds_are_the_areas_with_ties_lost_and_won() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 5):
        wins, ties, every = binary.pair_counts(rows)
        if not every:
            continue
        low, high = area_bounds(by_score(rows))
        assert Fraction(low) <= Fraction(wins, every) < Fraction(math.nextafter(low, 2))
        assert Fraction(math.nextafter(high, -1)) < Fraction(wins + ties, every) <= Fraction(high)
        low, high = gini_bounds(by_score(rows))
        worst, best = Fraction(2 * wins, every) - 1, Fraction(2 * (wins + ties), every) - 1
        assert Fraction(low) <= worst < Fraction(math.nextafter(low, 2))
        assert Fraction(math.nextafter(high, -2)) < best <= Fraction(high)


def test_perfect_separation_inside_one_bucket_is_anything() -> None:
    found = counted([5], [7])
    assert (area(found), area_bounds(found)) == (0.5, (0.0, 1.0))
    assert (gini(found), gini_bounds(found)) == (0.0, (-1.0, 1.0))


def test_a_sure_area_has_no_width() -> None:
    found = counted([3, 0, 1], [0, 2, 0])
    assert area_bounds(found) == (0.75, 0.75)


@pytest.mark.parametrize("scale", [1, 2**20, 2**33, 2**58])
def test_counts_of_any_size_are_exact(scale: int) -> None:
    # Past P N = 2**63 the products no longer fit an int64; at 2**58 the totals are near it.
    found = counted([3 * scale, scale, 2 * scale], [scale, 5 * scale, 7 * scale])
    assert found.wins == scale**2 * (5 * 3 + 7 * 4)
    assert found.ties == scale**2 * (3 + 5 + 14)
    assert area(found) == area(counted([3, 1, 2], [1, 5, 7]))


def test_totals_past_int64_are_exact() -> None:
    top = 2**62
    found = counted([top, top, top], [1, 1, 1])
    assert found.negatives == 3 * top
    assert found.wins == 3 * top


def test_no_buckets_have_no_area() -> None:
    assert math.isnan(area(counted([], [])))
