from __future__ import annotations

import numpy as np

from streammetrics.kernels.class_cells import CHUNK
from streammetrics.kernels.one_vs_rest import scored_cells


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
    found = np.concatenate([labels for _, _, labels, _ in pieces])
    assert (found == flags.reshape(-1)).all()
