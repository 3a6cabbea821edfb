"""Buffer: pending rows of small batches, until there are enough for one pass of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import prod
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch
from streammetrics.core.conversion import has_booleans, plain_array
from streammetrics.core.pieces import Pieces, parts_of

SMALL: Final = 1 << 13  # rows; a batch of this size need not be buffered, unless it is narrow
NARROW: Final = 1 << 14  # rows, and 32 times as many bytes
BUFFER_ROWS: Final = 1 << 16  # rows, or values of wide rows, that are worth one pass
BUFFER_LISTS: Final = 1 << 15  # the same if some column is not an array
BUFFER_BATCHES: Final = 1 << 12
MOST_COLUMNS: Final = 3  # of the fast path

_ARRAY: Final = np.ndarray
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)

Validate: TypeAlias = Callable[[NDArray[Any]], "NDArray[Any] | None"]


class Placed(Enum):
    """What became of a batch that was to be buffered."""

    PENDING = 0  # a copy was made
    FULL = 1  # the pending rows are of another kind, or there would be too many
    TOO_LARGE = 2  # a pass of the kernels over it costs less


class Append(Protocol):
    """Buffers a copy of the columns of a batch and returns True, or does nothing."""

    def __call__(self, first: object, second: object = None, third: object = None, /) -> bool: ...


def _refuse_rows(first: object, second: object = None, third: object = None, /) -> bool:
    return False


class Buffer:
    """Copies of small batches, all of one kind, as `Pieces`."""

    __slots__ = ("_appends", "_limit", "_pieces", "_surplus", "append", "closed")

    def __init__(self) -> None:
        self._pieces = Pieces()
        self.closed = False  # no row is to wait that `check` has not read
        self._surplus = 0  # by how much the total of the pending rows exceeds their number
        self._limit = BUFFER_ROWS
        # The fast path: takes columns as the caller gave them, once a batch of their kinds is
        # pending. A validator for each decides whether `check` would accept it with the same type.
        # Returns False otherwise, and if nothing or too much is pending: then the caller runs
        # `check`, with its messages. Measured: 100 rows in 2 us instead of 6.
        self.append: Append = _refuse_rows
        self._appends: Append | None = None  # the same, once a batch of these kinds is pending

    @property
    def n(self) -> int:
        """How many rows are pending."""
        return self._pieces.count[0]

    @property
    def total(self) -> int:
        """The most that the pending rows can add to any one count."""
        return self._pieces.count[0] + self._surplus

    @property
    def nbytes(self) -> int:
        """Bytes of the pending rows."""
        return self._pieces.nbytes

    def put(self, batch: Batch, validators: Mapping[str, Validate]) -> Placed:
        """Buffer a copy of a checked batch, unless a pass of the kernels over it costs less, or the
        pending rows must be flushed first.

        validators: of the arguments of `append`, in their order; empty if only `check` can decide.
        """
        n = batch.n
        if n >= SMALL and (n >= NARROW or batch.nbytes > 32 * NARROW):
            return Placed.TOO_LARGE
        parts, pieces = parts_of(batch), self._pieces
        before = pieces.count[0]
        if parts[0] != pieces.kinds:
            if before:
                return Placed.FULL
            pieces = self._pieces = Pieces(batch, parts)
            self._appends, self._limit = None, _limit(pieces)
        if n > self._limit and n < SMALL:  # of wide rows
            return Placed.TOO_LARGE
        if before and (before + n > self._limit or len(pieces.arrays[0]) >= BUFFER_BATCHES):
            return Placed.FULL
        pieces.add(n, parts)
        if self._appends is None and validators:
            self._appends = self._append_like(validators)
        self._surplus += batch.total - n
        self.append = self._appends or _refuse_rows
        return Placed.PENDING

    def close(self) -> None:
        """Disable `append` until the pending rows are flushed."""
        self.append, self.closed = _refuse_rows, True

    def take_all(self) -> Batch:
        """All pending rows as one batch; none are pending afterwards."""
        batch = self._pieces.batch(self.total)
        self._pieces.clear()
        self._surplus = 0
        self.append, self.closed = _refuse_rows, False
        return batch

    def _append_like(self, validators: Mapping[str, Validate]) -> Append:
        """The `append` for columns of the pending kinds; it refuses all if there are too many
        inputs, or a pending column is not an input or not a plain array [n]."""
        pieces, columns = self._pieces, dict[str, _Pending]()
        if len(validators) > MOST_COLUMNS:
            return _refuse_rows
        for (name, kind, row), array in zip(pieces.columns, pieces.arrays, strict=False):
            if not isinstance(kind, np.dtype) or row or name not in validators:
                return _refuse_rows
            columns[name] = _Pending(validators[name], kind, array)
        pending = [columns.get(name) for name in validators]
        return _appending(pieces.count, self._limit, *pending) if pending[0] else _refuse_rows


class _Pending(NamedTuple):
    """A column of the pending rows: its validator, its type, and its pieces."""

    validate: Validate
    dtype: np.dtype[Any]
    pieces: list[bytes]


def _limit(pieces: Pieces) -> int:
    """How many rows of these kinds are worth one pass."""
    shapes = [row for _, kind, row in pieces.columns if isinstance(kind, np.dtype)]
    if len(shapes) < len(pieces.columns):
        return BUFFER_LISTS
    return BUFFER_ROWS // max(1, *map(prod, cast("list[tuple[int, ...]]", shapes)))


def _array_of(column: object, most: int, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """The array of a list of numbers, of at most `most`; None for all other columns. dtype: of the
    pending column, to whose check booleans may be no integers."""
    if (type(column) is not list and type(column) is not tuple) or len(column) > most:
        return None
    array = plain_array(column)
    if dtype is _INT64 and array is not None and has_booleans(column, array):
        return None
    return array


def _cast(column: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """A validated column converted as `check` would, if that gives the pending type."""
    if dtype is not _FLOAT64 or column.dtype.kind == "f" or column.itemsize == 1:
        return None
    return column.astype(_FLOAT64)  # as every check converts integers; it may leave bytes


def _appending(
    count: list[int],
    most: int,
    first: _Pending | None,
    second: _Pending | None = None,
    third: _Pending | None = None,
) -> Append:
    """The `append` of up to three columns; one that is None must not be given."""
    # Written out for each column: loops and calls would take half as long again.
    nothing = _Pending(lambda column: None, _FLOAT64, [])
    validate_1, dtype_1, pieces_1 = first or nothing
    validate_2, dtype_2, pieces_2 = second or nothing
    validate_3, dtype_3, pieces_3 = third or nothing

    def append(a: object, b: object = None, c: object = None, /) -> bool:
        if type(a) is not _ARRAY and (a := _array_of(a, most - count[0], dtype_1)) is None:
            return False
        if a.ndim != 1 or not (n := len(a)):
            return False
        rows = count[0] + n
        column_1 = validate_1(a)
        if column_1 is None or rows > most or len(pieces_1) >= BUFFER_BATCHES:
            return False
        if column_1.dtype is not dtype_1 and (column_1 := _cast(column_1, dtype_1)) is None:
            return False
        column_2 = column_3 = None
        if b is not None:
            if type(b) is not _ARRAY and (b := _array_of(b, n, dtype_2)) is None:
                return False
            if b.ndim != 1 or len(b) != n:
                return False
            column_2 = validate_2(b)
            if column_2 is None:
                return False
            if column_2.dtype is not dtype_2 and (column_2 := _cast(column_2, dtype_2)) is None:
                return False
        elif second is not None:
            return False
        if c is not None:
            if type(c) is not _ARRAY and (c := _array_of(c, n, dtype_3)) is None:
                return False
            if c.ndim != 1 or len(c) != n:
                return False
            column_3 = validate_3(c)
            if column_3 is None:
                return False
            if column_3.dtype is not dtype_3 and (column_3 := _cast(column_3, dtype_3)) is None:
                return False
        elif third is not None:
            return False
        pieces_1.append(column_1.tobytes())
        if column_2 is not None:
            pieces_2.append(column_2.tobytes())
        if column_3 is not None:
            pieces_3.append(column_3.tobytes())
        count[0] = rows
        return True

    return append
