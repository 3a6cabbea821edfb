"""BinaryConfusion; and from_counts: a state from an aggregate is the state of the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from streammetrics import BinaryConfusion, HistogramAUC, InputError, SettingsError, StateError
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


def test_settings_that_mean_the_same_are_the_same() -> None:
    assert BinaryConfusion(threshold=1) == BinaryConfusion(threshold=1.0)
    assert BinaryConfusion(threshold=-0.0) == BinaryConfusion(threshold=0.0)
    assert BinaryConfusion(positive=True) == BinaryConfusion(positive=1)
    with pytest.raises(SettingsError, match="threshold"):
        BinaryConfusion(threshold=0.5).merge(BinaryConfusion(threshold=0.6))


# -- from counts

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 2, 5_000)
SCORES = np.append(RNG.random(4_998), [0.0, 1.0])


def aggregate(cells: Any) -> tuple[list[int], list[int], list[int]]:
    """What GROUP BY label, cell gives, in any order."""
    counts = Counter(zip(LABELS.tolist(), cells.tolist(), strict=True))
    keys = list(counts)
    return [k[0] for k in keys], [k[1] for k in keys], [counts[k] for k in keys]


def test_counts_of_predictions_are_the_state_of_the_rows() -> None:
    metric = BinaryConfusion(threshold=0.25)
    rows = metric.empty()
    rows.update(LABELS, SCORES)
    state = metric.from_counts(*aggregate((SCORES >= 0.25).astype(int)))
    assert state.digest() == rows.digest()
    state.update(LABELS, SCORES)
    assert state == rows + rows


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_counts_of_equal_buckets_are_the_state_of_the_rows(kind: Any) -> None:
    for resolution in (1, 14):
        metric, scores = HistogramAUC(grid="equal", resolution=resolution), SCORES.astype(kind)
        rows = metric.empty()
        rows.update(LABELS, scores)
        buckets = np.minimum(np.floor(scores * kind(2**resolution)).astype(int), 2**resolution - 1)
        assert metric.from_counts(*aggregate(buckets)).digest() == rows.digest()


def test_pairs_may_come_again_and_may_be_none() -> None:
    metric = BinaryConfusion()
    twice = metric.from_counts([0, 1, 0], [1, 1, 1], [2, 0, 3])
    assert twice == metric.from_counts([0], [1], [5])
    assert metric.from_counts([], [], []) == metric


def test_counts_of_other_cells_are_refused() -> None:
    for columns, why in (
        (([2], [0], [1]), "labels"),
        (([0], [4], [1]), r"buckets\[0\]: expected integers from 0 to 3"),
        (([0], [-1], [1]), "buckets"),
        (([0], [0], [-1]), "counts"),
        (([0, 1], [0], [1, 1]), "buckets"),
        (([0, 1], [0, 1], [1]), "counts"),
        (([0], [0.5], [1]), "buckets"),
    ):
        with pytest.raises(InputError, match=why):
            HistogramAUC(grid="equal", resolution=2).from_counts(*columns)


def test_more_rows_than_a_state_holds_are_refused() -> None:
    with pytest.raises(StateError, match="at most"):
        BinaryConfusion().from_counts([0, 1], [0, 0], [1 << 62, 1 << 62])


def test_metrics_of_weights_are_refused() -> None:
    settings: dict[str, Any]
    for settings in ({"weight_unit": "1/10"}, {"round_weights": True}):
        for metric in (BinaryConfusion(**settings), HistogramAUC(**settings)):
            with pytest.raises(SettingsError, match="weight_unit=1"):
                metric.from_counts([0], [0], [1])
