"""The first place among the values of a policy."""

from __future__ import annotations

from streammetrics import OffPolicy
from streammetrics.results import headlines_of, views_of


def test_the_value_without_bias_stands_first_with_predictions_and_without() -> None:
    half, rewards = [0.5] * 200, [0, 1] * 100
    plain, predicted = OffPolicy(), OffPolicy()
    plain.update(half, half, rewards)
    predicted.update(half, half, rewards, predicted_logged=half, predicted_target=half)
    for result in (OffPolicy().compute(), plain.compute(), predicted.compute()):
        assert next(iter(views_of(result))) == "ips"
        assert headlines_of(result) == ("ips", "effective_sample_size")
