"""Where others give another number, by a fault or by another rule: a table for the nightly run.

A row is what was asked, their answer, and ours. docs/metrics.md lists the rules, and those of peers
that are not installed. The rows of torch are in test_differences_from_torch.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from streammetrics.ranking import AP, ERR, MRR, NDCG, Measure, RankingMetrics
from tests.requirements import Later

sk = Later("sklearn.metrics")
calibration = Later("sklearn.calibration")


NAN, INF = math.nan, math.inf


class Row(NamedTuple):
    """Two answers to one question, each with what it is expected to be."""

    theirs: Callable[[], object]
    said: object
    ours: Callable[[], object]
    right: object


def result_of(metric: Any, *columns: object, **keywords: object) -> Any:
    """The result of a metric after these rows."""
    metric.update(*columns, **keywords)
    return metric.compute()


def ranked(
    measures: Sequence[Measure], labels: object, scores: object = None, *, ties: str = "expected",
    **more: object,
) -> list[float]:  # fmt: skip
    """The values of measures of one list."""
    scores = {} if scores is None else {"scores": [scores]}
    return list(
        result_of(
            RankingMetrics(measures, ties=ties, complete_lists=True), [labels], **scores, **more
        ).values()
    )


def trec(name: str, judged: dict[str, int], scores: dict[str, float]) -> float:
    """The value of trec_eval for one list."""
    values = pytrec_eval.RelevanceEvaluator({"1": judged}, {name}).evaluate({"1": scores})
    return float(values["1"][name])


def top_2_of_equal_scores(score: Callable[[int], float]) -> list[float]:
    return [score(truth) for truth in range(4)]


EQUAL = [[0.25] * 4]
TIED = {"a": 1.0, "b": 1.0}
ON_A_LINE = ([0, 1, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
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
        lambda: result_of(RankingMetrics([AP]), [[1], [0]], n_relevant=[1, 1])[AP],
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
        lambda: result_of(GroupedAUC(), [0, 1, 1, 1], [0.1, 0.2] * 2, groups=[1, 1, 2, 2]).gauc,
        1.0,
    ),
}  # fmt: skip

RULES: dict[str, Row] = {
    "precision of 0/0": Row(
        lambda: sk.precision_score([1, 1], [0, 0]), 0.0,
        lambda: result_of(BinaryConfusion(), [1, 1], [0.0, 0.0]).precision, NAN,
    ),
    "mcc of one class": Row(
        lambda: sk.matthews_corrcoef([1, 1], [0, 0]), 0.0,
        lambda: result_of(BinaryConfusion(), [1, 1], [0.0, 0.0]).mcc, NAN,
    ),
    "a class that never occurs, named in labels=": Row(
        lambda: sk.f1_score(TRUTH, GUESS, labels=range(4), **MACRO), 1 / 6,
        lambda: result_of(MulticlassConfusion(4), TRUTH, GUESS).f1("macro"), 1 / 3,
    ),
    "a weighted mean whose weights are all 0 is their plain mean": Row(
        lambda: sk.f1_score([[0, 0]], [[1, 0]], average="weighted", zero_division=1), 0.5,
        lambda: result_of(MultilabelConfusion(2), [[0, 0]], [[1.0, 0.0]]).f1(
            "weighted", zero_division=1
        ),
        1.0,
    ),
    "a weighted precision of classes that are never predicted": Row(
        lambda: sk.precision_score(
            [2, 0], [3, 1], labels=range(4), average="weighted", zero_division=NAN
        ), 0.0,
        lambda: result_of(MulticlassConfusion(4), [2, 0], [3, 1]).precision(
            "weighted", zero_division=NAN
        ),
        NAN,
    ),
    "of tied classes the largest is first": Row(
        lambda: top_2_of_equal_scores(
            lambda y: sk.top_k_accuracy_score([y], EQUAL, k=2, labels=range(4))
        ), [0, 0, 1, 1],
        lambda: top_2_of_equal_scores(
            lambda y: result_of(MulticlassConfusion(4, top_k=(2,)), [y], EQUAL).top_k_accuracy(2)
        ), [1, 1, 0, 0],
    ),
    "points of a ROC curve on a line": Row(
        lambda: len(sk.roc_curve(*ON_A_LINE)[0]), 6,
        lambda: len(result_of(ExactAUC(), *ON_A_LINE).roc().fpr), 7,
    ),
    "a partial area is on the scale of McClish": Row(
        lambda: sk.roc_auc_score(*QUARTERS, max_fpr=0.5), 2 / 3,
        lambda: result_of(ExactAUC(), *QUARTERS).partial_auc(0.5), 0.25,
    ),
    "average precision without a positive": Row(
        lambda: sk.average_precision_score([0, 0], [0.1, 0.2]), 0.0,
        lambda: result_of(ExactAUC(), [0, 0], [0.1, 0.2]).ap, NAN,
    ),
    "infinite scores are refused": Row(
        lambda: refused(lambda: sk.roc_auc_score([0, 1], [0.5, INF])), True,
        lambda: result_of(ExactAUC(), [0, 1, 1], [-INF, 0.5, INF]).auc, 1.0,
    ),
    "a log loss of one class is refused": Row(
        lambda: refused(lambda: sk.log_loss([1, 1], [0.5, 0.25])), True,
        lambda: result_of(Calibration(), [1, 1], [0.5, 0.25]).log_loss, 1.5 * math.log(2),
    ),
    "a certain score on the wrong side": Row(
        lambda: 18 < sk.log_loss([1, 0], [0.0, 0.5]) < 19, True,  # clipped without a word
        lambda: result_of(Calibration(), [1, 0], [0.0, 0.5]).log_loss, INF,
    ),
    "bins without a row": Row(
        lambda: len(calibration.calibration_curve([0, 1], [0.1, 0.9], n_bins=5)[0]), 2,
        lambda: result_of(Calibration(bins=5), [0, 1], [0.1, 0.9]).reliability().units.tolist(),
        [1, 0, 0, 0, 1],
    ),
    "a score at an edge is in the bin below": Row(
        lambda: calibration.calibration_curve([0, 1], [0.25, 0.5], n_bins=2)[1].tolist(), [0.375],
        lambda: result_of(
            Calibration(bins=2), [0, 1], [0.25, 0.5]
        ).reliability().mean_score.tolist(), [0.25, 0.5],
    ),
    "R² of equal labels": Row(
        lambda: [sk.r2_score([2.0, 2.0], s) for s in ([2.0, 2.0], [2.0, 3.0])], [1.0, 0.0],
        lambda: result_of(Regression(), [2.0, 2.0], [2.0, 2.0]).r2, NAN,
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
        lambda: [trec("recip_rank", {document: 1}, TIED) for document in "ab"], [1 / 2, 1],
        lambda: ranked([MRR], [1, 0], [1.0, 1.0]), [3 / 4],
    ),
    "gdeval takes 4 for the greatest grade": Row(
        lambda: next(
            ir_measures.iter_calc([ir_measures.ERR @ 1], {"1": {"a": 1}}, {"1": {"a": 1.0}})
        ).value, 1 / 16,
        lambda: ranked([ERR, ERR(max_grade=1)], [1]), [1 / 16, 1 / 2],
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
