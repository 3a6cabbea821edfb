"""The waiting room: what goes in the quick way is what would have gone in the usual way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import BinaryConfusion, HistogramAUC, InputError, StateError
from streammetrics.core.accumulator import MAX_MASS
from streammetrics.core.looks import Look
from streammetrics.core.rows import Column, Ragged, Rows
from streammetrics.core.stage import (
    NARROW,
    SMALL,
    STAGE_BATCHES,
    STAGE_LISTS,
    STAGE_ROWS,
    Stage,
    narrow,
)

LABELS = np.array([0, 1, 1], np.uint8)
SCORES = np.array([0.25, 0.5, 1.0], np.float32)
LOOKS = {"labels": Look.BINARY, "scores": Look.UNIT}
Fast = type[HistogramAUC] | type[BinaryConfusion]


def slowly(
    metric: HistogramAUC | BinaryConfusion, labels: NDArray[np.uint8], scores: NDArray[np.float32]
) -> None:
    """The same rows as lists, which no quick way takes."""
    metric.update(labels.tolist(), scores.tolist())


@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_clean_batches_are_counted_as_the_same_rows_in_lists_are(kind: Fast) -> None:
    quick, slow = kind(), kind()
    for n in (1, 2, 3):
        quick.update(LABELS[:n], SCORES[:n])
        slowly(slow, LABELS[:n], SCORES[:n])
    assert quick == slow
    assert quick.compute().rows == 6


@pytest.mark.parametrize("score", [1.5, -0.25, np.nan, np.inf, -np.inf, 1.0000001])
def test_a_score_that_is_no_probability_is_refused_and_changes_nothing(score: float) -> None:
    metric = HistogramAUC()
    metric.update(LABELS, SCORES)
    before = metric.digest()
    with pytest.raises(InputError, match=r"scores\[1\]"):
        metric.update(LABELS, np.array([0.5, score, 0.5], np.float32))
    assert metric.digest() == before


@pytest.mark.parametrize("label", [2, 128, 255])
@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_a_label_that_is_none_is_refused_and_changes_nothing(kind: Fast, label: int) -> None:
    metric = kind()
    metric.update(LABELS, SCORES)
    before = metric.digest()
    with pytest.raises(InputError, match=r"labels\[2\]"):
        metric.update(np.array([0, 1, label], np.uint8), SCORES)
    assert metric.digest() == before


@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_columns_of_other_lengths_or_shapes_are_refused_and_change_nothing(kind: Fast) -> None:
    metric = kind()
    before = metric.digest()
    for labels, scores in (
        (LABELS, SCORES[:2]),
        (LABELS[:2], SCORES),
        (LABELS[:0], SCORES),
        (LABELS.reshape(1, 3), SCORES.reshape(1, 3)),
    ):
        with pytest.raises(InputError):
            metric.update(labels, scores)
        assert metric.digest() == before


def test_minus_zero_goes_where_zero_goes() -> None:
    signed, plain = HistogramAUC(), HistogramAUC()
    signed.update(LABELS, np.array([-0.0, 0.5, 0.5], np.float32))
    plain.update(LABELS, np.array([0.0, 0.5, 0.5], np.float32))
    assert signed == plain


def test_a_score_outside_of_zero_and_one_goes_the_usual_way_where_it_is_allowed() -> None:
    metric = BinaryConfusion(threshold=2.0)
    metric.update(LABELS, np.array([-3.0, 1.5, 2.0], np.float32))
    assert (metric.compute().fn, metric.compute().tp, metric.compute().tn) == (1, 1, 1)


def test_another_positive_class_goes_the_usual_way() -> None:
    metric = BinaryConfusion(positive=0)
    metric.update(LABELS, SCORES)
    assert (metric.compute().fn, metric.compute().fp) == (1, 2)


@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_batches_of_other_dtypes_in_between_lose_nothing(kind: Fast) -> None:
    mixed, plain = kind(), kind()
    for _ in range(2):
        mixed.update(LABELS, SCORES)
        mixed.update(LABELS.astype(np.int64), SCORES)
        mixed.update(LABELS, SCORES.astype(np.float64))
        for _ in range(3):
            slowly(plain, LABELS, SCORES)
    assert mixed == plain


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
    assert metric.compute().rows == metric._mass == 5


@pytest.mark.parametrize("kind", [HistogramAUC, BinaryConfusion])
def test_rows_do_not_wait_once_there_are_enough(kind: Fast) -> None:
    metric = kind()
    for _ in range(STAGE_BATCHES + 1):
        metric.update(LABELS, SCORES)
    assert metric._stage.batches == 1


@pytest.mark.parametrize("looks", [LOOKS, LOOKS | {"scores": Look.NUMBERS}])
def test_the_room_is_full_after_rows_enough_or_batches_enough(looks: dict[str, Look]) -> None:
    rows, batches = Stage(), Stage()
    many = np.zeros(STAGE_ROWS // 8, np.uint8), np.zeros(STAGE_ROWS // 8, np.float32)
    few = LABELS[:1], SCORES[:1]
    for stage, columns, n in ((rows, many, 8), (batches, few, STAGE_BATCHES)):
        assert stage.take(Rows(len(columns[0]), columns), looks)
        for _ in range(n - 1):
            assert stage.take_looked(*columns)
        assert not stage.take_looked(*columns)
        assert not stage.take(Rows(len(columns[0]), columns))
    assert rows.n == STAGE_ROWS
    assert batches.nbytes == 5 * STAGE_BATCHES
    assert batches.empty().n == STAGE_BATCHES
    assert (batches.n, batches.mass, batches.nbytes) == (0, 0, 0)


@pytest.mark.parametrize(
    ("n", "waits"), [(SMALL - 1, True), (SMALL, True), (NARROW - 1, True), (NARROW, False)]
)
def test_batches_wait_that_are_small_or_narrow(n: int, waits: bool) -> None:
    metric = BinaryConfusion()
    metric.update(np.zeros(n, np.uint8), np.zeros(n, np.float32))
    assert (metric._stage.n == n) is waits


@pytest.mark.parametrize(("width", "few"), [(31, True), (32, False)])
def test_rows_that_are_not_few_are_narrow_up_to_so_many_bytes(width: int, few: bool) -> None:
    plain, wide = np.zeros(SMALL, np.uint8), np.zeros((SMALL, width), np.uint8)
    assert narrow(Rows(SMALL, (plain, wide, None))) is few


def test_rows_that_may_be_wide_fill_the_room_sooner() -> None:
    half = STAGE_LISTS // 2
    wide = Rows(half, (Ragged(np.zeros(half), np.arange(half + 1)),))
    thin = Rows(half, (np.zeros(half, np.uint8),))
    for rows, batches in ((wide, 2), (thin, 4)):
        stage = Stage()
        assert [stage.take(rows) for _ in range(batches + 1)] == [True] * batches + [False]


@pytest.mark.parametrize("looks", [LOOKS, LOOKS | {"scores": Look.NUMBERS}])
def test_what_would_not_fit_waits_for_the_next_pass(looks: dict[str, Look]) -> None:
    stage, n = Stage(), STAGE_ROWS // 2 + 1
    columns = np.zeros(n, np.uint8), np.zeros(n, np.float32)
    assert stage.take(Rows(n, columns), looks)
    assert not stage.take_looked(*columns)
    assert stage.take_looked(*(column[:-2] for column in columns))
    assert stage.n == STAGE_ROWS


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
def test_clean_rows_join_only_rows_of_their_kind(columns: tuple[Column, ...]) -> None:
    stage = Stage()
    assert stage.take(Rows(3, columns), LOOKS)
    assert not stage.take_looked(LABELS, SCORES)


@pytest.mark.slow
@pytest.mark.parametrize("large", [10, STAGE_ROWS])
def test_near_the_limit_of_mass_no_row_comes_in_unseen(large: int) -> None:
    metric = BinaryConfusion()
    metric.update(LABELS, SCORES)
    metric.update(
        np.zeros(large, np.uint8), np.zeros(large), weights=np.full(large, 2**63 // large - 1)
    )
    while metric._mass + metric._stage.mass < MAX_MASS:
        metric.update(LABELS[:1], SCORES[:1])
        assert not metric._stage.take_looked(LABELS[:1], SCORES[:1])
    with pytest.raises(StateError):
        metric.update(LABELS[:1], SCORES[:1])
