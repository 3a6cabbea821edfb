"""Several comparisons at once: worked values, ties, order, names."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest

from streammetrics.core.errors import SettingsError
from streammetrics.experiments.multiplicity import (
    adjust_fdr,
    adjust_fwer,
    bonferroni,
    e_bh,
    holm,
)

P = [0.001, 0.012, 0.02, 0.04, 0.3]
E = [200.0, 60.0, 40.0, 12.0, 1.0, 0.3]


def test_adjusted_p_values() -> None:
    assert [round(p, 6) for p in holm(P)] == [0.005, 0.048, 0.06, 0.08, 0.3]
    assert [round(p, 6) for p in bonferroni(P)] == [0.005, 0.06, 0.1, 0.2, 1.0]


def test_they_stay_with_their_comparison() -> None:
    for order in permutations(range(5)):
        mixed = [P[i] for i in order]
        for adjust in (holm, bonferroni):
            assert adjust(mixed) == [adjust(P)[i] for i in order]
        assert e_bh([E[i] for i in order], 0.05) == [i < 3 for i in order]


def test_an_e_value_at_its_threshold_is_rejected() -> None:
    # Thresholds 120, 60, 40, 30, 24 and 20: the second and third are met exactly.
    assert e_bh(E, 0.05) == [True, True, True, False, False, False]
    below = [200.0, 60.0, math.nextafter(40.0, 0), 12.0, 1.0, 0.3]
    assert e_bh(below, 0.05) == [True, True, False, False, False, False]


def test_thresholds_are_compared_without_a_tolerance() -> None:
    # m e-values at exactly 1 / alpha: all are rejected, and none just below.
    levels = ((0.05, 20.0), (0.1, 10.0), (0.01, 100.0), (0.2, 5.0))
    for m, (alpha, inverse) in product(range(1, 40), levels):
        assert e_bh([inverse] * m, alpha) == [True] * m
        assert e_bh([math.nextafter(inverse, 0)] * m, alpha) == [False] * m


def test_alpha_is_what_was_written_and_not_its_float() -> None:
    # 0.15 and 0.7 are floats a little below, whose thresholds would be a little above.
    assert e_bh([20.0, 0.0, 0.0], 0.15) == [True, False, False]
    assert e_bh([10.0] + [0.0] * 6, 0.7) == [True] + [False] * 6


def test_infinite_and_undefined_e_values() -> None:
    assert e_bh([math.inf, 1.0], 0.05) == [True, False]
    assert e_bh([1.0, 0.0], 0.05) == [False, False]


def test_nothing_to_compare() -> None:
    assert bonferroni([]) == holm([]) == e_bh([], 0.05) == []


NAMED = {"ctr": 0.02, "auc": 0.001, "ndcg": 0.3}


def test_p_values_keep_their_names() -> None:
    assert adjust_fwer(NAMED) == {"ctr": 0.04, "auc": 0.003, "ndcg": 0.3}
    assert adjust_fwer(NAMED, "bonferroni") == {
        "ctr": 0.06,
        "auc": 0.003,
        "ndcg": 0.8999999999999999,
    }


def test_e_values_keep_their_names() -> None:
    found = adjust_fdr(e_values={"ctr": 30.0, "auc": 70.0, "ndcg": 1.0}, alpha=0.05)
    assert adjust_fdr(e_values={"ctr": 19.0}) == {"ctr": False}
    assert found == {"ctr": True, "auc": True, "ndcg": False}


def test_another_method_is_refused() -> None:
    with pytest.raises(SettingsError):
        adjust_fwer(NAMED, "bh")  # type: ignore[arg-type]


def test_nothing_to_adjust() -> None:
    assert adjust_fwer({}) == adjust_fdr(e_values={}) == {}
