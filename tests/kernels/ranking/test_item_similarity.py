"""Similarities of items, lists of equal length, and means over the pairs of a list."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations
from random import Random

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Ragged
from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.item_similarity import (
    cosines,
    equal_features,
    length_groups,
    looked_up,
    pair_means,
    scaled_vectors,
    squared_lengths,
)

RNG = np.random.default_rng(6)
ITEMS = np.array([4, 0, 2, 4])
LEFT, RIGHT = np.array([0, 1, 2, 3]), np.array([1, 2, 0, 0])


def test_vectors_are_scaled_by_powers_of_two_without_rounding() -> None:
    vectors = np.array([[3.0, -1e-3], [1e300, 1e290], [5e-324, 0.0], [-0.75, 0.5]])
    scaled = scaled_vectors(vectors)
    assert ((np.abs(scaled).max(axis=1) >= 0.5) & (np.abs(scaled).max(axis=1) < 1)).all()
    for before, after in zip(vectors.tolist(), scaled.tolist(), strict=True):
        exponents = {
            math.frexp(b)[1] - math.frexp(a)[1] for b, a in zip(before, after, strict=True)
        }
        assert len(exponents - {0}) <= 1
        assert [math.frexp(b)[0] for b in before] == [math.frexp(a)[0] for a in after]


def test_products_are_added_in_the_order_of_the_dimensions() -> None:
    vectors = scaled_vectors(RNG.normal(size=(5, 33)))
    squares = squared_lengths(vectors)
    values = cosines(vectors, squares, ITEMS, LEFT, RIGHT)
    for i, j, value in zip(ITEMS[LEFT], ITEMS[RIGHT], values.tolist(), strict=True):
        product = first = second = 0.0
        for a, b in zip(vectors[i].tolist(), vectors[j].tolist(), strict=True):
            product, first, second = product + a * b, first + a * a, second + b * b
        assert squares[i] == first
        assert value == min(1.0, max(-1.0, product / math.sqrt(first * second)))


def test_a_cosine_is_never_beyond_1() -> None:
    vectors = RNG.normal(size=(400, 3))
    vectors[200:] = vectors[:200] * RNG.uniform(-9, 9, (200, 1))
    scaled = scaled_vectors(vectors)
    items = np.arange(400)
    values = cosines(scaled, squared_lengths(scaled), items, items[:200], items[200:])
    assert np.abs(values).max() == 1


def test_equal_features_are_counted() -> None:
    codes = np.array([[0.0, 1, 2], [9, 9, 9], [0, 1, 3], [9, 9, 9], [7, 1, 3]])
    assert equal_features(codes, ITEMS, LEFT, RIGHT).tolist() == [1, 2, 2, 3]


def test_a_table_is_looked_up_by_row_and_column() -> None:
    table = RNG.normal(size=(5, 5))
    values = looked_up(table, ITEMS, LEFT, RIGHT)
    assert values.tolist() == [table[4, 0], table[0, 2], table[2, 4], table[4, 4]]


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


LISTS = [RANDOM.sample(range(30), RANDOM.randrange(0, 30)) for _ in range(30)]


def test_a_mean_has_a_hundred_bits() -> None:
    whole = 3.0
    result = means(LISTS, whole=whole)
    for items, high, low in zip(LISTS, result.high.tolist(), result.low.tolist(), strict=True):
        pairs = [Fraction(TABLE[i, j]) for i, j in permutations(items, 2)]
        if not pairs:
            assert (high, low) == (0, 0)
            continue
        size = sum(map(abs, pairs)) / len(pairs)
        exact = sum(pairs) / len(pairs) / Fraction(whole)
        assert abs(Fraction(high) + Fraction(low) - exact) < size * Fraction(1, 2**98)
        assert high == float(exact)


def test_one_order_of_a_pair_is_the_smaller_item_first() -> None:
    result = means([[7, 2, 5]], symmetric=True)
    assert result.high[0] == float(sum(map(Fraction, (TABLE[2, 5], TABLE[2, 7], TABLE[5, 7]))) / 3)


def test_order_blocks_and_neighbours_change_no_bit() -> None:
    whole = means(LISTS)
    for options in ({"block": 1}, {"block": 100}, {"block": 1 << 30}):
        shuffled = means([RANDOM.sample(items, len(items)) for items in LISTS], **options)
        assert shuffled.high.tobytes() == whole.high.tobytes()
        assert shuffled.low.tobytes() == whole.low.tobytes()
    for i, items in enumerate(LISTS):
        single_mean = means([items])
        assert (single_mean.high[0], single_mean.low[0]) == (whole.high[i], whole.low[i])


def test_every_list_that_is_not_empty_comes_once() -> None:
    for lengths, block in (
        *(((3,), 7), ((0, 3), 1 << 20), ((0, 1, 2, 9), 7)),
        *(((9, 1), 1), ((0,), 7)),
    ):
        rng = np.random.default_rng(len(lengths))
        offsets = np.concatenate([[0], np.cumsum(rng.choice(lengths, 50))])
        values, items_by_row = rng.integers(0, 1000, offsets[-1]), {}
        for rows, items in length_groups(Ragged(values, offsets), block):
            assert len(rows) == len(items) and len(items[0]) > 0
            assert items.size <= block or len(items) == 1
            for row, members in zip(rows.tolist(), items.tolist(), strict=True):
                assert row not in items_by_row
                items_by_row[row] = members
        lists = [values[a:b].tolist() for a, b in pairwise(offsets)]
        assert items_by_row == {i: entries for i, entries in enumerate(lists) if entries}, lengths
    assert not list(length_groups(Ragged(np.empty(0, np.int64), np.zeros(1, np.int64))))
