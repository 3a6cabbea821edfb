"""Figures of many classes and of many labels are those of counting row by row, weights or none.

A row of weight w is w rows in the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import BinaryConfusion, InputError, MulticlassConfusion, MultilabelConfusion
from tests.oracles import many_classes as brute

HALF = Fraction(1, 2)
ZERO_DIVISIONS = (math.nan, 0.0, 1.0)


def same(value: object, exact: brute.Exact) -> bool:
    assert isinstance(value, float)
    return math.isnan(value) if exact is None else value == exact.numerator / exact.denominator


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
        arguments, units = weights_of(len(pairs), random)
        metric = MulticlassConfusion(3, weight_unit=HALF if arguments else 1)
        metric.update([t for t, _ in pairs], [p for _, p in pairs], **arguments)
        result = metric.compute()
        rows = [pair for pair, n in zip(pairs, units, strict=True) for _ in range(n)]
        assert result.support.tolist() == [sum(t == k for t, _ in rows) for k in range(3)]
        assert result.rows == sum(map(bool, units))
        assert result.weight == (len(rows) * HALF if arguments else len(rows))
        assert result.accuracy == result.recall("micro") or not rows
        for kappa, cost in (
            (result.kappa, lambda i, j: int(i != j)),
            (result.weighted_kappa("linear"), lambda i, j: abs(i - j)),
            (result.weighted_kappa("quadratic"), lambda i, j: (i - j) ** 2),
        ):
            assert same(kappa, brute.kappa(rows, cost)), rows
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
        truth, guesses = ([[random.randrange(2) for _ in "ab"] for _ in range(n)] for _ in range(2))
        arguments, units = weights_of(n, random)
        metric = MultilabelConfusion(2, weight_unit=HALF if arguments else 1)
        if n:
            metric.update(truth, [[float(p) for p in row] for row in guesses], **arguments)
        result = metric.compute()
        rows = [
            list(zip(t, p, strict=True))
            for t, p, unit in zip(truth, guesses, units, strict=True)
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


# -- many classes


def fed(pairs: Sequence[tuple[int, int]], n: int = 3) -> MulticlassConfusion:
    metric = MulticlassConfusion(n)
    metric.update([t for t, _ in pairs], [p for _, p in pairs])
    return metric


def test_figures_of_huge_counts_are_rounded_once() -> None:
    """Products of the margins are beyond int64, and n**4 is beyond a float."""
    metric = fed([(0, 0), (1, 1), (0, 1), (2, 2), (2, 1)])
    small = metric.compute()
    for _ in range(60):
        metric = metric + metric
    huge = metric.compute()
    assert (huge.mcc, huge.kappa) == (small.mcc, small.kappa)
    assert huge.weighted_kappa("quadratic") == small.weighted_kappa("quadratic")
    assert huge.f1("weighted") == small.f1("weighted")


def test_scores_predict_the_class_of_the_largest_the_smallest_class_of_equals() -> None:
    by_scores = MulticlassConfusion(3)
    rows = [[0.1, 0.8, 0.1], [0.4, 0.2, 0.4], [-0.0, 0.0, -1.0], [-np.inf, 2.0, np.inf]]
    by_scores.update([1, 2, 1, 2], rows)
    by_class = MulticlassConfusion(3)
    by_class.update([1, 2, 1, 2], [1, 0, 0, 2])
    assert by_scores == by_class


def test_top_k_is_by_score_and_then_by_class_and_says_where_that_mattered() -> None:
    scores = (0.0, 0.5, 1.0)
    metric = MulticlassConfusion(3, top_k=[2, 1, 3])  # type: ignore[arg-type]
    rows = [(t, s) for t in range(3) for s in product(scores, repeat=3)]
    metric.update([t for t, _ in rows], [s for _, s in rows])
    result = metric.compute()
    for k in (1, 2, 3):
        hits = sum(brute.first_positions(t, s, k) for t, s in rows)
        assert result.top_k_accuracy(k) == hits / len(rows)
        assert result.top_k_ties(k) == sum(brute.tied_at(t, s, k) for t, s in rows)
    assert result.top_k_accuracy(1) == result.accuracy
    assert result.top_k_accuracy(3) == 1.0
    assert result.top_k_ties(3) == 0
    with pytest.raises(InputError, match="setting top_k: 1, 2, 3"):
        result.top_k_accuracy(4)


def test_a_thousand_classes_of_which_few_occur_cost_little() -> None:
    metric = MulticlassConfusion(10_000, top_k=(1,))
    metric.update([9_999], np.arange(10_000.0)[None])
    assert metric.nbytes < 4096 and len(metric.to_bytes()) < 200
    assert metric.compute().accuracy == 1.0


def test_averages_that_are_none_are_refused() -> None:
    result = fed([(0, 0)]).compute()
    for call in (
        lambda: result.f1("samples"),
        lambda: result.f1("macro", zero_division=0.5),
        lambda: result.f_beta(-1, "macro"),
        lambda: result.f_beta(math.inf, "macro"),
        lambda: result.weighted_kappa("cubic"),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.where.startswith("ClassRates.")


# -- many labels


def test_one_label_is_a_binary_confusion_with_its_threshold() -> None:
    labels, scores = [[1], [0], [1], [0]], np.array([[0.3], [0.3], [0.2], [0.1]], np.float32)
    metric, binary = MultilabelConfusion(1, threshold=0.3), BinaryConfusion(threshold=0.3)
    metric.update(labels, scores)
    binary.update([1, 0, 1, 0], scores[:, 0])
    assert metric.compute().rates(0) == binary.compute()
    assert metric.compute().mcc == binary.compute().mcc
    assert metric.compute().rates(0).table("positive_first").tolist() == [[1, 1], [1, 1]]
