"""The first place among the values of a policy."""

from __future__ import annotations

from streammetrics import OffPolicy
from streammetrics.results import headlines_of, views_of


def test_the_value_without_bias_stands_first_with_predictions_and_without() -> None:
    rows = {"logged": [0.5] * 200, "target": [0.5] * 200, "rewards": [0, 1] * 100}
    plain, predicted = OffPolicy(), OffPolicy()
    plain.update(**rows)
    predicted.update(**rows, predicted_logged=[0.5] * 200, predicted_target=[0.5] * 200)
    for result in (OffPolicy().compute(), plain.compute(), predicted.compute()):
        assert next(iter(views_of(result))) == "ips"
        assert headlines_of(result) == ("ips", "effective_sample_size")
