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
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from streammetrics.ranking import AP, HR, MRR, NDCG, Measure, P, R, RankingMetrics, RPrec
from tests.peers.torch_process import COMPUTE, Another, Peers, Step, Tensor, update
from tests.peers.torch_samples import (
    BOTH_CLASSES,
    ROWS,
    above,
    classes,
    close,
    equal,
    label_sets,
    lists,
    undefined,
    updates,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

METRICS, EVAL = "torchmetrics.classification.", "torcheval.metrics."
AVERAGED = ("precision", "recall", "f1", "jaccard")
NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F1Score", "jaccard": "JaccardIndex"}
LINEAR = NDCG(gain="linear")

View = Callable[[Any], Any]
Asked = tuple[str, dict[str, Any], View]


def of(metric: Any, *columns: object, **named: object) -> Any:
    """The result of a metric after these rows."""
    metric.update(*columns, **named)
    return metric.compute()


def compare(
    peers: Peers, asked: Sequence[Asked], result: Any, steps: Sequence[Step], roundings: int = 64
) -> None:
    """Each view is what the peer says, but for roundings of float32, or undefined."""
    for peer, settings, view in asked:
        theirs, mine = peers.ask(peer, settings, *steps, COMPUTE)[-1], view(result)
        assert undefined(mine) or close(mine, theirs, roundings), (peer, settings)


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
    rates = of(BinaryConfusion(threshold=above(0.5)), labels, scores)
    steps = updates(scores, labels)
    counts = torch_peers.ask(METRICS + "BinaryStatScores", {}, *steps, COMPUTE)[-1]
    assert counts[:4] == [rates.tp, rates.fp, rates.tn, rates.fn]
    exactly = [(METRICS + f"Binary{peer}", {}, view) for peer, view in BINARY.items()]
    exactly.append((METRICS + "BinaryFBetaScore", {"beta": 2.0}, lambda r: r.f_beta(2.0)))
    for peer, settings, view in exactly:  # to the last bit of float32
        assert equal(view(rates), torch_peers.ask(peer, settings, *steps, COMPUTE)[-1]), peer
    compare(torch_peers, OTHERS, rates, steps)
    at_half = of(BinaryConfusion(threshold=0.5), labels, scores)  # `>=` in torcheval, as here
    four = ("Accuracy", "Precision", "Recall", "F1Score")
    compare(torch_peers, [(EVAL + f"Binary{p}", {}, BINARY[p]) for p in four], at_half, steps)


def test_classes(torch_peers: Peers) -> None:
    for c, truth, guess in classes():
        result, n = of(MulticlassConfusion(c), truth, guess), {"num_classes": c}
        met = sorted(set(truth.tolist()) | set(guess.tolist()))
        asked: list[Asked] = [
            (METRICS + "MulticlassConfusionMatrix", n, lambda r: r.matrix),
            (METRICS + "MulticlassMatthewsCorrCoef", n, lambda r: r.mcc),
            (METRICS + "MulticlassCohenKappa", n, lambda r: r.kappa),
            (METRICS + "MulticlassAccuracy", {**n, "average": "micro"}, lambda r: r.accuracy),
            (EVAL + "MulticlassAccuracy", {}, lambda r: r.accuracy),
        ]
        for kind in ("linear", "quadratic"):
            kappa = METRICS + "MulticlassCohenKappa", {**n, "weights": kind}
            asked.append((*kappa, lambda r, kind=kind: r.weighted_kappa(kind)))
        for view in AVERAGED:
            for average in ("micro", "macro", "weighted", None):

                def mine(
                    r: Any, view: str = view, average: str | None = average, met: Any = met
                ) -> Any:
                    of_view = getattr(r, view)
                    if average == "macro":
                        return of_view(None, zero_division=0.0)[met].mean()
                    return of_view(average, zero_division=0.0)

                settings = {**n, "average": average or "none"}
                asked.append((METRICS + f"Multiclass{NAMES[view]}", settings, mine))
        compare(torch_peers, asked, result, updates(guess, truth, "int64"))


def test_labels(torch_peers: Peers) -> None:
    for k, truth, scores in label_sets():
        result, n = (
            of(MultilabelConfusion(k, threshold=above(0.5)), truth, scores),
            {"num_labels": k},
        )
        asked: list[Asked] = [
            (METRICS + "MultilabelHammingDistance", {**n, "average": "micro"},
             lambda r: r.hamming_loss),
            (METRICS + "MultilabelExactMatch", n, lambda r: r.subset_accuracy),
            (METRICS + "MultilabelConfusionMatrix", n, lambda r: r.matrix),
        ]  # fmt: skip
        for view in AVERAGED:
            for average in ("micro", "macro", "weighted", None):
                if average == "weighted" and not truth.any():
                    continue  # their 0/0 is 0 in three of the four, and nan in one
                settings = {**n, "average": average or "none"}
                asked.append((
                    METRICS + f"Multilabel{NAMES[view]}", settings,
                    lambda r, v=view, a=average: getattr(r, v)(a, zero_division=0.0),
                ))  # fmt: skip
        compare(torch_peers, asked, result, updates(scores, truth))


AREAS: list[Asked] = [
    (METRICS + "BinaryAUROC", {}, lambda r: r.auc),
    (METRICS + "BinaryAveragePrecision", {}, lambda r: r.ap),
    (EVAL + "BinaryAUROC", {}, lambda r: r.auc),
    (EVAL + "BinaryAUPRC", {}, lambda r: r.ap),
]


@pytest.mark.parametrize("name", BOTH_CLASSES)
def test_areas(torch_peers: Peers, name: str) -> None:
    labels, scores = ROWS[name]
    found, steps = of(ExactAUC(), labels, scores), updates(scores, labels)
    compare(torch_peers, AREAS, found, steps, len(labels))
    theirs, points = torch_peers.ask(METRICS + "BinaryROC", {}, *steps, COMPUTE)[-1], found.roc()
    assert close(points.fpr, theirs[0]) and close(points.tpr, theirs[1])
    assert close(points.thresholds[1:], theirs[2][1:], 0)


def test_areas_of_classes(torch_peers: Peers) -> None:
    rng, n = np.random.default_rng(24), {"num_classes": 4}
    for tied in (False, True):
        truth, scores = rng.integers(0, 4, 300), rng.random((300, 4))
        scores[np.arange(300), truth] += 0.25
        scores = scores / scores.sum(axis=1, keepdims=True)
        scores = (np.round(scores, 1) if tied else scores).astype(np.float32)
        asked: list[Asked] = []
        for average in ("macro", "weighted", None):
            settings = {**n, "average": average or "none"}
            asked += [
                (METRICS + "MulticlassAUROC", settings, lambda r, a=average: r.auc(a)),
                (METRICS + "MulticlassAveragePrecision", settings, lambda r, a=average: r.ap(a)),
            ]
        result = of(MulticlassAUC(4, exact=True), truth, scores)
        compare(torch_peers, asked, result, updates(scores, truth), 300)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "all wrong"])
