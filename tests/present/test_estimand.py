"""A view of a result, with its estimator."""

from __future__ import annotations

from streammetrics import ExactAUC
from streammetrics.present.estimand import estimand_of


def test_a_part_of_a_best_threshold_is_chosen_by_the_rows_as_that_is() -> None:
    metric = ExactAUC()
    metric.update([0, 1, 1, 0], [0.1, 0.6, 0.7, 0.8])
    assert estimand_of(metric.compute(), "best(youden).value").chosen
    assert not estimand_of(metric.compute(), "confusion(0.5).recall").chosen
