"""The similarity of two items, for many pairs at once; bit-identical on every machine.

Each similarity takes items [m] and pairs of indices into them, left and right [p]. Its value for
two items depends on them alone, not on the other pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import Ragged
from streammetrics.kernels.exact.double_double import Pair, add, divided_by

# Lists of equal length are stacked, so that one call serves many.

Ints = NDArray[np.int64]


def length_groups(
    lists: Ragged[np.int64], block: int = 1 << 20
) -> Iterator[tuple[NDArray[np.intp], Ints]]:
    """Blocks of lists of equal length: the indices of the lists [b], and their values [b, length].

    Lists of equal length keep their order; empty lists are omitted. A block has at most `block`
    values, or a single list.

    >>> lists = Ragged(np.array([7, 8, 9]), np.array([0, 2, 2, 3]))
    >>> for rows, items in length_groups(lists):
    ...     print(rows.tolist(), items.tolist())
    [2] [[9]]
    [0] [[7, 8]]
    """
    values, offsets, sizes = lists.values, lists.offsets, lists.sizes
    if not len(values):
        return
    if sizes.item(sizes.argmin()) == (length := sizes.item(sizes.argmax())):
        step = max(1, block // length)
        for start in range(0, len(sizes), step):
            end = min(start + step, len(sizes))
            yield np.arange(start, end), values[start * length : end * length].reshape(-1, length)
        return
    order = np.argsort(sizes, kind="stable")
    firsts = np.flatnonzero(np.diff(sizes[order], prepend=-1))
    parts = np.split(order, firsts[1:])
    lengths = sizes[order[firsts]].tolist()
    for length, part in zip(lengths, parts, strict=True):
        if not length:
            continue
        step = max(1, block // length)
        for start in range(0, len(part), step):
            rows = part[start : start + step]
            first = offsets[rows[0]]
            if rows[-1] - rows[0] + 1 == len(rows):  # they are contiguous
                yield rows, values[first : first + len(rows) * length].reshape(-1, length)
            else:
                yield rows, values[offsets[rows][:, None] + np.arange(length)]


# The mean over the pairs of each list, in double-double precision.

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]
# items [m], and indices of left and right items [p] -> a value for each pair [p]
OfPairs: TypeAlias = Callable[[Ints, Positions, Positions], Floats]


def pair_means(
    values: Ints,
    offsets: Ints,
    of_pairs: OfPairs,
    *,
    symmetric: bool,
    whole: float = 1.0,
    block: int = 1 << 16,
) -> Pair:
    """The mean of `of_pairs` over the ordered pairs of each list, divided by `whole`; [n].

    values: items [m], in any order within a list; offsets: [n + 1]. A list is sorted first, so its
    mean does not depend on the order of its items, to the last bit; 0 with fewer than two items.
    symmetric: whether one order of a pair is enough. block: the number of pairs processed together.

    >>> def less(items, left, right): return np.sign(items[right] - items[left]) * 1.0
    >>> pair_means(np.array([3, 1, 2, 5]), np.array([0, 3, 4]), less, symmetric=True).high.tolist()
    [1.0, 0.0]
    """
    n = len(offsets) - 1
    means = Pair(np.zeros(n), np.zeros(n))
    for rows, items in length_groups(Ragged(values, offsets), block):
        length = items.shape[1]
        if length < 2:
            continue
        firsts, seconds = np.triu_indices(length, 1)
        if not symmetric:
            firsts, seconds = np.append(firsts, seconds), np.append(seconds, firsts)
        step = max(1, block // len(firsts))
        ordered = np.sort(items, axis=1)
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            # transposed, so that index r * lists + i is item r of list i
            flat_items = np.ascontiguousarray(ordered[start : start + step].T).reshape(-1)
            lists = np.arange(len(chunk))
            left = (firsts[:, None] * len(chunk) + lists).reshape(-1)
            right = (seconds[:, None] * len(chunk) + lists).reshape(-1)
            similarities = of_pairs(flat_items, left, right).reshape(len(firsts), len(chunk))
            total = _sums(similarities)
            divisor = np.full(len(chunk), len(firsts) * whole)
            means.high[chunk], means.low[chunk] = divided_by(total, divisor)
    return means


def _sums(terms: Floats) -> Pair:
    """The sums of each column of terms [p, n], p > 0; [n].

    The second half is added to the first until one row is left, always in the same order.
    """
    left = Pair(terms, np.zeros_like(terms))
    while len(left.high) > 1:
        half = len(left.high) // 2
        joined = add(left.take(slice(half)), left.take(slice(half, 2 * half)))
        unpaired_rows = left.take(slice(2 * half, None))
        left = Pair(*(np.concatenate(parts) for parts in zip(joined, unpaired_rows, strict=True)))
    return Pair(left.high[0], left.low[0])


def cosines(
    vectors: Floats, squares: Floats, items: Ints, left: Positions, right: Positions
) -> Floats:
    """v·w / √(v·v w·w), [p]; the products are added in the order of the dimensions.

    vectors: [n, d] from `scaled_vectors`; squares: [n], their `squared_lengths`. One root is taken
    of the product of two squares, so that the cosine of equal vectors is exactly 1.
    """
    products = np.zeros(len(left))
    for column in np.ascontiguousarray(vectors[items].T):
        products += column.take(left) * column.take(right)
    lengths = squares[items]
    quotients = products / np.sqrt(lengths.take(left) * lengths.take(right))
    clipped: Floats = np.clip(quotients, -1.0, 1.0)  # only rounding exceeds these
    return clipped


def scaled_vectors(vectors: Floats) -> Floats:
    """Each vector times the power of two that brings its largest entry into [1/2, 1), [n, d].

    Exact. Without it, squares of large or small entries would overflow or underflow.
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


def equal_features(codes: Floats, items: Ints, left: Positions, right: Positions) -> Floats:
    """The number of features in which two items are equal; [p]. codes: [n, f]."""
    equal = np.zeros(len(left))
    for column in np.ascontiguousarray(codes[items].T):
        equal += column.take(left) == column.take(right)
    return equal


def looked_up(table: Floats, items: Ints, left: Positions, right: Positions) -> Floats:
    """The entry of a table [n, n] in the row of the left item and the column of the right; [p]."""
    rows = items * len(table)
    entries: Floats = table.reshape(-1).take(rows.take(left) + items.take(right))
    return entries
