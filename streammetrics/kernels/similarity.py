"""How alike two items are, for many pairs at once; the same bits on every machine.

Each function takes items [m], and pairs of places in it: left and right [p]. A similarity of two
items depends on them alone, not on the pairs beside them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Floats = NDArray[np.float64]


def cosines(vectors: Floats, squares: Floats, items: Ints, left: Places, right: Places) -> Floats:
    """v·w / √(v·v w·w), [p]; the products are added in the order of the dimensions.

    vectors: [n, d] as `scaled_vectors` gives them; squares: [n], their `squared_lengths`. The
    products of two lengths go under one root, so that the cosine of equal vectors is 1 exactly.
    """
    products = np.zeros(len(left))
    for column in np.ascontiguousarray(vectors[items].T):
        products += column.take(left) * column.take(right)
    lengths = squares[items]
    found = products / np.sqrt(lengths.take(left) * lengths.take(right))
    clipped: Floats = np.clip(found, -1.0, 1.0)  # rounding alone leads beyond
    return clipped


def scaled_vectors(vectors: Floats) -> Floats:
    """Each vector times the power of two that brings its largest entry into [1/2, 1), [n, d].

    Exact, and without it squares of large or small entries would overflow or vanish.
    """
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0.0))
    scaled: Floats = np.ldexp(vectors, -exponents[:, None])
    return scaled


def squared_lengths(vectors: Floats) -> Floats:
    """v·v of each vector, added in the order of the dimensions, [n]."""
    sums = np.zeros(len(vectors))
    for column in np.ascontiguousarray(vectors.T):
        sums += column * column
    return sums


def equal_features(codes: Floats, items: Ints, left: Places, right: Places) -> Floats:
    """In how many features two items have equal values; [p]. codes: [n, f]."""
    equal = np.zeros(len(left))
    for column in np.ascontiguousarray(codes[items].T):
        equal += column.take(left) == column.take(right)
    return equal


def looked_up(table: Floats, items: Ints, left: Places, right: Places) -> Floats:
    """The entry of a table [n, n] in the row of the left item and the column of the right; [p]."""
    rows = items * len(table)
    found: Floats = table.reshape(-1).take(rows.take(left) + items.take(right))
    return found
