"""Items that are twice in a list, for many lists of one length at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Word: TypeAlias = np.unsignedinteger

_SHORT: Final = 20  # items; longer lists are sorted in less time than their pairs are compared
_MANY: Final = 1 << 12  # items of all lists; fewer are sorted in the time of the calls for pairs
_CHUNK: Final = 1 << 14  # items whose words and comparisons stay in the second-level cache


def repeated(items: NDArray[np.int64], n_items: int) -> NDArray[np.bool_]:
    """Whether each list has an item twice; bool [n]. items: [n, length], from 0 to n_items - 1.

    >>> repeated(np.array([[4, 2], [3, 3]]), 5).tolist()
    [False, True]
    """
    repeats = np.zeros(len(items), np.bool_)
    if are_different(items, n_items):
        return repeats
    ordered = np.sort(items, axis=1)
    equal = ordered[:, 1:] == ordered[:, :-1]
    return np.any(equal, axis=1, out=repeats) if np.count_nonzero(equal) else repeats


def are_different(items: NDArray[np.int64], n_items: int) -> bool:
    """Whether all items are from 0 to n_items - 1, and those of each list differ: one pass over
    many short lists. False also of others, which it does not read. items: [n, length].

    >>> lists = np.arange(6_000).reshape(-1, 3)
    >>> are_different(lists, 6_000), are_different(lists, 5_999)
    (True, False)
    """
    n, length = items.shape
    return length <= _SHORT and n * length >= _MANY and not _has_fault(items, n_items)


def _has_fault(items: NDArray[np.int64], n_items: int) -> bool:
    """Whether an item is out of range, or twice in a list: for lists of ten a third of the time of
    sorting them.

    Each item is compared with the next ones, as many as a list has. The highest bit of its word,
    which is as narrow as can be, differs from that of the next list.
    """
    n, length = items.shape
    kind: type[Word] = np.uint16 if n_items <= 1 << 15 else np.uint32
    kind = kind if n_items <= 1 << 31 else np.uint64
    step = _CHUNK // length
    is_odd = _odd_lists(
        step + 1, length, np.dtype(kind)
    )  # one more list, that the last items have next ones
    words = is_odd.copy()
    following = sliding_window_view(words, step * length)[1:length]
    is_equal = np.empty((length - 1) * step * length, np.bool_)
    for start in range(0, n, step):
        flat = items[start : start + step].reshape(-1)
        m, bits = len(flat), flat.view(np.uint64)  # in which negative numbers are large
        if bits.item(bits.argmax()) >= n_items:
            return True
        np.copyto(words[:m], flat, casting="unsafe")
        words[:m] |= is_odd[:m]
        equal = is_equal[: (length - 1) * m]
        np.equal(following[:, :m], words[:m], out=equal.reshape(-1, m))
        if len(equal) and equal[equal.argmax()]:  # in a quarter of the time of `any`
            return True
    return False


@lru_cache(maxsize=4)
def _odd_lists(n: int, length: int, kind: np.dtype[Word]) -> NDArray[Word]:
    """The highest bit for each item of every second one of n lists; [n * length]."""
    words = np.repeat(np.arange(n) & 1, length).astype(kind)
    words <<= kind.type(8 * kind.itemsize - 1)
    return words
