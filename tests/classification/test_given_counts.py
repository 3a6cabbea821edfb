"""from_counts: a state from an aggregate is the state of the rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from streammetrics import BinaryConfusion, HistogramAUC, InputError, SettingsError, StateError

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
    fed = metric.empty()
    fed.update(LABELS, SCORES)
    made = metric.from_counts(*aggregate((SCORES >= 0.25).astype(int)))
    assert made.digest() == fed.digest()
    made.update(LABELS, SCORES)
    assert made == fed + fed


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("resolution", [1, 6, 14])
def test_counts_of_equal_buckets_are_the_state_of_the_rows(kind: Any, resolution: int) -> None:
    metric, scores = HistogramAUC(grid="equal", resolution=resolution), SCORES.astype(kind)
    fed = metric.empty()
    fed.update(LABELS, scores)
    buckets = np.minimum(np.floor(scores * kind(2**resolution)).astype(int), 2**resolution - 1)
    assert metric.from_counts(*aggregate(buckets)).digest() == fed.digest()


def test_pairs_may_come_again_and_may_be_none() -> None:
    metric = BinaryConfusion()
    twice = metric.from_counts([0, 1, 0], [1, 1, 1], [2, 0, 3])
    assert twice == metric.from_counts([0], [1], [5])
    assert metric.from_counts([], [], []) == metric


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (([2], [0], [1]), "labels"),
        (([0], [4], [1]), r"buckets\[0\]: expected integers from 0 to 3"),
        (([0], [-1], [1]), "buckets"),
        (([0], [0], [-1]), "counts"),
        (([0, 1], [0], [1, 1]), "buckets"),
        (([0, 1], [0, 1], [1]), "counts"),
        (([0], [0.5], [1]), "buckets"),
    ],
    ids=str,
)
def test_counts_of_other_cells_are_refused(given: tuple[Any, ...], why: str) -> None:
    with pytest.raises(InputError, match=why):
        HistogramAUC(grid="equal", resolution=2).from_counts(*given)


def test_more_rows_than_a_state_holds_are_refused() -> None:
    with pytest.raises(StateError, match="at most"):
        BinaryConfusion().from_counts([0, 1], [0, 0], [1 << 62, 1 << 62])


@pytest.mark.parametrize("settings", [{"weight_unit": "1/10"}, {"round_weights": True}], ids=str)
def test_metrics_of_weights_are_refused(settings: dict[str, Any]) -> None:
    for metric in (BinaryConfusion(**settings), HistogramAUC(**settings)):
        with pytest.raises(SettingsError, match="weight_unit=1"):
            metric.from_counts([0], [0], [1])
