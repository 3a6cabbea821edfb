"""Curves and counts of the worked examples of the literature."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streammetrics import BinaryConfusion, ExactAUC, HistogramAUC, MulticlassAUC
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve
from tests.expected import examples_of

Example = Mapping[str, Any]
SHARES = {
    "iso_accuracy_pos_1_2": Fraction(1, 2),
    "iso_accuracy_pos_2_3": Fraction(2, 3),
    "iso_accuracy_pos_1_5": Fraction(1, 5),
}


@pytest.fixture(scope="module")
def examples(data: Path) -> Mapping[str, Example]:
    entries = examples_of(data)
    return {example["id"]: example for example in entries}


def curve(example: Example) -> ScoreCurve:
    metric = ExactAUC()
    metric.update(example["inputs"]["y"], example["inputs"]["score"])
    return metric.compute()


def test_areas(examples: Mapping[str, Example]) -> None:
    names = ("auc_example1", "auc_example2_tie", "auc_rank_formula", "auc_rank_formula_ties")
    for name in (*(f"000/{name}" for name in names), "001/roc_20_auc"):
        assert curve(examples[name]).auc == examples[name]["value"]
    assert curve(examples["001/roc_20_gini"]).gini == examples["001/roc_20_gini"]["value"]
    assert curve(examples["004/ap_same_three"]).ap == examples["004/ap_same_three"]["value"]


def test_an_average_precision_of_ranks(examples: Mapping[str, Example]) -> None:
    for name in ("002/ap", "003/ap", "003/ap_5_first", "003/ap_5_last"):
        ranks = examples[name]["inputs"]["relevant_ranks"]
        metric = ExactAUC()
        metric.update([int(rank in ranks) for rank in range(1, 11)], range(10, 0, -1))
        assert metric.compute().ap == examples[name]["value"], name


def test_twenty_points(examples: Mapping[str, Example]) -> None:
    example = examples["001/roc_20_points"]
    points = curve(example).roc()
    rows = [list(row) for row in zip(points.thresholds, points.tp, points.fp, strict=True)]
    assert rows == [[math.inf, 0, 0], *example["value"]]
    assert points.tpr.tolist() == [t / 10 for t in points.tp]


def test_every_best_point_is_listed(examples: Mapping[str, Example]) -> None:
    names = {"youden": "youden", "product": "product", "distance": "distance_squared"}
    for criterion, name in names.items():
        check(examples[f"001/roc_20_best_{name}"], criterion, None)
    for name, share in SHARES.items():
        check(examples[f"001/roc_20_best_{name}"], "accuracy", share)


def check(example: Example, criterion: Any, share: Fraction | None) -> None:
    optimum = curve(example).best(criterion, positives_share=share)
    value = math.sqrt(example["value"]) if criterion == "distance" else example["value"]
    assert optimum.value == value
    assert [
        {"threshold": point.threshold, "tp": point.rates.tp, "fp": point.rates.fp}
        for point in optimum.points
    ] == example["all_optimal_points"]


def test_a_share_that_is_no_float_is_not_the_float_beside_it(
    examples: Mapping[str, Example],
) -> None:
    example = examples["001/roc_20_best_iso_accuracy_pos_2_3"]
    assert len(curve(example).best("accuracy", positives_share=2 / 3).points) == 1


def test_points_of_equal_accuracy_are_on_a_line_of_slope_n_over_p(
    examples: Mapping[str, Example],
) -> None:
    slope = examples["001/iso_accuracy_slope"]
    positives, negatives = slope["inputs"]["positives"], slope["inputs"]["negatives"]
    share = Fraction(positives, positives + negatives)
    best = curve(examples["001/roc_20_points"]).best("accuracy", positives_share=share)
    a, b = (point.rates for point in best.points)
    rise, run = Fraction(b.tp - a.tp, a.tp + a.fn), Fraction(b.fp - a.fp, a.fp + a.tn)
    assert rise / run == Fraction(slope["value"]) == Fraction(negatives, positives)


def test_a_score_at_the_threshold_is_positive(examples: Mapping[str, Example]) -> None:
    for view in ("precision", "recall"):
        example = examples[f"004/threshold_{view}"]
        confusion = curve(example).confusion(example["inputs"]["threshold"])
        assert getattr(confusion, view) == example["value"]


def test_the_map_of_two_classes_is_the_mean_of_their_aps(examples: Mapping[str, Example]) -> None:
    ranks = [examples[name]["inputs"]["relevant_ranks"] for name in ("002/ap", "003/ap")]
    example = examples["004/map_two_classes"]
    assert example["inputs"]["ap_per_class"] == ["28/45", "13/18"]
    metric = MulticlassAUC(2, exact=True)
    labels = [[int(rank in of_class) for of_class in ranks] for rank in range(1, 11)]
    metric.update(labels, [[-rank, -rank] for rank in range(1, 11)])
    assert metric.compute().ap(None) == (float(Fraction(28, 45)), float(Fraction(13, 18)))
    assert metric.compute().map == example["value"]


def test_twenty_points_from_buckets_of_one_score_have_hardly_a_width(
    examples: Mapping[str, Example],
) -> None:
    example = examples["001/roc_20_points"]
    metric = HistogramAUC()
    metric.update(example["inputs"]["y"], example["inputs"]["score"])
    exact, result = curve(example), metric.compute()
    assert result.roc().tp.tolist() == exact.roc().tp.tolist()
    for view in ("auc", "gini", "ks", "ap", "pr_auc_trapezoid"):
        assert getattr(result, view).value == getattr(exact, view)
        assert getattr(result, view).width <= 2 * math.ulp(1.0)


# -- counts and their rates


def rates(*, tp: int = 0, fp: int = 0, fn: int = 0, tn: int = 0) -> Rates:
    metric = BinaryConfusion()
    metric.update([1, 0, 1, 0], [1.0, 1.0, 0.0, 0.0], weights=[tp, fp, fn, tn])
    result = metric.compute()
    assert isinstance(result, Rates)
    assert (result.tp, result.fp, result.fn, result.tn) == (tp, fp, fn, tn)
    return result


def test_80_of_100_carps_are_caught(examples: Mapping[str, Example]) -> None:
    example = examples["002/recall_carp"]
    assert rates(**example["inputs"]).recall == example["value"]


def test_who_never_finds_anything_may_be_accurate(examples: Mapping[str, Example]) -> None:
    accuracy, recall = (examples[f"004/imbalanced_{view}"] for view in ("accuracy", "recall"))
    assert accuracy["inputs"] == recall["inputs"]
    result = rates(**accuracy["inputs"])
    assert (result.accuracy, result.recall) == (accuracy["value"], recall["value"])
    assert math.isnan(result.precision)


def test_f_has_its_parentheses(examples: Mapping[str, Example]) -> None:
    example = examples["002/f_alpha_with_parentheses"]
    result, inputs = rates(tp=1, fp=1, fn=1), example["inputs"]
    assert (result.precision, result.recall) == (inputs["precision"], inputs["recall"])
    assert result.f_beta(inputs["alpha_of_seed_002_is_beta"]) == example["value"]
    assert result.f1 == result.f_alpha(0.5) == example["value"]
    p, r = result.precision, result.recall
    assert (1 + p * r) / (p + r) == example["value_of_seed_formula_as_printed"]


def test_f_beta_is_f_alpha(examples: Mapping[str, Example]) -> None:
    example = examples["004/f_beta_equals_f_alpha"]
    result, inputs = rates(tp=1, fp=1), example["inputs"]
    assert (result.precision, result.recall) == (inputs["precision"], inputs["recall"])
    assert result.f_beta(inputs["beta"]) == result.f_alpha(inputs["alpha"]) == example["value"]
