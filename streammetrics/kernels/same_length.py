"""Lists of equal length side by side, so that one call serves many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def by_length(
    values: Ints, offsets: Ints, block: int = 1 << 20
) -> Iterator[tuple[NDArray[np.intp], Ints]]:
    """The lists of each length, in blocks: which lists [b], and their values [b, length].

    Lists of equal length come in their order; empty ones are left out. values: [m]; offsets:
    [n + 1]; a block has at most so many values, or a single list.

    >>> for rows, items in by_length(np.array([7, 8, 9]), np.array([0, 2, 2, 3])):
    ...     print(rows.tolist(), items.tolist())
    [2] [[9]]
    [0] [[7, 8]]
    """
    sizes = np.diff(offsets)
    if not len(values):
        return
    if sizes.min() == sizes.max():
        lengths, parts = [int(sizes[0])], [np.arange(len(sizes))]
    else:
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
            if rows[-1] - rows[0] + 1 == len(rows):  # they lie one after the other
                yield rows, values[first : first + len(rows) * length].reshape(-1, length)
            else:
                yield rows, values[offsets[rows][:, None] + np.arange(length)]
