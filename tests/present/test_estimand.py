"""A view of a result, with its estimator."""

from __future__ import annotations

from streammetrics import ExactAUC
from streammetrics.present.estimand import estimand_of
from streammetrics.results import value_of
from streammetrics.results.score_curve import ScoreCurve


def curve(max_rows: int = 100) -> ScoreCurve[float]:
    metric = ExactAUC(max_rows=max_rows)
    metric.update([0, 1, 1, 0], [0.1, 0.6, 0.7, 0.8])
    return metric.compute()


def test_a_part_of_a_best_threshold_is_chosen_by_the_rows_as_that_is() -> None:
    best, fixed = (
        estimand_of(curve(), view) for view in ("best(youden).value", "confusion(0.5).f1")
    )
    assert best.chosen and best.is_of_points
    assert fixed.is_of_points and not fixed.chosen


def test_a_view_of_a_part_is_undefined_where_the_whole_is() -> None:
    for view in ("auc", "confusion(0.5).recall"):
        assert estimand_of(curve(max_rows=3), view).reason == "4 rows exceed max_rows=3"
        assert estimand_of(curve(), view).reason == ""


def test_a_view_beside_another_is_of_the_same_part_and_has_a_path_from_the_whole() -> None:
    recall = estimand_of(curve(), "confusion(0.65).recall")
    precision = recall.beside("precision")
    assert precision.path.text == "confusion(0.65).precision" and precision.is_of_points
    assert precision.value == 0.5 == value_of(curve(), precision.path.text)
    assert estimand_of(curve(), "auc").beside("gini").path.text == "gini"
