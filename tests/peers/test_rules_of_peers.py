"""The rules of peers that are not installed, written out, on examples that their manuals print."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from streammetrics import Calibration, ExactAUC, GroupedAUC
from streammetrics.ranking import AP, RankingMetrics
from streammetrics.results.score_curve import ScoreCurve

pytestmark = pytest.mark.slow


def curve(labels: Sequence[int], scores: Sequence[float]) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(labels, scores)
    return metric.compute()


def area(points: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return sum(((c - a) * (b + d) / 2 for (a, b), (c, d) in pairwise(points)), Fraction(0))


def rivers_area(labels: Sequence[int], scores: Sequence[float], thresholds: int = 10) -> float:
    """river's ROCAUC: points at equal steps, positive iff score > t, the ends a little outside."""
    steps = [i / (thresholds - 1) for i in range(thresholds)]
    steps[0], steps[-1] = steps[0] - 1e-7, steps[-1] + 1e-7
    y, s = np.array(labels), np.array(scores)
    counts = [((y == 0) & (s > t), (y == 1) & (s > t)) for t in reversed(steps)]
    negatives, positives = int((y == 0).sum()), int((y == 1).sum())
    return float(
        area([(Fraction(int(n.sum()), negatives), Fraction(int(p.sum()), positives))
              for n, p in counts])
    )  # fmt: skip


def test_river_has_ten_thresholds_and_its_manual_says_how_far_off_that_is(data: Path) -> None:
    labels, scores = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    assert rivers_area(labels, scores) == 0.875
    assert rivers_area(labels, scores, 20) == curve(labels, scores).auc == 0.75
    rows = [json.loads(line) for line in (data / "obd_men_events.jsonl").read_text().splitlines()]
    labels, scores = [row["label"] for row in rows], [row["score"] for row in rows]
    found = (rivers_area(labels, scores), curve(labels, scores).auc)
    assert [round(float(value), 4) for value in found] == [0.5164, 0.686]


def sparks_area(found: ScoreCurve) -> float:
    """Spark's areaUnderPR: trapezoids from recall 0 at the precision of the highest score."""
    points = found.roc()
    positives = int(points.tp[-1])
    known = [
        (Fraction(tp, positives), Fraction(tp, tp + fp))
        for tp, fp in zip(points.tp.tolist()[1:], points.fp.tolist()[1:], strict=True)
    ]
    return float(area([(Fraction(0), known[0][1]), *known]))


def test_spark_begins_its_pr_curve_at_the_precision_of_the_highest_score() -> None:
    # The example of its manual, which prints 0.70... and 0.83...
    labels, scores = [0, 1, 0, 0, 1, 1, 1], [0.1, 0.1, 0.4, 0.6, 0.6, 0.6, 0.8]
    found = curve(labels, scores)
    assert round(float(found.auc), 4) == 0.7083
    assert round(sparks_area(found), 4) == round(float(found.pr_auc_trapezoid), 4) == 0.8339
    assert found.ap != found.pr_auc_trapezoid
    # Where the highest score has a negative, the first trapezoid is another.
    found = curve([0, 1], [0.5, 0.5])
    assert (sparks_area(found), found.pr_auc_trapezoid, found.ap) == (0.5, 0.75, 0.5)


def test_tensorflow_model_analysis_takes_a_score_at_the_threshold_for_negative() -> None:
    assert curve([1], [0.5]).confusion(0.5).recall == 1.0
    assert curve([1], [0.5]).confusion(math.nextafter(0.5, 1)).recall == 0.0  # its rule


def test_a_cross_entropy_of_a_certain_score_on_the_right_side_is_0() -> None:
    # TFMA multiplies 0 by the logarithm of 0; Spark and RecBole cut scores at 1e-15.
    metric = Calibration()
    metric.update([1, 0], [1.0, 0.0])
    assert metric.compute().log_loss == 0.0
    theirs, ours = Calibration(clip=1e-15), Calibration()
    for one in (theirs, ours):
        one.update([1], [0.0])
    assert theirs.compute().log_loss == pytest.approx(-math.log(1e-15), rel=2**-50)
    assert ours.compute().log_loss == math.inf


def test_recbole_weights_by_positives_and_divides_ap_by_the_smaller_of_r_and_k() -> None:
    labels, scores, users = [0, 1, 1, 0, 0, 1], [1, 2, 3, 2, 1, 0], [1, 1, 1, 2, 2, 2]
    found = {}
    for weight in ("impressions", "positives"):
        metric = GroupedAUC(weight=weight)
        metric.update(labels, scores, groups=users)
        found[weight] = metric.compute().gauc
    assert found == {"impressions": 1 / 2, "positives": 2 / 3}
    lists = RankingMetrics([AP @ 2, AP(denominator="min") @ 2])
    lists.update([[1, 0, 1, 1]])
    assert list(lists.compute().values()) == [1 / 3, 1 / 2]  # of 3 relevant items, and of k = 2
