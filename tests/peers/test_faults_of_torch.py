"""Mistakes of torchmetrics and torcheval, by name: each is observed, and none is made here."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Bounded,
    Calibration,
    ExactAUC,
    HistogramAUC,
    MulticlassConfusion,
    Regression,
    SlidingAUC,
)
from tests.peers.torch_process import COMPUTE, Another, Peers, Step, Tensor, update
from tests.peers.torch_samples import close

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

BINARY = "torchmetrics.classification.Binary"
TORCHEVAL = "torcheval.metrics."


def rows(scores: list[float], labels: list[int], dtype: str = "float32") -> Step:
    return update(Tensor(scores, dtype), Tensor(labels, "int64"))


def answer(peers: Peers, of: str, *steps: Step, **settings: object) -> Any:
    """What the last step returned."""
    return peers.ask(of, settings, *steps)[-1]


def area(labels: list[int], scores: list[float]) -> float:
    metric = ExactAUC()
    metric.update(labels, scores)
    return float(metric.compute().auc)


def test_an_area_does_not_depend_on_how_the_rows_came_in_batches(torch_peers: Peers) -> None:
    # torchmetrics issue 1989: a batch with any score outside [0, 1] goes through a sigmoid, and
    # its scores are then compared with those of the batches that did not.
    labels, scores = [0, 0, 1], [-1.0, 0.9, 0.8]
    whole, parts = [rows(scores, labels)], [rows(scores[:2], labels[:2]), rows([0.8], [1])]
    for peer in ("AUROC", "AveragePrecision"):
        assert answer(torch_peers, BINARY + peer, *whole, COMPUTE) == 0.5
        assert answer(torch_peers, BINARY + peer, *parts, COMPUTE) == 1.0
    metric, halves = ExactAUC(), ExactAUC()
    metric.update(labels, scores)
    halves.update(labels[:2], scores[:2])
    halves.update(labels[2:], scores[2:])
    assert metric.digest() == halves.digest()
    assert (metric.compute().auc, metric.compute().ap) == (0.5, 0.5)


def test_a_prediction_does_not_depend_on_the_other_rows_of_its_batch(torch_peers: Peers) -> None:
    # For the same reason 0.2 is a positive beside 1.5, and a negative beside 0.9.
    apart = [rows([0.2, 0.9], [0, 1]), rows([0.2, 1.5], [0, 1])]
    whole = rows([0.2, 0.9, 0.2, 1.5], [0, 1, 0, 1])
    assert answer(torch_peers, BINARY + "Accuracy", *apart, COMPUTE) == 0.75
    assert answer(torch_peers, BINARY + "Accuracy", whole, COMPUTE) == 0.5
    metric = BinaryConfusion(threshold=0.5)
    metric.update([0, 1], [0.2, 0.9])
    metric.update([0, 1], [0.2, 1.5])
    assert metric.compute().accuracy == 1.0


@pytest.mark.parametrize(
    ("scores", "dtype"),
    [([20.0, 30.0, 40.0], "float32"), ([40.0, 50.0, 60.0], "float64")],
)
def test_large_logits_are_not_tied(torch_peers: Peers, scores: list[float], dtype: str) -> None:
    # Their sigmoid is 1 from 17 on in float32, and from 37 on in float64.
    labels = [0, 1, 1]
    steps = [rows([*scores, -5.0], [*labels, 0], dtype), COMPUTE]
    assert answer(torch_peers, BINARY + "AUROC", *steps) == 0.75
    assert area([*labels, 0], [*scores, -5.0]) == 1.0


def test_logits_far_below_0_are_not_tied(torch_peers: Peers) -> None:
    scores, labels = [-200.0, -190.0, -180.0, 0.0], [0, 1, 1, 0]
    assert answer(torch_peers, BINARY + "AUROC", rows(scores, labels), COMPUTE) == 0.25
    assert area(labels, scores) == 0.5


@pytest.mark.parametrize("peer", ["Accuracy", "AUROC"])
def test_a_merge_after_a_result_changes_the_next_result(torch_peers: Peers, peer: str) -> None:
    # torchmetrics keeps the result, and a merge leaves it standing.
    right, wrong = rows([0.9, 0.1], [1, 0]), rows([0.9, 0.1], [0, 1])
    merge = Step("merge_state", [Another([wrong])])
    assert answer(torch_peers, BINARY + peer, right, merge, COMPUTE) == 0.5
    assert answer(torch_peers, BINARY + peer, right, COMPUTE, merge, COMPUTE) == 1.0
    for make, name in ((BinaryConfusion, "accuracy"), (ExactAUC, "auc")):
        one, other = make(), make()
        one.update([1, 0], [0.9, 0.1])
        other.update([0, 1], [0.9, 0.1])
        assert getattr(one.compute(), name) == 1.0
        one.merge(other)
        assert getattr(one.compute(), name) == 0.5


def test_a_count_grows_beyond_two_to_the_24_and_the_53(torch_peers: Peers) -> None:
    # torcheval counts in float32, where 2**24 + 1 is 2**24.
    full = Tensor(2.0**24)
    right = rows([0.9], [1])
    steps = [Step("num_correct", [full]), Step("num_total", [full]), *[right] * 3]
    for state in ("num_correct", "num_total"):
        found = answer(torch_peers, TORCHEVAL + "BinaryAccuracy", *steps, Step(state))
        assert found == 2**24, state
    # So that wrong answers no longer lower the accuracy, however many they are.
    steps = [*steps[:2], *[rows([0.9], [0])] * 50, COMPUTE]
    assert answer(torch_peers, TORCHEVAL + "BinaryAccuracy", *steps) == 1.0
    steps = [Step("num_tp", [full]), *[right] * 3, Step("num_tp")]
    assert answer(torch_peers, TORCHEVAL + "BinaryF1Score", *steps) == 2**24
    for many in (2**24, 2**53):
        metric = BinaryConfusion()
        metric.update([1], [0.9], weights=[many])
        for label in (1, 1, 1, 0):
            metric.update([label], [0.9])
        rates = metric.compute()
        assert (rates.tp, rates.fp, rates.rows) == (many + 3, 1, 5)
        assert rates.accuracy == float(Fraction(many + 3, many + 4))


def test_a_small_error_counts_however_large_the_sum_is(torch_peers: Peers) -> None:
    # torchmetrics adds errors in float32.
    large = update(Tensor([2.0**24]), Tensor([0.0]))
    small = [update(Tensor([1.0]), Tensor([0.0]))] * 8
    of = "torchmetrics.MeanAbsoluteError"
    assert answer(torch_peers, of, large, *small, Step("sum_abs_error")) == [2**24]
    metric = Regression()
    metric.update([0.0], [2.0**24])
    for _ in small:
        metric.update([0.0], [1.0])
    assert metric.compute().mae == float(Fraction(2**24 + 8, 9))


def test_r2_of_numbers_far_from_0(torch_peers: Peers) -> None:
    # Both subtract a square of the sum from the sum of squares, in float32.
    labels, scores = [10001.0, 10002.0, 10003.5], [10001.0, 10002.0, 10003.0]
    steps = [update(Tensor(scores), Tensor(labels)), COMPUTE]
    assert answer(torch_peers, "torchmetrics.R2Score", *steps) < 0.5
    assert answer(torch_peers, TORCHEVAL + "R2Score", *steps) < 0
    metric = Regression()
    metric.update(labels, scores)
    mean = sum(map(Fraction, labels)) / 3
    spread = sum((Fraction(label) - mean) ** 2 for label in labels)
    assert metric.compute().r2 == float(1 - Fraction(1, 4) / spread)


@pytest.mark.parametrize("thresholds", [5, 100])
def test_separation_inside_one_bucket_is_no_confident_half(
    torch_peers: Peers, thresholds: int
) -> None:
    labels, scores = [0, 0, 1, 1], [0.001, 0.002, 0.003, 0.004]
    step = rows(scores, labels)
    for peer in ("AUROC", "AveragePrecision"):
        found = answer(torch_peers, BINARY + peer, step, COMPUTE, thresholds=thresholds)
        assert found == 0.5, peer
    found = answer(torch_peers, TORCHEVAL + "BinaryBinnedAUROC", step, COMPUTE, threshold=5)
    assert found[0] == [0.5]
    assert area(labels, scores) == 1.0
    metric = HistogramAUC(grid="equal", resolution=2)  # as coarse as their five thresholds
    metric.update(labels, scores)
    found = metric.compute()
    assert found.auc == Bounded(value=0.5, low=0.0, high=1.0)
    assert isinstance(found.ap, Bounded) and found.ap.low < 1 / 2 < found.ap.high == 1
    default = HistogramAUC()
    default.update(labels, scores)
    assert default.compute().auc == Bounded(value=1.0, low=1.0, high=1.0)


@pytest.mark.parametrize("label", [0, 1])
def test_an_area_with_one_class_is_no_number(torch_peers: Peers, label: int) -> None:
    step = rows([0.25, 0.5], [label] * 2)
    assert answer(torch_peers, BINARY + "AUROC", step, COMPUTE) == 0.0
    assert answer(torch_peers, TORCHEVAL + "BinaryAUROC", step, COMPUTE) == 0.5
    of = TORCHEVAL + "WindowedBinaryAUROC"
    assert answer(torch_peers, of, step, COMPUTE, max_num_samples=2) == 0.5
    assert math.isnan(area([label] * 2, [0.25, 0.5]))
    metric = SlidingAUC(rows=2)
    metric.update([label] * 2, [0.25, 0.5])
    assert math.isnan(metric.compute().auc)


def test_rows_that_are_all_scored_1_are_in_the_bins_that_were_asked_for(torch_peers: Peers) -> None:
    # torchmetrics puts 1.0 in a bin of its own: n_bins=10 are 11.
    labels, scores = [0, 1], [1.0, 0.9375]
    found = answer(
        torch_peers, BINARY + "CalibrationError", rows(scores, labels), COMPUTE, n_bins=4
    )
    assert found == (1 + 1 / 16) / 2
    metric = Calibration(bins=4)
    metric.update(labels, scores)
    assert metric.compute().ece == (1 + 0.9375) / 2 - 1 / 2
    # And the curve says that nothing is reached at 1.0, then that everything is.
    found = answer(torch_peers, BINARY + "ROC", rows([1.0] * 4, [0, 1, 1, 0]), COMPUTE)
    assert found == [[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]]
    curve = ExactAUC()
    curve.update([0, 1, 1, 0], [1.0] * 4)
    assert curve.compute().roc().thresholds.tolist() == [math.inf, 1.0]
    assert curve.compute().auc == 0.5


def test_a_certain_score_on_the_wrong_side_has_no_finite_loss(torch_peers: Peers) -> None:
    # torch cuts a logarithm at -100 without a word.
    step = update(Tensor([1.0, 1.0]), Tensor([1.0, 0.0]))
    [found] = answer(torch_peers, TORCHEVAL + "BinaryNormalizedEntropy", step, COMPUTE)
    assert close(found, 50 / math.log(2))
    metric = Calibration()
    metric.update([1, 0], [1.0, 1.0])
    assert metric.compute().log_loss == metric.compute().normalized_entropy == math.inf


def test_normalized_entropy_of_one_class_is_no_number(torch_peers: Peers) -> None:
    # Its denominator is 0, for which they take 8e-15.
    step = update(Tensor([0.5, 0.5]), Tensor([1.0, 1.0]))
    [found] = answer(torch_peers, TORCHEVAL + "BinaryNormalizedEntropy", step, COMPUTE)
    assert found > 1e13
    metric = Calibration()
    metric.update([1, 1], [0.5, 0.5])
    assert math.isnan(metric.compute().normalized_entropy)


def test_weighted_recall_with_a_class_that_never_occurs(torch_peers: Peers) -> None:
    # torcheval takes such a class out of the one column of a quotient and not of the other.
    of, settings = TORCHEVAL + "MulticlassRecall", {"num_classes": 3, "average": "weighted"}
    one = update(Tensor([1], "int64"), Tensor([1], "int64"))
    assert answer(torch_peers, of, one, COMPUTE, **settings) == math.inf
    with pytest.raises(RuntimeError, match="must match the size"):
        answer(
            torch_peers,
            of,
            update(Tensor([1, 0], "int64"), Tensor([1, 1], "int64")),
            COMPUTE,
            **settings,
        )
    for truth, guess, wanted in (([1], [1], 1.0), ([1, 1], [1, 0], 0.5)):
        metric = MulticlassConfusion(3)
        metric.update(np.array(truth), np.array(guess))
        assert metric.compute().recall("weighted") == wanted
