"""Rates at a threshold inside a bucket, against every way in which its rows may lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest

from streammetrics.core.bounded import Bounded
from streammetrics.results.rates import BoundedRates, Rates
from tests.depth import further_are_slow

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


@pytest.mark.parametrize("name", [*COUNTS, *RATES])
def test_every_rate_is_between_its_ends_wherever_the_rows_lie(name: str) -> None:
    for between, every in boxes():
        found = getattr(between, name)
        assert isinstance(found, Bounded)
        values = [v for v in (getattr(rates, name) for rates in every) if not math.isnan(v)]
        if not values:
            assert math.isnan(found.low) and math.isnan(found.high), between
            continue
        assert found.low <= min(values) and max(values) <= found.high, between
        if name != "mcc":  # whose end is 0 where nothing or everything is predicted positive
            assert found.low >= math.nextafter(min(values), -math.inf)
            assert found.high <= math.nextafter(max(values), math.inf)
        assert math.isnan(found.value) or found.low <= found.value <= found.high


@pytest.mark.slow
@pytest.mark.parametrize("worth", [0, 1])
@pytest.mark.parametrize("weight", list(further_are_slow(0.5, 0, 1)))
def test_what_0_over_0_is_worth_is_between_the_ends_too(weight: float, worth: float) -> None:
    for between, every in boxes():
        for method in ("f_beta", "f_alpha"):
            values = [getattr(rates, method)(weight, zero_division=worth) for rates in every]
            found = getattr(between, method)(weight, zero_division=worth)
            assert found.low <= min(values) and max(values) <= found.high, between
            assert found.low >= math.nextafter(min(values), -math.inf), between
            assert found.high <= math.nextafter(max(values), math.inf), between
            assert found.value == getattr(between.value, method)(weight, zero_division=worth)
            if all(math.isnan(getattr(rates, method)(weight)) for rates in every):
                assert found == Bounded(worth, worth, worth)


@pytest.mark.parametrize("weight", [0, 0.5, 1])
def test_f_measures_are_between_their_ends(weight: float) -> None:
    for between, every in boxes():
        for method in ("f_beta", "f_alpha"):
            found = getattr(between, method)(weight)
            values = [v for v in (getattr(r, method)(weight) for r in every) if not math.isnan(v)]
            if values:
                assert found.low <= min(values) and max(values) <= found.high, between


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
