"""Areas of counted pairs, exact at any size, and how much better one is than another."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics.kernels.curves.area import (
    Pairs,
    area,
    areas_and_ginis,
    gini,
    improvement,
    pairs,
)
from streammetrics.kernels.curves.many_steps import many_steps
from streammetrics.kernels.exact.rounding import (
    ExactArea,
    FractionMean,
    ratio,
    rounded_down,
    rounded_up,
)
from tests.oracles import binary


def counted(negatives: list[int], positives: list[int]) -> Pairs:
    return pairs(np.array(negatives, np.int64), np.array(positives, np.int64))


def by_score(rows: list[binary.Row]) -> Pairs:
    positions = sorted({s for _, s in rows})
    return counted([rows.count((0, s)) for s in positions], [rows.count((1, s)) for s in positions])


def test_every_small_sample_has_the_area_of_its_pairs() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 6):
        counts = by_score(rows)
        assert (counts.wins, counts.ties, counts.all) == binary.pair_counts(rows)
        exact = binary.area(rows)
        if exact is None:
            for bounded in (False, True):
                figures = area(counts, bounded=bounded), gini(counts, bounded=bounded)
                assert all(map(math.isnan, chain(*figures)))
        else:
            assert area(counts, bounded=False) == (float(exact),) * 3
            assert gini(counts, bounded=False) == (float(2 * exact - 1),) * 3


def test_bounds_are_the_areas_with_ties_lost_and_won() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 5):
        wins, ties, every = binary.pair_counts(rows)
        if not every:
            continue
        value, low, high = area(by_score(rows), bounded=True)
        assert value == area(by_score(rows), bounded=False)[0]
        assert Fraction(low) <= Fraction(wins, every) < Fraction(math.nextafter(low, 2))
        assert Fraction(math.nextafter(high, -1)) < Fraction(wins + ties, every) <= Fraction(high)
        value, low, high = gini(by_score(rows), bounded=True)
        assert value == gini(by_score(rows), bounded=False)[0]
        worst, best = Fraction(2 * wins, every) - 1, Fraction(2 * (wins + ties), every) - 1
        assert Fraction(low) <= worst < Fraction(math.nextafter(low, 2))
        assert Fraction(math.nextafter(high, -2)) < best <= Fraction(high)


def test_counts_of_any_size_are_exact() -> None:
    # Past P N = 2**63 the products no longer fit an int64; at 2**61 the totals are past it.
    for scale in (2**29, 2**33, 2**60):
        counts = counted([3 * scale, scale, 2 * scale], [scale, 5 * scale, 7 * scale])
        assert counts.wins == scale**2 * (5 * 3 + 7 * 4)
        assert counts.ties == scale**2 * (3 + 5 + 14)
        assert area(counts, bounded=True) == area(counted([3, 1, 2], [1, 5, 7]), bounded=True)
    assert math.isnan(area(counted([], []), bounded=True)[0])


HALF = Fraction(1, 2)
UNIT = st.fractions(0, 1, max_denominator=10**6)


def mean(value: Fraction) -> FractionMean:
    """The value; where it can be, as a sum with a third, which no fixed point has."""
    n, d = value.as_integer_ratio()
    return FractionMean({3: 1, 3 * d: 3 * n - d} if 3 * n >= d > 1 else {d: n}, 1)


def exact_area(value: Fraction) -> ExactArea:
    return ExactArea(*[mean(value)] * 3)


def between(low: Fraction, value: Fraction, high: Fraction) -> ExactArea:
    return ExactArea(mean(value), mean(low), mean(high), bounded=True)


@settings(max_examples=15)
@given(UNIT, UNIT)
def test_areas_that_are_known_give_the_correctly_rounded_value(a: Fraction, b: Fraction) -> None:
    result = improvement(exact_area(a), exact_area(b))
    if b == HALF:
        assert all(map(math.isnan, result))
        return
    exact = (a - HALF) / (b - HALF) - 1
    assert result == (ratio(exact, Fraction(1)),) * 3


@settings(max_examples=20)
@given(st.lists(UNIT, min_size=3, max_size=3), st.lists(UNIT, min_size=3, max_size=3))
def test_the_ends_are_the_nearest_floats_around_all_that_may_be(
    measured: list[Fraction], base: list[Fraction]
) -> None:
    a, b = sorted(measured), sorted(base)
    value, low, high = improvement(between(a[0], a[1], a[2]), between(b[0], b[1], b[2]))
    if b[0] == b[2] == HALF:
        assert all(map(math.isnan, (value, low, high)))
        return
    if b[1] == HALF:
        assert math.isnan(value)
    else:
        exact = (a[1] - HALF) / (b[1] - HALF) - 1
        assert value == ratio(exact, Fraction(1)) and low <= exact <= high
    if b[0] <= HALF <= b[2]:
        assert (low, high) == (-math.inf, math.inf)
        return
    corners = [(x - HALF) / (y - HALF) - 1 for x, y in product(a, b)]
    assert low == rounded_down(*min(corners).as_integer_ratio())
    assert high == rounded_up(*max(corners).as_integer_ratio())


@pytest.mark.parametrize("bits", [300, 1_100])
def test_a_base_next_to_one_half_has_a_side(bits: int) -> None:
    near = HALF + Fraction(1, 3 << bits)
    value, low, high = improvement(exact_area(near), exact_area(near))
    assert (value, low, high) == (0.0, 0.0, 0.0)
    huge, _, _ = improvement(exact_area(Fraction(1)), exact_area(near))
    assert huge == (math.inf if bits > 1_020 else 3 * 2.0 ** (bits - 1))
    _, low, high = improvement(between(HALF, HALF, Fraction(1)), between(near, near, Fraction(1)))
    assert low == -1.0 and high >= 3 * 2.0 ** (min(bits, 1_000) - 1)


def test_what_is_undefined_has_no_improvement() -> None:
    nothing, half = ExactArea(bounded=True), exact_area(HALF)
    for a, b in (
        (nothing, exact_area(Fraction(1))),
        (exact_area(Fraction(1)), nothing),
        (half, half),
    ):
        assert all(map(math.isnan, improvement(a, b)))


def test_areas_of_many_curves_are_those_of_each() -> None:
    rng = np.random.default_rng(8)
    tables = [rng.integers(0, most, (2, n)) for most in (2, 4, 300) for n in (0, 1, 2, 3, 50) * 2]
    tables += [
        np.array(table)
        for table in (
            [[1 << 25, 3], [2, 1 << 25]],
            [[1 << 26, 3], [2, 1 << 26]],
            [[1 << 50, 3], [2, 1 << 50]],
            [[5, 0], [0, 5]],
            [[0, 5], [5, 0]],
        )
    ]
    edges = np.cumsum([0, *(table.shape[1] for table in tables)])
    curves = many_steps(*np.concatenate(tables, axis=1), edges)
    for bounded in (False, True):
        areas, ginis = (
            [*zip(*(column.tolist() for column in figures[: 1 + 2 * bounded]), strict=True)]
            for figures in areas_and_ginis(curves, bounded=bounded)
        )
        for table, found_area, found_gini in zip(tables, areas, ginis, strict=True):
            counts = pairs(table[0], table[1])
            numbers = 1 + 2 * bounded
            assert repr(found_area) == repr(area(counts, bounded=bounded)[:numbers])
            assert repr(found_gini) == repr(gini(counts, bounded=bounded)[:numbers])
