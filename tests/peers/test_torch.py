"""Figures beside torchmetrics and torcheval, which compute in float32, on random and nasty rows.

Each line of a table is a class of theirs, its settings, and our view. Their other rules are in
test_differences_from_torch.py: so the threshold is above 0.5 for torchmetrics, a macro average is
one of the classes that occur or are predicted, and lists have distinct scores above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
)
from streammetrics.ranking import AP, HR, MRR, NDCG, Measure, P, R, RankingMetrics, RPrec
from tests.peers.torch_process import COMPUTE, Peers, Step, Tensor, update
from tests.peers.torch_samples import (
    BOTH_CLASSES,
    ROWS,
    above,
    close,
    equal,
    lists,
    undefined,
    updates,
)

pytestmark = pytest.mark.xdist_group("torch")

METRICS, EVAL = "torchmetrics.classification.", "torcheval.metrics."
LINEAR = NDCG(gain="linear")

View = Callable[[Any], Any]
Asked = tuple[str, dict[str, Any], View]


def result_of(metric: Any, *columns: object, **keywords: object) -> Any:
    """The result of a metric after these rows."""
    metric.update(*columns, **keywords)
    return metric.compute()


def compare(
    peers: Peers,
    questions: Sequence[Asked],
    result: Any,
    steps: Sequence[Step],
    roundings: int = 64,
) -> None:
    """Each view is what the peer says, but for roundings of float32, or undefined."""
    for peer, settings, view in questions:
        peer_value, value = peers.ask(peer, settings, *steps, COMPUTE)[-1], view(result)
        assert undefined(value) or close(value, peer_value, roundings), (peer, settings)


BINARY: dict[str, View] = {
    "Accuracy": lambda r: r.accuracy,
    "Precision": lambda r: r.precision,
    "Recall": lambda r: r.recall,
    "Specificity": lambda r: r.specificity,
    "NegativePredictiveValue": lambda r: r.npv,
    "F1Score": lambda r: r.f1,
    "JaccardIndex": lambda r: r.jaccard,
}
OTHERS: list[Asked] = [
    (METRICS + "BinaryHammingDistance", {}, lambda r: r.error_rate),
    (METRICS + "BinaryMatthewsCorrCoef", {}, lambda r: r.mcc),
    (METRICS + "BinaryCohenKappa", {}, lambda r: r.kappa),
]


@pytest.mark.parametrize("name", ROWS)
def test_rates(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    rates = result_of(BinaryConfusion(threshold=above(0.5)), labels, scores)
    steps = updates(scores, labels)
    counts = torch_peers.ask(METRICS + "BinaryStatScores", {}, *steps, COMPUTE)[-1]
    assert counts[:4] == [rates.tp, rates.fp, rates.tn, rates.fn]
    exactly = [(METRICS + f"Binary{peer}", {}, view) for peer, view in BINARY.items()]
    exactly.append((METRICS + "BinaryFBetaScore", {"beta": 2.0}, lambda r: r.f_beta(2.0)))
    for peer, settings, view in exactly:  # to the last bit of float32
        assert equal(view(rates), torch_peers.ask(peer, settings, *steps, COMPUTE)[-1]), peer
    compare(torch_peers, OTHERS, rates, steps)
    at_half = result_of(
        BinaryConfusion(threshold=0.5), labels, scores
    )  # `>=` in torcheval, as here
    four = ("Accuracy", "Precision", "Recall", "F1Score")
    compare(torch_peers, [(EVAL + f"Binary{p}", {}, BINARY[p]) for p in four], at_half, steps)


AREAS: list[Asked] = [
    (METRICS + "BinaryAUROC", {}, lambda r: r.auc),
    (METRICS + "BinaryAveragePrecision", {}, lambda r: r.ap),
    (EVAL + "BinaryAUROC", {}, lambda r: r.auc),
    (EVAL + "BinaryAUPRC", {}, lambda r: r.ap),
]


@pytest.mark.parametrize("name", BOTH_CLASSES)
def test_areas(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    result, steps = result_of(ExactAUC(), labels, scores), updates(scores, labels)
    compare(torch_peers, AREAS, result, steps, len(labels))
    peer_curve, points = (
        torch_peers.ask(METRICS + "BinaryROC", {}, *steps, COMPUTE)[-1],
        result.roc(),
    )
    assert close(points.fpr, peer_curve[0]) and close(points.tpr, peer_curve[1])
    assert close(points.thresholds[1:], peer_curve[2][1:], 0)


@pytest.mark.parametrize("name", BOTH_CLASSES)
def test_thresholds_with_a_required_recall_or_precision(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    result, steps = result_of(ExactAUC(), labels, scores), updates(scores, labels)
    for least in (0.25, 0.5, 0.75):
        for peer, setting, optimum in (
            ("PrecisionAtFixedRecall", "min_recall", result.precision_at_recall(least)),
            ("RecallAtFixedPrecision", "min_precision", result.recall_at_precision(least)),
        ):
            question = METRICS + f"Binary{peer}", {setting: least}
            value, _ = torch_peers.ask(*question, *steps, COMPUTE)[-1]
            assert equal(optimum, value), (peer, least)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "all wrong"])
def test_errors_of_calibration_in_equal_bins(torch_peers: Peers, name: str) -> None:
    # Edges that float32 holds; where 1.0 is the only score of the last bin, its bin is theirs.
    labels, scores = ROWS[name]
    if scores.min() < 1 <= scores.max():
        scores = np.minimum(scores, np.float32(1 - 2.0**-10))
    for bins in (4, 16):
        settings = {"n_bins": bins}
        questions: list[Asked] = [
            (METRICS + "BinaryCalibrationError", {**settings, "norm": "l1"}, lambda r: r.ece),
            (METRICS + "BinaryCalibrationError", {**settings, "norm": "max"}, lambda r: r.mce),
        ]
        result = result_of(Calibration(bins=bins), labels, scores)
        compare(torch_peers, questions, result, updates(scores, labels), len(labels))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["random", "rare", "tied", "all tied", "separated"])
def test_normalized_entropy_and_calibration(torch_peers: Peers, name: str, weighted: bool) -> None:
    labels, scores = ROWS[name]
    scores = np.clip(scores, np.float32(2.0**-20), np.float32(1 - 2.0**-20))
    weights = np.random.default_rng(29).integers(1, 9, len(labels)) if weighted else None
    result, steps, positional = result_of(Calibration(), labels, scores, weights=weights), [], []
    for part in np.array_split(np.arange(len(labels)), 3):
        tensors = Tensor(scores[part]), Tensor(labels[part])
        third = () if weights is None else (Tensor(weights[part]),)
        steps.append(update(*tensors, weight=third[0]) if third else update(*tensors))
        positional.append(update(*tensors, *third))
    entropy: list[Asked] = [(EVAL + "BinaryNormalizedEntropy", {}, lambda r: r.normalized_entropy)]
    ratio: list[Asked] = [(EVAL + "WeightedCalibration", {}, lambda r: r.ratio)]
    compare(torch_peers, entropy, result, steps, len(labels))
    compare(torch_peers, ratio, result, positional, len(labels))


MEASURES: list[tuple[str, int | None, Measure, bool]] = [
    *(("MRR", k, MRR @ k, False) for k in (1, 3, 10)),
    *(("HitRate", k, HR @ k, False) for k in (1, 3, 10)),
    *(("Precision", k, P @ k, False) for k in (1, 3, 10)),
    *(("Recall", k, R @ k, False) for k in (1, 3, 10)),
    *(("NormalizedDCG", k, LINEAR @ k if k else LINEAR, True) for k in (None, 1, 3, 10)),
    *(
        (name, None, measure, False)
        for name, measure in (("MRR", MRR), ("MAP", AP), ("RPrecision", RPrec))
    ),
]


@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_measures_of_lists(torch_peers: Peers, empty: str) -> None:
    pairs = lists()
    scores = np.concatenate([column for _, column in pairs])
    sizes = [len(column) for _, column in pairs]
    for name, cut, measure, graded in MEASURES:
        labels = np.concatenate(
            [grades if graded else np.minimum(grades, 1) for grades, _ in pairs]
        )
        ends, indexes = np.cumsum([0, *sizes]), np.repeat(np.arange(len(pairs)), sizes)
        value = result_of(
            RankingMetrics([measure], empty=empty, complete_lists=True),
            labels,
            scores,
            offsets=ends,
        )[measure]
        settings = {"empty_target_action": {"zero": "neg"}.get(empty, empty)}
        settings |= {} if cut is None else {"top_k": cut}
        steps = [
            update(
                Tensor(scores[rows]),
                Tensor(labels[rows], "int64"),
                indexes=Tensor(indexes[rows], "int64"),
            )
            for rows in (slice(0, ends[20]), slice(ends[20], ends[40]), slice(ends[40], None))
        ]  # three updates, each of whole lists
        answers = torch_peers.ask(
            f"torchmetrics.retrieval.Retrieval{name}", settings, *steps, COMPUTE
        )
        assert close(value, answers[-1]), (name, cut)