def test_errors_of_calibration_in_equal_bins(torch_peers: Peers, name: str) -> None:
    # Edges that float32 holds; where 1.0 is the only score of the last bin, its bin is theirs.
    labels, scores = ROWS[name]
    if scores.min() < 1 <= scores.max():
        scores = np.minimum(scores, np.float32(1 - 2.0**-10))
    for bins in (4, 16):
        settings = {"n_bins": bins}
        asked: list[Asked] = [
            (METRICS + "BinaryCalibrationError", {**settings, "norm": "l1"}, lambda r: r.ece),
            (METRICS + "BinaryCalibrationError", {**settings, "norm": "max"}, lambda r: r.mce),
        ]
        result = of(Calibration(bins=bins), labels, scores)
        compare(torch_peers, asked, result, updates(scores, labels), len(labels))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["random", "rare", "tied", "all tied", "separated"])
def test_normalized_entropy_and_calibration(torch_peers: Peers, name: str, weighted: bool) -> None:
    labels, scores = ROWS[name]
    scores = np.clip(scores, np.float32(2.0**-20), np.float32(1 - 2.0**-20))
    weights = np.random.default_rng(29).integers(1, 9, len(labels)) if weighted else None
    found, steps, positional = of(Calibration(), labels, scores, weights=weights), [], []
    for part in np.array_split(np.arange(len(labels)), 3):
        both = Tensor(scores[part]), Tensor(labels[part])
        third = () if weights is None else (Tensor(weights[part]),)
        steps.append(update(*both, weight=third[0]) if third else update(*both))
        positional.append(update(*both, *third))
    entropy: list[Asked] = [(EVAL + "BinaryNormalizedEntropy", {}, lambda r: r.normalized_entropy)]
    ratio: list[Asked] = [(EVAL + "WeightedCalibration", {}, lambda r: r.ratio)]
    compare(torch_peers, entropy, found, steps, len(labels))
    compare(torch_peers, ratio, found, positional, len(labels))


