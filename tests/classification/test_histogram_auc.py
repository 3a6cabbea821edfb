from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.classification import HistogramAUC
from streammetrics.core.bounded import Bounded
from streammetrics.kernels.tables.grids import grid_of
from tests.oracles import binary

METRICS = [
    HistogramAUC(),
    HistogramAUC(resolution=0, floor=0.25),
    HistogramAUC(range="real"),
    HistogramAUC(range="real", resolution=1, floor=0.5, ceiling=2.0),
    HistogramAUC(grid="equal", resolution=1),
    HistogramAUC(grid="edges", edges=(0.3, 0.6)),
]


def fed(rows: list[binary.Row], metric: HistogramAUC) -> HistogramAUC:
    state = metric.empty()
    state.update([y for y, _ in rows], [s for _, s in rows])
    return state


def auc_of(metric: HistogramAUC) -> Bounded:
    found = metric.compute().auc
    assert isinstance(found, Bounded)
    return found


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_the_area_is_that_of_the_pairs_of_buckets(metric: HistogramAUC) -> None:
    for rows in binary.small_samples((0.2, 0.4, 0.5), 4):
        buckets = grid_of(metric).buckets(np.array([s for _, s in rows]))
        rounded = [(y, float(b)) for (y, _), b in zip(rows, buckets, strict=True)]
        wins, ties, every = binary.pair_counts(rounded)
        if every:
            found = auc_of(fed(rows, metric))
            assert found.value == (2 * wins + ties) / (2 * every)
            assert found.low in (wins / every, math.nextafter(wins / every, -1))
            top = (wins + ties) / every
            assert found.high in (top, math.nextafter(top, 2))


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], (0.75, 0.75, 0.75)),
        ([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], (0.875, 0.75, 1.0)),
        ([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5], (0.5, 0.0, 1.0)),
        ([0, 1], [0.5001, 0.5002], (0.5, 0.0, 1.0)),
    ],
)
def test_worked_values(
    labels: list[int], scores: list[float], expected: tuple[float, float, float]
) -> None:
    metric = HistogramAUC()
    metric.update(labels, scores)
    assert auc_of(metric) == Bounded(*expected)


def test_an_empty_state_takes_few_bytes_and_a_few_rows_take_few_more() -> None:
    metric = HistogramAUC()
    empty = len(metric.to_bytes())
    metric.update([0, 1, 0], [0.1, 0.2, 0.3])
    assert len(metric.to_bytes()) <= empty + 16


def test_settings_that_mean_the_same_are_the_same() -> None:
    assert HistogramAUC(range="real", ceiling=4) == HistogramAUC(range="real", ceiling=4.0)
    a = HistogramAUC(grid="edges", edges=[-0.0, 1])  # type: ignore[arg-type]
    assert a == HistogramAUC(grid="edges", edges=(0.0, 1.0))
