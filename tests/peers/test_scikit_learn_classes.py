"""Many classes and labels beside scikit-learn, with every average and every zero_division.

Where they differ: its weighted average of values whose classes have no rows at all is their plain
mean, and ours is 0/0; its AP of a class without rows is 0, with a warning, and ours leaves the
mean; its top-k takes the largest of tied classes, ours the smallest. Its own answers are in
test_differences_from_scikit_learn.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sk

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion

pytestmark = pytest.mark.slow

VIEWS = ("precision", "recall", "f1", "jaccard")
Table = NDArray[Any]


def near(a: object, b: object) -> bool:
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-15, equal_nan=True))


def samples() -> Iterator[tuple[int, Table, Table]]:
    """Classes and scores: plain, tied, with classes that never occur, one class, one row."""
    rng = np.random.default_rng(7)
    for c, n, used in ((3, 50, 3), (5, 200, 3), (4, 7, 4), (10, 500, 10), (3, 20, 1), (2, 1, 2)):
        truth = rng.integers(0, used, n)
        scores = rng.random((n, c)) + 0.7 * (np.arange(c) == truth[:, None])
        yield c, truth, scores
        yield c, truth, np.round(scores, 1)


@pytest.mark.parametrize("zero", [0.0, 1.0, math.nan])
def test_averages_of_classes(zero: float) -> None:
    for c, truth, scores in samples():
        guess = scores.argmax(axis=1)
        metric = MulticlassConfusion(c)
        metric.update(truth, scores)
        result = metric.compute()
        support = np.bincount(truth, minlength=c)
        for view in VIEWS:
            for average in (None, "macro", "micro", "weighted"):
                score = getattr(sk, f"{view}_score")
                if view == "jaccard" and math.isnan(zero):
                    continue  # it takes no nan there
                theirs = score(truth, guess, labels=range(c), average=average, zero_division=zero)
                ours = getattr(result, view)(average, zero_division=zero)
                if average == "weighted" and not support[np.unique(guess)].any():
                    continue
                assert near(ours, theirs), (view, average, zero, c)
        theirs = sk.fbeta_score(
            truth, guess, beta=0.5, labels=range(c), average="macro", zero_division=zero
        )
        assert near(result.f_beta(0.5, "macro", zero_division=zero), theirs)


def test_agreement_of_classes() -> None:
    for c, truth, scores in samples():
        guess = scores.argmax(axis=1)
        metric = MulticlassConfusion(c, top_k=(1, 2))
        metric.update(truth, scores)
        result = metric.compute()
        assert (result.matrix == sk.confusion_matrix(truth, guess, labels=range(c))).all()
        assert near(result.accuracy, sk.accuracy_score(truth, guess))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes that were predicted and never occur
            assert near(result.balanced_accuracy, sk.balanced_accuracy_score(truth, guess))
            if len(set(truth) | set(guess)) > 1:
                for weights in ("linear", "quadratic"):
                    theirs = sk.cohen_kappa_score(truth, guess, labels=range(c), weights=weights)
                    assert near(result.weighted_kappa(weights), theirs)
                assert near(result.kappa, sk.cohen_kappa_score(truth, guess))
            if not math.isnan(result.mcc):  # theirs is 0 where it is 0/0
                assert near(result.mcc, sk.matthews_corrcoef(truth, guess))
        if len(np.unique(scores)) == scores.size and c > 2:
            theirs = sk.top_k_accuracy_score(truth, scores, k=2, labels=range(c))
            assert near(result.top_k_accuracy(2), theirs)


@pytest.mark.parametrize("zero", [0.0, 1.0, math.nan])
def test_averages_of_labels(zero: float) -> None:
    rng = np.random.default_rng(8)
    for n, k, share in ((40, 4, 0.4), (10, 3, 0.1), (300, 8, 0.3), (1, 2, 0.5), (5, 3, 0.0)):
        truth = (rng.random((n, k)) < share).astype(int)
        scores = np.round(rng.random((n, k)), 1)
        guess = (scores >= 0.5).astype(int)
        metric = MultilabelConfusion(k)
        metric.update(truth, scores)
        result = metric.compute()
        assert (result.matrix == sk.multilabel_confusion_matrix(truth, guess)).all()
        assert near(result.hamming_loss, sk.hamming_loss(truth, guess))
        assert near(result.subset_accuracy, sk.accuracy_score(truth, guess))
        for view in VIEWS:
            for average in (None, "macro", "micro", "weighted", "samples"):
                if view == "jaccard" and math.isnan(zero):
                    continue
                if average == "weighted" and not truth.any():
                    continue
                score = getattr(sk, f"{view}_score")
                theirs = score(truth, guess, average=average, zero_division=zero)
                ours = getattr(result, view)(average, zero_division=zero)
                assert near(ours, theirs), (view, average, zero, n)


def test_areas_of_classes_and_of_labels() -> None:
    rng = np.random.default_rng(9)
    for tied in (False, True):
        truth, scores = rng.integers(0, 4, 300), rng.random((300, 4))
        scores[np.arange(300), truth] += 0.5
        scores = np.round(scores, 1) if tied else scores
        scores /= scores.sum(axis=1, keepdims=True)
        flags = (truth[:, None] == np.arange(4)).astype(int)
        for labels, theirs in ((truth, flags), ((rng.random((300, 4)) < 0.3).astype(int), None)):
            known = labels if theirs is None else theirs
            metric = MulticlassAUC(4, exact=True)
            metric.update(labels, scores)
            result = metric.compute()
            for average in (None, "macro", "micro", "weighted"):
                assert near(result.auc(average), sk.roc_auc_score(known, scores, average=average))
                ap = sk.average_precision_score(known, scores, average=average)
                assert near(result.ap(average), ap)
        ovr = sk.roc_auc_score(truth, scores, multi_class="ovr", average="weighted")
        metric = MulticlassAUC(4, exact=True)
        metric.update(truth, scores)
        assert near(metric.compute().auc("weighted"), ovr)
