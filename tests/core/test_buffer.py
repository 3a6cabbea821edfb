"""The buffer of small batches: what takes its fast path is what `check` would have taken."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import BinaryConfusion, HistogramAUC, StateError
from streammetrics.core.accumulator import MAX_TOTAL_COUNT
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


def test_a_batch_that_waits_is_a_copy() -> None:
    metric, labels, scores = HistogramAUC(), LABELS.copy(), SCORES.copy()
    metric.update(labels, scores)
    labels[:], scores[:] = 0, 0
    expected = HistogramAUC()
    expected.update(LABELS, SCORES)
    assert metric == expected


def test_every_clean_row_counts_toward_the_limit_of_rows() -> None:
    metric = BinaryConfusion()
    metric.update(LABELS, SCORES)
    metric.update(LABELS[:2], SCORES[:2])
    assert metric.compute().rows == metric._total_count == 5


@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_rows_do_not_wait_once_there_are_enough(kind: Fast) -> None:
    metric = kind()
    for _ in range(BUFFER_BATCHES + 1):
        metric.update(LABELS, SCORES)
    assert metric._buffer.batches == 1


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


@pytest.mark.parametrize("validators", [CLEAN, CLEAN | {"scores": VALIDATORS[Validator.NUMBERS]}])
def test_what_would_not_fit_waits_for_the_next_pass(validators: dict[str, Validate]) -> None:
    buffer, n = Buffer(), BUFFER_ROWS // 2 + 1
    columns = np.zeros(n, np.uint8), np.zeros(n, np.float32)
    assert buffer.put(pair(*columns), validators)
    assert not buffer.append(*columns)
    assert buffer.append(*(column[:-2] for column in columns))
    assert buffer.n == BUFFER_ROWS


@pytest.mark.parametrize(
    "columns",
    [
        (LABELS.astype(np.int8), SCORES),
        (LABELS, SCORES.astype(np.float16)),
        (LABELS, SCORES, SCORES),
        (LABELS, None),
        (np.stack([LABELS, LABELS], axis=1), np.stack([SCORES, SCORES], axis=1)),
    ],
)
def test_clean_rows_join_only_rows_of_their_kind(columns: tuple[Column | None, ...]) -> None:
    buffer = Buffer()
    assert buffer.put(pair(*columns), CLEAN)  # type: ignore[arg-type]
    assert not buffer.append(LABELS, SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("large", [10, BUFFER_ROWS])
def test_near_the_limit_of_mass_no_row_comes_in_unseen(large: int) -> None:
    metric = BinaryConfusion()
    metric.update(LABELS, SCORES)
    metric.update(
        np.zeros(large, np.uint8), np.zeros(large), weights=np.full(large, 2**63 // large - 1)
    )
    while metric._total_count + metric._buffer.total < MAX_TOTAL_COUNT:
        metric.update(LABELS[:1], SCORES[:1])
        assert not metric._buffer.append(LABELS[:1], SCORES[:1])
    with pytest.raises(StateError):
        metric.update(LABELS[:1], SCORES[:1])
