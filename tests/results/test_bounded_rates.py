"""Rates at a threshold inside a bucket, against every way in which its rows may lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from operator import attrgetter, methodcaller
from typing import Any

import pytest

from streammetrics.core.bounded import Bounded
from streammetrics.results.rates import BoundedRates, Rates

COUNTS = ("tp", "fp", "fn", "tn")
RATES = (
    *("accuracy", "error_rate", "precision", "recall", "specificity", "fpr", "fnr", "npv"),
    *("balanced_accuracy", "mcc", "kappa", "jaccard", "f1"),
)


def boxes(most: int = 3) -> Iterator[tuple[BoundedRates, list[Rates]]]:
    """Every bucket with some rows above it and below, and what may be at the threshold."""
    sizes = range(most)
    for t0, p, t2, f0, n, f2 in product(sizes, repeat=6):
        if not p + n:
            continue
        positives, negatives = t0 + p + t2, f0 + n + f2
        every = [
            Rates(t0 + i, f0 + j, positives - t0 - i, negatives - f0 - j)
            for i in range(p + 1)
            for j in range(n + 1)
        ]
        worst = next(r for r in every if (r.tp, r.fp) == (t0, f0 + n))
        best = next(r for r in every if (r.tp, r.fp) == (t0 + p, f0))
        below = next(r for r in every if (r.tp, r.fp) == (t0, f0))
        yield BoundedRates(worst, best, below), every


BOXES = list(boxes())
CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    *((name, attrgetter(name)) for name in (*COUNTS, *RATES)),
    *((f"{name}({weight})", methodcaller(name, weight))
      for name in ("f_beta", "f_alpha") for weight in (0, 0.5, 1)),
    *((f"{name}(0.5, {worth})", methodcaller(name, 0.5, zero_division=worth))
      for name in ("f_beta", "f_alpha") for worth in (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_every_rate_is_between_its_ends_wherever_the_rows_lie(
    name: str, call: Callable[[Any], Any]
) -> None:
    for between, every in BOXES:
        found = call(between)
        assert isinstance(found, Bounded)
        values = [v for v in map(call, every) if not math.isnan(v)]
        if not values:
            assert math.isnan(found.low) and math.isnan(found.high), between
            continue
        assert found.low <= min(values) and max(values) <= found.high, between
        if name != "mcc":  # whose end is 0 where nothing or everything is predicted positive
            assert found.low >= math.nextafter(min(values), -math.inf), between
            assert found.high <= math.nextafter(max(values), math.inf), between
        assert math.isnan(found.value) or found.low <= found.value <= found.high
        if all(math.isnan(rates.f1) for rates in every) and name.endswith(", 1)"):
            assert found == Bounded(1, 1, 1)


def test_the_value_is_that_of_a_bucket_below_the_threshold() -> None:
    worst, best = Rates(tp=1, fp=2, fn=2, tn=0), Rates(tp=3, fp=0, fn=0, tn=2)
    found = BoundedRates(worst, best, Rates(tp=1, fp=0, fn=2, tn=2))
    assert (found.tp, found.fp) == (Bounded(1, 1, 3), Bounded(0, 0, 2))
    assert (found.rows, found.positives) == (5, 3)
    assert found.precision.value == 1.0
    assert found.table().tolist() == [[2, 0], [2, 1]] and found.weight_unit == 1
    assert found.table("positive_first").tolist() == [[1, 2], [0, 2]]
    assert found.recall == Bounded(1 / 3, math.nextafter(1 / 3, 0), 1.0)


def test_ends_are_rounded_outwards() -> None:
    worst, best = Rates(tp=1, fp=1, fn=2, tn=5), Rates(tp=2, fp=0, fn=1, tn=6)
    found = BoundedRates(worst, best, worst).recall
    assert Fraction(found.low) < Fraction(1, 3) and Fraction(2, 3) < Fraction(found.high)
