"""Thresholds with constraints: the best one, and the one for a budget, against worked examples."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import Bounded, ExactAUC, HistogramAUC, UserGroups
from streammetrics.results.curve_points import BestPoints, BudgetPoint
from streammetrics.results.score_curve import ScoreCurve
from tests.expected import Noted, examples_of


def exact(labels: list[int], scores: list[float]) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(labels, scores)
    return metric.compute()


def on_a_grid(labels: list[int], scores: list[float]) -> ScoreCurve:
    """Each score begins a bucket, so that the edges of buckets are the scores."""
    metric = HistogramAUC(grid="edges", edges=tuple(sorted(set(scores))))
    metric.update(labels, scores)
    return metric.compute()


def of_buckets(positives: list[int], negatives: list[int]) -> ScoreCurve:
    """From counts by bucket, the highest first."""
    counts = np.array([negatives[::-1], positives[::-1]])
    return ScoreCurve(np.arange(len(positives)) / 8, counts, False, int(counts.sum()))


def examples(data: Path) -> list[Noted]:
    return examples_of(data, 3)


def best(curve: ScoreCurve, metric: str, inputs: dict[str, Any]) -> BestPoints[float | Bounded]:
    if metric == "precision_at_recall":
        return curve.best("precision", recall_at_least=float(inputs["recall"]))
    if metric == "recall_at_precision":
        return curve.best("recall", precision_at_least=float(inputs["precision"]))
    return curve.best("f_beta", beta=inputs["beta"])


def as_listed(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


@pytest.mark.parametrize("make", [exact, on_a_grid])
def test_worked_examples_of_thresholds(data: Path, make: Any) -> None:
    for example in examples(data):
        inputs, expected = example["inputs"], example["value"]
        if "y" not in inputs:
            continue
        curve = make(inputs["y"], inputs["score"])
        if example["metric"] == "threshold_for_budget":
            budget = curve.threshold_for(predicted_positive=float(inputs["budget"]))
            for name, value in expected.items():
                assert np.array_equal(
                    float(getattr(budget, name)), as_listed(value), equal_nan=True
                ), (example["id"], name)
            continue
        result = best(curve, example["metric"], inputs)
        assert np.array_equal(float(result.value), as_listed(expected["value"]), equal_nan=True)
        assert [point.threshold for point in result.points] == expected["thresholds"], example["id"]


def test_worked_examples_of_bounds(data: Path) -> None:
    counted = 0
    for example in examples(data):
        inputs, expected = example["inputs"], example["value"]
        if "y" in inputs:
            continue
        counts = (inputs[f"{name}_by_bucket_from_the_top"] for name in ("positives", "negatives"))
        curve, metric = of_buckets(*counts), example["metric"].removesuffix("_bounds")
        if metric == "recall_at_budget":
            bounds = curve.recall_at_budget(float(inputs["budget"]))
        else:
            bounds = best(curve, metric, inputs).value
        assert isinstance(bounds, Bounded)
        # Certain bounds are rounded outwards.
        assert math.nextafter(expected["low"], 0) <= bounds.low <= expected["low"], example["id"]
        assert expected["high"] <= bounds.high <= math.nextafter(expected["high"], 1), example["id"]
        counted += 1
    assert counted == 6


def test_a_float_is_the_decimal_that_it_is_written_as() -> None:
    curve = exact([1] * 50 + [0] * 50, list(range(100, 0, -1)))
    for budget in (0.07, np.float32(0.07), Fraction(7, 100)):  # in binary 7 of 100 exceed 0.07
        share: Any = budget
        assert curve.threshold_for(predicted_positive=share).rates.tp == 7
    for recall in (0.14, np.float32(0.14)):  # 7 of 50
        assert curve.best("precision", recall_at_least=float(recall)).points[-1].rates.tp == 50
        assert curve.best("f_beta", recall_at_least=1, precision_at_least=0.5).value == 1.0


def test_all_that_nothing_meets_is_undefined_and_says_so() -> None:
    curve = exact([0, 1], [0.9, 0.1])
    result = curve.best("recall", precision_at_least=0.6)
    assert math.isnan(result.value) and result.points == ()  # type: ignore[arg-type]
    assert "no threshold meets the requirements" in repr(result)
    assert math.isnan(exact([0, 0], [0.1, 0.2]).precision_at_recall(0))  # type: ignore[arg-type]
    empty = ExactAUC().compute()
    assert math.isnan(empty.best_f_beta()) and math.isnan(empty.recall_at_budget(1))
    assert math.isnan(empty.threshold_for(predicted_positive=1).share)


def test_points_of_a_curve_of_which_nothing_is_known_say_why() -> None:
    metric = ExactAUC(max_rows=2)
    metric.update([1, 0, 1], [0.1, 0.2, 0.3])
    curve = metric.compute()
    for result in (curve.best("precision"), curve.threshold_for(predicted_positive=0.5)):
        assert result.reason == "3 rows exceed max_rows=2"
        assert "3 rows exceed max_rows=2" in repr(result) and "no rows" not in repr(result)


def test_a_score_without_an_upper_end_leaves_no_threshold_for_nothing() -> None:
    metric = HistogramAUC(range="real")
    for labels, scores in (([1, 0], [math.inf, 0.5]), ([0], [1e9])):
        metric.update(labels, scores)
        point = metric.compute().threshold_for(predicted_positive=0)
        assert math.isnan(point.threshold) and "is infinite itself, or may be" in repr(point)


def test_a_required_precision_of_0_needs_a_row_also_inside_a_bucket() -> None:
    labels, scores = [0, 0, 0, 1], [0.9, 0.91, 0.92, 0.1]
    metric = HistogramAUC(resolution=0)
    metric.update(labels, scores)
    truth = exact(labels, scores).best("accuracy", precision_at_least=0)
    assert (truth.value, truth.points[0].threshold) == (0.5, 0.92)
    value = metric.compute().best("accuracy", precision_at_least=0).value
    assert isinstance(value, Bounded) and value.low <= 0.5 <= value.high < 0.51
    assert exact(labels, scores).best("accuracy").value == 0.75  # that of no row at all


def test_a_threshold_inside_a_bucket_may_meet_what_none_between_buckets_does() -> None:
    result = of_buckets([1], [1]).best("recall", precision_at_least=0.8)
    assert isinstance(result.value, Bounded)
    assert math.isnan(result.value.value) and (result.value.low, result.value.high) == (0.0, 1.0)
    assert result.points == ()
    budget = of_buckets([1], [1]).threshold_for(predicted_positive=0.5)
    assert isinstance(budget, BudgetPoint) and budget.threshold == math.inf
    assert str(budget.precision) == "nan (exact within [0.0, 1.0])"


def test_the_distance_at_a_required_precision_has_bounds_of_every_order_in_a_bucket() -> None:
    labels, scores = [1, 0, 1, 0], [0.33, 0.31, 0.303, 0.301]
    metric = HistogramAUC(resolution=1)  # one bucket has them all
    metric.update(labels, scores)
    truth = exact(labels, scores).best("distance", precision_at_least=1).value
    result = metric.compute().best("distance", precision_at_least=1)
    assert truth == 0.5 and result.points == ()
    assert isinstance(result.value, Bounded) and math.isnan(result.value.value)
    assert result.value.low == 0.0
    assert (
        Fraction(result.value.high) ** 2 >= 2 > Fraction(math.nextafter(result.value.high, 0)) ** 2
    )


@pytest.mark.parametrize("beta", [0, 1e-200, 1, 1e200])
def test_f_of_any_beta_is_0_without_a_positive(beta: float) -> None:
    result = exact([0, 0, 0], [0.1, 0.2, 0.2]).best("f_beta", beta=beta)
    assert result.value == 0.0
    assert [point.threshold for point in result.points] == [0.2, 0.1]


def test_rates_at_a_chosen_threshold_have_no_interval_as_if_it_were_fixed() -> None:
    curve = exact([0, 1] * 50, [i / 100 for i in range(100)])
    assert "CI" in repr(curve.confusion(0.5))
    for chosen in (curve.best("f_beta"), curve.threshold_for(predicted_positive=0.1)):
        assert "CI" not in repr(chosen) and "precision" in repr(chosen)


def test_users_choose_the_threshold_anew_in_each_replicate() -> None:
    rng = np.random.default_rng(3)
    scores, users = rng.random(4_000), rng.integers(0, 400, 4_000)
    metric = UserGroups(ExactAUC())
    metric.update(users, labels=rng.random(4_000) < scores, scores=scores)
    result = metric.compute()
    for view in ("precision_at_recall(0.8)", "best_f_beta(2)", "recall_at_budget(0.05)"):
        interval = result.interval(view)
        assert interval.lower < float(interval.estimate) < interval.upper
        assert "the threshold is chosen anew in each replicate" in interval.reason
    assert not result.interval("auc").reason
