"""Where torchmetrics and torcheval have another rule: their answer, and ours beside it.

docs/metrics.md lists these. Their mistakes are in test_faults_of_torch.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    ExactAUC,
    MulticlassAUC,
    MulticlassConfusion,
    Regression,
)
from tests.peers.torch_process import COMPUTE, Peers, Tensor, update

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

BINARY = "torchmetrics.classification.Binary"
MULTICLASS = "torchmetrics.classification.Multiclass"
TORCHEVAL = "torcheval.metrics."
FLOAT32 = 2**-23  # in which torch computes


def answer(
    peers: Peers, of: str, guess: list[Any], truth: list[Any], kind: str = "int64", **named: object
) -> Any:
    step = update(Tensor(guess, "int64" if kind == "classes" else "float32"), Tensor(truth, kind))
    if kind == "classes":
        step = update(Tensor(guess, "int64"), Tensor(truth, "int64"))
    return peers.ask(of, named, step, COMPUTE)[-1]


@pytest.mark.parametrize("of", [BINARY, TORCHEVAL + "Binary"])
def test_their_0_over_0_is_0(torch_peers: Peers, of: str) -> None:
    metric = BinaryConfusion()
    metric.update([0], [0.1])
    for peer, view in (("Precision", "precision"), ("Recall", "recall"), ("F1Score", "f1")):
        assert answer(torch_peers, of + peer, [0.1], [0]) == 0, peer
        assert math.isnan(getattr(metric.compute(), view))


@pytest.mark.parametrize(("label", "theirs"), [(0, -1), (1, 1)])
def test_their_mcc_of_one_class_is_1_or_minus_1(
    torch_peers: Peers, label: int, theirs: int
) -> None:
    assert answer(torch_peers, BINARY + "MatthewsCorrCoef", [0.9, 0.9], [label] * 2) == theirs
    metric = BinaryConfusion()
    metric.update([label] * 2, [0.9, 0.9])
    assert math.isnan(metric.compute().mcc)


def test_their_accuracy_of_classes_is_a_mean_recall_unless_it_is_told_micro(
    torch_peers: Peers,
) -> None:
    guess, truth = [0, 1, 1, 1], [0, 0, 0, 2]
    settings: dict[str, Any] = {"kind": "classes", "num_classes": 3}
    of = MULTICLASS + "Accuracy"
    assert answer(torch_peers, of, guess, truth, **settings) == pytest.approx(1 / 9, rel=FLOAT32)
    assert answer(torch_peers, of, guess, truth, average="micro", **settings) == 1 / 4
    # And torcheval's precision is the accuracy unless it is told an average.
    assert answer(torch_peers, TORCHEVAL + "MulticlassPrecision", guess, truth, "classes") == 1 / 4
    metric = MulticlassConfusion(3)
    metric.update(truth, guess)
    result = metric.compute()
    assert result.accuracy == 1 / 4
    # The class that is predicted and never occurs counts 0 there, and leaves the mean here.
    assert result.recall("macro") == result.balanced_accuracy == 1 / 6
    assert result.recall("macro", zero_division=0.0) == 1 / 9


def test_their_macro_auc_counts_0_for_a_class_that_never_occurs(torch_peers: Peers) -> None:
    truth = [0, 1, 1]
    scores = [[0.75, 0.125, 0.125], [0.25, 0.5, 0.25], [0.25, 0.75, 0.0]]
    settings = {"num_classes": 3}
    theirs = answer(torch_peers, MULTICLASS + "AUROC", scores, truth, **settings)
    assert theirs == pytest.approx(2 / 3, rel=FLOAT32)
    metric = MulticlassAUC(3, exact=True)
    metric.update(truth, scores)
    assert metric.compute().auc("macro") == 1.0
    assert answer(torch_peers, MULTICLASS + "AveragePrecision", scores, truth, **settings) == 1


def test_their_average_precision_without_a_positive_is_0(torch_peers: Peers) -> None:
    for of in (BINARY + "AveragePrecision", TORCHEVAL + "BinaryAUPRC"):
        assert answer(torch_peers, of, [0.25, 0.5], [0, 0]) == 0, of
    metric = ExactAUC()
    metric.update([0, 0], [0.25, 0.5])
    assert math.isnan(float(metric.compute().ap))


def test_their_partial_area_is_on_the_scale_of_mcclish(torch_peers: Peers) -> None:
    labels, scores = [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75]
    theirs = answer(torch_peers, BINARY + "AUROC", scores, labels, max_fpr=0.5)
    metric = ExactAUC()
    metric.update(labels, scores)
    found = metric.compute()
    assert found.partial_auc(0.5) == 0.25
    assert theirs == pytest.approx(float(found.partial_auc(0.5, standardized=True)), rel=FLOAT32)


def test_points_at_given_thresholds_are_positive_from_the_threshold_on(torch_peers: Peers) -> None:
    # Unlike their rates: `>=`, as here.
    labels, scores = [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]
    fpr, tpr, thresholds = answer(torch_peers, BINARY + "ROC", scores, labels, thresholds=3)
    assert (fpr, tpr, thresholds) == ([0, 0.5, 1], [0, 1, 1], [1, 0.5, 0])
    metric = ExactAUC()
    metric.update(labels, scores)
    found = [metric.compute().confusion(t) for t in thresholds]
    assert [float(rates.fpr) for rates in found] == fpr
    assert [float(rates.recall) for rates in found] == tpr


@pytest.mark.parametrize(
    ("scores", "torchmetrics", "torcheval"),
    [([2.0, 2.0], 1.0, math.nan), ([2.0, 3.0], 0.0, -math.inf)],
)
def test_r2_of_equal_labels(
    torch_peers: Peers, scores: list[float], torchmetrics: float, torcheval: float
) -> None:
    labels = [2.0, 2.0]
    found = [
        answer(torch_peers, of, scores, labels, "float32")
        for of in ("torchmetrics.R2Score", TORCHEVAL + "R2Score")
    ]
    assert np.array_equal(found, [torchmetrics, torcheval], equal_nan=True)
    metric = Regression()
    metric.update(labels, scores)
    assert math.isnan(float(metric.compute().r2))
