"""Buffer: pending rows of small batches, until there are enough for one pass of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch, Column
from streammetrics.core.conversion import plain_array

SMALL: Final = 1 << 13  # rows; a batch of this size need not be buffered, unless it is narrow
NARROW: Final = 1 << 14  # rows, and 32 times as many bytes
BUFFER_ROWS: Final = 1 << 16  # rows, or values of wide rows, that are worth one pass
BUFFER_LISTS: Final = 1 << 15  # the same if some column is not an array
BUFFER_BATCHES: Final = 1 << 12
MOST_COLUMNS: Final = 3  # of the fast path

_ARRAY: Final = np.ndarray
_FLOAT64: Final = np.dtype(np.float64)

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
    """Copies of small batches, all of one kind.

    If all columns are arrays, they are kept as bytes, since `tobytes` copies a hundred rows in a
    fifth of the time of `copy`; otherwise copies of the batches are kept.
    """

    __slots__ = (
        *("_appends", "_batches", "_count", "_kinds", "_like", "_limit", "_pieces", "_surplus"),
        "append",
    )

    def __init__(self) -> None:
        self._count = [0]  # pending rows
        self._surplus = 0  # by how much their total exceeds their number
        self._kinds: list[object] = []  # names and types of the columns, or a batch's shape
        self._limit = BUFFER_ROWS
        self._pieces: dict[str, list[bytes]] = {}  # for each column, if all are arrays
        self._like: dict[str, NDArray[Any]] = {}  # for each, an empty array of its type and shape
        self._batches: list[Batch] = []
        # The fast path: takes columns as the caller gave them, once a batch of their kinds is
        # pending. A validator for each decides whether `check` would accept it with the same type.
        # Returns False otherwise, and if nothing or too much is pending: then the caller runs
        # `check`, with its messages. Measured: 100 rows in 2 us instead of 6.
        self.append: Append = _refuse_rows
        self._appends: Append | None = None  # the same, once a batch of these kinds is pending

    @property
    def n(self) -> int:
        """How many rows are pending."""
        return self._count[0]

    @property
    def total(self) -> int:
        """The most that the pending rows can add to any one count."""
        return self._count[0] + self._surplus

    @property
    def batches(self) -> int:
        """How many batches are pending."""
        return len(next(iter(self._pieces.values()))) if self._pieces else len(self._batches)

    @property
    def nbytes(self) -> int:
        """Bytes of the pending rows."""
        array_bytes = sum(len(piece) for pieces in self._pieces.values() for piece in pieces)
        return array_bytes + sum(batch.nbytes for batch in self._batches)

    def put(self, batch: Batch, validators: Mapping[str, Validate]) -> Placed:
        """Buffer a copy of a checked batch, unless a pass of the kernels over it costs less, or the
        pending rows must be flushed first.

        validators: of the arguments of `append`, in their order; empty if only `check` can decide.
        """
        if batch.n >= SMALL and (batch.n >= NARROW or batch.nbytes > 32 * NARROW):
            return Placed.TOO_LARGE
        columns, arrays = batch.columns, True
        kinds: list[object] = [*columns]
        for c in columns.values():
            if type(c) is not _ARRAY:
                arrays = False
            elif c.ndim == 1:
                kinds.append(c.dtype)
            elif c.size > BUFFER_ROWS and batch.n < SMALL:
                return Placed.TOO_LARGE
            else:
                kinds.append((c.dtype, c.shape[1:]))
        if not arrays:
            kinds = [batch.shape]
        pending, alike = self._count[0], kinds == self._kinds
        n = pending + batch.n
        if pending and (not alike or n > self._limit or self.batches >= BUFFER_BATCHES):
            return Placed.FULL
        if not alike:
            self._begin(columns, kinds, arrays)
        if self._appends is None and validators and self._pieces:
            self._appends = self._append_like(validators)
        if self._pieces:
            for name, c in columns.items():
                self._pieces[name].append(c.tobytes())  # type: ignore[union-attr, operator]  # an array
        else:
            self._batches.append(batch.copy())
        self._count[0] = n
        self._surplus += batch.total - batch.n
        self.append = self._appends or _refuse_rows
        return Placed.PENDING

    def _begin(self, columns: Mapping[str, Column], kinds: list[object], arrays: bool) -> None:
        """Prepare for batches of other kinds; nothing is pending."""
        self._kinds, self._appends = kinds, None
        self._pieces = {name: [] for name in columns} if arrays else {}
        plain = cast("dict[str, NDArray[Any]]", columns if arrays else {})
        self._like = {k: np.empty((0, *c.shape[1:]), c.dtype) for k, c in plain.items()}
        width = max([_width(c) for c in columns.values()], default=1)
        self._limit = BUFFER_ROWS // width if arrays else BUFFER_LISTS

    def close(self) -> None:
        """Disable `append` until the pending rows are flushed."""
        self.append = _refuse_rows

    def take_all(self) -> Batch:
        """All pending rows as one batch; none are pending afterwards."""
        n, total = self.n, self.total
        if self._pieces:
            columns: dict[str, Column] = {}
            for name, pieces in self._pieces.items():
                like = self._like[name]
                flat = np.frombuffer(b"".join(pieces), like.dtype)
                columns[name] = flat.reshape(n, *like.shape[1:])
                pieces.clear()
            joined = Batch(n, columns, total)
        else:
            joined = Batch.join(self._batches)
            self._batches = []
        self._count[0] = self._surplus = 0
        self.close()
        return joined

    def _append_like(self, validators: Mapping[str, Validate]) -> Append:
        """The `append` for columns of the pending kinds; it refuses all if there are too many
        inputs, or a pending column is not an input or not a plain array [n]."""
        like = self._like
        plain = all(column.ndim == 1 for column in like.values())
        if not plain or len(validators) > MOST_COLUMNS or not like.keys() <= validators.keys():
            return _refuse_rows
        columns = [
            _Pending(validate, like[name].dtype, self._pieces[name]) if name in like else None
            for name, validate in validators.items()
        ]
        return _appending(self._count, self._limit, *columns) if columns[0] else _refuse_rows


class _Pending(NamedTuple):
    """A column of the pending rows: its validator, its type, and its pieces."""

    validate: Validate
    dtype: np.dtype[Any]
    pieces: list[bytes]


def _width(column: Column) -> int:
    """The number of values in a row of an array; 1 for other columns."""
    if type(column) is not _ARRAY or column.ndim == 1:
        return 1
    return max(1, int(column.shape[1]))


def _array_of(column: object, most: int) -> NDArray[Any] | None:
    """The array of a list of at most so many numbers; None for all other columns."""
    if (type(column) is not list and type(column) is not tuple) or len(column) > most:
        return None
    return plain_array(column)


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
        if type(a) is not _ARRAY and (a := _array_of(a, most - count[0])) is None:
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
            if type(b) is not _ARRAY and (b := _array_of(b, n)) is None:
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
            if type(c) is not _ARRAY and (c := _array_of(c, n)) is None:
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
