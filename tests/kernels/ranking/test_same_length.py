"""Lists of equal length side by side: every list once, whatever the lengths and blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from streammetrics.kernels.ranking.item_similarity import by_length


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("lengths", [(3,), (0, 3), (0, 1, 2, 9), (0,)])
def test_every_list_that_is_not_empty_comes_once(lengths: tuple[int, ...], block: int) -> None:
    rng = np.random.default_rng(len(lengths))
    sizes = rng.choice(lengths, 50)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.integers(0, 1000, offsets[-1])
    found = {}
    for rows, items in by_length(values, offsets, block):
        assert len(rows) == len(items)
        assert items.size <= block or len(items) == 1
        assert len(items[0]) > 0
        for row, some in zip(rows.tolist(), items.tolist(), strict=True):
            assert row not in found
            found[row] = some
    lists = [values[a:b].tolist() for a, b in pairwise(offsets)]
    assert found == {i: some for i, some in enumerate(lists) if some}


def test_no_lists_are_no_blocks() -> None:
    assert not list(by_length(np.empty(0, np.int64), np.zeros(1, np.int64)))
