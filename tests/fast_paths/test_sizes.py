"""Large batches, which go through chunks, tables and passes of their own, against small ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streammetrics import HistogramAUC, PerKey, Windows
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.kernels.tables.grids import grid_of
from tests.fast_paths.drawn import FINITE, METRICS, UNIT, UNIT_32, simple

every_metric = pytest.mark.parametrize("name", list(METRICS))
# Around the sizes from which there is another way: of scores, exact sums, rows in pieces, chunks.
# Each metric has one of these, and the next one the other.
SIZES = [63, 64, 8_192, 8_193, 16_383, 16_384], [64, 65, 8_191, 8_192, 16_384, 16_385]
# Of labels as bytes, and of integer ids.
LARGER = {"BinaryConfusion": 131_073, "GroupedAUC": 65_537}


@every_metric
def test_a_large_batch_counts_as_many_small_ones(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(5)
    for n in [*SIZES[list(METRICS).index(name) % 2], LARGER.get(name, 32_769)]:
        columns = draw(n, rng)
        state, pieces = metric.empty(), metric.empty()
        state.update(**columns)
        cuts = np.unique(rng.integers(0, n, 12))
        for start, end in zip([0, *cuts], [*cuts, n], strict=True):
            if end > start:
                pieces._feed(
                    pieces.check(**{k: v[start:end].copy() for k, v in columns.items()}), None
                )
        assert state.to_bytes() == pieces.to_bytes(), n


@every_metric
def test_many_keys_and_windows_at_once_are_each_by_itself(name: str) -> None:
    metric, draw = METRICS[name]
    for n in (1, 40, 9_000):
        rng = np.random.default_rng(n)
        columns = draw(n, rng)
        keys = rng.choice([0, 1, -1, 2**44, 7], n)
        by_key, windows = PerKey(metric), Windows(metric, 1)
        by_key.update(keys.tolist(), **columns)
        windows.update(keys * 1_000, **columns)
        panes = windows.panes()
        for key in np.unique(keys).tolist():
            rows = {name: column[keys == key] for name, column in columns.items()}
            expected = simple(metric, rows, 500).to_bytes()
            assert by_key.state(key).to_bytes() == expected, n
            assert panes[key * 1_000].to_bytes() == expected, n


GRIDS = [
    HistogramAUC(),
    HistogramAUC(resolution=1),
    HistogramAUC(resolution=12),
    HistogramAUC(grid="equal", resolution=1),
    HistogramAUC(grid="equal", resolution=20),
    HistogramAUC(range="real"),
    HistogramAUC(grid="edges", edges=(0.1, 0.25, 0.5 + 2**-53)),
]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("metric", GRIDS, ids=str)
def test_scores_at_the_edges_of_buckets_have_the_bucket_of_one_alone(
    metric: HistogramAUC, kind: type
) -> None:
    grid = grid_of(metric)
    scores = np.asarray(UNIT_32 if kind is np.float32 else UNIT, kind)
    if metric.range == "real":
        scores = np.concatenate([scores, -scores, np.array([2.0**24, -(2.0**25), 1e30], kind)])
    rng = np.random.default_rng(6)
    buckets = np.array([grid.buckets(scores[i : i + 1])[0] for i in range(len(scores))])
    for n in (1, 63, 64, 65, 8_191, 8_192, 8_193, 40_000):
        indexes = rng.integers(0, len(scores), n)
        assert np.array_equal(grid.buckets(scores[indexes]), buckets[indexes])
        spread = np.repeat(scores[indexes], 2)
        assert np.array_equal(grid.buckets(spread[::2]), buckets[indexes])
    order = np.argsort(scores, kind="stable")
    assert (np.diff(buckets[order]) >= 0).all()


POOLS = {
    "finite": FINITE[np.abs(FINITE) < 1e307],
    "small integers": np.arange(-3.0, 4.0),
    "integers": np.array([2.0**31, 2.0**31 - 1, -(2.0**31), 2.0**53, 2.0**53 - 1, 0.5, -1.0]),
    "one exponent": 1 + np.arange(100) * 2.0**-52,
    "subnormal": np.array([5e-324, -5e-324, 2.0**-1022, -0.0, 2.0**-1040]),
    "cancelling": np.array([1e308, -1e308, 1.0, 2.0**-1074]),
    "float32": UNIT_32,
}


@pytest.mark.parametrize("pool", POOLS)
def test_exact_sums_by_every_route_are_those_of_integers(pool: str) -> None:
    rng = np.random.default_rng(7)
    values = POOLS[pool]
    units = np.array([int(Fraction(value) * 2**1074) for value in values.tolist()], object)
    few, many = (0, 1, 8, 2_049, 16_385), (7, 9, 63, 2_047, 8_193, 16_383, 16_384, 40_000)
    for width, n in [(w, n) for w in (None, 1, 3) for n in few + many] + [(900, n) for n in few]:
        indexes = rng.integers(0, len(values), n)
        slots = None if width is None else rng.integers(0, width, n)
        column = ExactSumColumn(width or 1)
        column.add(values[indexes], slots)
        expected = np.zeros(width or 1, object)
        np.add.at(expected, np.zeros(n, int) if slots is None else slots, units[indexes])
        sums = [column.fraction(i) * 2**1074 for i in range(width or 1)]
        assert sums == expected.tolist(), (width, n)
