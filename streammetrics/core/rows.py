"""Columns that are not plain arrays: dictionary-encoded keys, and lists; and the offsets, ranges
and totals of arrays."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from sys import getsizeof
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V", bound=np.generic)
Scalar: TypeAlias = str | int | None
Key: TypeAlias = Scalar | tuple[Scalar, ...]
# What is turned into a key: a date, a boolean (an int to type checkers), a float that is whole.
KeyLike: TypeAlias = Scalar | float | date | tuple[Scalar | float | date, ...]
NO_KEY: Final = cast("Key", object())  # among the values of a column: these rows have no key in it
_SPARSE: Final = 16  # times as many possible values as rows, beyond which sorting is quicker
_FEW: Final = 1024
_SAMPLE: Final = 16  # keys from which the size of all is estimated


def keys_nbytes(keys: Collection[Key | bytes]) -> int:
    """Bytes of these keys, or of their encodings, themselves, estimated from the first ones."""
    sample = list(islice(keys, _SAMPLE))
    return int(sum(map(_size, sample)) / len(sample) * len(keys)) if sample else 0


def dictionary_nbytes(values: tuple[Key, ...]) -> int:
    """Bytes of memory of the values of a `DictionaryColumn`, about."""
    return getsizeof(values) + keys_nbytes(values)


def _size(key: Key | bytes) -> int:
    return getsizeof(key) + (sum(map(getsizeof, key)) if isinstance(key, tuple) else 0)


class Terms(NamedTuple):
    """The part of a mean that each row, list or group contributes: values [n], and weights [n],
    None: 1 each. The mean is Σ values / Σ weights."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class DictionaryColumn:
    """A column of `n` keys that holds each distinct key once: row i has `values[codes[i]]`.

    codes: intp [n], each below `len(values)`. Accepted wherever keys or ids are.
    """

    codes: NDArray[np.intp]
    values: tuple[Key, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, about."""
        return self.codes.nbytes + dictionary_nbytes(self.values)


@dataclass(slots=True, eq=False)  # frozen, it would take three times as long to create
class Ragged(Generic[V]):
    """A column whose rows are lists: row i is `values[offsets[i]:offsets[i + 1]]`.

    values: [m], of any type; offsets: int64 [n + 1], from 0 to m.
    """

    values: NDArray[V]
    offsets: NDArray[np.int64]
    _sizes: NDArray[np.int64] | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many values each row has; [n], computed once, which must not be changed."""
        if self._sizes is None:
            self._sizes = self.offsets[1:] - self.offsets[:-1]  # a quarter of the time of `diff`
        return self._sizes

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds."""
        return self.values.nbytes + self.offsets.nbytes

    def take(self, positions: NDArray[np.intp]) -> Ragged[V]:
        """The rows at these positions."""
        sizes = self.sizes[positions]
        offsets = offsets_of(sizes)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        return Ragged(self.values[np.repeat(self.offsets[:-1][positions], sizes) + inside], offsets)


def offsets_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of these sizes begin, and where the last one ends; [n + 1]."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def distinct(values: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The different values [m], ascending, and the index among them of each row's value [n], by
    marking instead of sorting.

    values: [n], from 0 to below `size`.
    """
    if size > _SPARSE * len(values) + _FEW:
        present, positions = np.unique(values, return_inverse=True)
        return present, positions.astype(np.intp, copy=False)
    marks = np.zeros(size, np.bool_)
    marks[values] = True
    present = np.flatnonzero(marks)
    if len(present) == size:
        return present, values
    index = np.empty(size, np.intp)
    index[present] = np.arange(len(present))
    return present, index[values]


def sorted_distinct(values: NDArray[V], *, runs: bool = False) -> NDArray[V]:
    """The different values [m], ascending: of integers in a tenth of the time of `np.unique`. runs:
    whether the values are ascending runs, which are merged in a tenth of the time of sorting."""
    ordered = np.sort(values, kind="stable" if runs else None)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def ranges(
    starts: NDArray[np.intp], ends: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices in several ranges one after another, and the length of each range."""
    sizes = ends - starts
    indices = np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    indices += np.arange(len(indices))
    return indices, sizes


def spans(ascending: NDArray[V], values: NDArray[V]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The range of indices [start, end) of each value among ascending ones."""
    return np.searchsorted(ascending, values, "left"), np.searchsorted(ascending, values, "right")


def first_at_least(
    values: NDArray[np.integer],
    low: NDArray[np.intp],
    high: NDArray[np.intp],
    thresholds: NDArray[np.integer],
) -> NDArray[np.intp]:
    """For each i the first index in [low[i], high[i]) with a value >= thresholds[i], else high[i].

    values: ascending within each of these spans. Bisection of all spans at once.
    """
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        below = values[middle] < thresholds[open_]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
        open_ = open_[low[open_] < high[open_]]
    return low


_MOST: Final = (1 << 63) - 1
_MANY: Final = 1 << 16


def exact_total(counts: NDArray[np.integer]) -> int:
    """The sum of counts [n], which are at least 0, however large it is."""
    n = len(counts)
    if not n:
        return 0
    # `argmax` is faster for few, but copies all of read-only memory, such as the bytes of a state.
    if (int(counts.max()) if n > _MANY else counts.item(counts.argmax())) <= _MOST // n:
        return int(np.add.reduce(counts))
    # The sums of the 32-bit parts cannot overflow.
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())
