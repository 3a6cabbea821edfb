"""The variance of a difference of both arms together, and the skewness number."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest import approx

from streammetrics.kernels.inference.normal_mixture import log_e, multiplier, tuned
from streammetrics.kernels.inference.pooled_variance import (
    RowsAndUsers,
    difference_variance,
    effective_number,
    expected_counts,
    harmonic_number,
    most_skewness_number,
    pooling_factors,
    skewness_number,
    skewness_number_of_sums,
)


def worked(data: Path, kind: str) -> list[dict[str, Any]]:
    text = (data / "worked_examples_decisions.json").read_text(encoding="utf-8")
    values = json.loads(text)["values"]
    return [example for example in values if example["id"].startswith(kind)]


def same(value: float, expected: float) -> bool:
    return value == expected or math.isclose(value, expected, rel_tol=1e-9)


def decided(case: dict[str, Any], variance: float) -> None:
    assert same(variance, case["variance"]), case["id"]
    rho, v = tuned(case["v_opt"], 1 - case["level"]), 1 / variance
    reach = multiplier(v, rho, 1 - case["level"]) * math.sqrt(variance)
    assert same(case["difference"] - reach, case["lower"]), case["id"]
    assert same(case["difference"] + reach, case["upper"]), case["id"]
    assert same(log_e(case["difference"] / math.sqrt(variance), v, rho), case["log_e"])


def test_worked_rates(data: Path) -> None:
    for case in worked(data, "rate/"):
        (s, n), (t, m) = case["control"], case["treatment"]
        events = expected_counts((s, t), (n, m))
        assert all(map(same, events, case["expected"])), case["id"]
        variances = s * (n - s) / n**3, t * (m - t) / m**3
        decided(case, difference_variance(*variances, [(n, m)]))


def test_worked_means(data: Path) -> None:
    for case in worked(data, "mean/"):
        sizes, variances = [], []
        for values, number in zip(
            (case["control"], case["treatment"]), case["skewness"], strict=True
        ):
            sums = [sum(Fraction(value) ** power for value in values) for power in (1, 2, 3)]
            assert same(skewness_number_of_sums(len(values), *sums), number), case["id"]
            assert same(skewness_number(values), number), case["id"]
            sizes.append(len(values))
            variances.append(float(np.var(values, ddof=1)) / len(values))
        decided(case, difference_variance(variances[0], variances[1], [(sizes[0], sizes[1])]))


def test_the_arms_are_interchangeable_and_equal_ones_change_nothing() -> None:
    rng = np.random.default_rng(1)
    for a, b, m, n in rng.uniform(0, 9, (200, 4)).tolist():
        assert difference_variance(a, b, [(m, n)]) == difference_variance(b, a, [(n, m)])
        assert difference_variance(a, b, [(m, m)]) == a + b
        assert pooling_factors(m, n) == pooling_factors(n, m)[::-1]
        control, treatment = RowsAndUsers(m, n, a / 9), RowsAndUsers(n, m, b / 9)
        assert control.factors(treatment) == approx(treatment.factors(control)[::-1], rel=1e-14)
        assert control.factors(control) == approx((1.0, 1.0), rel=1e-15)
        alike = RowsAndUsers(m, m, a / 9).factors(RowsAndUsers(n, n, b / 9))
        of_rows = RowsAndUsers(m, 1.0, 1.0).factors(RowsAndUsers(n, 1.0, 1.0))
        assert alike == approx(pooling_factors(m, n), rel=1e-14) and of_rows == approx(alike)
        # A unit of the value: a power of two is exact.
        assert difference_variance(16 * a, 16 * b, [(m, n)]) == 16 * difference_variance(
            a, b, [(m, n)]
        )
        assert difference_variance(a, b, [(m, n), (n, m)]) >= a + b


def test_an_arm_without_variance_has_that_of_the_other() -> None:
    assert difference_variance(0.5, 0.0, [(100.0, 100.0)]) == 0.5
    assert difference_variance(0.5, 0.0, [(1900.0, 100.0)]) == 9.5
    assert math.isnan(difference_variance(0.5, math.nan, [(1.0, 1.0)]))


def test_many_looks_at_once_are_each_of_them() -> None:
    rng = np.random.default_rng(2)
    a, b, m, n = rng.uniform(0, 9, (4, 50))
    together = difference_variance(a, b, [(m, n), (n, m)])
    for i in range(50):
        assert together[i] == difference_variance(a[i], b[i], [(m[i], n[i]), (n[i], m[i])])


def test_the_skewness_number_of_rare_ones_is_their_number_at_any_scale() -> None:
    for scale in (1.0, 1e-200, 1e200):
        number = skewness_number([scale] * 7 + [0.0] * 50_000)
        assert number == pytest.approx(7.0, rel=1e-3)
    assert skewness_number([-1.0, 0.0, 1.0]) == skewness_number([0.5] * 64) == math.inf
    assert math.isnan(skewness_number([])) and math.isnan(skewness_number([1.0, math.nan, 2.0]))
    assert math.isnan(skewness_number_of_sums(0, 0, 0, 0))


def test_the_bound_from_squares_alone_is_above_the_number() -> None:
    rng = np.random.default_rng(3)
    for sigma in (0.5, 1.0, 2.0):
        x = rng.lognormal(0, sigma, 500) * (rng.random(500) < 0.2)
        about_zero = (x * x).sum() ** 3 / (x**3).sum() ** 2
        bound = most_skewness_number(500, float(x.mean()), float(x.var(ddof=1)) / 500)
        assert bound >= about_zero
    assert most_skewness_number(100, 0.0, 0.0) == 0.0
    assert most_skewness_number(9, 2.0, 0.0) == 9.0


def test_groups_show_the_effective_number_of_users() -> None:
    rng, inverses = np.random.default_rng(4), []
    rows = np.concatenate([np.full(300, 10), np.full(20, 200)])
    for _ in range(300):
        groups = np.bincount(rng.integers(0, 64, len(rows)), rows, 64).astype(int).tolist()
        inverses.append(1.0 / effective_number(groups))
        assert effective_number(sorted(groups)) == effective_number(groups)
    truth = float(rows.sum()) ** 2 / float((rows * rows).sum())
    assert 1.0 / np.mean(inverses) == approx(truth, rel=0.05)
    assert np.std(inverses) * truth < 0.4
    assert effective_number([5] * 64) == 320.0 and effective_number([10**30, 0]) == 1.0


def test_an_area_without_a_class_has_no_mass() -> None:
    assert harmonic_number([(0, 5)]) == harmonic_number([]) == 0.0
    assert harmonic_number([(3, 6), (2, 2)]) == approx(2 / (1 / 2 + 1 / 1), rel=1e-15)
