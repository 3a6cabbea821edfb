"""Where scikit-learn has another number or another rule: its answer, and ours beside it.

docs/metrics.md lists these. More of calibration and regression is in test_calibration_peers.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.exceptions import UndefinedMetricWarning

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Regression,
)
from streammetrics.results.score_curve import ScoreCurve

pytestmark = pytest.mark.slow

VIEWS = ("precision", "recall", "f1", "jaccard")


@pytest.fixture(autouse=True)
def their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def curve(labels: list[int], scores: list[float]) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(labels, scores)
    return metric.compute()


def classes(truth: list[int], guess: list[int], n: int) -> Any:
    metric = MulticlassConfusion(n)
    metric.update(truth, guess)
    return metric.compute()


# -- counts -------------------------------------------------------------------------------------


def test_their_0_over_0_is_0_and_ours_is_nan() -> None:
    rates = BinaryConfusion()
    rates.update([1, 1], [0.0, 0.0])
    assert sk.precision_score([1, 1], [0, 0]) == 0
    assert math.isnan(rates.compute().precision)
    assert sk.matthews_corrcoef([1, 1], [0, 0]) == 0
    assert math.isnan(rates.compute().mcc)
    assert math.isnan(sk.cohen_kappa_score([0, 0], [0, 0]))  # there it is theirs too
    rates = BinaryConfusion()
    rates.update([0, 0], [0.0, 0.0])
    assert math.isnan(rates.compute().kappa)


def test_a_class_that_neither_occurs_nor_is_predicted_counts_0_once_they_are_told_of_it() -> None:
    truth, guess = [0, 0], [0, 2]
    without = sk.f1_score(truth, guess, average="macro")
    told = sk.f1_score(truth, guess, average="macro", labels=range(4))
    assert (without, told) == (pytest.approx(1 / 3, rel=2**-50), pytest.approx(1 / 6, rel=2**-50))
    result = classes(truth, guess, 4)
    assert result.f1("macro") == 1 / 3
    assert result.f1("macro", zero_division=0.0) == 1 / 6


@pytest.mark.parametrize("view", VIEWS)
def test_a_weighted_mean_whose_weights_are_all_0_is_their_plain_mean(view: str) -> None:
    theirs = getattr(sk, f"{view}_score")
    labels = MultilabelConfusion(2)
    labels.update([[0, 0]], [[1.0, 0.0]])
    ours = getattr(labels.compute(), view)
    # No label occurs: what is left is a mean over no rows, so ours is `zero_division`.
    found = theirs([[0, 0]], [[1, 0]], average="weighted", zero_division=1)
    assert found == (1.0 if view == "recall" else 0.5)
    assert ours("weighted", zero_division=1.0) == 1.0


def test_a_weighted_precision_of_classes_that_never_occur_is_their_plain_mean() -> None:
    # Of the classes that occur, 0 and 2, none is predicted: their precision leaves the mean.
    settings: dict[str, Any] = {"average": "weighted", "zero_division": math.nan}
    theirs = sk.precision_score([2, 0], [3, 1], labels=range(4), **settings)
    ours = classes([2, 0], [3, 1], 4).precision("weighted", zero_division=math.nan)
    assert (theirs, math.isnan(ours)) == (0.0, True)


def test_of_tied_classes_they_take_the_largest_first_and_we_the_smallest() -> None:
    scores = [[0.25, 0.25, 0.25, 0.25]] * 4
    for k in (1, 2, 3):
        metric = MulticlassConfusion(4, top_k=(k,))
        metric.update([0, 1, 2, 3], scores)
        firsts = [MulticlassConfusion(4, top_k=(k,)) for _ in range(4)]
        for truth, one in enumerate(firsts):
            one.update([truth], scores[:1])
        ours = [one.compute().top_k_accuracy(k) for one in firsts]
        theirs = [
            sk.top_k_accuracy_score([truth], scores[:1], k=k, labels=range(4)) for truth in range(4)
        ]
        assert ours == theirs[::-1] == [1.0] * k + [0.0] * (4 - k)
        assert metric.compute().top_k_ties(k) == 4


# -- curves and area ----------------------------------------------------------------------------


def test_they_drop_points_of_a_roc_curve_that_are_on_a_line_and_we_keep_all() -> None:
    labels, scores = [0, 1, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    fpr, _, _ = sk.roc_curve(labels, scores)
    every, tpr, thresholds = sk.roc_curve(labels, scores, drop_intermediate=False)
    ours = curve(labels, scores).roc()
    assert (len(fpr), len(every)) == (6, 7)
    assert ours.fpr.tolist() == every.tolist() and ours.tpr.tolist() == tpr.tolist()
    assert ours.thresholds.tolist() == thresholds.tolist()


def test_their_partial_area_is_on_the_scale_of_mcclish() -> None:
    labels, scores = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    theirs = sk.roc_auc_score(labels, scores, max_fpr=0.5)
    found = curve(labels, scores)
    assert theirs == pytest.approx(2 / 3, rel=2**-50)
    assert found.partial_auc(0.5) == 0.25
    assert found.partial_auc(0.5, standardized=True) == pytest.approx(theirs, rel=1e-15)


def test_their_average_precision_without_a_positive_is_0() -> None:
    assert sk.average_precision_score([0, 0], [0.1, 0.2]) == 0
    assert math.isnan(float(curve([0, 0], [0.1, 0.2]).ap))
    assert math.isnan(sk.roc_auc_score([0, 0], [0.1, 0.2]))  # there it is theirs too
    assert math.isnan(float(curve([0, 0], [0.1, 0.2]).auc))


def test_they_refuse_infinite_scores_which_are_first_and_last_here() -> None:
    with pytest.raises(ValueError, match="infinity"):
        sk.roc_auc_score([0, 1], [0.5, math.inf])
    assert curve([0, 1, 1], [-math.inf, 0.5, math.inf]).auc == 1.0


# -- calibration and regression -----------------------------------------------------------------


def test_they_refuse_a_log_loss_of_one_class() -> None:
    with pytest.raises(ValueError, match="only one label"):
        sk.log_loss([1, 1], [0.5, 0.25])
    metric = Calibration()
    metric.update([1, 1], [0.5, 0.25])
    assert metric.compute().log_loss == pytest.approx(1.5 * math.log(2), rel=2**-50)


def test_bins_without_a_row_are_no_points_of_their_calibration_curve() -> None:
    share, mean = calibration_curve([0, 1], [0.1, 0.9], n_bins=5)
    assert (share.tolist(), mean.tolist()) == ([0, 1], [0.1, 0.9])
    metric = Calibration(bins=5)
    metric.update([0, 1], [0.1, 0.9])
    table = metric.compute().reliability()
    assert table.units.tolist() == [1, 0, 0, 0, 1]
    assert np.isnan(table.positive_share[1:4]).all()


@pytest.mark.parametrize(("scores", "theirs"), [([2.0, 2.0], 1.0), ([2.0, 3.0], 0.0)])
def test_their_r2_of_equal_labels_is_1_or_0(scores: list[float], theirs: float) -> None:
    assert sk.r2_score([2.0, 2.0], scores) == theirs
    metric = Regression()
    metric.update([2.0, 2.0], scores)
    assert math.isnan(float(metric.compute().r2))
