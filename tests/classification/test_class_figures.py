"""Figures of many classes and of many labels are those of counting row by row, weights or none.

A row of weight w is w rows in the oracle.
"""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

from streammetrics import MulticlassConfusion, MultilabelConfusion
from tests.oracles import many_classes as brute

HALF = Fraction(1, 2)
ZERO_DIVISIONS = (math.nan, 0.0, 1.0)


def same(found: object, exact: brute.Exact) -> bool:
    assert isinstance(found, float)
    return math.isnan(found) if exact is None else found == exact.numerator / exact.denominator


def averaged(result: Any, name: str, average: str, zero: float) -> object:
    if name == "f_2":
        return result.f_beta(2, average, zero_division=zero)
    return getattr(result, name)(average, zero_division=zero)


def weights_of(n: int, random: Random) -> tuple[dict[str, Any], list[int]]:
    """The column of weights and its setting, and the units of each row; or none, and 1."""
    if random.random() < 0.5:
        return {}, [1] * n
    units = [random.choice((0, 1, 2, 6)) for _ in range(n)]
    return {"weights": [unit / 2 for unit in units]}, units


def test_figures_of_classes() -> None:
    random = Random(1)
    for _ in range(20):
        pairs = [(random.randrange(3), random.randrange(3)) for _ in range(random.randrange(6))]
        given, units = weights_of(len(pairs), random)
        metric = MulticlassConfusion(3, weight_unit=HALF if given else 1)
        metric.update([t for t, _ in pairs], [p for _, p in pairs], **given)
        result = metric.compute()
        rows = [pair for pair, n in zip(pairs, units, strict=True) for _ in range(n)]
        assert result.support.tolist() == [sum(t == k for t, _ in rows) for k in range(3)]
        assert result.rows == sum(map(bool, units))
        assert result.weight == (len(rows) * HALF if given else len(rows))
        assert result.accuracy == result.recall("micro") or not rows
        for found, cost in (
            (result.kappa, lambda i, j: int(i != j)),
            (result.weighted_kappa("linear"), lambda i, j: abs(i - j)),
            (result.weighted_kappa("quadratic"), lambda i, j: (i - j) ** 2),
        ):
            assert same(found, brute.kappa(rows, cost)), rows
        matthews = brute.matthews_squared(rows, 3)
        assert math.isnan(result.mcc) == (matthews is None)
        assert matthews is None or math.isclose(result.mcc**2, matthews, rel_tol=1e-15)
        of_classes = brute.hits(rows, 3)
        rates = result.rates(1)
        assert (rates.tp, rates.fp, rates.fn) == of_classes[1]
        assert (rates.rows, rates.weight) == (result.rows, result.weight)
        for zero in ZERO_DIVISIONS:
            for (name, average), exact in brute.averages(of_classes, zero).items():
                value = averaged(result, name, average, zero)
                assert same(value, exact), (rows, name, average, zero)


def test_figures_of_labels_and_their_means_over_rows() -> None:
    random = Random(2)
    for _ in range(20):
        n = random.randrange(5)
        truth, said = ([[random.randrange(2) for _ in "ab"] for _ in range(n)] for _ in range(2))
        given, units = weights_of(n, random)
        metric = MultilabelConfusion(2, weight_unit=HALF if given else 1)
        if n:
            metric.update(truth, [[float(p) for p in row] for row in said], **given)
        result = metric.compute()
        rows = [
            list(zip(t, p, strict=True))
            for t, p, unit in zip(truth, said, units, strict=True)
            for _ in range(unit)
        ]
        cells = [cell for row in rows for cell in row]
        wrong = sum(t != p for t, p in cells)
        assert same(result.hamming_loss, brute.over(wrong, len(cells)))
        assert same(result.accuracy, brute.over(len(cells) - wrong, len(cells)))
        subset = sum(all(t == p for t, p in row) for row in rows)
        assert same(result.subset_accuracy, brute.over(subset, len(rows)))
        assert (result.rows, result.positives) == (sum(map(bool, units)), sum(t for t, _ in cells))
        of_labels = [brute.hits([row[j] for row in rows], 2)[1] for j in range(2)]
        of_rows = [brute.hits(row, 2)[1] for row in rows]
        for zero in ZERO_DIVISIONS:
            for (name, average), exact in brute.averages(of_labels, zero).items():
                assert same(averaged(result, name, average, zero), exact), (rows, name, average)
            for name, term in brute.TERMS.items():
                exact = brute.mean([term(*hits) for hits in of_rows], [1] * len(rows), zero)
                assert same(averaged(result, name, "samples", zero), exact), (rows, name, zero)
