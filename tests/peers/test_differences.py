"""Where others give another number, by a fault or by another rule: a table for the nightly run.

A row is what was asked, their answer, and ours. docs/metrics.md lists the rules. Peers that are
not installed (torchrec, river, Spark, TensorFlow Model Analysis, RecBole) are written out.
The rows of torch are in test_differences_from_torch.py.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from streammetrics.ranking import AP, ERR, HR, MRR, NDCG, Measure, P, RankingMetrics

pytestmark = pytest.mark.slow

NAN, INF = math.nan, math.inf


class Row(NamedTuple):
    """Two answers to one question, each with what it is expected to be."""

    theirs: Callable[[], object]
    said: object
    ours: Callable[[], object]
    right: object


def of(metric: Any, *columns: object, **named: object) -> Any:
    """The result of a metric after these rows."""
    metric.update(*columns, **named)
    return metric.compute()


def ranked(
    measures: Sequence[Measure], labels: object, scores: object = None, *, ties: str = "expected",
    **more: object,
) -> list[float]:  # fmt: skip
    """The values of measures of one list."""
    scores = {} if scores is None else {"scores": [scores]}
    return list(of(RankingMetrics(measures, ties=ties), [labels], **scores, **more).values())


def trec(name: str, judged: dict[str, int], scores: dict[str, float]) -> float:
    """The value of trec_eval for one list."""
    found = pytrec_eval.RelevanceEvaluator({"1": judged}, {name}).evaluate({"1": scores})
    return float(found["1"][name])


def torchrec_area(labels: Sequence[int]) -> float:
    """Steps through the rows of equal scores in their order."""
    pairs = [i < j for i, a in enumerate(labels) for j, b in enumerate(labels) if a > b]
    return sum(pairs) / len(pairs)


def area(points: Sequence[tuple[Fraction, Fraction]]) -> float:
    return float(sum((c - a) * (b + d) / 2 for (a, b), (c, d) in pairwise(points)))


def river_area(labels: Sequence[int], scores: Sequence[float], thresholds: int = 10) -> float:
    """Points at equal steps, positive iff score > t, the ends a little outside."""
    steps = [i / (thresholds - 1) for i in range(thresholds)]
    steps[0], steps[-1] = steps[0] - 1e-7, steps[-1] + 1e-7
    y, s = np.array(labels), np.array(scores)
    shares = [
        [Fraction(int(((y == c) & (s > t)).sum()), int((y == c).sum())) for c in (0, 1)]
        for t in reversed(steps)
    ]
    return area([(x, y) for x, y in shares])


def spark_area(labels: Sequence[int], scores: Sequence[float]) -> float:
    """areaUnderPR: trapezoids from recall 0 at the precision of the highest score."""
    points = of(ExactAUC(), labels, scores).roc()
    known = [
        (Fraction(tp, int(points.tp[-1])), Fraction(tp, tp + fp))
        for tp, fp in zip(points.tp.tolist()[1:], points.fp.tolist()[1:], strict=True)
    ]
    return area([(Fraction(0), known[0][1]), *known])


def top_2_of_equal_scores(score: Callable[[int], float]) -> list[float]:
    return [score(truth) for truth in range(4)]


EQUAL = [[0.25] * 4]
TIED = {"a": 1.0, "b": 1.0}
SPARK = ([0, 1, 0, 0, 1, 1, 1], [0.1, 0.1, 0.4, 0.6, 0.6, 0.6, 0.8])  # its manual's example
RIVER = ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])  # its manual's example
RECBOLE = ([0, 1, 1, 0, 0, 1], [1, 2, 3, 2, 1, 0])
ON_A_LINE = ([0, 1, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
TWO_USERS = {"groups": [1, 1, 1, 2, 2, 2]}
QUARTERS = ([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4])
MACRO = {"average": "macro"}
TRUTH, GUESS = [0, 0], [0, 2]

FAULTS: dict[str, Row] = {
    "ir-measures has a greater RR with a cut than without": Row(
        lambda: [
            ir_measures.calc_aggregate([m], {"1": {"a": 1}}, {"1": TIED})[m]
            for m in (ir_measures.RR, ir_measures.RR @ 10)
        ],
        [1 / 2, 1],
        lambda: ranked([MRR, MRR @ 10], [1, 0], [1.0, 1.0], ties="worst"),
        [1 / 2, 1 / 2],
    ),
    "one mean, two tools: a list that was not returned": Row(
        lambda: ir_measures.calc_aggregate(
            [ir_measures.AP], {"1": {"a": 1}, "2": {"b": 1}}, {"1": {"a": 1.0}}
        )[ir_measures.AP],
        1 / 2,  # and 1 by trec_eval
        lambda: of(RankingMetrics([AP]), [[1], [0]], n_relevant=[1, 1])[AP],
        1 / 2,
    ),
    "trec_eval keeps scores as float32": Row(
        lambda: trec("recip_rank", {"a": 1}, {"a": 1.0 + 1e-9, "b": 1.0}),
        1 / 2,
        lambda: ranked([MRR], [1, 0], [1.0 + 1e-9, 1.0]),
        [1.0],
    ),
    "scikit-learn has no mean over users of whom one has one class": Row(
        lambda: np.mean([sk.roc_auc_score(y, [0.1, 0.2]) for y in ([0, 1], [1, 1])]),
        NAN,
        lambda: of(GroupedAUC(), [0, 1, 1, 1], [0.1, 0.2] * 2, groups=[1, 1, 2, 2]).gauc,
        1.0,
    ),
    "torchrec takes the order of rows of a user with equal scores for the area": Row(
        lambda: [torchrec_area(y) for y in ([0, 1, 1], [1, 1, 0], [1, 0, 1])],
        [0, 1, 0.5],
        lambda: [
            of(GroupedAUC(), y, [0.3] * 3, groups=[1] * 3).gauc
            for y in ([0, 1, 1], [1, 1, 0], [1, 0, 1])
        ],
        [0.5] * 3,
    ),
    "a mean over batches makes two lists of a session": Row(
        lambda: np.mean([ranked([MRR], y, s)[0] for y, s in (([0, 1], [9, 1]), ([1, 0], [8, 7]))]),
        3 / 4,
        lambda: of(GroupedScores([MRR]), [0, 1, 1, 0], [9, 1, 8, 7], groups=[7] * 4)[MRR],
        1 / 2,
    ),
    "ranks of a constant scorer: first in MRR, last in NDCG": Row(
        lambda: [1 / (1 + sum(s > 0.5 for s in [0.5] * 20)),
                 np.argsort([0.5] * 20, kind="stable")[::-1].tolist().index(0) + 1],
        [1.0, 20],
        lambda: ranked([HR @ 10, P @ 10], [1, *[0] * 19], [0.5] * 20),
        [1 / 2, 1 / 20],
    ),
    "AP over the hits among the first k falls when one more is found": Row(
        lambda: [1.0, (1 + 2 / 10) / 2],
        [1.0, 0.6],
        lambda: [ranked([AP @ 10], [1, *[0] * 8, one], n_relevant=[2])[0] for one in (0, 1)],
        [0.5, 0.6],
    ),
}  # fmt: skip

RULES: dict[str, Row] = {
    "precision of 0/0": Row(
        lambda: sk.precision_score([1, 1], [0, 0]), 0.0,
        lambda: of(BinaryConfusion(), [1, 1], [0.0, 0.0]).precision, NAN,
    ),
    "mcc of one class": Row(
        lambda: sk.matthews_corrcoef([1, 1], [0, 0]), 0.0,
        lambda: of(BinaryConfusion(), [1, 1], [0.0, 0.0]).mcc, NAN,
    ),
    "a class that never occurs, named in labels=": Row(
        lambda: sk.f1_score(TRUTH, GUESS, labels=range(4), **MACRO), 1 / 6,
        lambda: of(MulticlassConfusion(4), TRUTH, GUESS).f1("macro"), 1 / 3,
    ),
    "a weighted mean whose weights are all 0 is their plain mean": Row(
        lambda: sk.f1_score([[0, 0]], [[1, 0]], average="weighted", zero_division=1), 0.5,
        lambda: of(MultilabelConfusion(2), [[0, 0]], [[1.0, 0.0]]).f1("weighted", zero_division=1),
        1.0,
    ),
    "a weighted precision of classes that are never predicted": Row(
        lambda: sk.precision_score(
            [2, 0], [3, 1], labels=range(4), average="weighted", zero_division=NAN
        ), 0.0,
        lambda: of(MulticlassConfusion(4), [2, 0], [3, 1]).precision("weighted", zero_division=NAN),
        NAN,
    ),
    "of tied classes the largest is first": Row(
        lambda: top_2_of_equal_scores(
            lambda y: sk.top_k_accuracy_score([y], EQUAL, k=2, labels=range(4))
        ), [0, 0, 1, 1],
        lambda: top_2_of_equal_scores(
            lambda y: of(MulticlassConfusion(4, top_k=(2,)), [y], EQUAL).top_k_accuracy(2)
        ), [1, 1, 0, 0],
    ),
    "points of a ROC curve on a line": Row(
        lambda: len(sk.roc_curve(*ON_A_LINE)[0]), 6,
        lambda: len(of(ExactAUC(), *ON_A_LINE).roc().fpr), 7,
    ),
    "a partial area is on the scale of McClish": Row(
        lambda: sk.roc_auc_score(*QUARTERS, max_fpr=0.5), 2 / 3,
        lambda: of(ExactAUC(), *QUARTERS).partial_auc(0.5), 0.25,
    ),
    "average precision without a positive": Row(
        lambda: sk.average_precision_score([0, 0], [0.1, 0.2]), 0.0,
        lambda: of(ExactAUC(), [0, 0], [0.1, 0.2]).ap, NAN,
    ),
    "infinite scores are refused": Row(
        lambda: refused(lambda: sk.roc_auc_score([0, 1], [0.5, INF])), True,
        lambda: of(ExactAUC(), [0, 1, 1], [-INF, 0.5, INF]).auc, 1.0,
    ),
    "a log loss of one class is refused": Row(
        lambda: refused(lambda: sk.log_loss([1, 1], [0.5, 0.25])), True,
        lambda: of(Calibration(), [1, 1], [0.5, 0.25]).log_loss, 1.5 * math.log(2),
    ),
    "a certain score on the wrong side": Row(
        lambda: 18 < sk.log_loss([1, 0], [0.0, 0.5]) < 19, True,  # clipped without a word
        lambda: of(Calibration(), [1, 0], [0.0, 0.5]).log_loss, INF,
    ),
    "a cross entropy clipped at 1e-15 by Spark and RecBole": Row(
        lambda: -math.log(1e-15), 34.538776394910684,
        lambda: of(Calibration(clip=1e-15), [1], [0.0]).log_loss, -math.log(1e-15),
    ),
    "bins without a row": Row(
        lambda: len(calibration_curve([0, 1], [0.1, 0.9], n_bins=5)[0]), 2,
        lambda: of(Calibration(bins=5), [0, 1], [0.1, 0.9]).reliability().units.tolist(),
        [1, 0, 0, 0, 1],
    ),
    "a score at an edge is in the bin below": Row(
        lambda: calibration_curve([0, 1], [0.25, 0.5], n_bins=2)[1].tolist(), [0.375],
        lambda: of(Calibration(bins=2), [0, 1], [0.25, 0.5]).reliability().mean_score.tolist(),
        [0.25, 0.5],
    ),
    "R² of equal labels": Row(
        lambda: [sk.r2_score([2.0, 2.0], s) for s in ([2.0, 2.0], [2.0, 3.0])], [1.0, 0.0],
        lambda: of(Regression(), [2.0, 2.0], [2.0, 2.0]).r2, NAN,
    ),
    "the ideal of NDCG is of the list, not of all known items": Row(
        lambda: sk.ndcg_score([[1, 0, 0]], [[3.0, 2.0, 1.0]]), 1.0,
        lambda: round(ranked([NDCG @ 3], [1, 0, 0], [3.0, 2.0, 1.0], n_relevant=[3])[0], 6),
        0.469279,
    ),
    "AP takes tied items at once": Row(
        lambda: sk.average_precision_score([1, 0], [0.5, 0.5]), 1 / 2,
        lambda: ranked([AP], [1, 0], [0.5, 0.5]), [3 / 4],
    ),
    "label ranking AP takes the worst of tied ranks": Row(
        lambda: sk.label_ranking_average_precision_score([[0, 0, 0, 1]], [[1.0] * 4]), 1 / 4,
        lambda: round(ranked([MRR], [0, 0, 0, 1], [1.0] * 4)[0], 6), 0.520833,
    ),
    "trec_eval puts the greater id first among equal scores": Row(
        lambda: [trec("recip_rank", {one: 1}, TIED) for one in "ab"], [1 / 2, 1],
        lambda: ranked([MRR], [1, 0], [1.0, 1.0]), [3 / 4],
    ),
    "gdeval takes 4 for the greatest grade": Row(
        lambda: next(
            ir_measures.iter_calc([ir_measures.ERR @ 1], {"1": {"a": 1}}, {"1": {"a": 1.0}})
        ).value, 1 / 16,
        lambda: ranked([ERR, ERR(max_grade=1)], [1]), [1 / 16, 1 / 2],
    ),
    "river has ten thresholds": Row(
        lambda: [river_area(*RIVER), river_area(*RIVER, 20)], [0.875, 0.75],
        lambda: of(ExactAUC(), *RIVER).auc, 0.75,
    ),
    "Spark begins its PR curve at the precision of the highest score": Row(
        lambda: [round(spark_area(*SPARK), 4), spark_area([0, 1], [0.5, 0.5])], [0.8339, 0.5],
        lambda: [round(of(ExactAUC(), *SPARK).pr_auc_trapezoid, 4),
                 of(ExactAUC(), [0, 1], [0.5, 0.5]).pr_auc_trapezoid], [0.8339, 0.75],
    ),
    "TensorFlow Model Analysis takes a score at the threshold for negative": Row(
        lambda: of(ExactAUC(), [1], [0.5]).confusion(math.nextafter(0.5, 1)).recall, 0.0,
        lambda: of(ExactAUC(), [1], [0.5]).confusion(0.5).recall, 1.0,
    ),
    "RecBole weights users by positives": Row(
        lambda: of(GroupedAUC(weight="positives"), *RECBOLE, **TWO_USERS).gauc, 2 / 3,
        lambda: of(GroupedAUC(), *RECBOLE, **TWO_USERS).gauc, 1 / 2,
    ),
    "RecBole divides AP by the smaller of R and k": Row(
        lambda: ranked([AP(denominator="min") @ 2], [1, 0, 1, 1]), [1 / 2],
        lambda: ranked([AP @ 2], [1, 0, 1, 1]), [1 / 3],
    ),
}  # fmt: skip


def refused(call: Callable[[], object]) -> bool:
    with pytest.raises(ValueError, match=r"infinity|only one label"):
        call()
    return True


@pytest.mark.parametrize("name", [*FAULTS, *RULES])
def test_both_answers_are_those_of_the_table(name: str) -> None:
    row = {**FAULTS, **RULES}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert row.theirs() == pytest.approx(row.said, rel=2**-50, nan_ok=True)
    assert row.ours() == pytest.approx(row.right, rel=2**-50, nan_ok=True)


def test_on_real_clicks_ten_thresholds_hide_most_of_an_area(data: Path) -> None:
    rows = [json.loads(line) for line in (data / "obd_men_events.jsonl").read_text().splitlines()]
    labels, scores = [row["label"] for row in rows], [row["score"] for row in rows]
    found = river_area(labels, scores), of(ExactAUC(), labels, scores).auc
    assert [round(value, 4) for value in found] == [0.5164, 0.686]
