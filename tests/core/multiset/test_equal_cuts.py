"""Cuts of several sorted arrays, by what they must never do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from streammetrics.core.multiset.sorted_run import equal_cuts

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("values", [1, 5, 200, 10**6])
@pytest.mark.parametrize("size", [1, 10, 64, 10_000])
def test_ranges_follow_each_other_and_hold_all(values: int, size: int) -> None:
    for lengths in ([0, 7], [1], [300, 0, 2, 90], [64] * 30):
        columns = [np.sort(RNG.integers(0, values, n).astype(np.uint32)) for n in lengths]
        cuts = equal_cuts(columns, size)
        assert cuts[0] == [0] * len(columns) and cuts[-1] == lengths
        largest = -1
        for starts, ends in pairwise(cuts):
            parts = [c[a:b] for c, a, b in zip(columns, starts, ends, strict=True)]
            held = np.concatenate(parts)
            assert all(a <= b for a, b in zip(starts, ends, strict=True))
            if len(held):
                assert held.min() > largest, "equal values stand in one range"
                largest = int(held.max())


def test_ranges_are_about_as_large_as_asked() -> None:
    columns = [np.sort(RNG.integers(0, 1 << 40, n).astype(np.uint64)) for n in (9_000, 50, 21_000)]
    sizes = [sum(b) - sum(a) for a, b in pairwise(equal_cuts(columns, 1_000))]
    assert max(sizes) <= 2_000 and len(sizes) < 45
