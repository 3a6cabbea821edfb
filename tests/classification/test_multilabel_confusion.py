from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streammetrics import (
    BinaryConfusion,
    MultilabelConfusion,
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


def test_one_label_is_a_binary_confusion_with_its_threshold() -> None:
    labels, scores = [[1], [0], [1], [0]], np.array([[0.3], [0.3], [0.2], [0.1]], np.float32)
    metric, binary = MultilabelConfusion(1, threshold=0.3), BinaryConfusion(threshold=0.3)
    metric.update(labels, scores)
    binary.update([1, 0, 1, 0], scores[:, 0])
    assert metric.compute().rates(0) == binary.compute()
    assert metric.compute().mcc == binary.compute().mcc
    assert metric.compute().rates(0).table("positive_first").tolist() == [[1, 1], [1, 1]]
