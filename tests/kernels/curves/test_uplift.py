"""Bounds of uplift over every order and tie of the rows of buckets, and sums past int64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from streammetrics.kernels.curves.uplift import (
    GAIN,
    RADCLIFFE,
    ArmSteps,
    Height,
    Sum,
    Terms,
    area,
    arm_steps,
    heights,
    parts,
    qini,
)
from streammetrics.kernels.exact.rounding import BITS

Rows = tuple[int, ...]  # of the kinds 0 to 3: failures and successes of the control, of the treated
KINDS = range(4)


def steps_of(groups: Sequence[Rows]) -> ArmSteps:
    """Steps of tied rows, the highest scores first."""
    table = np.array([[group.count(kind) for group in groups[::-1]] for kind in KINDS], np.int64)
    return arm_steps(table.reshape(2, 2, -1))


@cache
def weak_orders(rows: Rows) -> tuple[tuple[Rows, ...], ...]:
    """Every order of rows, any of them tied."""
    if not rows:
        return ((),)
    orders = set()
    for taken in product((0, 1), repeat=len(rows)):
        first = tuple(row for row, bit in zip(rows, taken, strict=True) if bit)
        if first:
            later_rows = tuple(row for row, bit in zip(rows, taken, strict=True) if not bit)
            orders |= {(first, *order) for order in weak_orders(later_rows)}
    return tuple(orders)


def tables() -> Iterator[tuple[Rows, Rows]]:
    """Two buckets, the first of one row or none, and the second of one to three."""
    heads: list[Rows] = [(), (1,), (3,), (0, 3)]
    for size in (1, 2, 3):
        for head, tail in product(heads, combinations_with_replacement(KINDS, size)):
            arms = {kind > 1 for kind in (*head, *tail)}
            if len(arms) == 2:
                yield head, tail


def exactly(groups: Sequence[Rows]) -> Fraction:
    """The Qini coefficient before rounding, by trapezoids under V."""
    steps = steps_of(groups)
    n, n_t, n_c = int(steps.rows[-1]), steps.treated, steps.control
    v = [
        Fraction(int(t), n_t) - Fraction(int(c), n_c)
        for t, c in zip(steps.y_t, steps.y_c, strict=True)
    ]
    widths = np.diff(steps.rows).tolist()
    pieces = (w * (a + b) for w, a, b in zip(widths, v[:-1], v[1:], strict=True))
    return sum(pieces, Fraction(0)) / (2 * n) - v[-1] / 2


def test_the_bounds_of_the_qini_coefficient_are_attained() -> None:
    for head, tail in tables():
        groups = [head, tail] if head else [tail]
        value, low, high = qini(steps_of(groups), bounded=True)
        values = [exactly([*([head] if head else []), *order]) for order in weak_orders(tail)]
        if len(head) > 1:
            firsts = weak_orders(head)
            values = [exactly([*a, *b]) for a, b in product(firsts, weak_orders(tail))]
        assert low <= min(values) and max(values) <= high, groups
        assert np.nextafter(low, 1) >= min(values) and np.nextafter(high, -1) <= max(values), groups
        assert value == float(exactly(groups)), groups


@pytest.mark.parametrize("height", [RADCLIFFE, GAIN])
def test_the_bounds_of_other_areas_hold_for_every_order_and_tie(height: Height) -> None:
    for head, tail in tables():
        start = [head] if head else []
        bounded_area = area(steps_of([*start, tail]), height, bounded=True)
        assert bounded_area is not None
        value, low, high = bounded_area.figure()
        assert low <= value <= high
        for order in weak_orders(tail):
            order_area = area(steps_of([*start, *order]), height, bounded=False)
            assert order_area is not None
            exact = Fraction(*order_area.value.fraction())
            assert low <= exact <= high, (head, tail, order)
        if len(tail) == 1 and len(head) < 2:  # rows alone in their buckets are known
            assert np.nextafter(low, np.inf) >= value >= np.nextafter(high, -np.inf)


def test_the_bounds_of_parts_hold_for_every_order_and_tie() -> None:
    buckets: Sequence[Rows] = ((0, 1, 3), (0, 2, 3), (1, 3))
    for k in (2, 3, 4):
        bounded = parts(steps_of(buckets), k, bounded=True)
        for a, b in product(weak_orders(buckets[0]), weak_orders(buckets[1])):
            exact = parts(steps_of([*a, *b, buckets[2]]), k, bounded=False)
            for part, exact_part in zip(bounded, exact, strict=True):
                low, high = part.uplift[1:]
                value = exact_part.uplift[0]
                assert np.isnan(value) or low <= value <= high, (k, a, b)


def test_a_part_of_whole_buckets_is_exact_and_one_without_an_arm_undefined() -> None:
    thirds = parts(steps_of([(1, 3), (2, 3), (0, 2)]), 3, bounded=True)
    assert [part.uplift for part in thirds][::2] == [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
    assert np.isnan(thirds[1].uplift).all()
    assert np.isnan(thirds[1].control) and thirds[1].treated == 0.5
    # Of an arm with one kind of rows the rate is known, wherever it is defined.
    assert [part.uplift for part in parts(steps_of([(0, 3)]), 2, bounded=True)] == 2 * [(1.0,) * 3]
    assert [part.uplift for part in parts(steps_of([(1, 2)]), 2, bounded=True)] == 2 * [(-1.0,) * 3]


def test_counts_past_int64_are_exact() -> None:
    """The same shares, and so the same figures, of so many times the rows."""
    few = np.array([[[3, 1, 0], [1, 0, 2]], [[1, 2, 0], [0, 1, 3]]])
    small = arm_steps(few)
    products = arm_steps(few << 30)  # 7 * 2**30 rows of each arm
    assert (
        products.kinds.dtype == np.int64 and heights(products).tolist() == heights(small).tolist()
    )
    large = arm_steps(few << 60)
    assert large.kinds.dtype == object
    assert qini(large, bounded=True) == qini(small, bounded=True)
    assert heights(large).tolist() == heights(small).tolist()
    for many, base in zip(
        *(parts(curve, 3, bounded=True) for curve in (large, small)), strict=True
    ):
        assert many[:3] == base[:3]
    for height in (RADCLIFFE, GAIN):
        for steps, power in ((products, 60), (large, 120)):
            base, scaled = (area(curve, height, bounded=False) for curve in (small, steps))
            assert base is not None and scaled is not None
            assert scaled.figure()[0] == base.figure()[0] * 2.0**power


def test_bounds_are_the_value_where_every_order_has_the_same_heights() -> None:
    for height, groups in (
        (RADCLIFFE, [(0, 0, 2)]),  # no row succeeds
        (GAIN, [(0,), (3,), (3, 3)]),  # the rates of both arms are 1 and 0 throughout
        (GAIN, [(2,), (1,), (1, 1)]),
    ):
        bounded_area = area(steps_of(groups), height, bounded=True)
        assert bounded_area is not None
        value, low, high = bounded_area.figure()
        assert low == value == high, groups


def test_a_sum_is_certain_to_lie_between_its_first_bounds_which_are_narrow() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 7, 1000):
        a, b, c = rng.integers(1, 1 << 61, (3, size))
        a *= rng.choice((-1, 1), size)
        total = Sum([Terms(a, b, c), Terms(-a[::2], b[::2], c[::2])])
        low, high = (Fraction(*end) for end in total.enclosing(BITS[0]))
        rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        numbers = (Fraction(abs(x * y), z) for x, y, z in rows)
        assert low < Fraction(*total.fraction()) < high
        assert high - low < 4 * sum(numbers) / 2**88
