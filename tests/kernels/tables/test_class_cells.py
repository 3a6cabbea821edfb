"""Rows of two classes, of many and of many labels as the cells of tables."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from streammetrics.kernels.tables.class_cells import (
    BINARY_CHUNK,
    CHUNK,
    binary_cells,
    binary_counts,
    class_cells,
    first_positions,
    label_cells,
    label_codes,
    label_columns,
    label_counts,
    largest,
    scored_cells,
)
from tests.oracles import binary
from tests.oracles import many_classes as brute


def test_every_small_sample_is_counted_as_row_by_row() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 5):
        labels = np.array([y for y, _ in rows], np.uint8)
        scores = np.array([s for _, s in rows], np.float64)
        for threshold in (0.0, 0.5, 0.6, 1.0):
            expected = binary.confusion(rows, threshold)
            assert tuple(binary_counts(labels, scores, threshold)) == expected
            cells = binary_cells(labels, scores, threshold)
            assert tuple(np.bincount(cells, minlength=4)) == expected


def test_float32_scores_are_compared_at_their_exact_value() -> None:
    for threshold in (0.1, 0.3, -0.7, 1e-46, 1e300, -math.inf):
        with np.errstate(over="ignore"):
            near = np.float32(threshold)
        values = near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)
        scores, labels = np.array(values, np.float32), np.zeros(3, np.uint8)
        expected = scores.astype(np.float64) >= threshold
        assert np.array_equal(binary_cells(labels, scores, threshold), expected), threshold
        assert binary_counts(labels, scores, threshold)[1] == expected.sum(), threshold


def test_long_batches_are_counted_over_all_chunks() -> None:
    rng = np.random.default_rng(3)
    n = 2 * BINARY_CHUNK + 9
    labels, scores = rng.integers(0, 2, n).astype(np.uint8), rng.random(n)
    expected = np.bincount(binary_cells(labels, scores, 0.3), minlength=4)
    assert np.array_equal(binary_counts(labels, scores, 0.3), expected)


def test_cells_are_truth_times_classes_plus_prediction_of_whatever_width() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 200, (2, CHUNK + 5))
    expected = truth * 200 + predicted
    pieces = [
        cells.copy()
        for _, cells in class_cells(truth.astype(np.uint8), predicted.astype(np.int16), 200)
    ]
    assert len(pieces) == 2
    assert (np.concatenate(pieces) == expected).all()


def test_no_rows_have_no_cells() -> None:
    none = np.empty(0, np.int64)
    assert list(class_cells(none, none, 3)) == []
    assert first_positions(none, np.empty((0, 3)), (1,)).shape == (0, 1)


def test_every_row_of_few_scores_is_ranked_by_score_and_then_by_class() -> None:
    scores = np.array(list(product((-np.inf, -0.0, 0.0, 1.0), repeat=3)))
    assert largest(scores).tolist() == [brute.predicted(row) for row in scores.tolist()]
    for truth in range(3):
        codes = first_positions(np.full(len(scores), truth), scores, (1, 2, 3))
        for row, row_codes in zip(scores.tolist(), codes.tolist(), strict=True):
            for k, code in zip((1, 2, 3), row_codes, strict=True):
                hit, tied = brute.first_positions(truth, row, k), brute.tied_at(truth, row, k)
                assert code == hit + 2 * tied, (truth, row, k)


def test_codes_are_truth_and_whether_the_score_is_at_least_the_threshold() -> None:
    truth = np.array([[0, 0, 1, 1]], np.uint8)
    scores = np.array([[0.1, 0.3, 0.1, 0.3]], np.float32)
    assert label_codes(truth, scores, 0.3).tolist() == [[0, 1, 2, 3]]  # float32 0.3 is above 0.3
    below = np.array([[0.7, 0.7, 0.8, 0.6]], np.float32)  # float32 0.7 is below 0.7
    assert label_codes(truth, below, 0.7).tolist() == [[0, 0, 3, 2]]
    assert truth.tolist() == [[0, 0, 1, 1]]


def test_cells_of_labels_and_sizes_of_rows_are_those_of_each_row() -> None:
    codes = np.random.default_rng(0).integers(0, 4, (CHUNK, 7), np.uint8)
    total = 0
    for piece, columns, sizes in label_columns(codes):
        rows = codes[piece]
        cells = rows.T + np.arange(0, 28, 4)[:, None]
        assert (label_cells(columns) == cells.reshape(-1)).all()
        assert (label_counts(columns) == np.bincount(cells.reshape(-1), minlength=28)).all()
        true, predicted = (rows >= 2).sum(axis=1), (rows % 2 == 1).sum(axis=1)
        hits = (rows == 3).sum(axis=1)
        assert (sizes == 64 * true + 8 * predicted + hits).all()
        total += len(rows)
    assert total == len(codes)


def test_each_row_has_a_cell_for_each_class() -> None:
    [(piece, classes, labels, scores)] = scored_cells(
        np.array([1, 0]), np.array([[1.0, 2], [3, 4]])
    )
    assert (piece.start, classes.tolist()) == (0, [0, 1, 0, 1])
    assert (labels.tolist(), scores.tolist()) == ([0, 1, 1, 0], [1, 2, 3, 4])


def test_flags_of_each_class_are_taken_as_they_are_in_pieces() -> None:
    flags = np.random.default_rng(0).integers(0, 2, (CHUNK, 3), np.uint8)
    pieces = list(scored_cells(flags, flags.astype(np.float32)))
    assert len(pieces) == 4
    result = np.concatenate([labels for _, _, labels, _ in pieces])
    assert (result == flags.reshape(-1)).all()


def test_wide_rows_are_ranked_in_pieces() -> None:
    scores = np.random.default_rng(1).random((50, CHUNK // 10))
    truth = np.arange(50)
    positions = (scores > scores[truth, truth][:, None]).sum(axis=1)
    codes = first_positions(truth, scores, (100, 2000))
    assert (codes == np.stack([positions < 100, positions < 2000], axis=1)).all()
