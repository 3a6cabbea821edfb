"""Curves from counts, whether all points are there or are counted when asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import Bounded, ExactAUC, HistogramAUC, InputError
from streammetrics.classification.score_curves import ExactCurve
from streammetrics.kernels.curves.area import Pairs
from streammetrics.results import counts_of, views_of
from streammetrics.results.late_buckets import Points
from streammetrics.results.rates import BoundedRates, Rates
from streammetrics.results.score_curve import ScoreCurve
from tests.oracles import binary


def curve(negatives: list[int], positives: list[int], *, exact: bool) -> ScoreCurve:
    counts = np.array([negatives, positives], np.int64)
    return ScoreCurve(np.arange(counts.shape[1]) / 4, counts, exact, int(counts.sum()))


def test_a_curve_that_gave_up_says_why_and_keeps_its_count() -> None:
    none = np.zeros((2, 0), np.int64)
    result = ScoreCurve(np.empty(0), none, exact=True, rows=11, reason="past max_rows=10")
    assert isinstance(result.auc, float) and math.isnan(result.auc)
    assert (result.rows, result.positives) == (11, None)
    assert "past max_rows=10" in repr(result)


def test_curves_are_equal_by_what_they_hold() -> None:
    assert curve([1, 2], [0, 1], exact=True) == curve([1, 2], [0, 1], exact=True)
    assert curve([1, 2], [0, 1], exact=True) != curve([1, 2], [1, 1], exact=True)
    assert curve([1, 2], [0, 1], exact=True) != curve([1, 2], [0, 1], exact=False)


def test_relative_improvement_of_buckets_is_bounded() -> None:
    a = curve([1, 1, 0], [0, 1, 1], exact=False)  # 0.75 to 1
    b = curve([3, 1, 0], [0, 1, 1], exact=False)  # 7/8 to 1
    improvement = a.rela_impr(b)
    assert improvement == Bounded(-1 / 7, -0.5, math.nextafter(1 / 3, 1))


def test_points_are_counted_once_and_only_when_asked_for() -> None:
    calls = []

    def points() -> Points:
        calls.append(1)
        return np.array([0.25, 0.5]), np.array([[1, 1], [0, 2]])

    late = ExactCurve(Pairs(wins=2, ties=2, positives=2, negatives=2), 4, points)
    assert (late.auc, late.positives, late.rows) == (0.75, 2, 4)
    assert not calls
    assert late.scores.tolist() == [0.25, 0.5] and late.counts.shape == (2, 2)
    assert len(calls) == 1
    plain = ScoreCurve(*points(), exact=True, rows=4)
    assert late == plain and plain == late
    assert views_of(late) == views_of(plain) and counts_of(late) == counts_of(plain)


# The views of a score curve: points, thresholds, what is refused and what is undefined.


def exact(labels: list[int], scores: list[float], **settings: object) -> ScoreCurve:
    metric = ExactAUC(**settings)  # type: ignore[arg-type]
    metric.update(labels, scores)
    return metric.compute()


def buckets(labels: list[int], scores: list[float], **settings: object) -> ScoreCurve:
    metric = HistogramAUC(**settings)  # type: ignore[arg-type]
    metric.update(labels, scores)
    return metric.compute()


def test_separation_inside_one_bucket_is_nothing_that_anyone_knows() -> None:
    # Peers with thresholds give 0.5 for it, or a precision, without a word.
    for labels in ([0, 0, 1, 1], [1, 1, 0, 0]):
        result = buckets(labels, [0.1, 0.11, 0.12, 0.13], grid="equal", resolution=0)
        assert result.auc == Bounded(0.5, 0.0, 1.0)
        assert result.ks == Bounded(0.0, 0.0, 1.0)
        for area in (result.ap, result.pr_auc_trapezoid):
            assert isinstance(area, Bounded)
            assert (area.low < 0.42, area.high) == (True, 1.0)
        assert result.partial_auc(0.5) == Bounded(0.125, 0.0, 0.5)
        assert result.gain(2) == (Bounded(0.5, 0.0, 1.0), Bounded(1.0, 1.0, 1.0))
        assert result.lift(2) == (Bounded(1.0, 0.0, 2.0),) * 2
        assert result.best("youden").value == Bounded(0.0, 0.0, 1.0)
        assert result.best("distance").value == Bounded(1.0, 0.0, 1.0)


def test_pairs_beyond_int64_and_counts_beyond_2_to_53_are_exact() -> None:
    huge = np.array([[2**54 + 1, 2**53], [2**40, 2**54 + 3]])
    result = ScoreCurve(np.array([0.25, 0.75]), huge, True, int(huge.sum()))
    p, n = 2**40 + 2**54 + 3, 2**54 + 1 + 2**53
    tpr, fpr = Fraction(2**54 + 3, p), Fraction(2**53, n)
    assert result.ks == result.best("youden").value == float(tpr - fpr)
    assert result.best("accuracy").value == float(Fraction(2**54 + 3 + 2**54 + 1, p + n))
    assert result.roc().tpr.tolist() == [0.0, float(tpr), 1.0]
    assert result.pr().precision.tolist()[1] == float(Fraction(2**54 + 3, 2**54 + 3 + 2**53))


def test_confusion_at_every_threshold_is_that_of_the_rows() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 3):
        labels, scores = [y for y, _ in rows], [s for _, s in rows]
        result = exact(labels, scores) if rows else ExactAUC().compute()
        for t in (-1.0, 0.25, 0.3, 0.5, 0.75, 0.8, math.inf, -math.inf):
            finite = max(min(t, 9.0), -9.0)
            tn, fp, fn, tp = binary.confusion(rows, finite)
            assert result.confusion(t) == Rates(tp, fp, fn, tn)


@pytest.mark.parametrize(
    "settings",
    [{}, {"resolution": 0}, {"grid": "equal", "resolution": 1}, {"grid": "edges", "edges": (0.5,)},
     {"range": "real", "resolution": 0}],
)  # fmt: skip
def test_confusion_of_buckets_holds_that_of_the_rows(settings: dict[str, object]) -> None:
    scores = [0.0, 0.1, 0.3, 0.5, 0.52, 0.75, 0.8, 1.0]
    labels = [0, 1, 0, 1, 1, 0, 1, 1]
    result, truth = buckets(labels, scores, **settings), exact(labels, scores)
    inside = 0
    for t in (*scores, 0.05, 0.25, 0.4, 0.501, 0.6, 0.76, 0.9, 1.5, -1.0, math.inf, -math.inf):
        rough, rates = result.confusion(t), truth.confusion(t)
        if isinstance(rough, Rates):
            assert rough == rates, t
            continue
        inside += 1
        for name in ("tp", "fp", "fn", "tn", "accuracy", "precision", "recall", "mcc", "f1"):
            value, bounds = getattr(rates, name), getattr(rough, name)
            assert math.isnan(value) or bounds.low <= value <= bounds.high, (t, name)
    assert inside


def test_a_threshold_in_a_gap_between_occupied_buckets_is_certain() -> None:
    result = buckets([0, 1, 1], [0.1, 0.9, 0.91])
    assert result.confusion(0.5) == Rates(2, 0, 0, 1)
    assert isinstance(result.confusion(math.nextafter(0.9, 1)), BoundedRates)
    halves = buckets([0, 1], [0.1, 0.2], grid="equal", resolution=1)
    assert halves.confusion(0.5) == Rates(0, 0, 1, 1)
    assert isinstance(halves.confusion(math.nextafter(0.5, 0)), BoundedRates)


def test_thresholds_are_compared_in_the_precision_of_the_scores() -> None:
    for score in (0.3, 0.7):  # as float32 the first is above itself, the second below
        result = exact([0, 1], [0.1, score], score_type="float32")
        threshold = np.float32(score)
        assert result.confusion(score).tp == 1 == result.confusion(float(threshold)).tp
        assert result.confusion(math.nextafter(float(threshold), 1)).tp == 1
        assert result.confusion(float(np.nextafter(threshold, np.float32(1)))).tp == 0
        assert result.best().points[0].threshold == threshold
        double = exact([0, 1], [0.1, score])
        assert (double.confusion(score).tp, double.confusion(math.nextafter(score, 1)).tp) == (1, 0)
    assert exact([1, 0], [1e39, 0.5], score_type="float32").confusion(1e300).tp == 1


def test_a_bucket_without_an_end_leaves_no_threshold_that_predicts_nothing() -> None:
    for settings in ({"range": "real"}, {"grid": "edges", "edges": (0.0,), "range": "real"}):
        result = buckets([0], [math.inf], **settings)
        assert math.isnan(result.roc().thresholds[0])
        assert math.isnan(result.best("accuracy").points[0].threshold)
        assert isinstance(result.confusion(math.inf), BoundedRates)
    assert buckets([0], [1.0]).roc().thresholds[0] == math.inf


def test_a_curve_whose_rows_were_dropped_knows_nothing_of_them() -> None:
    result = exact([1, 0], [0.1, 0.5], max_rows=1)
    assert result.reason and result.confusion(0.2) == Rates(0, 0, 0, 0)
    assert math.isnan(result.confusion(0.2).recall) and result.confusion(0.2).rows == 0  # type: ignore[operator]


def test_infinite_scores_are_thresholds_and_then_none_predicts_nothing() -> None:
    result = exact([1, 0, 1], [math.inf, 0.5, -math.inf])
    assert str(result.roc().thresholds.tolist()) == "[nan, inf, 0.5, -inf]"
    assert result.confusion(math.inf) == Rates(1, 0, 1, 1)
    nothing = exact([0, 0, 1], [math.inf, 0.5, 0.25]).best("accuracy").points[0]
    assert math.isnan(nothing.threshold) and nothing.rates.tp == 0


def test_predicting_nothing_or_everything_may_be_best() -> None:
    upside_down = exact([1, 0], [0.25, 0.75])
    for criterion, value in (
        ("youden", 0.0),
        ("product", 0.0),
        ("distance", 1.0),
        ("accuracy", 0.5),
    ):
        result = upside_down.best(criterion)  # type: ignore[arg-type]
        assert result.value == value
        thresholds = [math.inf, 0.75, 0.25] if criterion == "product" else [math.inf, 0.25]
        assert [point.threshold for point in result.points] == thresholds


def test_best_points_of_equal_merit_are_all_found_whatever_floats_say() -> None:
    labels = [1, 0, 0, 1, 1, *[0] * 8, *[1] * 7]
    result = exact(labels, list(range(20, 0, -1))).best("youden")
    assert 0.3 - 0.2 != 0.1  # the TPR and FPR of the two best points
    assert result.value == 0.1
    assert [point.threshold for point in result.points] == [20.0, 16.0]


def test_points_of_buckets_are_points_of_the_true_curve() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(300)
    labels = (rng.random(300) < scores).astype(int).tolist()
    result, truth = buckets(labels, scores.tolist(), resolution=2), exact(labels, scores.tolist())
    true_points = set(zip(truth.roc().fp.tolist(), truth.roc().tp.tolist(), strict=True))
    points = result.roc()
    assert set(zip(points.fp.tolist(), points.tp.tolist(), strict=True)) <= true_points
    for threshold, fp in zip(points.thresholds.tolist(), points.fp.tolist(), strict=True):
        assert truth.confusion(threshold).fp == fp
    pr = result.pr()
    assert len(pr.precision) == len(pr.recall) == len(pr.thresholds) + 1
    assert (pr.precision[-1], pr.recall[-1]) == (1.0, 0.0)


def test_one_class_leaves_what_needs_the_other_undefined() -> None:
    for make in (exact, buckets):
        good, bad = make([1, 1], [0.25, 0.5]), make([0, 0], [0.25, 0.5])
        for curve, ap in ((good, 1.0), (bad, math.nan)):
            assert str(float(curve.ap)) == str(ap) == str(float(curve.pr_auc_trapezoid))
            undefined = (curve.auc, curve.ks, curve.partial_auc(0.5), curve.best().value)
            assert all(math.isnan(float(value)) for value in undefined)
            assert curve.best().points == ()
            assert float(curve.best("accuracy").value) == 1.0
            assert curve.best("accuracy", positives_share=0.5).points == ()
        assert all(math.isnan(float(value)) for value in (*bad.gain(2), *bad.lift(2)))
        assert np.isnan(good.roc().fpr).all() and np.isnan(bad.pr().recall[:-1]).all()


def test_nothing_is_undefined_and_past_max_rows_too() -> None:
    full = ExactAUC(max_rows=1)
    full.update([0, 1], [0.25, 0.5])
    for curve in (ExactAUC().compute(), HistogramAUC().compute(), full.compute()):
        values = (curve.ap, curve.pr_auc_trapezoid, curve.ks, curve.partial_auc(1.0))
        assert all(math.isnan(float(value)) for value in values)
        assert all(math.isnan(float(value)) for value in (*curve.gain(3), *curve.lift(3)))
        assert curve.best("accuracy").points == ()
        assert curve.roc().thresholds.tolist() == [math.inf]
        assert curve.pr().precision.tolist() == [1.0]


def test_a_bad_argument_is_refused_in_four_parts() -> None:
    result = exact([0, 1], [0.25, 0.5])
    for name, value, options in (
        *(("partial_auc", limit, {}) for limit in (0.0, 1.5, math.nan)),
        *(("gain", 0, {}), ("lift", 2.5, {}), ("confusion", math.nan, {}), ("best", "f1", {})),
        ("best", "youden", {"positives_share": 0.5}),
        *(("best", "accuracy", {"positives_share": share}) for share in (1.5, math.nan)),
    ):
        with pytest.raises(InputError) as error:
            getattr(result, name)(value, **options)
        assert error.value.where.startswith("ScoreCurve."), name
