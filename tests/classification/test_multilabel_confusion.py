from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    MultilabelConfusion,
    SettingsError,
    StateError,
)

Row = tuple[tuple[int, ...], tuple[int, ...]]  # truth and prediction of each label


def fed(rows: Sequence[Row], n: int = 2) -> MultilabelConfusion:
    metric = MultilabelConfusion(n)
    truth = np.array([t for t, _ in rows], np.int64).reshape(-1, n)
    metric.update(truth, np.array([p for _, p in rows], np.float64).reshape(-1, n))
    return metric


def test_the_mean_over_rows_is_rounded_once_where_adding_floats_is_not() -> None:
    """1/3 eleven times: floats add up to something else."""
    rows = [((1, 1, 1), (1, 0, 0))] * 11
    metric = MultilabelConfusion(3)
    for t, p in rows:
        metric.update([t], [p])
    assert sum([1 / 3] * 11) / 11 != 1 / 3
    assert metric.compute().recall("samples") == 1 / 3


@pytest.mark.parametrize("doublings", [24, 31, 53, 60])
def test_counts_go_on_past_what_floats_and_int32_can_count(doublings: int) -> None:
    metric = fed([((1, 0), (1, 1))])
    for _ in range(doublings):
        metric = metric + metric
    result = (metric + fed([((1, 1), (1, 1))])).compute()
    each = 2**doublings
    assert result.matrix.tolist() == [[[0, 0], [0, each + 1]], [[0, each], [0, 1]]]
    assert result.rows == each + 1
    assert result.subset_accuracy == 1 / (each + 1)
    assert result.precision("samples") == (each // 2 + 1) / (each + 1)


def test_no_more_is_counted_than_all_labels_together_can_be_summed() -> None:
    metric = MultilabelConfusion(4)
    metric.update([[1, 0, 0, 1]], [[1, 0, 0, 1]])
    for _ in range(60):
        metric = metric + metric
    assert metric.compute().accuracy == 1.0
    with pytest.raises(StateError):
        metric + metric


def test_one_label_is_a_binary_confusion_with_its_threshold() -> None:
    labels, scores = [[1], [0], [1], [0]], np.array([[0.3], [0.3], [0.2], [0.1]], np.float32)
    metric, binary = MultilabelConfusion(1, threshold=0.3), BinaryConfusion(threshold=0.3)
    metric.update(labels, scores)
    binary.update([1, 0, 1, 0], scores[:, 0])
    assert metric.compute().rates(0) == binary.compute()
    assert metric.compute().mcc == binary.compute().mcc
    assert metric.compute().rates(0).table("positive_first").tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "settings",
    [
        *({"n_labels": n} for n in (0, 2.0, True, "3", 1 << 16)),
        *({"n_labels": 3, "threshold": t} for t in ("0.5", math.nan, True, None)),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=list(settings)[-1]):
        MultilabelConfusion(**settings)  # type: ignore[arg-type]
