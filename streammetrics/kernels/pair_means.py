"""The mean over the pairs of each list, as twice the digits of a double."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.double_double import Pair, add, over
from streammetrics.kernels.same_length import by_length

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]
# items [m], and places of left and right ones [p] among them -> a value for each pair [p]
OfPairs: TypeAlias = Callable[[Ints, Places, Places], Floats]


def pair_means(
    values: Ints,
    offsets: Ints,
    of_pairs: OfPairs,
    *,
    symmetric: bool,
    whole: float = 1.0,
    block: int = 1 << 16,
) -> Pair:
    """The mean of `of_pairs` over the ordered pairs of each list, over `whole`; [n].

    values: items [m], in any order within a list; offsets: [n + 1]. A list is put in order first,
    so its mean depends on which items it has alone, to the last bit; 0 with fewer than two items.
    symmetric: whether one order of a pair is enough. block: how many pairs are looked at together.

    >>> def less(items, left, right): return np.sign(items[right] - items[left]) * 1.0
    >>> pair_means(np.array([3, 1, 2, 5]), np.array([0, 3, 4]), less, symmetric=True).high.tolist()
    [1.0, 0.0]
    """
    n = len(offsets) - 1
    means = Pair(np.zeros(n), np.zeros(n))
    for rows, items in by_length(values, offsets, block):
        length = items.shape[1]
        if length < 2:
            continue
        firsts, seconds = np.triu_indices(length, 1)
        if not symmetric:
            firsts, seconds = np.append(firsts, seconds), np.append(seconds, firsts)
        step = max(1, block // len(firsts))
        ordered = np.sort(items, axis=1)
        for start in range(0, len(rows), step):
            here = rows[start : start + step]
            # the items of a rank side by side, so that place r * lists + i is that of list i
            some = np.ascontiguousarray(ordered[start : start + step].T).reshape(-1)
            lists = np.arange(len(here))
            left = (firsts[:, None] * len(here) + lists).reshape(-1)
            right = (seconds[:, None] * len(here) + lists).reshape(-1)
            found = of_pairs(some, left, right).reshape(len(firsts), len(here))
            total = _sums(found)
            divisor = np.full(len(here), len(firsts) * whole)
            means.high[here], means.low[here] = over(total, divisor)
    return means


def _sums(terms: Floats) -> Pair:
    """The sums of each column of terms [p, n], p > 0; [n].

    The second half is added to the first until one row is left: always the same order.
    """
    left = Pair(terms, np.zeros_like(terms))
    while len(left.high) > 1:
        half = len(left.high) // 2
        joined = add(left.take(slice(half)), left.take(slice(half, 2 * half)))
        rest = left.take(slice(2 * half, None))
        left = Pair(*(np.concatenate(parts) for parts in zip(joined, rest, strict=True)))
    return Pair(left.high[0], left.low[0])
