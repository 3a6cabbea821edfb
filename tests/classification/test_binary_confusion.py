from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.classification import BinaryConfusion
from streammetrics.core.errors import InputError, SettingsError
from tests.oracles import binary


def fed(rows: list[binary.Row], metric: BinaryConfusion) -> BinaryConfusion:
    metric.update([y for y, _ in rows], [s for _, s in rows])
    return metric


def test_every_small_sample_is_counted_as_row_by_row() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 4):
        rates = fed(rows, BinaryConfusion(threshold=0.5)).compute()
        assert (rates.tn, rates.fp, rates.fn, rates.tp) == binary.confusion(rows, 0.5)


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


def test_rows_are_counted_at_the_slots_that_they_are_sent_to() -> None:
    metric = BinaryConfusion(threshold=0.3)._empty(3)
    scores = np.array([0.3, 0.2, 0.9, 0.1], np.float32)
    rows = metric.check(np.array([1, 0, 0, 1]), scores)
    metric._feed(rows, np.array([2, 0, 2, 0]))
    # 0.3 as float32 is above 0.3.
    assert metric.counts.dense(2).tolist() == [[0, 1], [0, 1]]
    assert metric.counts.dense(0).tolist() == [[1, 0], [1, 0]]
    assert not metric.counts.dense(1).any()


def test_no_rows_have_no_rates() -> None:
    rates = BinaryConfusion().compute()
    assert rates.rows == 0
    assert math.isnan(rates.accuracy)


def test_infinite_scores_are_scores() -> None:
    rates = fed([(1, math.inf), (0, -math.inf)], BinaryConfusion()).compute()
    assert (rates.tp, rates.tn) == (1, 1)


@pytest.mark.parametrize(
    ("labels", "scores", "where"),
    [
        ([0, 2], [0.1, 0.2], r"labels\[1\]"),
        ([0, 1], [0.1, math.nan], r"scores\[1\]"),
        ([0, 1], [0.1], "scores"),
        ([0.73, 0.1], [0, 1], "swapped"),
    ],
)
def test_bad_rows_are_refused_and_nothing_changes(
    labels: list[float], scores: list[float], where: str
) -> None:
    metric = fed([(1, 0.9)], BinaryConfusion())
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(labels, scores)
    assert metric.digest() == before


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
