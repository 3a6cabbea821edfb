"""Many classes and labels beside scikit-learn, with every average, with weights and without.

Where they differ is in test_differences.py: weighted averages without any weight, AP of a class
without rows, and tied classes among the first k.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from tests.requirements import Later

sk = Later("sklearn.metrics")


AVERAGED: dict[str, Any] = {
    name: getattr(sk, f"{name}_score") for name in ("precision", "recall", "f1", "jaccard")
}
Table = NDArray[Any]
UNITS = (None, Fraction(1, 10))
any_unit = pytest.mark.parametrize("unit", UNITS)


def near(value: object, peer_value: object) -> bool:
    return bool(
        np.allclose(
            np.asarray(value), np.asarray(peer_value), rtol=1e-12, atol=1e-12, equal_nan=True
        )
    )


def samples(unit: Fraction | None) -> Iterator[tuple[int, Table, Table, Table | None]]:
    """Classes, scores and weights: tied, with classes that never occur, one class, one row."""
    rng = np.random.default_rng(7)
    for c, n, used in ((5, 120, 3), (10, 60, 10), (4, 7, 4), (3, 20, 1), (2, 1, 2)):
        truth = rng.integers(0, used, n)
        scores = rng.random((n, c)) + 0.7 * (np.arange(c) == truth[:, None])
        units = rng.integers(0, 40, n) * rng.choice([1, 1, 1000], n)
        units[:1] = 1
        weights = None if unit is None else np.array([float(u * unit) for u in units.tolist()])
        yield c, truth, scores, weights
        yield c, truth, np.round(scores, 1), weights


def test_averages_of_classes_and_labels_with_every_zero_division() -> None:
    for c, truth, scores, _ in samples(None):
        guess, flags = scores.argmax(axis=1), np.eye(c, dtype=int)[truth]
        decisions = (scores >= 0.5).astype(int)
        of_classes, of_labels = MulticlassConfusion(c), MultilabelConfusion(c)
        of_classes.update(truth, scores)
        of_labels.update(flags, scores)
        for zero in (0.0, 1.0, math.nan):
            for view, score in AVERAGED.items():
                if view == "jaccard" and math.isnan(zero):
                    continue  # it takes no nan there
                for average in (None, "macro", "micro", "weighted", "samples"):
                    options = {"average": average, "zero_division": zero}
                    where = view, average, zero, c
                    value = getattr(of_labels.compute(), view)(average, zero_division=zero)
                    assert near(value, score(flags, decisions, **options)), where
                    predicted = np.isin(np.unique(guess), truth).any()
                    if average != "samples" and (average != "weighted" or predicted):
                        peer_value = score(truth, guess, labels=range(c), **options)
                        value = getattr(of_classes.compute(), view)(average, zero_division=zero)
                        assert near(value, peer_value), where
            peer_value = sk.fbeta_score(
                truth, guess, beta=0.5, labels=range(c), average="macro", zero_division=zero
            )
            assert near(of_classes.compute().f_beta(0.5, "macro", zero_division=zero), peer_value)


@any_unit
def test_agreement_of_classes(unit: Fraction | None) -> None:
    for c, truth, scores, weights in samples(unit):
        metric = MulticlassConfusion(c, top_k=(1, 2), weight_unit=unit or 1)
        metric.update(truth, scores, weights=weights)
        result, guess, quantum = metric.compute(), scores.argmax(axis=1), float(unit or 1)
        options, every = {"sample_weight": weights}, {"labels": range(c)}
        table = sk.confusion_matrix(truth, guess, **every, **options)
        assert near(result.matrix * quantum, table)
        assert near(result.support * quantum, table.sum(axis=1))
        assert near(result.accuracy, sk.accuracy_score(truth, guess, **options))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes that were predicted and never occur
            peer_value = sk.balanced_accuracy_score(truth, guess, **options)
            assert near(result.balanced_accuracy, peer_value)
            if len(set(truth) | set(guess)) > 1:
                for kind in ("linear", "quadratic"):
                    peer_value = sk.cohen_kappa_score(
                        truth, guess, weights=kind, **every, **options
                    )
                    assert near(result.weighted_kappa(kind), peer_value)
                assert near(result.kappa, sk.cohen_kappa_score(truth, guess, **options))
            if not math.isnan(result.mcc):  # theirs is 0 where it is 0/0
                assert near(result.mcc, sk.matthews_corrcoef(truth, guess, **options))
        for name, score in AVERAGED.items():
            peer_value = score(truth, guess, average="macro", zero_division=0, **every, **options)
            assert near(getattr(result, name)("macro", zero_division=0), peer_value), name
        if c > 2 and not result.top_k_ties(2):  # they break ties toward the larger class
            peer_value = sk.top_k_accuracy_score(truth, scores, k=2, **every, **options)
            assert near(result.top_k_accuracy(2), peer_value)


@any_unit
def test_agreement_of_labels(unit: Fraction | None) -> None:
    rng = np.random.default_rng(8)
    for c, _, scores, weights in samples(unit):
        truth, guess = (rng.random(scores.shape) < 0.4).astype(int), (scores >= 0.5).astype(int)
        metric = MultilabelConfusion(c, weight_unit=unit or 1)
        metric.update(truth, scores, weights=weights)
        result, options = metric.compute(), {"sample_weight": weights}
        tables = sk.multilabel_confusion_matrix(truth, guess, **options)
        assert near(result.matrix * float(unit or 1), tables)
        assert near(result.hamming_loss, sk.hamming_loss(truth, guess, **options))
        assert near(result.subset_accuracy, sk.accuracy_score(truth, guess, **options))
        for name, score in AVERAGED.items():
            for average in ("macro", "micro", "weighted", "samples", None):
                if average == "weighted" and not truth.any():
                    continue
                peer_value = score(truth, guess, average=average, zero_division=0, **options)
                value = getattr(result, name)(average, zero_division=0)
                assert near(value, peer_value), (name, average)


@any_unit
def test_areas_of_classes_and_of_labels(unit: Fraction | None) -> None:
    rng = np.random.default_rng(9)
    for tied in (False, True):
        truth, scores = rng.integers(0, 4, 200), rng.random((200, 4))
        scores[np.arange(200), truth] += 0.5
        scores = np.round(scores, 1) if tied else scores
        flags = np.eye(4, dtype=int)[truth]
        units = rng.integers(0, 40, 200)
        weights = None if unit is None else np.array([float(u * unit) for u in units.tolist()])
        for labels, indicators in (
            (truth, flags),
            ((rng.random((200, 4)) < 0.3).astype(int), None),
        ):
            indicators = labels if indicators is None else indicators
            exact = MulticlassAUC(4, exact=True, weight_unit=unit or 1)
            rough = MulticlassAUC(4, range="real", weight_unit=unit or 1)
            for metric in (exact, rough):
                metric.update(labels, scores, weights=weights)
            for name, score in (("auc", sk.roc_auc_score), ("ap", sk.average_precision_score)):
                for average in (None, "macro", "micro", "weighted"):
                    peer_value = score(indicators, scores, average=average, sample_weight=weights)
                    assert near(getattr(exact.compute(), name)(average), peer_value), (
                        name,
                        average,
                    )
                    if average:
                        bounds: Any = getattr(rough.compute(), name)(average)
                        assert bounds.low - 1e-12 <= peer_value <= bounds.high + 1e-12
