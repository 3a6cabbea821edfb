"""Rates against their formulas in fractions, over every small table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import pytest

from streammetrics.core.errors import InputError
from streammetrics.results.rates import Rates


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
    both = (r.tp + r.fn) * (r.tn + r.fp)
    if both:
        mean = (Fraction(r.tp, r.tp + r.fn) + Fraction(r.tn, r.tn + r.fp)) / 2
        yield "balanced_accuracy", mean, 1
    else:
        yield "balanced_accuracy", 0, 0
    if n:
        observed = Fraction(r.tp + r.tn, n)
        chance = Fraction((r.tp + r.fp) * (r.tp + r.fn) + (r.tn + r.fp) * (r.tn + r.fn), n * n)
        yield "kappa", observed - chance, 1 - chance


@pytest.mark.parametrize("scale", [1, 3**40])
def test_every_rate_is_its_formula_rounded_once(scale: int) -> None:
    # At 3**40 the counts no longer fit a float, nor their products an int64.
    for tp, fp, fn, tn in product(range(3), repeat=4):
        rates = Rates(tp=tp * scale, fp=fp * scale, fn=fn * scale, tn=tn * scale)
        for name, top, bottom in formulas(rates):
            found = getattr(rates, name)
            if bottom:
                assert found == float(Fraction(top) / bottom), (name, rates)
            else:
                assert math.isnan(found), (name, rates)


def test_mcc_is_the_correlation_rounded_once() -> None:
    wide = Context(prec=80)
    for tp, fp, fn, tn in product(range(4), repeat=4):
        square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        found = Rates(tp=tp, fp=fp, fn=fn, tn=tn).mcc
        if square:
            top = Decimal(tp * tn - fp * fn)
            assert found == float(wide.divide(top, wide.sqrt(Decimal(square))))
        else:
            assert math.isnan(found)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0, 0.1])
def test_f_beta_weighs_precision_and_recall(beta: float) -> None:
    square = Fraction(beta) ** 2
    for tp, fp, fn in product(range(1, 4), range(3), range(3)):
        rates = Rates(tp=tp, fp=fp, fn=fn, tn=1)
        p, r = Fraction(tp, tp + fp), Fraction(tp, tp + fn)
        assert rates.f_beta(beta) == float((1 + square) * p * r / (square * p + r))


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 1.0, 0.1])
def test_f_alpha_is_the_weighted_harmonic_mean(alpha: float) -> None:
    weight = Fraction(alpha)
    for tp, fp, fn in product(range(1, 4), range(3), range(3)):
        rates = Rates(tp=tp, fp=fp, fn=fn, tn=1)
        p, r = Fraction(tp, tp + fp), Fraction(tp, tp + fn)
        assert rates.f_alpha(alpha) == float(1 / (weight / p + (1 - weight) / r))
        if alpha == 0.5:
            assert rates.f_alpha(alpha) == rates.f_beta(1) == rates.f1


def test_alpha_and_beta_are_two_names_of_one_weight() -> None:
    # beta**2 = 1 / alpha - 1
    for alpha, beta in ((0.5, 1.0), (0.2, 2.0), (0.8, 0.5)):
        rates = Rates(tp=6, fp=2, fn=3, tn=1)
        near = rates.f_beta(beta)
        # 0.2 and 0.8 are not fractions of a power of two, so the last bit may differ.
        assert abs(rates.f_alpha(alpha) - near) <= math.ulp(near)


def test_f_is_zero_where_nothing_was_found_and_nan_where_nothing_was_there() -> None:
    assert Rates(tp=0, fp=0, fn=2, tn=1).f1 == 0.0
    assert Rates(tp=0, fp=0, fn=2, tn=1).f_beta(2) == 0.0
    nothing = Rates(tp=0, fp=0, fn=0, tn=5)
    assert all(map(math.isnan, (nothing.f1, nothing.f_beta(2), nothing.f_alpha(0.3))))


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_beta_that_is_no_weight_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="at least 0"):
        Rates(tp=1, fp=1, fn=1, tn=1).f_beta(value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_an_alpha_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="expected a share from 0 to 1, came"):
        Rates(tp=1, fp=1, fn=1, tn=1).f_alpha(value)


def test_both_layouts_of_the_table() -> None:
    rates = Rates(tp=1, fp=2, fn=3, tn=4)
    assert rates.table().tolist() == [[4, 2], [3, 1]]
    assert rates.table("positive_first").tolist() == [[1, 3], [2, 4]]
    with pytest.raises(InputError, match="positive_first"):
        rates.table("rows")  # type: ignore[arg-type]


def test_denominators_are_counted() -> None:
    rates = Rates(tp=1, fp=2, fn=3, tn=4)
    assert (rates.rows, rates.positives) == (10, 4)


def test_what_0_over_0_is_worth_may_be_said() -> None:
    nothing, found = Rates(tp=0, fp=0, fn=2, tn=5), Rates(tp=1, fp=1, fn=0, tn=1)
    assert math.isnan(nothing.f_alpha(1)) and math.isnan(nothing.precision)
    for worth in (0, 1, 0.0):
        assert nothing.f_alpha(1, zero_division=worth) == worth
        assert nothing.f_alpha(0, zero_division=worth) == nothing.recall == 0.0
        assert nothing.f_beta(1, zero_division=worth) == nothing.f1 == 0.0
        assert Rates(0, 0, 0, 5).f_beta(1, zero_division=worth) == worth
        assert found.f_alpha(1, zero_division=worth) == found.precision == 0.5


def test_its_text_has_a_unit_of_weight_only_where_rows_have_weights() -> None:
    assert repr(Rates(tp=1, fp=2, fn=3, tn=4)) == "Rates(tp=1, fp=2, fn=3, tn=4)"
    tenths = Rates(tp=1, fp=2, fn=3, tn=4, weight_unit=Fraction(1, 10), _excess=9)
    assert repr(tenths) == "Rates(tp=1, fp=2, fn=3, tn=4, weight_unit=Fraction(1, 10))"
