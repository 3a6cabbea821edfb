"""Weighted rows of many classes and labels beside scikit-learn's `sample_weight`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    hamming_loss,
    jaccard_score,
    matthews_corrcoef,
    multilabel_confusion_matrix,
    precision_score,
    recall_score,
    roc_auc_score,
    top_k_accuracy_score,
)

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion

pytestmark = pytest.mark.slow

UNITS = (Fraction(1), Fraction(1, 10), Fraction(1, 8))
CLASSES = 4
AVERAGED: dict[str, Any] = {
    "precision": precision_score,
    "recall": recall_score,
    "f1": f1_score,
    "jaccard": jaccard_score,
}
any_unit = pytest.mark.parametrize("unit", UNITS)


def samples(unit: Fraction) -> Iterator[tuple[Any, Any, Any]]:
    """Classes of which each occurs, scores with ties or none, and weights with zeros."""
    rng = np.random.default_rng(int(1 / unit))
    for _ in range(15):
        n = int(rng.integers(CLASSES, 150))
        truth = rng.integers(0, CLASSES, n)
        truth[:CLASSES] = range(CLASSES)
        scores = rng.random((n, CLASSES)) + np.eye(CLASSES)[truth] * rng.random()
        if rng.random() < 0.5:
            scores = np.round(scores * 6) / 6
        units = rng.integers(0, 40, n) * rng.choice([1, 1, 1000], n)
        units[:CLASSES] = range(1, CLASSES + 1)
        yield truth, scores, np.array([float(u * unit) for u in units.tolist()])


def close(ours: object, theirs: object) -> bool:
    return bool(np.allclose(ours, theirs, rtol=1e-12, atol=1e-12))  # type: ignore[arg-type]


@any_unit
def test_classes(unit: Fraction) -> None:
    for truth, scores, weights in samples(unit):
        metric = MulticlassConfusion(CLASSES, weight_unit=unit)
        said = scores.argmax(axis=1)
        metric.update(truth, said, weights=weights)
        result, with_weights = metric.compute(), {"sample_weight": weights}
        assert close(result.accuracy, accuracy_score(truth, said, **with_weights))
        assert close(result.mcc, matthews_corrcoef(truth, said, **with_weights))
        balanced = balanced_accuracy_score(truth, said, **with_weights)
        assert close(result.balanced_accuracy, balanced)
        assert close(result.kappa, cohen_kappa_score(truth, said, **with_weights))
        for kind in ("linear", "quadratic"):
            theirs = cohen_kappa_score(truth, said, weights=kind, **with_weights)
            assert close(result.weighted_kappa(kind), theirs)
        table = confusion_matrix(truth, said, **with_weights)
        assert close(result.matrix * float(unit), table)
        assert close(result.support * float(unit), table.sum(axis=1))
        for name, theirs in AVERAGED.items():
            for average in ("macro", "micro", "weighted", None):
                ours = getattr(result, name)(average, zero_division=0)
                given = {"average": average, "zero_division": 0, **with_weights}
                assert close(ours, theirs(truth, said, **given)), (name, average)


@any_unit
def test_top_k(unit: Fraction) -> None:
    for truth, scores, weights in samples(unit):
        metric = MulticlassConfusion(CLASSES, top_k=(1, 2, 3), weight_unit=unit)
        metric.update(truth, scores, weights=weights)
        result = metric.compute()
        for k in (1, 2, 3):
            theirs = top_k_accuracy_score(truth, scores, k=k, sample_weight=weights)
            if not result.top_k_ties(k):  # they break ties toward the larger class
                assert close(result.top_k_accuracy(k), theirs)
            slack = result.top_k_ties(k) / result._units
            assert abs(result.top_k_accuracy(k) - theirs) <= slack + 1e-12


@any_unit
def test_labels(unit: Fraction) -> None:
    rng = np.random.default_rng(7)
    for _, scores, weights in samples(unit):
        truth = (rng.random(scores.shape) < 0.4).astype(int)
        said = (scores >= 0.5).astype(int)
        metric = MultilabelConfusion(CLASSES, weight_unit=unit)
        metric.update(truth, scores, weights=weights)
        result, with_weights = metric.compute(), {"sample_weight": weights}
        assert close(result.subset_accuracy, accuracy_score(truth, said, **with_weights))
        assert close(result.hamming_loss, hamming_loss(truth, said, **with_weights))
        tables = multilabel_confusion_matrix(truth, said, **with_weights)
        assert close(result.matrix * float(unit), tables)
        for name, theirs in AVERAGED.items():
            for average in ("macro", "micro", "weighted", "samples", None):
                ours = getattr(result, name)(average, zero_division=0)
                given = {"average": average, "zero_division": 0, **with_weights}
                assert close(ours, theirs(truth, said, **given)), (name, average)


@any_unit
def test_areas(unit: Fraction) -> None:
    for truth, scores, weights in samples(unit):
        flags = np.eye(CLASSES, dtype=int)[truth]
        exact = MulticlassAUC(CLASSES, exact=True, weight_unit=unit)
        between = MulticlassAUC(CLASSES, range="real", weight_unit=unit)
        for metric in (exact, between):
            metric.update(truth, scores, weights=weights)
        result: Any = exact.compute()
        bounds: Any = between.compute()
        for name, theirs in (("auc", roc_auc_score), ("ap", average_precision_score)):
            for average in ("macro", "weighted", "micro"):
                value = theirs(flags, scores, average=average, sample_weight=weights)
                assert close(getattr(result, name)(average), value), (name, average)
                found = getattr(bounds, name)(average)
                assert found.low - 1e-12 <= value <= found.high + 1e-12
            each = theirs(flags, scores, average=None, sample_weight=weights)
            assert close(getattr(result, name)(None), each)
        assert not math.isnan(result.map)
