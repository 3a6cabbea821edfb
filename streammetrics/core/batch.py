"""Batch: checked rows as named columns, on their way into a state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import DictionaryColumn, Ragged

Column: TypeAlias = "NDArray[Any] | DictionaryColumn | Ragged[Any] | Batch"
Indices: TypeAlias = NDArray[np.intp]
S = TypeVar("S")  # the slots of rows, from which a slice takes those of some

QUANTA: Final = "weight quanta"  # the two columns made from weights; no input has these names
ROUNDED: Final = "rounded weights"
_ARRAY: Final = np.ndarray
_PIECE: Final = 1 << 15  # rows whose temporaries stay in the cache


class Batch:
    """`n` checked rows: `batch.scores` is the column of the input `scores`, of n entries.

    Columns that are not plain arrays are read by `as_ids`, `as_lists`, ..., and columns that may be
    absent by `optional`. `quanta` are the weights. `total` is the most that these rows can add to
    any one count: n, or the sum of the weights.
    """

    # A plain class, since a frozen dataclass takes four times as long to create.
    __slots__ = ("columns", "n", "total")

    def __init__(self, n: int, columns: dict[str, Column], total: int | None = None) -> None:
        self.n, self.columns = n, columns
        self.total = n if total is None else total

    def __getattr__(self, name: str) -> NDArray[Any]:
        column = self.columns.get(name)
        if column is None:
            raise AttributeError(f"no column {name!r} among {', '.join(self.columns)}")
        return column  # type: ignore[return-value]

    def optional(self, name: str) -> NDArray[Any] | None:
        """A column that is an array, or None where it was not given."""
        return cast("NDArray[Any] | None", self.columns.get(name))

    def as_ids(self, name: str) -> NDArray[np.int64] | DictionaryColumn:
        """A column of ids: integers, hashes, or dictionary-encoded strings."""
        return cast("NDArray[np.int64] | DictionaryColumn", self.columns[name])

    def as_keys(self, name: str) -> DictionaryColumn:
        """A column of keys."""
        return cast("DictionaryColumn", self.columns[name])

    def as_lists(self, name: str) -> Ragged[Any]:
        """A column whose rows are lists."""
        return cast("Ragged[Any]", self.columns[name])

    def as_batch(self, name: str) -> Batch:
        """A column that is a batch: the same rows, as checked for another metric."""
        return cast("Batch", self.columns[name])

    @property
    def quanta(self) -> NDArray[np.int64] | None:
        """How many weight quanta each row has, at least 1; None where all have one."""
        return self.optional(QUANTA)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the columns; one that several metrics read counts once."""
        sizes: dict[int, int] = {}
        _measure(self, sizes)
        return sum(sizes.values())

    def take(self, positions: Indices) -> Batch:
        """The rows at these indices; `total` stays an upper bound. A column that several metrics
        read is taken once, and stays one object."""
        return _taken(self, positions, {})

    def where(self, mask: NDArray[np.bool_], slots: Indices | None) -> tuple[Batch, Indices | None]:
        """The selected rows, with their slots."""
        if mask.all():
            return self, slots
        positions = np.flatnonzero(mask)
        return self.take(positions), None if slots is None else slots[positions]

    def pieces(self, slots: S, size: int = _PIECE) -> Iterator[tuple[Batch, S]]:
        """The same rows in pieces of this size, by default so short that the temporaries of each
        stay in the cache; none of no rows. All columns must be arrays."""
        if 0 < self.n <= size:
            yield self, slots
            return
        arrays = cast("dict[str, NDArray[Any]]", self.columns)
        for start in range(0, self.n, size):
            rows = slice(start, start + size)
            piece: dict[str, Column] = {name: array[rows] for name, array in arrays.items()}
            n = min(size, self.n - start)
            yield Batch(n, piece), slots if slots is None else slots[rows]  # type: ignore[index]


# A column that several metrics of a panel read is one object in the batches of all. `results` maps
# the `id` of an object to its result, which is valid while these batches live.
def _measure(batch: Batch, results: dict[int, int]) -> None:
    for c in batch.columns.values():
        if isinstance(c, Batch):
            _measure(c, results)
        else:
            results[id(c)] = c.nbytes


def _taken(batch: Batch, positions: Indices, results: dict[int, Column]) -> Batch:
    columns: dict[str, Column] = {}
    for name, c in batch.columns.items():
        if isinstance(c, Batch):
            columns[name] = _taken(c, positions, results)
            continue
        column = results.get(id(c))
        if column is None:
            column = results[id(c)] = _some(c, positions)
        columns[name] = column
    return Batch(len(positions), columns, batch.total)


def _some(
    column: NDArray[Any] | DictionaryColumn | Ragged[Any], positions: Indices
) -> NDArray[Any] | DictionaryColumn | Ragged[Any]:
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(column.codes[positions], column.values)
    if isinstance(column, Ragged):
        return column.take(positions)
    return column.take(positions, axis=0)  # in half of the time of an index
