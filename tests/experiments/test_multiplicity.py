"""Several comparisons at once: worked values, ties, order, names."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments import adjust_fdr, adjust_fwer

P = {"a": 0.001, "b": 0.012, "c": 0.02, "d": 0.04, "e": 0.3}


def rejected(e_values: list[float], alpha: float = 0.05) -> list[bool]:
    named = {str(number): e for number, e in enumerate(e_values)}
    return list(adjust_fdr(e_values=named, alpha=alpha).values())


def test_adjusted_p_values_keep_their_names_in_every_order() -> None:
    adjusted = {
        "holm": {"a": 0.005, "b": 0.048, "c": 0.06, "d": 0.08, "e": 0.3},
        "bonferroni": {"a": 0.005, "b": 0.06, "c": 0.1, "d": 0.2, "e": 1.0},
    }
    for order in permutations(P):
        mixed = {name: P[name] for name in order}
        assert adjust_fwer(mixed) == pytest.approx(adjusted["holm"], rel=1e-15)
        assert adjust_fwer(mixed, "bonferroni") == pytest.approx(adjusted["bonferroni"], rel=1e-15)
        assert list(adjust_fwer(mixed)) == list(order)
    assert adjust_fwer({"a": 0.02, "b": 0.001, "c": 0.3})["a"] == 0.04
    assert adjust_fwer({"a": 0.6, "b": 0.4}) == {"a": 0.8, "b": 0.8}
    with pytest.raises(SettingsError):
        adjust_fwer(P, "bh")  # type: ignore[arg-type]


def test_an_e_value_at_its_threshold_is_rejected() -> None:
    # Thresholds 120, 60, 40, 30, 24 and 20: the second and third are met exactly.
    e = [200.0, 60.0, 40.0, 12.0, 1.0, 0.3]
    for order in permutations(range(6)):
        assert rejected([e[i] for i in order]) == [i < 3 for i in order]
    below = [200.0, 60.0, math.nextafter(40.0, 0), 12.0, 1.0, 0.3]
    assert rejected(below) == [True, True, False, False, False, False]


def test_thresholds_are_compared_without_a_tolerance() -> None:
    # m e-values at exactly 1 / alpha: all are rejected, and none just below.
    levels = ((0.05, 20.0), (0.1, 10.0), (0.01, 100.0), (0.2, 5.0))
    for m, (alpha, inverse) in product(range(1, 40, 3), levels):
        assert rejected([inverse] * m, alpha) == [True] * m
        assert rejected([math.nextafter(inverse, 0)] * m, alpha) == [False] * m
    # 0.15 and 0.7 are floats a little below, whose thresholds would be a little above.
    assert rejected([20.0, 0.0, 0.0], 0.15) == [True, False, False]
    assert rejected([10.0] + [0.0] * 6, 0.7) == [True] + [False] * 6


def test_infinite_e_values_are_rejected_and_nothing_is_adjusted_to_nothing() -> None:
    assert rejected([math.inf, 1.0]) == [True, False]
    assert rejected([1.0, 0.0]) == [False, False]
    assert adjust_fwer({}) == adjust_fwer({}, "bonferroni") == adjust_fdr(e_values={}) == {}
    assert adjust_fdr(e_values={"ctr": 19.0}) == {"ctr": False}
