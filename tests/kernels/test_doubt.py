"""How far shares of rounded weights can be off, against all weights that they may have had."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from streammetrics.kernels.doubt import NONE, Doubt
from streammetrics.kernels.figure import UNDEFINED, widened

THIRD = Fraction(1, 3)


@pytest.mark.slow
def test_no_share_of_a_class_is_off_by_more_than_its_doubt() -> None:
    reached = Fraction(0)
    for units in product(range(4), repeat=3):
        for rounded in product((False, True), repeat=3):
            doubt = Doubt(of_positives=sum(rounded), units_of_positives=sum(units))
            room = [
                (u - THIRD, u, u + THIRD) if r else (u,)
                for u, r in zip(units, rounded, strict=True)
            ]
            for weights in product(*room):
                if min(weights) < 0 or not sum(weights):
                    continue
                for some in product((0, 1), repeat=3):
                    true = sum(w for w, s in zip(weights, some, strict=True) if s) / Fraction(
                        sum(weights)
                    )
                    if sum(units):
                        held = Fraction(
                            sum(u for u, s in zip(units, some, strict=True) if s), sum(units)
                        )
                        assert abs(true - held) <= doubt.tpr
                        reached = max(reached, abs(true - held) / doubt.tpr if doubt else reached)
                    else:
                        assert doubt.tpr == 1
    assert reached > Fraction(1, 3)


def test_each_class_has_a_doubt_of_its_own_and_rows_have_one() -> None:
    doubt = Doubt(1, 2, 10, 5)
    assert (doubt.tpr, doubt.fpr, doubt.both) == (Fraction(1, 20), Fraction(1, 5), Fraction(1, 4))
    assert doubt.rows == Fraction(3, 30)
    assert (doubt.tp, doubt.fp) == (1, 1) and Doubt(3).tp == 2
    assert not NONE and NONE.both == NONE.rows == 0
    assert Doubt(of_positives=9, units_of_positives=2).tpr == 1


def test_a_figure_is_widened_outwards_and_within_its_range() -> None:
    assert widened((0.5, 0.25, 0.75), Fraction(1, 8)) == (0.5, 0.125, 0.875)
    assert widened((0.5, 0.25, 0.75), 1) == (0.5, 0.0, 1.0)
    assert widened((0.5, 0.25, 0.75), 9, -1, 2) == (0.5, -1.0, 2.0)
    assert widened((0.5, 0.25, 0.75), 0) == (0.5, 0.25, 0.75)
    value, low, high = widened((0.5, 0.5, 0.5), THIRD)
    assert value == 0.5
    assert Fraction(low) < Fraction(1, 6) < Fraction(math.nextafter(low, 1))
    assert Fraction(math.nextafter(high, 0)) < Fraction(5, 6) < Fraction(high)


def test_what_is_undefined_may_be_anything_where_there_is_doubt() -> None:
    assert all(map(math.isnan, widened(UNDEFINED, 0)))
    value, low, high = widened(UNDEFINED, THIRD, 0, 3)
    assert math.isnan(value) and (low, high) == (0.0, 3.0)
