"""Similarities of pairs: of two items alone, in the stated order of operations."""

from __future__ import annotations

import math

import numpy as np

from streammetrics.kernels.ranking.item_similarity import (
    cosines,
    equal_features,
    looked_up,
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
    found = cosines(vectors, squares, ITEMS, LEFT, RIGHT)
    for i, j, value in zip(ITEMS[LEFT], ITEMS[RIGHT], found.tolist(), strict=True):
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
    found = cosines(scaled, squared_lengths(scaled), items, items[:200], items[200:])
    assert np.abs(found).max() == 1


def test_equal_features_are_counted() -> None:
    codes = np.array([[0.0, 1, 2], [9, 9, 9], [0, 1, 3], [9, 9, 9], [7, 1, 3]])
    assert equal_features(codes, ITEMS, LEFT, RIGHT).tolist() == [1, 2, 2, 3]


def test_a_table_is_looked_up_by_row_and_column() -> None:
    table = RNG.normal(size=(5, 5))
    found = looked_up(table, ITEMS, LEFT, RIGHT)
    assert found.tolist() == [table[4, 0], table[0, 2], table[2, 4], table[4, 4]]
