from __future__ import annotations

from itertools import product

import numpy as np

from streammetrics.kernels.class_cells import CHUNK, among_first, class_cells, largest
from tests.oracles import many_classes as brute


def test_cells_are_truth_times_classes_plus_prediction_of_whatever_width() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 200, (2, CHUNK + 5))
    expected = truth * 200 + predicted
    found = [
        cells.copy()
        for _, cells in class_cells(truth.astype(np.uint8), predicted.astype(np.int16), 200)
    ]
    assert len(found) == 2
    assert (np.concatenate(found) == expected).all()


def test_no_rows_have_no_cells() -> None:
    none = np.empty(0, np.int64)
    assert list(class_cells(none, none, 3)) == []
    assert among_first(none, np.empty((0, 3)), (1,)).shape == (0, 1)


def test_every_row_of_few_scores_is_ranked_by_score_and_then_by_class() -> None:
    scores = np.array(list(product((-np.inf, -0.0, 0.0, 1.0), repeat=3)))
    assert largest(scores).tolist() == [brute.predicted(row) for row in scores.tolist()]
    for truth in range(3):
        codes = among_first(np.full(len(scores), truth), scores, (1, 2, 3))
        for row, found in zip(scores.tolist(), codes.tolist(), strict=True):
            for k, code in zip((1, 2, 3), found, strict=True):
                hit, tied = brute.among_first(truth, row, k), brute.tied_at(truth, row, k)
                assert code == hit + 2 * tied, (truth, row, k)


def test_wide_rows_are_ranked_in_pieces() -> None:
    scores = np.random.default_rng(1).random((50, CHUNK // 10))
    truth = np.arange(50)
    places = (scores > scores[truth, truth][:, None]).sum(axis=1)
    found = among_first(truth, scores, (100, 2000))
    assert (found == np.stack([places < 100, places < 2000], axis=1)).all()
