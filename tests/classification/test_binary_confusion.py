from __future__ import annotations

import math

import pytest

from streammetrics.classification import BinaryConfusion
from streammetrics.core.errors import SettingsError
from tests.oracles import binary


def fed(rows: list[binary.Row], metric: BinaryConfusion) -> BinaryConfusion:
    metric.update([y for y, _ in rows], [s for _, s in rows])
    return metric


def test_a_score_at_the_threshold_is_positive() -> None:
    rates = fed([(1, 0.7), (0, 0.3), (0, 0.5)], BinaryConfusion()).compute()
    assert (rates.precision, rates.recall) == (0.5, 1.0)


def test_another_label_may_be_the_positive_one() -> None:
    spam = BinaryConfusion(positive="spam")
    spam.update(["spam", "ham", "spam"], [0.9, 0.8, 0.1])
    assert spam.compute().table().tolist() == [[0, 1], [1, 1]]
    zero = BinaryConfusion(positive=0)
    zero.update([0, 1, 0], [0.9, 0.8, 0.1])
    assert zero.compute() == spam.compute()


def test_counts_go_on_past_what_float32_can_count() -> None:
    metric = fed([(1, 0.9), (0, 0.1), (0, 0.8)], BinaryConfusion())
    for _ in range(30):
        metric = metric + metric
    one_more = fed([(1, 0.9)], BinaryConfusion())
    assert (metric + one_more).compute().tp == 2**30 + 1


@pytest.mark.parametrize(
    "settings",
    [{"threshold": math.nan}, {"threshold": "0.5"}, {"threshold": True}, {"positive": 0.5}],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        BinaryConfusion(**settings)  # type: ignore[arg-type]


def test_settings_that_mean_the_same_are_the_same() -> None:
    assert BinaryConfusion(threshold=1) == BinaryConfusion(threshold=1.0)
    assert BinaryConfusion(threshold=-0.0) == BinaryConfusion(threshold=0.0)
    assert BinaryConfusion(positive=True) == BinaryConfusion(positive=1)
    with pytest.raises(SettingsError, match="threshold"):
        BinaryConfusion(threshold=0.5).merge(BinaryConfusion(threshold=0.6))
