"""The buffer of small batches: what takes its fast path is what `check` would have taken."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import BinaryConfusion, HistogramAUC
from streammetrics.core.batch import Batch, Column
from streammetrics.core.buffer import (
    BUFFER_BATCHES,
    BUFFER_LISTS,
    BUFFER_ROWS,
    NARROW,
    SMALL,
    Buffer,
    Validate,
)
from streammetrics.core.inputs import VALIDATORS, Validator
from streammetrics.core.rows import Ragged

LABELS = np.array([0, 1, 1], np.uint8)
SCORES = np.array([0.25, 0.5, 1.0], np.float32)
CLEAN: dict[str, Validate] = {
    "labels": VALIDATORS[Validator.BINARY],
    "scores": VALIDATORS[Validator.UNIT],
}
Fast = type[HistogramAUC] | type[BinaryConfusion]


def pair(labels: Column, scores: Column | None = None, more: Column | None = None) -> Batch:
    """A batch of these columns."""
    given = {"labels": labels, "scores": scores, "more": more}
    n = len(labels)  # type: ignore[arg-type]
    return Batch(n, {name: c for name, c in given.items() if c is not None})


@pytest.mark.parametrize("validators", [CLEAN, CLEAN | {"scores": VALIDATORS[Validator.NUMBERS]}])
def test_it_is_full_after_rows_or_batches_enough(
    validators: dict[str, Validate],
) -> None:
    rows, batches = Buffer(), Buffer()
    many = np.zeros(BUFFER_ROWS // 8, np.uint8), np.zeros(BUFFER_ROWS // 8, np.float32)
    few = LABELS[:1], SCORES[:1]
    for buffer, columns, n in ((rows, many, 8), (batches, few, BUFFER_BATCHES)):
        assert buffer.put(pair(*columns), validators)
        for _ in range(n - 1):
            assert buffer.append(*columns)
        assert not buffer.append(*columns)
        assert not buffer.put(pair(*columns), {})
    assert rows.n == BUFFER_ROWS
    assert batches.nbytes == 5 * BUFFER_BATCHES
    assert batches.take_all().n == BUFFER_BATCHES
    assert (batches.n, batches.total, batches.nbytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("n", "waits"), [(SMALL - 1, True), (SMALL, True), (NARROW - 1, True), (NARROW, False)]
)
def test_batches_wait_that_are_small_or_narrow(n: int, waits: bool) -> None:
    metric = BinaryConfusion()
    metric.update(np.zeros(n, np.uint8), np.zeros(n, np.float32))
    assert (metric._buffer.n == n) is waits


@pytest.mark.parametrize(("width", "few"), [(31, True), (32, False)])
def test_rows_that_are_not_few_are_narrow_up_to_so_many_bytes(width: int, few: bool) -> None:
    plain, wide = np.zeros(SMALL, np.uint8), np.zeros((SMALL, width), np.uint8)
    assert Buffer().takes(pair(plain, wide)) is few


def test_rows_that_are_wide_are_not_small_however_few() -> None:
    n, width = 100, BUFFER_ROWS // 100
    plain = np.zeros(n, np.uint8)
    assert Buffer().takes(pair(plain, np.zeros((n, width), np.uint8)))
    assert not Buffer().takes(pair(plain, np.zeros((n, width + 1), np.uint8)))
    buffer, wide = Buffer(), pair(plain, np.zeros((n, width // 2), np.uint8))
    assert [buffer.put(wide, {}) for _ in range(3)] == [True, True, False]


def test_rows_that_may_be_wide_fill_the_room_sooner() -> None:
    half = BUFFER_LISTS // 2
    wide = pair(Ragged(np.zeros(half), np.arange(half + 1)))
    thin = pair(np.zeros(half, np.uint8))
    for batch, batches in ((wide, 2), (thin, 4)):
        buffer = Buffer()
        assert [buffer.put(batch, {}) for _ in range(batches + 1)] == [True] * batches + [False]
