"""Items that are twice in a list: pairs that are compared, against sets of Python."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.ranking.repeated_items import are_different, repeated


@pytest.mark.parametrize("n_items", [24, 1 << 15, (1 << 15) + 1, 1 << 31, (1 << 31) + 1, 1 << 40])
@pytest.mark.parametrize("length", [1, 2, 3, 10, 20, 21])
def test_an_item_is_repeated_within_a_list_and_not_in_the_next_one(
    n_items: int, length: int
) -> None:
    rng = np.random.default_rng(length)
    n = 33_000 // length
    pool = np.unique([*range(24), n_items - 1, n_items // 2, max(23, n_items - (1 << 15))])[-24:]
    lists = pool[np.argsort(rng.random((n, len(pool))), axis=1)[:, :length]]
    assert not repeated(lists, n_items).any()  # though each item is in many lists
    if length > 1:
        for i in (0, n // 2, n - 1):
            bad = lists.copy()
            first, second = rng.choice(length, 2, replace=False)
            bad[i, first] = bad[i, second]
            assert np.flatnonzero(repeated(bad, n_items)).tolist() == [i]


@pytest.mark.parametrize("n_items", [24, 1 << 15, (1 << 15) + 1, 1 << 31, (1 << 31) + 1, 1 << 40])
@pytest.mark.parametrize("length", [1, 2, 10, 20])
def test_lists_are_different_if_all_items_are_in_range_and_once_in_a_list(
    n_items: int, length: int
) -> None:
    rng = np.random.default_rng(length)
    n = 33_000 // length
    lists = np.argsort(rng.random((n, 24)), axis=1)[:, :length]
    lists[-1] = np.arange(n_items - length, n_items)
    assert are_different(lists, n_items)
    for i in (0, n // 2, n - 1):
        # The last is an item of the catalog in the bits of a narrow word.
        for item in (-1, n_items, -(1 << 63), (1 << 63) - 1, n_items + (1 << 16)):
            bad = lists.copy()
            bad[i, rng.integers(length)] = item
            assert not are_different(bad, n_items)
        if length > 1:
            bad = lists.copy()
            bad[i, 0] = bad[i, length - 1]
            assert not are_different(bad, n_items)
    assert not are_different(lists[:100], n_items)  # too few to be read
