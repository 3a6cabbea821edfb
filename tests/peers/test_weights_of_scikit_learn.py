"""Weighted rows beside scikit-learn's `sample_weight`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    confusion_matrix,
    f1_score,
    jaccard_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
)

from streammetrics import BinaryConfusion, ExactAUC, GroupedAUC, HistogramAUC

pytestmark = pytest.mark.slow

UNITS = (Fraction(1), Fraction(1, 10), Fraction(1, 8))
RATES: dict[str, Any] = {
    "accuracy": accuracy_score,
    "precision": precision_score,
    "recall": recall_score,
    "f1": f1_score,
    "jaccard": jaccard_score,
    "mcc": matthews_corrcoef,
}


def samples(unit: Fraction) -> list[tuple[Any, Any, Any]]:
    """Labels, scores and weights: tied and not, of all sizes, with weights of zero."""
    rng = np.random.default_rng(int(1 / unit))
    found = []
    for _ in range(80):
        n = int(rng.integers(4, 200))
        labels = rng.integers(0, 2, n)
        labels[:2] = 0, 1
        scores = rng.integers(0, 12, n) / 11 if rng.random() < 0.5 else rng.random(n)
        units = rng.integers(0, 40, n) * rng.choice([1, 1, 1000], n)
        units[:2] = 1, 2
        found.append((labels, scores, np.array([float(u * unit) for u in units.tolist()])))
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_areas(unit: Fraction) -> None:
    for labels, scores, weights in samples(unit):
        exact, between = ExactAUC(weight_unit=unit), HistogramAUC(weight_unit=unit)
        for metric in (exact, between):
            metric.update(labels, scores, weights=weights)
        auc = roc_auc_score(labels, scores, sample_weight=weights)
        curve = exact.compute()
        assert math.isclose(float(curve.auc), auc, rel_tol=1e-12)
        ap = average_precision_score(labels, scores, sample_weight=weights)
        assert math.isclose(float(curve.ap), ap, rel_tol=1e-12)
        bounds: Any = between.compute().auc
        assert bounds.low - 1e-12 <= auc <= bounds.high + 1e-12


@pytest.mark.parametrize("unit", UNITS)
def test_rates(unit: Fraction) -> None:
    for labels, scores, weights in samples(unit):
        metric = BinaryConfusion(weight_unit=unit)
        metric.update(labels, scores, weights=weights)
        rates, predicted = metric.compute(), scores >= 0.5
        for name, theirs in RATES.items():
            ours = getattr(rates, name)
            if not math.isnan(ours):  # theirs is 0 there
                assert math.isclose(
                    ours, theirs(labels, predicted, sample_weight=weights), abs_tol=1e-12
                ), name
        table = confusion_matrix(labels, predicted, sample_weight=weights)
        assert np.allclose(rates.table() * float(unit), table, rtol=1e-12)


def test_groups() -> None:
    for labels, scores, weights in samples(Fraction(1, 8)):
        groups = np.arange(len(labels)) % 3
        metric = GroupedAUC(weight_unit="1/8", score_type="float64")
        metric.update(labels, scores, groups=groups, weights=weights)
        total = weight = 0.0
        for group in range(3):
            mine = (groups == group) & (weights > 0)
            if len(set(labels[mine])) == 2:
                area = roc_auc_score(labels[mine], scores[mine], sample_weight=weights[mine])
                total += area * weights[mine].sum()
                weight += weights[mine].sum()
        found: Any = metric.compute().gauc
        assert math.isclose(found, total / weight, rel_tol=1e-12) if weight else math.isnan(found)
