"""Curves beside scikit-learn, on random and on nasty data, where definitions agree."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import (
    auc,
    average_precision_score,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from streammetrics import Bounded, ExactAUC, HistogramAUC
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from tests.peers.judged_lists import UNIT

pytestmark = pytest.mark.slow

Sample = tuple[NDArray[np.int64], NDArray[np.float64]]


def samples() -> Iterator[Sample]:
    """Both classes in each: tied, imbalanced, huge, tiny, all but equal, separated."""
    rng = np.random.default_rng(11)
    yield np.array([0, 1]), np.array([0.5, 0.5])
    yield np.array([1, 0, 0]), np.array([1e-10, 0.0, 0.0])
    yield np.array([0, 0, 1, 1]), np.array([-90.0, 80.0, 1000.0, 2000.0])
    yield np.array([1, 0, 1, 0]), np.array([-0.0, 0.0, 5e-324, -5e-324])
    yield np.array([0, 1, 1]), np.array([1.0, 1.0, 1.0 + 2**-52])
    for _ in range(150):
        n = int(rng.integers(2, 400))
        labels = (rng.random(n) < rng.choice([0.02, 0.2, 0.5, 0.9])).astype(np.int64)
        labels[:2] = 0, 1
        scores = rng.normal(labels * rng.choice([0, 1, 4]), 1)
        if rng.random() < 0.5:
            scores = np.round(scores, int(rng.integers(0, 2)))
        yield labels, scores * 10.0 ** rng.integers(-200, 200)


def exact(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(labels, scores)
    return metric.compute()


def near(ours: object, theirs: float, labels: NDArray[np.int64]) -> bool:
    """Their sums of n terms may be off by as many units."""
    return isinstance(ours, float) and abs(ours - theirs) <= (8 * len(labels) + 8) * UNIT


def test_areas() -> None:
    for labels, scores in samples():
        found = exact(labels, scores)
        precision, recall, _ = precision_recall_curve(labels, scores)
        assert near(found.auc, roc_auc_score(labels, scores), labels)
        assert near(found.ap, average_precision_score(labels, scores), labels)
        assert near(found.pr_auc_trapezoid, auc(recall, precision), labels)


@pytest.mark.parametrize("limit", [0.01, 0.1, 0.5, 0.99])
def test_partial_areas_on_the_scale_of_mcclish(limit: float) -> None:
    for labels, scores in samples():
        found = exact(labels, scores)
        theirs = roc_auc_score(labels, scores, max_fpr=limit)
        ours = found.partial_auc(limit, standardized=True)
        assert isinstance(ours, float)
        assert abs(ours - theirs) <= (8 * len(labels) + 8) * UNIT / limit


def test_points_have_the_same_bits() -> None:
    for labels, scores in samples():
        found = exact(labels, scores)
        roc, pr = found.roc(), found.pr()
        for ours, theirs in zip(
            (roc.fpr, roc.tpr, roc.thresholds),
            roc_curve(labels, scores, drop_intermediate=False),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)
        for ours, theirs in zip(
            (pr.precision, pr.recall, pr.thresholds),
            precision_recall_curve(labels, scores),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_the_greatest_distance_and_the_best_point() -> None:
    for labels, scores in samples():
        found = exact(labels, scores)
        fpr, tpr, thresholds = roc_curve(labels, scores, drop_intermediate=False)
        assert near(found.ks, float(np.abs(tpr - fpr).max()), labels)
        best = found.best("youden")
        assert near(best.value, float((tpr - fpr).max()), labels)
        at = int(np.argmax(tpr - fpr))
        known = [point.threshold for point in best.points]
        assert thresholds[at] in known or near(best.value, float(tpr[at] - fpr[at]), labels)


def test_confusion_at_thresholds() -> None:
    for labels, scores in samples():
        found = exact(labels, scores)
        for t in (*scores[:3].tolist(), float(np.median(scores)), 0.0):
            rates = found.confusion(t)
            assert isinstance(rates, Rates)
            theirs = confusion_matrix(labels, scores >= t, labels=[0, 1])
            assert rates.table().tolist() == theirs.tolist()


def test_bounds_of_buckets_hold_what_they_find() -> None:
    for labels, scores in samples():
        metric = HistogramAUC(range="real", resolution=1, floor=2**-20, ceiling=2.0**20)
        metric.update(labels, scores)
        found, truth = metric.compute(), exact(labels, scores)
        for name in ("auc", "gini", "ap", "pr_auc_trapezoid", "ks"):
            bounds, value = getattr(found, name), getattr(truth, name)
            assert isinstance(bounds, Bounded)
            assert bounds.low <= value <= bounds.high, name
            assert bounds.low <= bounds.value <= bounds.high, name
        pairs = [
            *zip(found.gain(7), truth.gain(7), strict=True),
            *zip(found.lift(7), truth.lift(7), strict=True),
            (found.partial_auc(0.3), truth.partial_auc(0.3)),
        ]
        for bounds, value in pairs:
            assert isinstance(bounds, Bounded) and isinstance(value, float)
            assert bounds.low <= value <= bounds.high


def test_what_they_call_0_or_1_with_one_class_is_undefined() -> None:
    labels, scores = np.array([0, 0]), np.array([0.25, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", UserWarning)
        assert average_precision_score(labels, scores) == 0
        assert precision_recall_curve(labels, scores)[1].tolist() == [1, 1, 0]
    found = exact(labels, scores)
    assert math.isnan(float(found.ap))
    assert np.isnan(found.pr().recall[:-1]).all()
