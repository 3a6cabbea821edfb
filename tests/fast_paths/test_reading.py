"""Reading: the results of many states at once equal those of each state alone, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    Panel,
    PerKey,
    RankingMetrics,
    StateError,
    UserGroups,
    Windows,
)
from streammetrics.authoring import Batch, Inputs, Mean, Real, Unit, Weights
from streammetrics.core.stacked import digests
from streammetrics.present.value_rows import rows_of
from streammetrics.testing.laws import exact_text
from tests.fast_paths.drawn import FINITE, Columns, Draw, simple
from tests.fast_paths.drawn import METRICS as ROWS


class Error(Mean, schema="error-of-test/1"):
    """A mean whose squares may be beyond the floats."""

    weight_unit: Unit = "1/4"
    inputs = Inputs(labels=Real(), weights=Weights())

    def value(self, batch: Batch) -> np.ndarray:
        return batch.labels


def _lists(n: int, rng: np.random.Generator) -> Columns:
    labels = rng.integers(0, 4, (n, 5)) * (rng.random((n, 1)) < 0.7)
    return {"labels": labels, "scores": rng.integers(0, 4, (n, 5)) / 4}


METRICS: Mapping[str, tuple[Accumulator, Draw]] = {
    **ROWS,
    "Mean": (
        Error(),
        lambda n, rng: {"labels": rng.choice(FINITE, n), "weights": rng.integers(0, 9, n) / 4},
    ),
    "RankingMetrics": (
        RankingMetrics(["NDCG@3", "MRR", "HR@2", "PooledHR@2"], complete_lists=True),
        _lists,
    ),
    "RankingMetrics zero": (RankingMetrics(["NDCG@3", "MRR"], empty="zero"), _lists),
}
_ROWS = 400
# Those whose state does not grow with its rows.
COUNTS = [name for name in METRICS if not name.startswith(("Exact", "Grouped"))]


def shown(result: object) -> list[str]:
    """A result with all bits of its fields, of its figures and of their intervals."""
    return [exact_text(result), *(repr(row) for row in rows_of(result))]


def groups_of(keys: np.ndarray, columns: Columns) -> Iterator[tuple[int, Columns]]:
    for key in np.unique(keys).tolist():
        yield key, {name: column[keys == key] for name, column in columns.items()}


def doubled(state: Accumulator) -> None:
    """Add a state to itself until its counts are near int64."""
    for _ in range(64):
        try:
            state.merge(state.copy())
        except StateError:
            return


@pytest.mark.parametrize("name", list(METRICS))
def test_many_states_read_together_equal_each_read_alone(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(5)
    columns = draw(_ROWS, rng)
    # Keys of one row, and so of one class, and of many; those past the limit share a state.
    keys = np.minimum(rng.pareto(0.5, _ROWS), 40).astype(np.int64)
    read = PerKey(metric, max_keys=25)
    read.update(keys, **columns)
    results = read.compute()
    states = {key: simple(metric, rows, 50) for key, rows in groups_of(keys, columns)}
    read_keys = [key for key in states if key in results]
    assert len(read_keys) == len(results) == 25
    for key in read_keys:
        assert shown(results[key]) == shown(states[key].compute()), key
    assert read.digests() == {key: states[key].digest() for key in read_keys}
    unread = np.isin(keys, read_keys, invert=True)
    overflow = simple(metric, {column: c[unread] for column, c in columns.items()}, 50)
    assert shown(results.overflow) == shown(overflow.compute())


@pytest.mark.parametrize("name", list(COUNTS))
def test_a_state_with_counts_near_int64_is_read_among_small_and_empty_ones(name: str) -> None:
    metric, draw = METRICS[name]
    columns = draw(_ROWS, np.random.default_rng(6))
    huge = metric.empty()
    huge.update(**columns)
    doubled(huge)
    small = simple(metric, {column: c[:9] for column, c in columns.items()}, 50)
    together = metric._empty(4)
    for slot, state in ((1, huge), (3, small)):
        together._merge_slots(state, np.array([slot], np.intp))
    slots, states = np.array([3, 0, 1, 1], np.intp), (small, metric, huge, huge)
    for result, state in zip(together._compute_all(slots), states, strict=True):
        assert shown(result) == shown(state.compute())
    assert digests(together, slots) == [state.digest() for state in states]


@pytest.mark.parametrize("name", ["Ratio", "HistogramAUC", "Calibration", "Regression"])
def test_a_result_is_copied_and_pickled_before_and_after_its_fields_are_read(name: str) -> None:
    metric, draw = METRICS[name]
    read = PerKey(metric)
    read.update(np.arange(_ROWS) % 7, **draw(_ROWS, np.random.default_rng(8)))
    expected = shown(read.compute()[3])
    for before in (True, False):
        result = read.compute()[3]
        if not before:
            assert shown(result) == expected
        data = pickle.dumps(result)
        assert len(data) < 10_000 and {*dir(result)} >= {*vars(type(result)).get("_deferred", ())}
        for duplicate in (pickle.loads(data), copy(result), replace(result)):
            assert shown(duplicate) == expected and duplicate == result


def test_windows_of_keys_of_a_panel_in_groups_of_users_equal_each_state_alone() -> None:
    names = ("HistogramAUC", "BinaryConfusion", "ExactAUC")
    panel = Panel({name: METRICS[name][0] for name in names})
    rng = np.random.default_rng(7)
    columns = {"labels": rng.integers(0, 2, _ROWS), "scores": rng.random(_ROWS)}
    times, keys, users = (
        rng.integers(0, 5_000, _ROWS),
        rng.integers(0, 3, _ROWS),
        rng.integers(0, 40, _ROWS),
    )
    read = Windows(PerKey(UserGroups(panel, buckets=4)), size_s=2, slide_s=1)
    read.update(times, keys=keys, groups=users, **columns)
    windows = read.compute()
    before = [(*span, exact_text(results)) for span, results in windows.items()]
    assert len(windows) == 6
    for (start, end), by_key in [*windows.items(), ((-10_000, 10_000), windows.total)]:
        assert len(by_key) == 3
        for key, result in by_key.items():
            mask = (start <= times) & (times < end) & (keys == key)
            state = UserGroups(panel, buckets=4)
            state.update(users[mask], **{name: c[mask] for name, c in columns.items()})
            render = shown if end == 10_000 and key == 1 else exact_text
            assert render(result) == render(state.compute())
    read.update(times, keys=keys, groups=users, **columns)
    assert [(*span, exact_text(results)) for span, results in windows.items()] == before
