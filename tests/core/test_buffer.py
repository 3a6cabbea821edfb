"""The buffer of small batches: what takes its fast path is what `check` would have taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    Panel,
    Ratio,
    Regression,
    Units,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch, Column
from streammetrics.core.buffer import (
    BUFFER_BATCHES,
    BUFFER_LISTS,
    BUFFER_ROWS,
    NARROW,
    SMALL,
    Buffer,
    Placed,
    Validate,
)
from streammetrics.core.rows import Ragged
from streammetrics.core.validators import VALIDATORS, Validator

LABELS = np.array([0, 1, 1], np.uint8)
SCORES = np.array([0.25, 0.5, 1.0], np.float32)
CLEAN: dict[str, Validate] = {
    "labels": VALIDATORS[Validator.BINARY],
    "scores": VALIDATORS[Validator.UNIT],
}


def pair(labels: Column, scores: Column | None = None, weights: Column | None = None) -> Batch:
    """A batch of these columns."""
    columns = {"labels": labels, "scores": scores, "weights": weights}
    n = len(labels)  # type: ignore[arg-type]
    return Batch(n, {name: c for name, c in columns.items() if c is not None})


def test_it_is_full_after_rows_or_batches_enough() -> None:
    many = np.zeros(BUFFER_ROWS // 8, np.uint8), np.zeros(BUFFER_ROWS // 8, np.float32)
    few = LABELS[:1], SCORES[:1]
    for scores in (Validator.UNIT, Validator.NUMBERS):
        validators = CLEAN | {"scores": VALIDATORS[scores]}
        rows, batches = Buffer(), Buffer()
        for buffer, columns, n in ((rows, many, 8), (batches, few, BUFFER_BATCHES)):
            assert buffer.put(pair(*columns), validators) is Placed.PENDING
            for _ in range(n - 1):
                assert buffer.append(*columns)
            assert not buffer.append(*columns)
            assert buffer.put(pair(*columns), {}) is Placed.FULL
        assert rows.n == BUFFER_ROWS
        assert batches.nbytes == 5 * BUFFER_BATCHES
        assert batches.take_all().n == BUFFER_BATCHES
        assert (batches.n, batches.total, batches.nbytes) == (0, 0, 0)


def test_batches_are_buffered_that_are_small_or_narrow() -> None:
    for n, buffered in ((SMALL - 1, True), (SMALL, True), (NARROW - 1, True), (NARROW, False)):
        metric = BinaryConfusion()
        metric.update(np.zeros(n, np.uint8), np.zeros(n, np.float32))
        assert (metric._buffer.n == n) is buffered
    for width, placed in ((63, Placed.PENDING), (64, Placed.TOO_LARGE)):
        plain, wide = np.zeros(SMALL, np.uint8), np.zeros((SMALL, width), np.uint8)
        assert Buffer().put(pair(plain, wide), {}) is placed


def test_rows_that_are_wide_are_not_small_however_few() -> None:
    n, width = 100, BUFFER_ROWS // 100
    plain = np.zeros(n, np.uint8)
    for extra, placed in ((0, Placed.PENDING), (1, Placed.TOO_LARGE)):
        wide = pair(plain, np.zeros((n, width + extra), np.uint8))
        assert Buffer().put(wide, {}) is placed
    buffer, wide = Buffer(), pair(plain, np.zeros((n, width // 2), np.uint8))
    assert [buffer.put(wide, {}) for _ in range(3)] == [*[Placed.PENDING] * 2, Placed.FULL]


def test_rows_that_may_be_wide_fill_the_room_sooner() -> None:
    n = BUFFER_LISTS // 4
    wide = pair(Ragged(np.zeros(n), np.arange(n + 1)))
    thin = pair(np.zeros(n, np.uint8))
    for batch, batches in ((wide, 4), (thin, 8)):
        buffer = Buffer()
        placed = [buffer.put(batch, {}) for _ in range(batches + 1)]
        assert placed == [*[Placed.PENDING] * batches, Placed.FULL]


# -- the fast path, whatever types columns have ----------------------------------------------------
METRICS = [BinaryConfusion, Calibration, ExactAUC, HistogramAUC]


VALIDATING: list[Accumulator] = [
    *(kind() for kind in METRICS),
    GroupedAUC(),
    GroupedAUC(grid="equal"),
    Ratio(),
    Regression(),
    Units(),
]


def good(metric: Accumulator, n: int) -> dict[str, Any]:
    """Columns of n rows that the metric takes; those that it need not have, too."""
    kinds = {Validator.INTEGERS: "i8", Validator.BINARY: "u1", Validator.UNIT: "f4"}
    return {
        name: (np.arange(n) % 2).astype(kinds.get(validator, "f8"))
        for name, validator in metric._validators.items()
    }


def test_a_batch_like_the_pending_one_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for metric in VALIDATING:
        state, expected = metric.empty(), metric.empty()
        for n in (3, 2, 200):
            expected.update(**good(metric, n))
        for n in (3, 2):
            state.update(**good(metric, n))
        rows = good(metric, 200)
        with monkeypatch.context() as patch:
            patch.setattr(type(metric), "check", None)
            state.update(**rows)
        assert state == expected


def test_nor_is_one_like_that_which_came_after_rows_of_another_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for metric in (HistogramAUC(), Ratio(), Regression()):
        state = metric.empty()
        for name, column in (columns := good(metric, 3)).items():
            columns[name] = column.astype("f4" if column.dtype == "f8" else "f8")
        state.update(**columns)
        for n in (1, 3):
            state.update(**good(metric, n))
        assert state._buffer.n == 4
        rows = good(metric, 4)
        with monkeypatch.context() as patch:
            patch.setattr(type(metric), "check", None)
            state.update(**rows)
        assert state._buffer.n == 8


def test_rows_with_weights_never_go_in_as_rows_without() -> None:
    for metric in [candidate for candidate in VALIDATING if "weights" in candidate.arguments()]:
        state, unweighted = metric.empty(), metric.empty()
        for weights in (None, None, np.full(3, 2)):
            state.update(**good(metric, 3), weights=weights)
            unweighted.update(**good(metric, 3))
        assert state != unweighted
        for _ in range(2):
            state.update(**good(metric, 3))
        with pytest.raises(InputError, match="weights"):
            state.update(**good(metric, 3), weights=[1, -1, 1])


def test_columns_that_are_there_only_now_and_then_and_other_types_lose_nothing() -> None:
    quick, slow = Ratio(), Ratio()
    tops, bottoms = np.array([0.5, 2, 0]), np.array([1.0, 2, 4])
    for _ in range(2):
        for types in ("f8", "i8", "u1", "f4", "i4", "?"):
            for row in ((tops,), (tops, bottoms), (tops, bottoms), (tops,), (tops,)):
                columns = [column.astype(types) for column in row]
                quick.update(*columns)
                slow.update(*(column.tolist() for column in columns))
    assert quick == slow
    assert quick.compute().rows == 180


def test_a_column_too_few_or_too_many_joins_no_rows() -> None:
    number, column = VALIDATORS[Validator.NUMBERS], np.ones(2)
    validators: dict[str, Validate] = dict.fromkeys("abc", number)
    for kinds in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)):
        for flags in ((1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0), (0, 1, 1)):
            buffer = Buffer()
            names = [name for name, kind in zip("abc", kinds, strict=True) if kind]
            batch = Batch(2, dict.fromkeys(names, column))
            assert buffer.put(batch, validators) is Placed.PENDING
            took = buffer.append(*(column if flag else None for flag in flags))
            assert took is (flags == kinds)
            assert buffer.n == (4 if took else 2)
            assert buffer.nbytes == 8 * buffer.n * sum(kinds)
    buffer = Buffer()
    batch = Batch(2, dict.fromkeys("abcd", column))
    assert buffer.put(batch, validators | {"d": number}) is Placed.PENDING
    assert not buffer.append(column, column, column)


def test_rows_that_several_metrics_of_a_panel_read_are_pending_once() -> None:
    metrics = {kind.__name__: kind() for kind in METRICS}
    panel = Panel(metrics | {"ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
    before = panel.nbytes
    panel.update(labels=np.arange(100, dtype=np.uint8) % 2, scores=np.ones(100, np.float32))
    assert panel.nbytes - before == 100 + 400  # the ratio takes labels as they are
