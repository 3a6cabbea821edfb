"""Counts, areas, calibration and errors beside torchmetrics, on random and nasty rows.

It computes in float32. Where definitions differ: a score at the threshold is negative there and
positive here; 0/0 is 0 there and nan here; a macro average there leaves out a class that neither
occurs nor is predicted, and counts 0 for one that is either, as `zero_division=0` does here; a
score of 1.0 is in a bin of its own, beside those that were asked for, and here in the last one.
"""

from __future__ import annotations

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
from tests.peers.torch_process import COMPUTE, Peers, Step, Tensor, update
from tests.peers.torch_samples import (
    BOTH_CLASSES,
    ROWS,
    above,
    classes,
    close,
    equal,
    label_sets,
    undefined,
    updates,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

CLASSIFICATION = "torchmetrics.classification."
RATES = {
    "Accuracy": "accuracy",
    "Precision": "precision",
    "Recall": "recall",
    "Specificity": "specificity",
    "NegativePredictiveValue": "npv",
    "F1Score": "f1",
    "JaccardIndex": "jaccard",
}
AVERAGED = {
    "Precision": "precision",
    "Recall": "recall",
    "F1Score": "f1",
    "JaccardIndex": "jaccard",
}
AVERAGES = ("micro", "macro", "weighted", "none")


@pytest.mark.parametrize("name", ROWS)
def test_rates_are_theirs_to_the_last_bit_of_float32(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    metric = BinaryConfusion(threshold=above(0.5))
    metric.update(labels, scores)
    rates = metric.compute()
    steps = [*updates(scores, labels), COMPUTE]
    theirs = torch_peers.ask(CLASSIFICATION + "BinaryStatScores", {}, *steps)[-1]
    assert theirs[:4] == [rates.tp, rates.fp, rates.tn, rates.fn]
    for peer, view in RATES.items():
        theirs = torch_peers.ask(CLASSIFICATION + f"Binary{peer}", {}, *steps)[-1]
        assert equal(getattr(rates, view), theirs), peer
    theirs = torch_peers.ask(CLASSIFICATION + "BinaryFBetaScore", {"beta": 2.0}, *steps)[-1]
    assert equal(rates.f_beta(2.0), theirs)
    for peer, mine in (
        ("HammingDistance", rates.error_rate),  # there 1 less the rounded accuracy
        ("MatthewsCorrCoef", rates.mcc),
        ("CohenKappa", rates.kappa),
    ):
        theirs = torch_peers.ask(CLASSIFICATION + f"Binary{peer}", {}, *steps)[-1]
        assert undefined(mine) or close(mine, theirs), peer


def test_a_score_at_the_threshold_is_negative_there_and_positive_here(torch_peers: Peers) -> None:
    asked = [update(Tensor([0.5]), Tensor([1], "int64")), COMPUTE]
    assert torch_peers.ask(CLASSIFICATION + "BinaryRecall", {}, *asked)[-1] == 0.0
    metric = BinaryConfusion(threshold=0.5)
    metric.update([1], [0.5])
    assert metric.compute().recall == 1.0


@pytest.mark.parametrize("average", AVERAGES)
def test_averages_of_classes(torch_peers: Peers, average: str) -> None:
    for c, truth, guess in classes():
        metric = MulticlassConfusion(c)
        metric.update(truth, guess)
        result = metric.compute()
        met = set(truth.tolist()) | set(guess.tolist())
        steps = [*updates(guess, truth, "int64"), COMPUTE]
        for peer, view in AVERAGED.items():
            settings = {"num_classes": c, "average": average}
            theirs = torch_peers.ask(CLASSIFICATION + f"Multiclass{peer}", settings, *steps)[-1]
            by_class = [getattr(result, view)(None, zero_division=0.0)[i] for i in sorted(met)]
            asked = None if average == "none" else average
            mine = getattr(result, view)(asked, zero_division=0.0)
            mine = sum(by_class) / len(met) if average == "macro" else mine
            assert close(mine, theirs), (peer, c)
        settings = {"num_classes": c, "average": "micro"}
        theirs = torch_peers.ask(CLASSIFICATION + "MulticlassAccuracy", settings, *steps)[-1]
        assert equal(result.accuracy, theirs)


def test_agreement_of_classes(torch_peers: Peers) -> None:
    for c, truth, guess in classes():
        metric = MulticlassConfusion(c)
        metric.update(truth, guess)
        result = metric.compute()
        steps = [*updates(guess, truth, "int64"), COMPUTE]
        for peer, settings, mine in (
            ("ConfusionMatrix", {}, result.matrix),
            ("MatthewsCorrCoef", {}, result.mcc),
            ("CohenKappa", {}, result.kappa),
            ("CohenKappa", {"weights": "linear"}, result.weighted_kappa("linear")),
            ("CohenKappa", {"weights": "quadratic"}, result.weighted_kappa("quadratic")),
        ):
            known = {"num_classes": c, **settings}
            theirs = torch_peers.ask(CLASSIFICATION + f"Multiclass{peer}", known, *steps)[-1]
            assert undefined(mine) or close(mine, theirs), (peer, c)


def test_labels(torch_peers: Peers) -> None:
    for k, truth, scores in label_sets():
        metric = MultilabelConfusion(k, threshold=above(0.5))
        metric.update(truth, scores)
        result = metric.compute()
        steps = [*updates(scores, truth), COMPUTE]
        for peer, mine in (
            ("HammingDistance", result.hamming_loss),
            ("ExactMatch", result.subset_accuracy),
        ):
            settings = {"num_labels": k, **({"average": "micro"} if "Hamming" in peer else {})}
            theirs = torch_peers.ask(CLASSIFICATION + f"Multilabel{peer}", settings, *steps)[-1]
            assert close(mine, theirs, 2), peer
        theirs = torch_peers.ask(
            CLASSIFICATION + "MultilabelConfusionMatrix", {"num_labels": k}, *steps
        )[-1]
        assert result.matrix.tolist() == theirs
        for peer, view in AVERAGED.items():
            for average in AVERAGES:
                if average == "weighted" and not truth.any():
                    continue  # their 0/0 is 0 in three of the four, and nan in one
                settings = {"num_labels": k, "average": average}
                theirs = torch_peers.ask(CLASSIFICATION + f"Multilabel{peer}", settings, *steps)
                asked = None if average == "none" else average
                mine = getattr(result, view)(asked, zero_division=0.0)
                assert close(mine, theirs[-1]), (peer, average, k)


@pytest.mark.parametrize("name", BOTH_CLASSES)
def test_areas(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    metric = ExactAUC()
    metric.update(labels, scores)
    found = metric.compute()
    steps = [*updates(scores, labels), COMPUTE]
    for peer, mine in (("AUROC", found.auc), ("AveragePrecision", found.ap)):
        theirs = torch_peers.ask(CLASSIFICATION + f"Binary{peer}", {}, *steps)[-1]
        assert close(mine, theirs, len(labels)), peer
    theirs = torch_peers.ask(CLASSIFICATION + "BinaryROC", {}, *steps)[-1]
    points = found.roc()
    assert close(points.fpr, theirs[0]) and close(points.tpr, theirs[1])
    assert close(points.thresholds[1:], theirs[2][1:], 0)


def test_areas_of_classes(torch_peers: Peers) -> None:
    rng = np.random.default_rng(24)
    for tied in (False, True):
        truth, scores = rng.integers(0, 4, 300), rng.random((300, 4))
        scores[np.arange(300), truth] += 0.25
        scores = scores / scores.sum(axis=1, keepdims=True)
        scores = (np.round(scores, 1) if tied else scores).astype(np.float32)
        metric = MulticlassAUC(4, exact=True)
        metric.update(truth, scores)
        found = metric.compute()
        steps = [*updates(scores, truth), COMPUTE]
        for average in ("macro", "weighted", "none"):
            settings = {"num_classes": 4, "average": average}
            asked = None if average == "none" else average
            for peer, mine in (("AUROC", found.auc), ("AveragePrecision", found.ap)):
                theirs = torch_peers.ask(CLASSIFICATION + f"Multiclass{peer}", settings, *steps)
                assert close(mine(asked), theirs[-1], 300), (peer, average)


@pytest.mark.parametrize("bins", [4, 8, 16])
@pytest.mark.parametrize("name", [name for name in ROWS if name != "all wrong"])
def test_errors_of_calibration_in_equal_bins(torch_peers: Peers, name: str, bins: int) -> None:
    # Edges that float32 holds; where 1.0 is the only score of the last bin, its bin is theirs.
    labels, scores = ROWS[name]
    if scores.min() < 1 <= scores.max():
        scores = np.minimum(scores, np.float32(1 - 2.0**-10))
    metric = Calibration(bins=bins)
    metric.update(labels, scores)
    found = metric.compute()
    for norm, mine in (("l1", found.ece), ("max", found.mce)):
        theirs = torch_peers.ask(
            CLASSIFICATION + "BinaryCalibrationError",
            {"n_bins": bins, "norm": norm},
            *updates(scores, labels),
            COMPUTE,
        )[-1]
        assert close(mine, theirs, len(labels)), norm


@pytest.mark.parametrize("offset", [0, 64])
def test_errors_of_numbers(torch_peers: Peers, offset: int) -> None:
    rng = np.random.default_rng(25)
    labels = np.round(rng.normal(offset, 4, 500) * 16) / 16  # squares that float32 can add
    scores = labels + np.round(rng.normal(0, 1, 500) * 16) / 16
    metric = Regression()
    metric.update(labels, scores)
    found = metric.compute()
    steps = [update(Tensor(scores[i::2]), Tensor(labels[i::2])) for i in (0, 1)]
    for peer, settings, mine in (
        ("MeanAbsoluteError", {}, found.mae),
        ("MeanSquaredError", {}, found.mse),
        ("MeanSquaredError", {"squared": False}, found.rmse),
        ("R2Score", {}, found.r2),
    ):
        theirs = torch_peers.ask("torchmetrics." + peer, settings, *steps, COMPUTE)[-1]
        # R² subtracts two sums that are up to offset² / 16 times as large as what is left.
        assert close(mine, theirs, 64 + 16 * offset), peer


def test_brier_scores_are_their_squared_errors(torch_peers: Peers) -> None:
    labels, scores = ROWS["rare"]
    metric = Calibration()
    metric.update(labels, scores)
    asked = [update(Tensor(scores), Tensor(labels)), Step("compute")]
    theirs = torch_peers.ask("torchmetrics.MeanSquaredError", {}, *asked)[-1]
    assert close(metric.compute().brier, theirs)
