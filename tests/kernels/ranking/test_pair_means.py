"""Means over pairs: with twice the digits, and the same bits for any order, block and company."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.item_similarity import pair_means

RANDOM = Random(5)
TABLE = np.array([[RANDOM.gauss(0, 1) for _ in range(30)] for _ in range(30)])


def entry(
    items: NDArray[np.int64], left: NDArray[np.intp], right: NDArray[np.intp]
) -> NDArray[np.float64]:
    return np.asarray(TABLE[items[left], items[right]])


def means(lists: list[list[int]], *, symmetric: bool = False, **options: float) -> Pair:
    values = np.array([item for items in lists for item in items], np.int64)
    offsets = np.cumsum([0, *map(len, lists)])
    return pair_means(values, offsets, entry, symmetric=symmetric, **options)  # type: ignore[arg-type]


LISTS = [RANDOM.sample(range(30), RANDOM.randrange(0, 30)) for _ in range(80)]


@pytest.mark.parametrize("whole", [1.0, 3.0])
def test_a_mean_has_a_hundred_bits(whole: float) -> None:
    found = means(LISTS, whole=whole)
    for items, high, low in zip(LISTS, found.high.tolist(), found.low.tolist(), strict=True):
        pairs = [Fraction(TABLE[i, j]) for i, j in permutations(items, 2)]
        if not pairs:
            assert (high, low) == (0, 0)
            continue
        size = sum(map(abs, pairs)) / len(pairs)
        exact = sum(pairs) / len(pairs) / Fraction(whole)
        assert abs(Fraction(high) + Fraction(low) - exact) < size * Fraction(1, 2**98)
        assert high == float(exact)


def test_one_order_of_a_pair_is_the_smaller_item_first() -> None:
    found = means([[7, 2, 5]], symmetric=True)
    assert found.high[0] == float(sum(map(Fraction, (TABLE[2, 5], TABLE[2, 7], TABLE[5, 7]))) / 3)


def test_order_blocks_and_neighbours_change_no_bit() -> None:
    whole = means(LISTS)
    for options in ({"block": 1}, {"block": 100}, {"block": 1 << 30}):
        again = means([RANDOM.sample(items, len(items)) for items in LISTS], **options)
        assert again.high.tobytes() == whole.high.tobytes()
        assert again.low.tobytes() == whole.low.tobytes()
    for i, items in enumerate(LISTS):
        alone = means([items])
        assert (alone.high[0], alone.low[0]) == (whole.high[i], whole.low[i])