@pytest.mark.parametrize("offset", [0, 64])
def test_errors_of_numbers(torch_peers: Peers, offset: int) -> None:
    rng = np.random.default_rng(25)
    labels = np.round(rng.normal(offset, 4, 500) * 16) / 16  # squares that float32 can add
    scores = labels + np.round(rng.normal(0, 1, 500) * 16) / 16
    asked: list[Asked] = [
        ("torchmetrics.MeanAbsoluteError", {}, lambda r: r.mae),
        ("torchmetrics.MeanSquaredError", {}, lambda r: r.mse),
        ("torchmetrics.MeanSquaredError", {"squared": False}, lambda r: r.rmse),
        ("torchmetrics.R2Score", {}, lambda r: r.r2),
        (EVAL + "MeanSquaredError", {}, lambda r: r.mse),
    ]
    steps = [update(Tensor(scores[i::2]), Tensor(labels[i::2])) for i in (0, 1)]
    # R² subtracts two sums that are up to offset² / 16 times as large as what is left.
    compare(torch_peers, asked, of(Regression(), labels, scores), steps, 64 + 16 * offset)


def test_a_merge_is_the_whole_there_too(torch_peers: Peers) -> None:
    first, second, third = updates(ROWS["tied"][1], ROWS["tied"][0])
    merge = Step("merge_state", [[Another([second]), Another([third])]])
    for peer in ("BinaryAUROC", "BinaryF1Score", "BinaryAccuracy"):
        parts = torch_peers.ask(EVAL + peer, {}, first, merge, COMPUTE)[-1]
        assert parts == torch_peers.ask(EVAL + peer, {}, first, second, third, COMPUTE)[-1], peer


MEASURES: list[tuple[str, int | None, Measure, bool]] = [
    *(("MRR", k, MRR @ k, False) for k in (1, 3, 10)),
    *(("HitRate", k, HR @ k, False) for k in (1, 3, 10)),
    *(("Precision", k, P @ k, False) for k in (1, 3, 10)),
    *(("Recall", k, R @ k, False) for k in (1, 3, 10)),
    *(("NormalizedDCG", k, LINEAR @ k if k else LINEAR, True) for k in (None, 1, 3, 10)),
    *((name, None, one, False) for name, one in (("MRR", MRR), ("MAP", AP), ("RPrecision", RPrec))),
]


@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_measures_of_lists(torch_peers: Peers, empty: str) -> None:
    known = lists()
    scores = np.concatenate([one for _, one in known])
    sizes = [len(one) for _, one in known]
    for name, cut, measure, graded in MEASURES:
        labels = np.concatenate([one if graded else np.minimum(one, 1) for one, _ in known])
        ends, indexes = np.cumsum([0, *sizes]), np.repeat(np.arange(len(known)), sizes)
        ours = of(RankingMetrics([measure], empty=empty), labels, scores, offsets=ends)[measure]
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
        theirs = torch_peers.ask(
            f"torchmetrics.retrieval.Retrieval{name}", settings, *steps, COMPUTE
        )
        assert close(ours, theirs[-1]), (name, cut)


def test_one_class_in_each_row_is_a_list_with_one_relevant_item(torch_peers: Peers) -> None:
    rng = np.random.default_rng(27)
    scores = np.stack([rng.permutation(12) for _ in range(40)]).astype(np.float32) / 16
    truth = rng.integers(0, 12, 40)
    flags = (truth[:, None] == np.arange(12)).astype(np.int64)
    for name, measure in (("HitRate", HR @ 3), ("ReciprocalRank", MRR @ 3)):
        step = update(Tensor(scores), Tensor(truth, "int64"))
        found = torch_peers.ask(EVAL + name, {"k": 3}, step, COMPUTE)[-1]
        assert close(of(RankingMetrics([measure]), flags, scores)[measure], float(np.mean(found)))
