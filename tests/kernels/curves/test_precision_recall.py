"""Every figure of a curve against brute force, and its bounds against every order of small buckets.

The bounds are certain, and where a bucket has room for as many scores they are reached: no
narrower ones would be certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.kernels.curves.operating_points import aim_of, best, distance_of_classes
from streammetrics.kernels.curves.precision_recall import (
    Figure,
    average_precision,
    partial_area,
    trapezoid,
)
from streammetrics.kernels.curves.row_shares import gains, lifts
from streammetrics.kernels.curves.steps import Steps, steps
from tests.oracles import binary, curves
from tests.oracles.curves import Exact, Groups

View = Callable[[Steps, bool], Figure]
THIRD = Fraction(1, 3)


def of(found: Groups) -> Steps:
    """Groups from high to low as steps."""
    counts = np.array([*reversed(found)], np.int64).reshape(-1, 2).T
    return steps(counts[0], counts[1])


def partial(limit: Fraction) -> View:
    return lambda found, bounded: partial_area(found, limit, standardized=False, bounded=bounded)


def gain(i: int, k: int) -> View:
    return lambda found, bounded: gains(found, k, bounded=bounded)[i - 1]


def lift(i: int, k: int) -> View:
    return lambda found, bounded: lifts(found, k, cumulative=False, bounded=bounded)[i - 1]


def best_by(by: str, share: Fraction | None = None) -> View:
    def view(found: Steps, bounded: bool) -> Figure:
        aim = aim_of(by, found, share)
        return best(found, aim, bounded=bounded).figure if aim else (math.nan,) * 3

    return view


VIEWS: dict[str, tuple[View, Callable[[Groups], Exact]]] = {
    "ap": (lambda s, b: average_precision(s, bounded=b), curves.ap),
    "trapezoid": (lambda s, b: trapezoid(s, bounded=b), curves.pr_auc_trapezoid),
    "ks": (lambda s, b: distance_of_classes(s, bounded=b), curves.ks),
    **{
        f"area to {limit}": (partial(limit), curves.partial_area(limit))
        for limit in (Fraction(1, 10), THIRD, Fraction(1, 2), Fraction(1))
    },
    **{f"gain {i} of {k}": (gain(i, k), curves.gain(i, k)) for i, k in ((1, 2), (1, 3), (3, 5))},
    **{
        f"lift {i} of {k}": (lift(i, k), curves.lift(i, k))
        for i, k in ((1, 2), (2, 2), (2, 3), (2, 5), (5, 5))
    },
    **{f"best {by}": (best_by(by), curves.best(by)) for by in ("youden", "product", "accuracy")},
    "best at a third": (best_by("accuracy", THIRD), curves.best("accuracy", THIRD)),
}

FURTHER = {f"gain {some}" for some in ("1 of 3", "3 of 5")}
FURTHER |= {f"lift {some}" for some in ("1 of 2", "2 of 2", "2 of 5", "5 of 5")}


def is_nearest(value: float, exact: Fraction) -> bool:
    return value == exact.numerator / exact.denominator


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in FURTHER else []) for name in VIEWS],
)
def test_every_small_sample_has_the_exact_value(name: str) -> None:
    view, oracle = VIEWS[name]
    for rows in binary.small_samples((0.25, 0.5, 0.75), 6):
        found = curves.groups(rows)
        exact, figure = oracle(found), view(of(found), False)
        if exact is None:
            assert all(map(math.isnan, figure)), found
        else:
            assert all(is_nearest(value, exact) for value in figure), found


def small() -> Iterator[Groups]:
    yield from curves.small_buckets(1, 3)
    yield from curves.small_buckets(2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_bounds_hold_for_every_order_of_small_buckets_and_are_reached(name: str) -> None:
    view, oracle = VIEWS[name]
    for buckets in small():
        value, low, high = view(of(buckets), True)
        found = [exact for exact in map(oracle, curves.all_orders(buckets)) if exact is not None]
        if not found:
            assert math.isnan(value) and math.isnan(low) and math.isnan(high), buckets
            continue
        least, most, tied = min(found), max(found), oracle(buckets)
        assert tied is not None and is_nearest(value, tied), buckets
        assert low <= value <= high
        assert Fraction(low) <= least and most <= Fraction(high), buckets
        parts = int(name.split()[-1]) if "lift" in name else 1
        if sum(map(sum, buckets)) % parts:
            continue  # a cut through a row: the row above it and the one below are never one
        room = Fraction(math.ulp(1.0)) * 2
        assert least - Fraction(low) <= room and Fraction(high) - most <= room, buckets


def test_the_distance_of_the_best_point_is_the_nearest_root() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 6):
        found = curves.groups(rows)
        exact, figure = curves.best("distance")(found), best_by("distance")(of(found), False)
        if exact is None:
            assert all(map(math.isnan, figure))
            continue
        value = figure[0]
        below, above = (Fraction(value) + Fraction(math.ulp(value)) * s / 2 for s in (-1, 1))
        assert max(below, Fraction()) ** 2 <= -exact <= above**2


def test_the_distance_of_buckets_is_bounded_for_every_order() -> None:
    for buckets in small():
        value, low, high = best_by("distance")(of(buckets), True)
        found = [
            -e for e in map(curves.best("distance"), curves.all_orders(buckets)) if e is not None
        ]
        if not found:
            assert math.isnan(value)
            continue
        assert low <= value <= high
        assert Fraction(low) ** 2 <= min(found) and max(found) <= Fraction(high) ** 2
        for end, exact in ((low, min(found)), (high, max(found))):
            assert abs(end - math.sqrt(exact)) <= 2 * math.ulp(1.0)


@pytest.mark.parametrize("scale", [2**20, 2**30, 2**40, 2**59, 2**60])
@pytest.mark.parametrize("name", VIEWS)
def test_counts_of_any_size_are_exact(name: str, scale: int) -> None:
    # P N passes int64 from 2**30 on, a count 2**53 at 2**59, and the rows int64 at 2**60.
    view, oracle = VIEWS[name]
    buckets = [(0, 1), (3, 2), (1, 0), (5, 1)]
    large = [(n * scale + (n > 0), p * scale) for n, p in buckets]
    found = of(large)
    exact = oracle(large)
    assert exact is not None
    assert is_nearest(view(found, False)[0], exact)
    value, low, high = view(found, True)
    assert low <= value <= high and is_nearest(value, exact)


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
    _, low, _ = average_precision(of(buckets), bounded=True)
    _, _, high = trapezoid(of(buckets), bounded=True)
    least, most = curves.ap(worst), curves.pr_auc_trapezoid(best_)
    assert least is not None and most is not None
    assert 0 <= least - Fraction(low) < Fraction(1, 10**9)
    assert 0 <= Fraction(high) - most < Fraction(1, 10**9)


def test_ends_leave_room_for_the_rounding_of_the_arithmetic() -> None:
    # The worst order has exactly 1/2, the best exactly 1, beyond which nothing is.
    below = math.nextafter(0.5, 0)
    assert average_precision(of([(1, 1)]), bounded=True) == (0.5, below, 1.0)
    assert trapezoid(of([(1, 0), (0, 1)]), bounded=True)[1:] == (
        math.nextafter(0.25, 0),
        math.nextafter(0.25, 1),
    )


def test_a_distance_that_was_rounded_up_is_no_lower_end() -> None:
    for buckets in curves.small_buckets(4, 1):
        _, low, high = best_by("distance")(of(buckets), True)
        found = [curves.best("distance")(one) for one in curves.all_orders(buckets)]
        known = [-exact for exact in found if exact is not None]
        if known:
            assert Fraction(low) ** 2 <= min(known) and max(known) <= Fraction(high) ** 2
