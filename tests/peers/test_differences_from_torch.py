"""Where torchmetrics and torcheval give another number: a table for the nightly run.

A row is a class of theirs, its settings and the rows, its answer, and ours. The first table has
faults, the second one other rules, which docs/metrics.md lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    HistogramAUC,
    MulticlassAUC,
    MulticlassConfusion,
    Regression,
)
from streammetrics.ranking import AP, HR, MRR, NDCG, Measure, RankingMetrics
from tests.peers.torch_process import COMPUTE, Another, Peers, Step, Tensor, update

pytestmark = pytest.mark.xdist_group("torch")

NAN, INF = math.nan, math.inf
FLOAT32 = 2**-22  # in which torch computes
BINARY = "torchmetrics.classification.Binary"
CLASSES = "torchmetrics.classification.Multiclass"
LISTS = "torchmetrics.retrieval.Retrieval"
TORCHEVAL = "torcheval.metrics."


class Row(NamedTuple):
    """A question to torch and one to us, each with its answer, or what is said of it."""

    peer: str
    settings: dict[str, Any]
    steps: Sequence[Step]
    said: Any
    ours: Callable[[], Any]
    right: Any


def result_of(metric: Any, *columns: object, **keywords: object) -> Any:
    """The result of a metric after these rows."""
    metric.update(*columns, **keywords)
    return metric.compute()


def rows(scores: Any, labels: list[int], dtype: str = "float32") -> Step:
    return update(Tensor(scores, dtype), Tensor(labels, "int64"))


def guesses(guess: list[int], truth: list[int]) -> Step:
    return update(Tensor(guess, "int64"), Tensor(truth, "int64"))


def numbers(scores: list[float], labels: list[float]) -> Step:
    return update(Tensor(scores), Tensor(labels))


def a_list(scores: list[float], labels: list[int]) -> list[Step]:
    indexes = Tensor([0] * len(labels), "int64")
    return [update(Tensor(scores), Tensor(labels, "int64"), indexes=indexes), COMPUTE]


def ranked(measure: Measure, labels: list[int], scores: list[float]) -> float:
    return float(
        result_of(RankingMetrics([measure], complete_lists=True), [labels], [scores])[measure]
    )


RIGHT, WRONG = rows([0.9, 0.1], [1, 0]), rows([0.9, 0.1], [0, 1])
MERGE = Step("merge_state", [Another([WRONG])])
FULL = Tensor(2.0**24)
SAME, ONE_BUCKET = [0.9, 0.9], ([0, 0, 1, 1], [0.001, 0.002, 0.003, 0.004])
SIGNED, GRADES = [0.5, 0.25, 0.0, -0.25, -0.5], [1, 0, 1, 0, 1]
FALLING = [1 - i / 16 for i in range(11)]
FIRST, LAST, TIED = [1, *[0] * 19], [*[0] * 19, 1], [0.5] * 20
FAR = [10001.0, 10002.0, 10003.0], [10001.0, 10002.0, 10003.5]
TRUTH, GUESS = [0, 0, 0, 2], [0, 1, 1, 1]
SHARED = sum(1 / math.log2(rank + 1) for rank in range(1, 11)) / 20
THREE = {"num_classes": 3}
SHARES = [[0.75, 0.125, 0.125], [0.25, 0.5, 0.25], [0.25, 0.75, 0.0]]
HALVES = [0.125, 0.25, 0.5, 0.75]


def merged_after_a_result() -> float:
    total, part = ExactAUC(), ExactAUC()
    total.update([1, 0], [0.9, 0.1])
    part.update([0, 1], [0.9, 0.1])
    total.compute()
    total.merge(part)
    return float(total.compute().auc)


FAULTS: dict[str, Row] = {
    "issue 1989: a batch with a score outside [0, 1] goes through a sigmoid, and no other": Row(
        BINARY + "AUROC", {}, [rows([-1.0, 0.9], [0, 0]), rows([0.8], [1]), COMPUTE], 1.0,
        lambda: result_of(ExactAUC(), [0, 0, 1], [-1.0, 0.9, 0.8]).auc, 0.5,
    ),
    "so a prediction depends on the other rows of its batch": Row(
        BINARY + "Accuracy", {}, [rows([0.2, 0.9, 0.2, 1.5], [0, 1, 0, 1]), COMPUTE], 0.5,
        lambda: result_of(BinaryConfusion(), [0, 1, 0, 1], [0.2, 0.9, 0.2, 1.5]).accuracy, 1.0,
    ),
    "large logits are tied in float32": Row(
        BINARY + "AUROC", {}, [rows([20.0, 30.0, 40.0, -5.0], [0, 1, 1, 0]), COMPUTE], 0.75,
        lambda: result_of(ExactAUC(), [0, 1, 1, 0], [20.0, 30.0, 40.0, -5.0]).auc, 1.0,
    ),
    "a merge after a result leaves that result": Row(
        BINARY + "AUROC", {}, [RIGHT, COMPUTE, MERGE, COMPUTE], 1.0, merged_after_a_result, 0.5,
    ),
    "torcheval counts in float32: wrong answers beyond 2**24 change nothing": Row(
        TORCHEVAL + "BinaryAccuracy", {},
        [Step("num_correct", [FULL]), Step("num_total", [FULL]), *[rows([0.9], [0])] * 50, COMPUTE],
        1.0,
        lambda: result_of(BinaryConfusion(), [1, 0], [0.9, 0.9], weights=[2**53, 1]).fp, 1,
    ),
    "torchmetrics adds errors in float32": Row(
        "torchmetrics.MeanAbsoluteError", {},
        [numbers([2.0**24], [0.0]), *[numbers([1.0], [0.0])] * 8, Step("sum_abs_error")], [2**24],
        lambda: result_of(Regression(), [0.0] * 9, [2.0**24, *[1.0] * 8]).mae * 9, 2**24 + 8,
    ),
    "R² of numbers far from 0": Row(
        TORCHEVAL + "R2Score", {}, [numbers(*FAR), COMPUTE], lambda value: value < 0,
        lambda: round(result_of(Regression(), FAR[1], FAR[0]).r2, 6), 0.921053,
    ),
    "separation inside one bucket is a confident half": Row(
        BINARY + "AUROC", {"thresholds": 5}, [rows(ONE_BUCKET[1], ONE_BUCKET[0]), COMPUTE], 0.5,
        lambda: [
            getattr(result_of(HistogramAUC(grid="equal", resolution=2), *ONE_BUCKET).auc, end)
            for end in ("low", "high")
        ], [0.0, 1.0],
    ),
    "an area of one class": Row(
        BINARY + "AUROC", {}, [rows([0.25, 0.5], [1, 1]), COMPUTE], 0.0,
        lambda: result_of(ExactAUC(), [1, 1], [0.25, 0.5]).auc, NAN,
    ),
    "a score of 1.0 is in a bin of its own": Row(
        BINARY + "CalibrationError", {"n_bins": 4}, [rows([1.0, 0.9375], [0, 1]), COMPUTE],
        (1 + 1 / 16) / 2,
        lambda: result_of(Calibration(bins=4), [0, 1], [1.0, 0.9375]).ece, 0.46875,
    ),
    "a ROC curve of scores of 1.0 has two points at 1.0": Row(
        BINARY + "ROC", {}, [rows([1.0] * 4, [0, 1, 1, 0]), COMPUTE],
        [[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]],
        lambda: result_of(ExactAUC(), [0, 1, 1, 0], [1.0] * 4).roc().thresholds.tolist(),
        [INF, 1.0],
    ),
    "torch cuts a logarithm at -100 without a word": Row(
        TORCHEVAL + "BinaryNormalizedEntropy", {}, [numbers([1.0, 1.0], [1.0, 0.0]), COMPUTE],
        [50 / math.log(2)],
        lambda: result_of(Calibration(), [1, 0], [1.0, 1.0]).normalized_entropy, INF,
    ),
    "an entropy of one class, whose denominator is 0": Row(
        TORCHEVAL + "BinaryNormalizedEntropy", {}, [numbers([0.5, 0.5], [1.0, 1.0]), COMPUTE],
        lambda value: value > 1e13,
        lambda: result_of(Calibration(), [1, 1], [0.5, 0.5]).normalized_entropy, NAN,
    ),
    "weighted recall with a class that never occurs": Row(
        TORCHEVAL + "MulticlassRecall", {**THREE, "average": "weighted"},
        [guesses([1], [1]), COMPUTE], INF,
        lambda: result_of(MulticlassConfusion(3), [1], [1]).recall("weighted"), 1.0,
    ),
    "relevant items with scores at or below 0 are lost to AP": Row(
        LISTS + "MAP", {}, a_list(SIGNED, GRADES), 1.0,
        lambda: ranked(AP, GRADES, SIGNED), (1 + 2 / 3 + 3 / 5) / 3,
    ),
    "AP over the hits among the first k": Row(
        LISTS + "MAP", {"top_k": 10}, a_list(FALLING, [1, *[0] * 9, 1]), 1.0,
        lambda: ranked(AP @ 10, [1, *[0] * 9, 1], FALLING), 0.5,
    ),
    "falls when one more is found": Row(
        LISTS + "MAP", {"top_k": 10}, a_list(FALLING, [1, *[0] * 8, 1, 0]), 0.6,
        lambda: ranked(AP @ 10, [1, *[0] * 8, 1, 0], FALLING), 0.6,
    ),
}  # fmt: skip

RULES: dict[str, Row] = {
    "0/0 is 0": Row(
        BINARY + "Precision", {}, [rows([0.1], [0]), COMPUTE], 0.0,
        lambda: result_of(BinaryConfusion(), [0], [0.1]).precision, NAN,
    ),
    "a score at the threshold is negative": Row(
        BINARY + "Recall", {}, [rows([0.5], [1]), COMPUTE], 0.0,
        lambda: result_of(BinaryConfusion(threshold=0.5), [1], [0.5]).recall, 1.0,
    ),
    "but not at given thresholds of a curve": Row(
        BINARY + "ROC", {"thresholds": 3}, [rows([0.25, 0.5, 0.5, 0.75], [0, 1, 0, 1]), COMPUTE],
        [[0, 0.5, 1], [0, 1, 1], [1, 0.5, 0]],
        lambda: result_of(ExactAUC(), [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]).confusion(0.5).fpr, 0.5,
    ),
    "mcc of one class": Row(
        BINARY + "MatthewsCorrCoef", {}, [rows(SAME, [0, 0]), COMPUTE], -1,
        lambda: result_of(BinaryConfusion(), [0, 0], SAME).mcc, NAN,
    ),
    "accuracy of classes is a mean recall, in which a class that never occurs counts 0": Row(
        CLASSES + "Accuracy", THREE, [guesses(GUESS, TRUTH), COMPUTE], 1 / 9,
        lambda: result_of(MulticlassConfusion(3), TRUTH, GUESS).recall("macro"), 1 / 6,
    ),
    "precision of classes is the accuracy": Row(
        TORCHEVAL + "MulticlassPrecision", {}, [guesses(GUESS, TRUTH), COMPUTE], 1 / 4,
        lambda: result_of(MulticlassConfusion(3), TRUTH, GUESS).accuracy, 1 / 4,
    ),
    "a class that never occurs counts 0 in a macro AUC": Row(
        CLASSES + "AUROC", THREE, [rows(SHARES, [0, 1, 1]), COMPUTE], 2 / 3,
        lambda: result_of(MulticlassAUC(3, exact=True), [0, 1, 1], SHARES).auc("macro"), 1.0,
    ),
    "a partial area is on the scale of McClish": Row(
        BINARY + "AUROC", {"max_fpr": 0.5}, [rows(HALVES, [0, 1, 0, 1]), COMPUTE], 2 / 3,
        lambda: result_of(ExactAUC(), [0, 1, 0, 1], HALVES).partial_auc(0.5), 0.25,
    ),
    "a precision that no threshold reaches has a recall of 0": Row(
        BINARY + "RecallAtFixedPrecision", {"min_precision": 0.75},
        [rows([0.25, 0.5], [1, 0]), COMPUTE], lambda value: value == 0,
        lambda: result_of(ExactAUC(), [1, 0], [0.25, 0.5]).recall_at_precision(0.75), NAN,
    ),
    "R² of equal labels that are predicted": Row(
        "torchmetrics.R2Score", {}, [numbers([2.0, 2.0], [2.0, 2.0]), COMPUTE], 1.0,
        lambda: result_of(Regression(), [2.0, 2.0], [2.0, 2.0]).r2, NAN,
    ),
    "NDCG alone shares the ranks of tied items, as here": Row(
        LISTS + "NormalizedDCG", {"top_k": 10}, a_list(TIED, FIRST), SHARED,
        lambda: ranked(NDCG @ 10, FIRST, TIED), SHARED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*FAULTS, *RULES])
def test_our_answer_is_that_of_the_table(name: str) -> None:
    row = {**FAULTS, **RULES}[name]
    assert row.ours() == pytest.approx(row.right, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", [*FAULTS, *RULES])
def test_their_answer_is_that_of_the_table(torch_peers: Peers, name: str) -> None:
    row = {**FAULTS, **RULES}[name]
    answer = torch_peers.ask(row.peer, row.settings, *row.steps)[-1]
    if callable(row.said):
        assert row.said(np.ravel(answer)[0])
    else:
        assert np.ravel(answer) == pytest.approx(np.ravel(row.said), rel=FLOAT32, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "settings", "measure"),
    [("MRR", {}, MRR), ("MAP", {}, AP), ("HitRate", {"top_k": 10}, HR @ 10)],
)
def test_the_order_of_tied_rows_shows_there_and_not_here(
    torch_peers: Peers, name: str, settings: dict[str, Any], measure: Measure
) -> None:
    orders = FIRST, LAST
    answers = [
        torch_peers.ask(LISTS + name, settings, *a_list(TIED, order))[-1] for order in orders
    ]
    assert answers[0] != answers[1]
    assert ranked(measure, FIRST, TIED) == ranked(measure, LAST, TIED)
