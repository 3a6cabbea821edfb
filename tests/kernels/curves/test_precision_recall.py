"""Areas under precision-recall and ROC curves, against fractions, and every order of small buckets.

The bounds are certain, and where a bucket has room for as many scores they are reached: no
narrower ones would be certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from streammetrics.kernels.curves.many_steps import many_steps
from streammetrics.kernels.curves.operating_points import (
    CRITERIA,
    Least,
    best,
    distance_of_classes,
    distances_of_classes,
    gains,
    lifts,
    steps_within,
)
from streammetrics.kernels.curves.precision_recall import (
    Figure,
    average_precision,
    average_precisions,
    partial_area,
    sums_of_shares,
    trapezoid,
    trapezoids,
)
from streammetrics.kernels.curves.steps import Steps, steps
from streammetrics.kernels.exact.double_double import Pair
from tests.oracles import binary, curves
from tests.oracles.curves import Exact, Groups

View = Callable[[Steps, bool], Figure]
THIRD = Fraction(1, 3)


def steps_of(groups: Groups) -> Steps:
    """Groups from high to low as steps."""
    counts = np.array([*reversed(groups)], np.int64).reshape(-1, 2).T
    return steps(counts[0], counts[1])


def partial(limit: Fraction) -> View:
    return lambda curve, bounded: partial_area(curve, limit, standardized=False, bounded=bounded)


def gain(i: int, k: int) -> View:
    return lambda curve, bounded: gains(curve, k, bounded=bounded)[i - 1]


def lift(i: int, k: int) -> View:
    return lambda curve, bounded: lifts(curve, k, cumulative=False, bounded=bounded)[i - 1]


def best_by(criterion: str, share: Fraction | None = None) -> View:
    def view(curve: Steps, bounded: bool) -> Figure:
        aim = CRITERIA[criterion].aim(curve, share)
        return best(curve, aim, bounded=bounded).figure if aim else (math.nan,) * 3

    return view


def best_rate(
    criterion: str, recall: Exact = None, precision: Exact = None, beta: Exact = None
) -> View:
    def view(curve: Steps, bounded: bool) -> Figure:
        aim = CRITERIA[criterion].aim(curve, beta)
        least = Least(recall, precision)
        return best(curve, aim, least, bounded=bounded).figure if aim else (math.nan,) * 3

    return view


def at_budget(name: str, share: Fraction) -> View:
    def view(curve: Steps, bounded: bool) -> Figure:
        value, *bounds = getattr(steps_within(curve, share), name)(curve)
        return (value, *bounds) if bounded else (value,) * 3

    return view


TWO_THIRDS = Fraction(2, 3)
RATES = {"precision": curves.precision, "recall": curves.recall}
VIEWS: dict[str, tuple[View, Callable[[Groups], Exact]]] = {
    "ap": (lambda s, b: average_precision(s, bounded=b), curves.ap),
    "trapezoid": (lambda s, b: trapezoid(s, bounded=b), curves.pr_auc_trapezoid),
    "ks": (lambda s, b: distance_of_classes(s, bounded=b), curves.ks),
    **{
        f"area to {limit}": (partial(limit), curves.partial_area(limit))
        for limit in (THIRD, Fraction(1))
    },
    **{f"gain {i} of {k}": (gain(i, k), curves.gain(i, k)) for i, k in ((1, 2), (3, 5))},
    **{f"lift {i} of {k}": (lift(i, k), curves.lift(i, k)) for i, k in ((2, 2), (2, 3), (5, 5))},
    **{
        f"best {criterion}": (best_by(criterion), curves.best(criterion))
        for criterion in ("youden", "product", "accuracy")
    },
    "precision at recall": (
        best_rate("precision", recall=TWO_THIRDS),
        curves.best_rate(curves.precision, least_recall=TWO_THIRDS),
    ),
    "recall at precision": (
        best_rate("recall", precision=TWO_THIRDS),
        curves.best_rate(curves.recall, least_precision=TWO_THIRDS),
    ),
    "F2 at both": (
        best_rate("f_beta", THIRD, THIRD, Fraction(2)),
        curves.best_rate(curves.f_beta(Fraction(2)), THIRD, THIRD),
    ),
    "best F1": (best_rate("f_beta"), curves.best_rate(curves.f_beta(Fraction(1)))),
    **{
        f"{name} at a budget of {share}": (at_budget(name, share), curves.at_budget(rate, share))
        for name, rate in RATES.items()
        for share in (THIRD, Fraction(1, 2))
    },
    "best at a third": (best_by("accuracy", THIRD), curves.best("accuracy", THIRD)),
}


def is_nearest(value: float, exact: Fraction) -> bool:
    return value == exact.numerator / exact.denominator


def test_every_small_sample_has_the_exact_value() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 4):
        groups = curves.groups(rows)
        for name, (view, oracle) in VIEWS.items():
            exact, figure = oracle(groups), view(steps_of(groups), False)
            if exact is None:
                assert all(map(math.isnan, figure)), (name, groups)
            else:
                assert all(is_nearest(value, exact) for value in figure), (name, groups)


@pytest.mark.parametrize("name", VIEWS)
def test_bounds_hold_for_every_order_of_small_buckets_and_are_reached(name: str) -> None:
    view, oracle = VIEWS[name]
    for buckets in (*curves.small_buckets(1, 3), *curves.small_buckets(2, 2)):
        value, low, high = view(steps_of(buckets), True)
        exact_values = [
            exact for exact in map(oracle, curves.all_orders(buckets)) if exact is not None
        ]
        if not exact_values:
            assert math.isnan(value) and math.isnan(low) and math.isnan(high), buckets
            continue
        least, most, tied = min(exact_values), max(exact_values), oracle(buckets)
        assert Fraction(low) <= least and most <= Fraction(high), buckets
        if tied is None:  # a threshold between buckets is not enough
            assert math.isnan(value)
            continue
        assert is_nearest(value, tied), buckets
        assert low <= value <= high
        parts = int(name.split()[-1]) if "lift" in name else 1
        if sum(map(sum, buckets)) % parts:
            continue  # a cut through a row: the row above it and the one below are never one
        room = Fraction(math.ulp(1.0)) * 2
        assert least - Fraction(low) <= room and Fraction(high) - most <= room, buckets


def test_the_distance_of_the_best_point_is_the_nearest_root() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 5):
        groups = curves.groups(rows)
        exact, figure = (
            curves.best("distance")(groups),
            best_by("distance")(steps_of(groups), False),
        )
        if exact is None:
            assert all(map(math.isnan, figure))
            continue
        value = figure[0]
        below, above = (Fraction(value) + Fraction(math.ulp(value)) * s / 2 for s in (-1, 1))
        assert max(below, Fraction()) ** 2 <= -exact <= above**2


def test_the_distance_of_buckets_is_bounded_for_every_order() -> None:
    for buckets in (*curves.small_buckets(1, 2), *curves.small_buckets(4, 1)):
        value, low, high = best_by("distance")(steps_of(buckets), True)
        squares = [
            -e for e in map(curves.best("distance"), curves.all_orders(buckets)) if e is not None
        ]
        if not squares:
            assert math.isnan(value)
            continue
        assert low <= value <= high
        assert Fraction(low) ** 2 <= min(squares) and max(squares) <= Fraction(high) ** 2
        for end, exact in ((low, min(squares)), (high, max(squares))):
            assert abs(end - math.sqrt(exact)) <= 2 * math.ulp(1.0)


def test_counts_of_any_size_are_exact() -> None:
    # P N passes int64 from 2**30 on, a count 2**53 at 2**59, and the rows int64 at 2**60.
    for scale, (name, (view, oracle)) in product((2**20, 2**30, 2**59, 2**60), VIEWS.items()):
        buckets = [(0, 1), (3, 2), (1, 0), (5, 1)]
        large = [(n * scale + (n > 0), p * scale) for n, p in buckets]
        curve = steps_of(large)
        exact = oracle(large)
        assert exact is not None
        assert is_nearest(view(curve, False)[0], exact), (name, scale)
        value, low, high = view(curve, True)
        assert low <= value <= high and is_nearest(value, exact), (name, scale)


LARGE = [
    [(40, 300), (1, 2000), (700, 3), (90, 90), (5000, 1)],
    [(1, 0), (3, 100)],
    [(5, 70), (9, 70)],
]


@pytest.mark.parametrize("buckets", LARGE)
def test_bounds_of_large_buckets_are_those_of_their_extreme_orders(buckets: Groups) -> None:
    singles = [[(0, 1)] * p for _, p in buckets]
    worst = [g for (n, _), ones in zip(buckets, singles, strict=True) for g in [(n, 0), *ones]]
    best_ = [g for (n, _), ones in zip(buckets, singles, strict=True) for g in [*ones, (n, 0)]]
    _, low, _ = average_precision(steps_of(buckets), bounded=True)
    _, _, high = trapezoid(steps_of(buckets), bounded=True)
    least, most = curves.ap(worst), curves.pr_auc_trapezoid(best_)
    assert least is not None and most is not None
    assert 0 <= least - Fraction(low) < Fraction(1, 10**9)
    assert 0 <= Fraction(high) - most < Fraction(1, 10**9)


def test_ends_leave_room_for_the_rounding_of_the_arithmetic() -> None:
    # The worst order has exactly 1/2, the best exactly 1, beyond which nothing is.
    below = math.nextafter(0.5, 0)
    assert average_precision(steps_of([(1, 1)]), bounded=True) == (0.5, below, 1.0)
    assert trapezoid(steps_of([(1, 0), (0, 1)]), bounded=True)[1:] == (
        math.nextafter(0.25, 0),
        math.nextafter(0.25, 1),
    )


def exactly(pair: Pair) -> list[Fraction]:
    return [Fraction(h) + Fraction(w) for h, w in zip(*map(np.ndarray.tolist, pair), strict=True)]


def ends(start: int, length: int, f: int) -> tuple[Fraction, Fraction]:
    low, high = sums_of_shares(*(np.array([x], np.int64) for x in (start, length, f)))
    return exactly(low)[0], exactly(high)[0]


def test_the_ends_hold_the_sum_and_are_near() -> None:
    for start, length, f in product((0, 40, 10**5), (1, 64, 65, 200), (0, 7, 10**6)):
        exact = sum((Fraction(j, j + f) for j in range(start + 1, start + length + 1)), Fraction())
        low, high = ends(start, length, f)
        room = Fraction(length, 1 << 94)
        assert low - room <= exact <= high + room, (start, length, f)
        assert high - low <= Fraction(1, 10**6)
        assert length > 64 or low == high


def test_many_runs_are_each_their_own() -> None:
    rng = np.random.default_rng(3)
    start, length, f = rng.integers(0, 99, 50), rng.integers(1, 150, 50), rng.integers(0, 500, 50)
    low, high = map(exactly, sums_of_shares(start, length, f))
    rows = zip(start.tolist(), length.tolist(), f.tolist(), strict=True)
    assert list(zip(low, high, strict=True)) == [ends(*row) for row in rows]


def test_the_longest_runs_stay_in_order() -> None:
    # With f = 1 the sum is length - (H(length + 1) - 1): 43.2 less than 2**61 at 2**61.
    low, high = ends(0, 1 << 61, 1)
    assert low <= high <= 1 << 61
    assert 41 < (1 << 61) - high < 43
    low, high = ends(5, 1 << 61, 1 << 61)
    assert Fraction(306852, 10**6) < low / (1 << 61) <= high / (1 << 61) < Fraction(306853, 10**6)


def test_long_runs_agree_with_logarithms_of_60_digits() -> None:
    for length, f in product((10**6, 414_213_000, 1 << 40, 3 << 50), (10**6, 10**9)):
        with localcontext() as context:
            context.prec = 60
            first, last = (Decimal(n) + Decimal("0.5") for n in (f, f + length))
            # f is so large that the next term of the series is below 1e-36.
            harmonic = (last / first).ln() + (last**-2 - first**-2) / 24
            harmonic -= 7 * (last**-4 - first**-4) / 960
            exact = Fraction(length - f * harmonic)
        low, high = ends(0, length, f)
        room = Fraction(length, 1 << 94)
        assert low - room <= exact <= high + room, (length, f)
        assert high - low <= Fraction(1, 10**17)


@pytest.mark.parametrize("bounded", [False, True])
def test_areas_of_many_curves_side_by_side_are_those_of_each_in_any_order(bounded: bool) -> None:
    rng = np.random.default_rng(11)
    tables = [
        rng.integers(0, most, (2, n)) for most in (2, 5, 200) for n in (0, 1, 2, 3, 40, 41) * 3
    ]
    tables += [np.array(counts, np.int64) for counts in (
        [[0, 0], [0, 0]], [[3, 1], [0, 0]], [[0, 0], [2, 1]], [[2, 0], [0, 3]],
        [[1, (1 << 52) - 4], [1, 1]], [[1, (1 << 51) - 3], [1 << 51, 1]],
        [[1 << 26, 3], [5, 1 << 26]], [[1 << 25, 3], [5, 1 << 26]],
    )]  # fmt: skip
    for order in (1, -1):
        small_tables = [table for table in tables[::order] if table.sum(dtype=float) < 2.0**52]
        edges = np.cumsum([0, *(table.shape[1] for table in small_tables)])
        curves = many_steps(*np.concatenate(small_tables, axis=1), edges)
        for many, single in (
            (average_precisions, average_precision),
            (trapezoids, trapezoid),
            (distances_of_classes, distance_of_classes),
        ):
            expected = [repr(single(steps(*table), bounded=bounded)) for table in small_tables]
            figures = zip(
                *(column.tolist() for column in many(curves, bounded=bounded)), strict=True
            )
            assert [*map(repr, figures)] == expected
