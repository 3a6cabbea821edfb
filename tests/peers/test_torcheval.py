"""Counts, areas, entropy and errors beside torcheval 0.0.7, its last version.

A score at the threshold is positive there, as it is here. 0/0 is 0 there in most rates and nan in
some; an area with one class is 0.5 there, and nan here.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from tests.peers.torch_process import COMPUTE, Another, Peers, Step, Tensor, update
from tests.peers.torch_samples import BOTH_CLASSES, ROWS, classes, close, label_sets, updates

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

TORCHEVAL = "torcheval.metrics."


@pytest.mark.parametrize("name", ROWS)
def test_rates(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    metric = BinaryConfusion(threshold=0.5)
    metric.update(labels, scores)
    rates = metric.compute()
    steps = [*updates(scores, labels), COMPUTE]
    theirs = torch_peers.ask(TORCHEVAL + "BinaryConfusionMatrix", {}, *steps)[-1]
    assert rates.table().tolist() == theirs
    for peer, mine in (
        ("Accuracy", rates.accuracy),
        ("Precision", rates.precision),
        ("Recall", rates.recall),
        ("F1Score", rates.f1),
    ):
        theirs = torch_peers.ask(TORCHEVAL + f"Binary{peer}", {}, *steps)[-1]
        assert math.isnan(mine) or close(mine, theirs), peer


@pytest.mark.parametrize("average", ["micro", "weighted", None])
def test_averages_of_classes(torch_peers: Peers, average: str | None) -> None:
    for c, truth, guess in classes():
        metric = MulticlassConfusion(c)
        metric.update(truth, guess)
        result = metric.compute()
        steps = [*updates(guess, truth, "int64"), COMPUTE]
        settings = {"num_classes": c, "average": average}
        for peer, view in (
            ("Precision", result.precision),
            ("Recall", result.recall),
            ("F1Score", result.f1),
        ):
            if peer == "Recall" and average == "weighted" and len(set(truth) | set(guess)) < c:
                continue  # infinite or an error: test_faults_of_torch.py
            theirs = torch_peers.ask(TORCHEVAL + f"Multiclass{peer}", settings, *steps)[-1]
            assert close(view(average, zero_division=0.0), np.nan_to_num(theirs)), (peer, c)
        theirs = torch_peers.ask(TORCHEVAL + "MulticlassAccuracy", {}, *steps)[-1]
        assert close(result.accuracy, theirs)
        if len(truth) > 1:
            known = {"num_classes": c}
            theirs = torch_peers.ask(TORCHEVAL + "MulticlassConfusionMatrix", known, *steps)[-1]
            assert result.matrix.tolist() == theirs


def test_subset_accuracy_of_labels(torch_peers: Peers) -> None:
    for k, truth, scores in label_sets():
        metric = MultilabelConfusion(k)
        metric.update(truth, scores)
        result = metric.compute()
        steps = [*updates(scores, truth), COMPUTE]
        for criteria, mine in (
            ("exact_match", result.subset_accuracy),
            ("hamming", 1 - result.hamming_loss),
        ):
            settings = {"criteria": criteria}
            theirs = torch_peers.ask(TORCHEVAL + "MultilabelAccuracy", settings, *steps)[-1]
            assert close(mine, theirs, 4), criteria


@pytest.mark.parametrize("name", BOTH_CLASSES)
def test_areas(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    metric = ExactAUC()
    metric.update(labels, scores)
    found = metric.compute()
    steps = [*updates(scores, labels), COMPUTE]
    for peer, mine in (("AUROC", found.auc), ("AUPRC", found.ap)):
        theirs = torch_peers.ask(TORCHEVAL + f"Binary{peer}", {}, *steps)[-1]
        assert close(mine, theirs, len(labels)), peer


def test_areas_of_classes(torch_peers: Peers) -> None:
    rng = np.random.default_rng(28)
    truth, scores = rng.integers(0, 4, 300), np.round(rng.random((300, 4)), 1)
    scores = scores.astype(np.float32)
    metric = MulticlassAUC(4, exact=True)
    metric.update(truth, scores)
    found = metric.compute()
    steps = [*updates(scores, truth), COMPUTE]
    for average in ("macro", None):
        settings = {"num_classes": 4, "average": average}
        for peer, mine in (("AUROC", found.auc), ("AUPRC", found.ap)):
            theirs = torch_peers.ask(TORCHEVAL + f"Multiclass{peer}", settings, *steps)[-1]
            assert close(mine(average), theirs, 300), peer


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["random", "rare", "tied", "sorted", "all tied", "separated"])
def test_normalized_entropy(torch_peers: Peers, name: str, weighted: bool) -> None:
    labels, scores = ROWS[name]
    scores = np.clip(scores, np.float32(2.0**-20), np.float32(1 - 2.0**-20))
    weights = np.random.default_rng(29).integers(1, 9, len(labels)) if weighted else None
    metric = Calibration()
    metric.update(labels, scores, weights=weights)
    found = metric.compute()
    steps = []
    for part in np.array_split(np.arange(len(labels)), 3):
        named = {} if weights is None else {"weight": Tensor(weights[part])}
        steps.append(update(Tensor(scores[part]), Tensor(labels[part]), **named))
    theirs = torch_peers.ask(TORCHEVAL + "BinaryNormalizedEntropy", {}, *steps, COMPUTE)[-1]
    assert close(found.normalized_entropy, theirs, len(labels))
    # And the log loss is the numerator of it.
    total = torch_peers.ask(
        TORCHEVAL + "BinaryNormalizedEntropy", {}, *steps, Step("total_entropy")
    )[-1]
    assert close(found.log_loss, total[0] / float(found.weight), len(labels))
    positional = [update(*step.arguments, *(step.named or {}).values()) for step in steps]
    theirs = torch_peers.ask(TORCHEVAL + "WeightedCalibration", {}, *positional, COMPUTE)[-1]
    assert close(found.ratio, theirs, len(labels))


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_numbers(torch_peers: Peers, weighted: bool) -> None:
    rng = np.random.default_rng(30)
    labels = np.round(rng.normal(0, 4, 500) * 16) / 16
    scores = labels + np.round(rng.normal(0, 1, 500) * 16) / 16
    weights = rng.integers(1, 9, 500) if weighted else None
    metric = Regression()
    metric.update(labels, scores, weights=weights)
    found = metric.compute()
    steps = []
    for i in (0, 1):
        named = {} if weights is None else {"sample_weight": Tensor(weights[i::2])}
        steps.append(update(Tensor(scores[i::2]), Tensor(labels[i::2]), **named))
    theirs = torch_peers.ask(TORCHEVAL + "MeanSquaredError", {}, *steps, COMPUTE)[-1]
    assert close(found.mse, theirs)
    if not weighted:  # they have no weights there
        theirs = torch_peers.ask(TORCHEVAL + "R2Score", {}, *steps, COMPUTE)[-1]
        assert close(found.r2, theirs)


def test_a_merge_is_the_whole_there_and_here(torch_peers: Peers) -> None:
    labels, scores = ROWS["tied"]
    first, second, third = updates(scores, labels)
    for peer in ("BinaryAUROC", "BinaryF1Score", "BinaryAccuracy"):
        merge = Step("merge_state", [[Another([second]), Another([third])]])
        parts = torch_peers.ask(TORCHEVAL + peer, {}, first, merge, COMPUTE)[-1]
        whole = torch_peers.ask(TORCHEVAL + peer, {}, first, second, third, COMPUTE)[-1]
        assert parts == whole, peer
    parts = [ExactAUC() for _ in range(3)]
    for part, i, j in zip(parts, (0, 200, 300), (200, 300, 600), strict=True):
        part.update(labels[i:j], scores[i:j])
    metric = ExactAUC()
    metric.update(labels, scores)
    assert sum(parts[1:], parts[0]).digest() == metric.digest()
