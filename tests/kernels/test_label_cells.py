from __future__ import annotations

import numpy as np

from streammetrics.kernels.class_cells import CHUNK
from streammetrics.kernels.label_cells import label_cells, label_codes


def test_codes_are_truth_and_whether_the_score_is_at_least_the_threshold() -> None:
    truth = np.array([[0, 0, 1, 1]], np.uint8)
    scores = np.array([[0.1, 0.3, 0.1, 0.3]], np.float32)
    assert label_codes(truth, scores, 0.3).tolist() == [[0, 1, 2, 3]]  # float32 0.3 is above 0.3
    below = np.array([[0.7, 0.7, 0.8, 0.6]], np.float32)  # float32 0.7 is below 0.7
    assert label_codes(truth, below, 0.7).tolist() == [[0, 0, 3, 2]]
    assert truth.tolist() == [[0, 0, 1, 1]]


def test_cells_of_labels_and_sizes_of_rows_are_those_of_each_row() -> None:
    codes = np.random.default_rng(0).integers(0, 4, (CHUNK // 2, 3), np.uint8)
    at = 0
    for piece, cells, sizes in label_cells(codes):
        some = codes[piece]
        assert (cells.reshape(-1, 3) == some + np.array([0, 4, 8])).all()
        true, predicted = (some >= 2).sum(axis=1), (some % 2 == 1).sum(axis=1)
        both = (some == 3).sum(axis=1)
        assert (sizes == 16 * true + 4 * predicted + both).all()
        at += len(some)
    assert at == len(codes)
