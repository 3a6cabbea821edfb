"""Curves, rates and areas beside scikit-learn, with weights and without."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streammetrics import BinaryConfusion, Bounded, ExactAUC, GroupedAUC, HistogramAUC
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from tests.peers.judged_lists import UNIT
from tests.requirements import Later

sk = Later("sklearn.metrics")


Sample = tuple[NDArray[np.int64], NDArray[np.float64]]
RATES: dict[str, Any] = {
    "accuracy": sk.accuracy_score,
    "precision": sk.precision_score,
    "recall": sk.recall_score,
    "f1": sk.f1_score,
    "jaccard": sk.jaccard_score,
    "mcc": sk.matthews_corrcoef,
}


@cache
def samples() -> list[Sample]:
    """Both classes in each: tied, imbalanced, huge, tiny, all but equal, separated."""
    rng = np.random.default_rng(11)
    pairs = [
        (np.array([0, 1]), np.array([0.5, 0.5])),
        (np.array([1, 0, 0]), np.array([1e-10, 0.0, 0.0])),
        (np.array([0, 0, 1, 1]), np.array([-90.0, 80.0, 1000.0, 2000.0])),
        (np.array([1, 0, 1, 0]), np.array([-0.0, 0.0, 5e-324, -5e-324])),
        (np.array([0, 1, 1]), np.array([1.0, 1.0, 1.0 + 2**-52])),
    ]
    for _ in range(25):
        n = int(rng.integers(2, 400))
        labels = (rng.random(n) < rng.choice([0.02, 0.2, 0.5, 0.9])).astype(np.int64)
        labels[:2] = 0, 1
        scores = rng.normal(labels * rng.choice([0, 1, 4]), 1)
        if rng.random() < 0.5:
            scores = np.round(scores, int(rng.integers(0, 2)))
        pairs.append((labels, scores * 10.0 ** rng.integers(-200, 200)))
    return pairs


def weighted(unit: Fraction) -> list[tuple[Any, Any, Any]]:
    """Labels, scores and weights: tied and not, of all sizes, with weights of zero."""
    rng = np.random.default_rng(int(1 / unit))
    triples = []
    for _ in range(15):
        n = int(rng.integers(4, 200))
        labels = rng.integers(0, 2, n)
        labels[:2] = 0, 1
        scores = rng.integers(0, 12, n) / 11 if rng.random() < 0.5 else rng.random(n)
        units = rng.integers(0, 40, n) * rng.choice([1, 1, 1000], n)
        units[:2] = 1, 2
        triples.append((labels, scores, np.array([float(u * unit) for u in units.tolist()])))
    return triples


def exact(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(labels, scores)
    return metric.compute()


def near(value: object, peer_value: float, labels: NDArray[np.int64], condition: float = 1) -> bool:
    """Their sums of n terms may be off by as many units."""
    assert isinstance(value, float)
    return abs(value - peer_value) <= (8 * len(labels) + 8) * UNIT * condition


def test_areas_and_the_best_point() -> None:
    for labels, scores in samples():
        result = exact(labels, scores)
        precision, recall, _ = sk.precision_recall_curve(labels, scores)
        assert near(result.auc, sk.roc_auc_score(labels, scores), labels)
        assert near(result.ap, sk.average_precision_score(labels, scores), labels)
        assert near(result.pr_auc_trapezoid, sk.auc(recall, precision), labels)
        for limit in (0.01, 0.5, 0.99):
            peer_value = sk.roc_auc_score(labels, scores, max_fpr=limit)
            assert near(result.partial_auc(limit, standardized=True), peer_value, labels, 1 / limit)
        fpr, tpr, thresholds = sk.roc_curve(labels, scores, drop_intermediate=False)
        assert near(result.ks, float(np.abs(tpr - fpr).max()), labels)
        best = result.best("youden")
        assert near(best.value, float((tpr - fpr).max()), labels)
        index = int(np.argmax(tpr - fpr))
        best_thresholds = [point.threshold for point in best.points]
        assert thresholds[index] in best_thresholds or near(
            best.value, float(tpr[index] - fpr[index]), labels
        )


def test_chosen_thresholds_are_the_best_points_of_their_curve() -> None:
    for labels, scores in samples():
        result = exact(labels, scores)
        precision, recall, thresholds = sk.precision_recall_curve(labels, scores)
        points = [column[:-1] for column in (precision, recall)]  # the last is no threshold
        for least in (0.0, 0.5, 0.8, 1.0):
            for name, optimum, (value, constraint) in (
                ("precision", result.best("precision", recall_at_least=least), points),
                ("recall", result.best("recall", precision_at_least=least), points[::-1]),
            ):
                mask = constraint >= least
                if not mask.any():
                    assert name == "recall" and math.isnan(optimum.value)
                    continue
                assert optimum.value == value[mask].max(), (name, least)
                expected = thresholds[mask & (value == optimum.value)][::-1]
                assert [point.threshold for point in optimum.points] == expected.tolist()
        if len(labels) > 60:  # theirs looks at all rows again for each threshold
            continue
        for beta in (0.5, 1, 2):
            predictions = ((scores >= t).astype(np.int64) for t in thresholds)
            peer_value = max(
                sk.fbeta_score(labels, prediction, beta=beta, zero_division=0)
                for prediction in predictions
            )
            assert near(result.best_f_beta(beta), float(peer_value), labels)


def test_points_and_tables_at_thresholds_are_theirs_to_the_last_bit() -> None:
    for labels, scores in samples():
        result = exact(labels, scores)
        roc, pr = result.roc(), result.pr()
        columns = roc.fpr, roc.tpr, roc.thresholds, pr.precision, pr.recall, pr.thresholds
        peer_columns = (
            *sk.roc_curve(labels, scores, drop_intermediate=False),
            *sk.precision_recall_curve(labels, scores),
        )
        for column, peer_column in zip(columns, peer_columns, strict=True):
            np.testing.assert_array_equal(column, peer_column)
        for t in (*scores[:2].tolist(), float(np.median(scores)), 0.0):
            rates = result.confusion(t)
            assert isinstance(rates, Rates)
            table = sk.confusion_matrix(labels, scores >= t, labels=[0, 1])
            assert rates.table().tolist() == table.tolist()


def test_bounds_of_buckets_hold_the_exact_values() -> None:
    for labels, scores in samples():
        metric = HistogramAUC(range="real", resolution=1, floor=2**-20, ceiling=2.0**20)
        metric.update(labels, scores)
        result, truth = metric.compute(), exact(labels, scores)
        names = ("auc", "gini", "ap", "pr_auc_trapezoid", "ks")
        pairs = [
            *((getattr(result, name), getattr(truth, name)) for name in names),
            *zip(result.gain(7), truth.gain(7), strict=True),
            *zip(result.lift(7), truth.lift(7), strict=True),
            (result.partial_auc(0.3), truth.partial_auc(0.3)),
        ]
        for bounds, value in pairs:
            assert isinstance(bounds, Bounded) and isinstance(value, float)
            assert bounds.low <= value <= bounds.high and bounds.low <= bounds.value <= bounds.high


def test_weighted_areas_and_rates() -> None:
    unit = Fraction(1, 10)
    for labels, scores, weights in weighted(unit):
        table, curve, buckets = (
            BinaryConfusion(weight_unit=unit),
            ExactAUC(weight_unit=unit),
            HistogramAUC(weight_unit=unit),
        )
        for metric in (table, curve, buckets):
            metric.update(labels, scores, weights=weights)
        auc = sk.roc_auc_score(labels, scores, sample_weight=weights)
        assert math.isclose(float(curve.compute().auc), auc, rel_tol=1e-12)
        ap = sk.average_precision_score(labels, scores, sample_weight=weights)
        assert math.isclose(float(curve.compute().ap), ap, rel_tol=1e-12)
        bounds: Any = buckets.compute().auc
        assert bounds.low - 1e-12 <= auc <= bounds.high + 1e-12
        rates, predicted = table.compute(), scores >= 0.5
        for name, score in RATES.items():
            value = getattr(rates, name)
            if not math.isnan(value):  # theirs is 0 there
                peer_value = score(labels, predicted, sample_weight=weights)
                assert math.isclose(value, peer_value, abs_tol=1e-12), name
        counts = sk.confusion_matrix(labels, predicted, sample_weight=weights)
        assert np.allclose(rates.table() * float(unit), counts, rtol=1e-12)


def test_weighted_groups() -> None:
    for labels, scores, weights in weighted(Fraction(1, 8)):
        groups = np.arange(len(labels)) % 3
        metric = GroupedAUC(weight_unit="1/8", score_type="float64")
        metric.update(labels, scores, groups=groups, weights=weights)
        total = weight = 0.0
        for group in range(3):
            mask = (groups == group) & (weights > 0)
            if len(set(labels[mask])) == 2:
                area = sk.roc_auc_score(labels[mask], scores[mask], sample_weight=weights[mask])
                total += area * weights[mask].sum()
                weight += weights[mask].sum()
        gauc: Any = metric.compute().gauc
        assert math.isclose(gauc, total / weight, rel_tol=1e-12) if weight else math.isnan(gauc)
