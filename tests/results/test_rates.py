"""Rates of a table of two classes, and their intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
import pytest
from pytest import approx

from streammetrics.core.bounded import Bounded
from streammetrics.core.errors import InputError
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.results.class_rates import ClassRates
from streammetrics.results.rates import BoundedRates, Rates


def formulas(r: Rates) -> Iterator[tuple[str, int | Fraction, int | Fraction]]:
    """The name of a rate, and numerator and denominator as the textbook has them."""
    n = r.tp + r.fp + r.fn + r.tn
    yield "accuracy", r.tp + r.tn, n
    yield "error_rate", r.fp + r.fn, n
    yield "precision", r.tp, r.tp + r.fp
    yield "recall", r.tp, r.tp + r.fn
    yield "specificity", r.tn, r.tn + r.fp
    yield "fpr", r.fp, r.fp + r.tn
    yield "fnr", r.fn, r.fn + r.tp
    yield "npv", r.tn, r.tn + r.fn
    yield "jaccard", r.tp, r.tp + r.fp + r.fn
    pairs = (r.tp + r.fn) * (r.tn + r.fp)
    if pairs:
        mean = (Fraction(r.tp, r.tp + r.fn) + Fraction(r.tn, r.tn + r.fp)) / 2
        yield "balanced_accuracy", mean, 1
    else:
        yield "balanced_accuracy", 0, 0
    if n:
        observed = Fraction(r.tp + r.tn, n)
        chance = Fraction((r.tp + r.fp) * (r.tp + r.fn) + (r.tn + r.fp) * (r.tn + r.fn), n * n)
        yield "kappa", observed - chance, 1 - chance


def test_every_rate_is_its_formula_rounded_once() -> None:
    # At 3**40 the counts no longer fit a float, nor their products an int64.
    for tp, fp, fn, tn, scale in product(*[range(3)] * 4, (1, 3**40)):
        rates = Rates(tp=tp * scale, fp=fp * scale, fn=fn * scale, tn=tn * scale)
        for name, top, bottom in formulas(rates):
            value = getattr(rates, name)
            if bottom:
                assert value == float(Fraction(top) / bottom), (name, rates)
            else:
                assert math.isnan(value), (name, rates)


def test_mcc_is_the_correlation_rounded_once() -> None:
    wide = Context(prec=80)
    for tp, fp, fn, tn in product(range(4), repeat=4):
        square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        value = Rates(tp=tp, fp=fp, fn=fn, tn=tn).mcc
        if square:
            top = Decimal(tp * tn - fp * fn)
            assert value == float(wide.divide(top, wide.sqrt(Decimal(square))))
        else:
            assert math.isnan(value)


def test_g_mean_is_the_root_of_recall_times_specificity_rounded_once() -> None:
    wide = Context(prec=80)
    for tp, fp, fn, tn in product(range(4), repeat=4):
        value, rows = Rates(tp=tp, fp=fp, fn=fn, tn=tn).g_mean, (tp + fn) * (tn + fp)
        if rows:
            assert value == float(wide.sqrt(wide.divide(Decimal(tp * tn), Decimal(rows))))
        else:
            assert math.isnan(value)
    without = Rates(tp=0, fp=1, fn=2, tn=3).interval("g_mean")
    assert not without.defined and "without a right prediction" in without.reason


def test_f_beta_and_f_alpha_weigh_precision_and_recall() -> None:
    weights = 0.0, 0.5, 1.0, 0.1, 0.25
    for weight, tp, fp, fn in product(weights, range(1, 4), range(3), range(3)):
        exact, square = Fraction(weight), Fraction(weight * 2) ** 2
        rates = Rates(tp=tp, fp=fp, fn=fn, tn=1)
        p, r = Fraction(tp, tp + fp), Fraction(tp, tp + fn)
        assert rates.f_beta(weight * 2) == float((1 + square) * p * r / (square * p + r))
        assert rates.f_alpha(weight) == float(1 / (exact / p + (1 - exact) / r))
        assert rates.f_alpha(0.5) == rates.f_beta(1) == rates.f1


def test_a_weight_out_of_its_range_is_refused() -> None:
    rates = Rates(tp=1, fp=1, fn=1, tn=1)
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="at least 0"):
            rates.f_beta(value)
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="expected a share from 0 to 1, got"):
            rates.f_alpha(value)


def test_both_layouts_of_the_table() -> None:
    rates = Rates(tp=1, fp=2, fn=3, tn=4)
    assert (rates.rows, rates.positives) == (10, 4)
    assert rates.table().tolist() == [[4, 2], [3, 1]]
    assert rates.table("positive_first").tolist() == [[1, 3], [2, 4]]
    with pytest.raises(InputError, match="positive_first"):
        rates.table("rows")  # type: ignore[arg-type]


def test_f_is_zero_where_nothing_was_found_and_what_is_said_where_nothing_was_there() -> None:
    nothing, rates = Rates(tp=0, fp=0, fn=2, tn=5), Rates(tp=1, fp=1, fn=0, tn=1)
    absent = Rates(tp=0, fp=0, fn=0, tn=5)
    assert all(map(math.isnan, (absent.f1, absent.f_beta(2), absent.f_alpha(0.3))))
    assert nothing.f_beta(2) == 0.0
    assert math.isnan(nothing.f_alpha(1)) and math.isnan(nothing.precision)
    for worth in (0, 1, 0.0):
        assert nothing.f_alpha(1, zero_division=worth) == worth
        assert nothing.f_alpha(0, zero_division=worth) == nothing.recall == 0.0
        assert nothing.f_beta(1, zero_division=worth) == nothing.f1 == 0.0
        assert absent.f_beta(1, zero_division=worth) == worth
        assert rates.f_alpha(1, zero_division=worth) == rates.precision == 0.5


def test_its_text_has_a_unit_of_weight_only_where_rows_have_weights() -> None:
    assert "units of weight" not in repr(Rates(tp=1, fp=2, fn=3, tn=4))
    tenths = Rates(tp=1, fp=2, fn=3, tn=4, weight_unit=Fraction(1, 10), _surplus=9)
    first, last = repr(tenths).splitlines()[0], " ".join(repr(tenths).splitlines()[-3:])
    assert first == "Rates: rows 1, weight units 10, positives 4, tp 1, fp 2, fn 3, tn 4"
    assert "counts are in units of weight, 1/10 each" in last


WORKED = Rates(tp=40, fp=10, fn=30, tn=920)


@pytest.mark.parametrize(
    ("view", "lower", "upper", "se"),
    [  # numeric multinomial delta, statsmodels
        ("f_beta(0.5)", 0.635261594, 0.824159649, 0.048498407489),
        ("f_alpha(0.8)", 0.635261594, 0.824159649, 0.048498407489),
        ("f1", 0.564223177606, 0.755464947206, 0.0496903995),
        ("f_beta(1)", 0.564223177606, 0.755464947206, 0.0496903995),
        ("f_beta(2)", 0.493838661, 0.708107934, 0.055477713377),
    ],
)
def test_an_f_has_its_worked_interval(view: str, lower: float, upper: float, se: float) -> None:
    interval = WORKED.interval(view)
    assert (interval.lower, interval.upper) == (approx(lower, abs=5e-10), approx(upper, abs=5e-10))
    assert interval.se == approx(se, abs=5e-11) and interval.n == 80
    assert interval.method == ("mapped" if lower == 0.564223177606 else "logit")


def test_a_share_has_wilsons_interval_of_its_own_rows() -> None:
    for view, hits, n in (
        *(("accuracy", 960, 1000), ("error_rate", 40, 1000), ("precision", 40, 50)),
        *(("recall", 40, 70), ("specificity", 920, 930), ("fpr", 10, 930), ("fnr", 30, 70)),
        *(("npv", 920, 950), ("jaccard", 40, 80), ("f_alpha(1)", 40, 50), ("f_alpha(0)", 40, 70)),
    ):
        interval = WORKED.interval(view, level=0.9)
        assert (interval.lower, interval.upper) == wilson_bounds(hits, n, critical(0.9)), view
        assert (interval.method, interval.n, interval.level, interval.n_eff) == (
            "wilson",
            n,
            0.9,
            n,
        ), view


def test_a_coefficient_is_that_of_two_classes_with_its_multinomial_variance() -> None:
    classes = ClassRates(2, np.arange(4), np.array([920, 10, 30, 40]))
    for name in ("balanced_accuracy", "g_mean", "mcc", "kappa"):
        interval, expected = WORKED.interval(name), classes.interval(name)
        assert interval.se == approx(expected.se, rel=1e-12) and interval.method == "delta", name
        assert (interval.lower, interval.upper) == approx(
            (expected.lower, expected.upper), rel=1e-12
        )
        assert (interval.estimate, interval.n) == (expected.estimate, 1000)


def test_without_rows_everything_is_possible() -> None:
    for view in (None, "accuracy", "f1", "f_beta(2)", "balanced_accuracy", "mcc"):
        interval = Rates(0, 0, 0, 0).interval(view)
        assert (
            not interval.defined and interval.reason == "no rows" and math.isnan(interval.estimate)
        ), view


def test_where_the_variance_is_zero_nothing_is_said() -> None:
    perfect = Rates(tp=5, fp=0, fn=0, tn=5)
    assert (
        perfect.interval("kappa").reason == "the variance is 0, which says nothing about other rows"
    )
    assert perfect.interval("f_beta(2)").reason and not perfect.interval("f_beta(2)").defined
    wilson = 5 / (5 + 1.959963984540054**2)  # the lower end of 5 of 5
    assert perfect.interval("f1").lower == approx(2 * wilson / (1 + wilson), rel=1e-14)


def test_weighted_rows_have_none_and_it_says_why() -> None:
    interval = Rates(4, 1, 1, 4, _surplus=5).interval("accuracy")
    assert (
        not interval.defined and interval.reason.startswith("rows are weighted") and interval.n == 5
    )


def test_what_there_is_not_is_refused() -> None:
    for view, level, method, message in (
        ("auc", 0.95, "auto", "a view of Rates: accuracy"),
        *((view, 0.95, "auto", "a view of Rates") for view in ("tp", "_units", "table(sklearn)")),
        ("f_beta(1,2,3)", 0.95, "auto", "a view of Rates"),
        ("f_beta(-1)", 0.95, "auto", "a finite number of at least 0"),
        *(("f1", level, "auto", "between 0 and 1") for level in (0, 95, math.nan)),
        ("f1", 0.95, "wald", "'delong'"),
        ("mcc", 0.95, "wilson", "'auto' or 'delta'"),
        ("f1", 0.95, "wilson", "'auto' or 'mapped' or 'logit' or 'delta'"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            WORKED.interval(view, level=level, method=method)


def test_a_share_by_delta_is_symmetric() -> None:
    interval = WORKED.interval("precision", method="delta")
    assert (
        interval.se == approx(math.sqrt(0.8 * 0.2 / 50), rel=1e-12) and interval.method == "delta"
    )
    assert (interval.lower + interval.upper) / 2 == approx(0.8, rel=1e-12)
    assert interval.upper - 0.8 == approx(1.959963984540054 * interval.se, rel=1e-12)


# Rates at a threshold inside a bucket, against every way in which its rows may lie.


COUNTS = ("tp", "fp", "fn", "tn")
RATES = (
    *("accuracy", "error_rate", "precision", "recall", "specificity", "fpr", "fnr", "npv"),
    *("balanced_accuracy", "g_mean", "mcc", "kappa", "jaccard", "f1"),
)


def boxes() -> Iterator[tuple[BoundedRates, list[Rates]]]:
    """Buckets of up to two rows of a class with one above or below, and their possible tables."""
    sides, inside = range(2), range(3)
    for t0, p, t2, f0, n, f2 in product(sides, inside, sides, sides, inside, sides):
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


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    *((name, attrgetter(name)) for name in (*COUNTS, *RATES)),
    *((f"{name}({weight})", methodcaller(name, weight))
      for name in ("f_beta", "f_alpha") for weight in (0, 0.5, 1)),
    *((f"{name}(0.5, {worth})", methodcaller(name, 0.5, zero_division=worth))
      for name in ("f_beta", "f_alpha") for worth in (0, 1)),
]  # fmt: skip


def test_every_rate_is_between_its_ends_wherever_the_rows_lie() -> None:
    for (between, every), (name, call) in product(boxes(), CALLS):
        bounds, where = call(between), (name, between)
        assert isinstance(bounds, Bounded)
        values = [v for v in map(call, every) if not math.isnan(v)]
        if not values:
            assert math.isnan(bounds.low) and math.isnan(bounds.high), where
            continue
        assert bounds.low <= min(values) and max(values) <= bounds.high, where
        if name != "mcc":  # whose end is 0 where nothing or everything is predicted positive
            assert bounds.low >= math.nextafter(min(values), -math.inf), where
            assert bounds.high <= math.nextafter(max(values), math.inf), where
        assert math.isnan(bounds.value) or bounds.low <= bounds.value <= bounds.high, where
        if all(math.isnan(rates.f1) for rates in every) and name.endswith(", 1)"):
            assert bounds == Bounded(1, 1, 1), where


def test_the_value_is_that_of_a_bucket_below_the_threshold() -> None:
    worst, best = Rates(tp=1, fp=2, fn=2, tn=0), Rates(tp=3, fp=0, fn=0, tn=2)
    rates = BoundedRates(worst, best, Rates(tp=1, fp=0, fn=2, tn=2))
    assert (rates.tp, rates.fp) == (Bounded(1, 1, 3), Bounded(0, 0, 2))
    assert (rates.rows, rates.positives) == (5, 3)
    assert rates.precision.value == 1.0
    assert rates.table().tolist() == [[2, 0], [2, 1]] and rates.weight_unit == 1
    assert rates.table("positive_first").tolist() == [[1, 2], [0, 2]]
    assert rates.recall == Bounded(1 / 3, math.nextafter(1 / 3, 0), 1.0)


def test_ends_are_rounded_outwards() -> None:
    worst, best = Rates(tp=1, fp=1, fn=2, tn=5), Rates(tp=2, fp=0, fn=1, tn=6)
    recall = BoundedRates(worst, best, worst).recall
    assert Fraction(recall.low) < Fraction(1, 3) and Fraction(2, 3) < Fraction(recall.high)
