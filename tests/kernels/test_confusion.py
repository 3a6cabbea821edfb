"""Counts at a threshold, compared exactly in either precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.kernels.confusion import CHUNK, binary_cells, binary_counts, threshold_as
from tests.oracles import binary


def test_every_small_sample_is_counted_as_row_by_row() -> None:
    for rows in binary.small_samples((0.25, 0.5, 0.75), 5):
        labels = np.array([y for y, _ in rows], np.uint8)
        scores = np.array([s for _, s in rows], np.float64)
        for threshold in (0.0, 0.5, 0.6, 1.0):
            expected = binary.confusion(rows, threshold)
            assert tuple(binary_counts(labels, scores, threshold)) == expected
            cells = binary_cells(labels, scores, threshold)
            assert tuple(np.bincount(cells, minlength=4)) == expected


@pytest.mark.parametrize("threshold", [0.1, 0.3, -0.7, 1e-46, 1e300, -1e300, math.inf, -math.inf])
def test_float32_scores_are_compared_at_their_exact_value(threshold: float) -> None:
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
    scores = np.array([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)], np.float32)
    expected = scores.astype(np.float64) >= threshold
    cells = binary_cells(np.zeros(3, np.uint8), scores, threshold)
    assert np.array_equal(cells, expected)
    counts = binary_counts(np.zeros(3, np.uint8), scores, threshold)
    assert counts[1] == expected.sum()


def test_the_threshold_of_a_precision_is_its_least_number_that_is_not_below() -> None:
    limit = threshold_as(np.dtype(np.float32), 0.1)
    assert float(limit) >= 0.1 > float(np.nextafter(limit, np.float32(0)))
    assert threshold_as(np.dtype(np.float64), 0.1) == 0.1
    assert threshold_as(np.dtype(np.float32), 1e300) == np.inf


def test_long_batches_are_counted_over_all_chunks() -> None:
    rng = np.random.default_rng(3)
    n = 2 * CHUNK + 9
    labels, scores = rng.integers(0, 2, n).astype(np.uint8), rng.random(n)
    expected = np.bincount(binary_cells(labels, scores, 0.3), minlength=4)
    assert np.array_equal(binary_counts(labels, scores, 0.3), expected)
