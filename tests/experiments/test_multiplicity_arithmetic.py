"""Several comparisons at once: worked values, ties, order."""

from __future__ import annotations

import math
from itertools import permutations

import pytest

from streammetrics.experiments.multiplicity import benjamini_hochberg, bonferroni, e_bh, holm

P = [0.001, 0.012, 0.02, 0.04, 0.3]
E = [200.0, 60.0, 40.0, 12.0, 1.0, 0.3]


def test_adjusted_p_values() -> None:
    assert [round(p, 6) for p in holm(P)] == [0.005, 0.048, 0.06, 0.08, 0.3]
    assert [round(p, 6) for p in benjamini_hochberg(P)] == [0.005, 0.03, 0.033333, 0.05, 0.3]
    assert [round(p, 6) for p in bonferroni(P)] == [0.005, 0.06, 0.1, 0.2, 1.0]


def test_they_stay_with_their_comparison() -> None:
    for order in permutations(range(5)):
        mixed = [P[i] for i in order]
        for adjust in (holm, benjamini_hochberg, bonferroni):
            assert adjust(mixed) == [adjust(P)[i] for i in order]
        assert e_bh([E[i] for i in order], 0.05) == [i < 3 for i in order]


def test_holm_never_rejects_less_than_bonferroni_or_more_than_benjamini_hochberg() -> None:
    for b, h, bh in zip(bonferroni(P), holm(P), benjamini_hochberg(P), strict=True):
        assert bh <= h <= b


def test_an_e_value_at_its_threshold_is_rejected() -> None:
    # Thresholds 120, 60, 40, 30, 24 and 20: the second and third are met exactly.
    assert e_bh(E, 0.05) == [True, True, True, False, False, False]
    below = [200.0, 60.0, math.nextafter(40.0, 0), 12.0, 1.0, 0.3]
    assert e_bh(below, 0.05) == [True, True, False, False, False, False]


@pytest.mark.parametrize("m", range(1, 40))
def test_thresholds_are_compared_without_a_tolerance(m: int) -> None:
    # m e-values at exactly 1 / alpha: all are rejected, and none just below.
    for alpha, inverse in ((0.05, 20.0), (0.1, 10.0), (0.01, 100.0), (0.2, 5.0)):
        assert e_bh([inverse] * m, alpha) == [True] * m
        assert e_bh([math.nextafter(inverse, 0)] * m, alpha) == [False] * m


def test_alpha_is_what_was_written_and_not_its_float() -> None:
    # 0.15 and 0.7 are floats a little below, whose thresholds would be a little above.
    assert e_bh([20.0, 0.0, 0.0], 0.15) == [True, False, False]
    assert e_bh([10.0] + [0.0] * 6, 0.7) == [True] + [False] * 6


def test_a_larger_p_value_never_becomes_the_smaller_one() -> None:
    assert holm([0.011, 0.01, 0.5]) == [0.03, 0.03, 0.5]
    assert benjamini_hochberg([0.03, 0.031]) == [0.031, 0.031]


def test_a_later_threshold_may_carry_the_earlier_ones() -> None:
    assert e_bh([45.0, 45.0, 45.0], 0.05) == [True] * 3
    assert e_bh([25.0, 0.0, 25.0], 0.05) == [False] * 3
    assert e_bh([30.0, 0.0, 30.0], 0.05) == [True, False, True]


def test_infinite_and_undefined_e_values() -> None:
    assert e_bh([math.inf, 1.0], 0.05) == [True, False]
    assert e_bh([1.0, 0.0], 0.05) == [False, False]


def test_nothing_to_compare() -> None:
    assert bonferroni([]) == holm([]) == benjamini_hochberg([]) == e_bh([], 0.05) == []
