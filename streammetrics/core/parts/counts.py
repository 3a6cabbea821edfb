"""Counts: int64 cells that merge by addition, kept sparse while few of them are occupied."""

from __future__ import annotations

from itertools import pairwise, repeat
from math import prod
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Stack, Unlike, Writer, damaged, ints_each
from streammetrics.core.parts.cell_runs import NO_CODES, Run, counted, merged, summed
from streammetrics.core.parts.many_slots import AnySlots, ManySlots, cell_slots
from streammetrics.core.parts.part import Column, Part, Slots
from streammetrics.core.rows import exact_total, ranges

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared


def kind_for(top: int) -> type[np.integer]:
    """The narrowest type of cells that holds counts up to this one."""
    if top < 1 << 16:
        return np.uint8 if top < 1 << 8 else np.uint16
    return np.uint32 if top < 1 << 32 else np.int64


_ALWAYS_DENSE: Final = 64  # cells; a sparse form of so few would be larger
_DENSE_WHEN_FED: Final = 1 << 20  # cells of all states, which cost 8 megabytes at most
_NARROW: Final = 1 << 32  # codes below this one are sorted as uint32
_FEW_PENDING: Final = 1 << 15
_FEW_ROWS: Final = 2  # for each cell
_UNKNOWN: Final = 1 << 32  # `top` of an int64 table, whose greatest count is not tracked


class CountsColumn(Column):
    """`width` tables of counts of one shape.

    Dense: `table` [width, cells]. Sparse: sorted codes (slot * cells + cell) with their counts,
    and pending codes, of rows one each or with counts, that are merged in once they take as much
    memory as the settled ones: then each is sorted about once. A table is of int64
    once rows are added; while it is only read or merged, it is as narrow as `top` allows, which no
    count in it exceeds.
    """

    def __init__(self, shape: tuple[int, ...], width: int) -> None:
        self.shape, self.cells, self.width = shape, prod(shape), width
        self.fed = 0  # rows added, or cells merged, while sparse
        self.codes = self.counts = NO_CODES
        self.pending: list[Run] = []
        self.rows: list[NDArray[np.integer]] = []  # pending codes that count one each
        self.pending_bytes = 0
        self.table: NDArray[np.integer] | None = None
        self.top = _UNKNOWN
        if 0 < self.cells <= _ALWAYS_DENSE:
            self.table = np.zeros((width, self.cells), np.int64)

    @property
    def total_count(self) -> int:
        cells: NDArray[np.integer] = self.counts
        if self.table is not None:
            cells = self.table[: self.width].reshape(-1)
        pending = sum([exact_total(counts) for _, counts in self.pending])
        return exact_total(cells) + pending + sum(map(len, self.rows))

    @property
    def bound(self) -> int:
        if self.top >= _UNKNOWN:
            return self.total_count
        return self.top * (len(self.codes) if self.table is None else self.table.size)

    @property
    def stacks(self) -> bool:
        return self.table is not None or not len(self.codes)

    @property
    def nbytes(self) -> int:
        sparse_bytes = self.codes.nbytes + self.counts.nbytes + self.pending_bytes
        return sparse_bytes + (0 if self.table is None else self.table.nbytes)

    def add(
        self,
        cells: NDArray[np.intp],
        slots: AnySlots | None = None,
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        """Add 1, or the weight, to each given cell (flat index within one state).

        With weights, slots are [n].
        """
        codes = cell_slots(slots, self.cells, cells)
        if isinstance(codes, ManySlots):
            if self.cells > _ALWAYS_DENSE:
                for _, grouping_codes in codes.each():
                    self._add(grouping_codes, None)
            elif codes.pays:
                np.add.at(self._cells(), codes.present, codes.counts())
            else:
                self._add(codes.every(), None)
            return
        self._add(codes, weights)

    def _add(self, codes: NDArray[np.intp], weights: NDArray[np.int64] | None) -> None:
        if self._dense(len(codes)):
            np.add.at(self._cells(), codes, 1 if weights is None else weights)
        elif weights is None:
            self.rows.append(codes.astype(self._kind))  # a copy
            self._append(self.rows[-1].nbytes)
        else:
            self.pending.append((codes.astype(np.int64), weights.astype(np.int64)))
            self._append(16 * len(codes))

    def add_flags(self, slots: Slots | None, *flags: NDArray[np.bool_] | bool) -> None:
        """Add 1 for each row to a table [2, 2, ...], at what its flags say: [n], or one for all
        rows. Without slots in a tenth of the time of `add`."""
        codes = np.zeros(max(map(np.size, flags)), np.uint8)
        for flag in flags:
            codes <<= 1
            codes |= flag
        if slots is not None:
            self.add(codes.astype(np.intp), slots)
            return
        counts = [int(np.count_nonzero(codes == cell)) for cell in range(self.cells)]
        self.add(np.arange(self.cells), None, np.array(counts, np.int64))

    def flag_totals(self, slots: Slots) -> list[list[int]]:
        """Of a table [2, 2, ...] the rows of each of these states, and those with each flag."""
        every: NDArray[np.int64] = self.tables(slots)
        tables = [every, *(np.take(every, 1, axis) for axis in range(1, every.ndim))]
        return [table.sum(axis=tuple(range(1, table.ndim))).tolist() for table in tables]

    def dense(self, slot: int = 0) -> NDArray[np.int64]:
        """One state as an array of the declared shape."""
        if self.table is not None:
            dense: NDArray[np.int64] = self.table[slot].reshape(self.shape).astype(np.int64)
            return dense
        out = np.zeros(self.cells, np.int64)
        cells, counts = self.occupied(slot)
        out[cells] = counts
        return out.reshape(self.shape)

    def tables(self, slots: Slots) -> NDArray[np.int64]:
        """These states as an array [slots, *shape] of its own."""
        if self.table is None:
            codes, counts = self.cells_of(slots)
            tables = np.zeros(len(slots) * self.cells, np.int64)
            tables[codes] = counts
        else:
            tables = self.table[slots].astype(np.int64, copy=False)
        return tables.reshape(len(slots), *self.shape)

    def columns(self, slots: Slots) -> list[list[int]]:
        """Of each cell its count in each of these states."""
        tables = self.tables(slots) if self.table is None else self.table[slots]
        columns: list[list[int]] = tables.reshape(len(slots), self.cells).T.tolist()
        return columns

    def totals(self, slots: Slots) -> list[int] | list[None]:
        """The sum of each of these tables; None for tables without cells."""
        if not self.cells:
            return [None] * len(slots)
        codes, counts = self.cells_of(slots)
        totals = np.zeros(len(slots), np.int64)
        np.add.at(totals, codes // self.cells, counts)
        return totals.tolist()

    def cells_of(self, slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The occupied cells of these states, ascending, and their counts; cell c of the i-th state
        is i * cells + c."""
        return self.take(slots)._sparse()

    def each_occupied(self, slots: Slots) -> list[Run]:
        """As `occupied`, of each of these states."""
        if len(slots) == 1:
            return [self.occupied(slots.item(0))]
        codes, counts = self.cells_of(slots)
        firsts = np.arange(len(slots) + 1) * self.cells
        ends = np.searchsorted(codes, firsts)
        codes = codes - firsts[:-1].repeat(ends[1:] - ends[:-1])
        return [(codes[a:b].copy(), counts[a:b].copy()) for a, b in pairwise(ends.tolist())]

    def occupied(self, slot: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The flat indices of one state's occupied cells, ascending, and their counts."""
        if self.table is not None:
            cells = np.flatnonzero(self.table[slot] != 0)
            return cells, self.table[slot][cells].astype(np.int64, copy=False)
        self._settle()
        a, b = np.searchsorted(self.codes, [slot * self.cells, (slot + 1) * self.cells])
        return self.codes[a:b] - slot * self.cells, self.counts[a:b].copy()

    def widen(self, width: int) -> None:
        if self.table is not None and width > len(self.table):
            if self.cells > _ALWAYS_DENSE and self._is_thin(width):
                self.codes, self.counts = self._sparse()
                self.table = None
                self.fed = 0  # or each new slot would make the table again
            else:
                shape = max(width, 2 * len(self.table)), self.cells
                grown = np.zeros(shape, self.table.dtype)
                grown[: self.width] = self.table[: self.width]
                self.table = grown
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        if not self.cells:
            return
        if other.table is not None and self.width == 1:
            self._merge_tables(other.table[: other.width], other.top)
            return
        codes, counts = other._sparse()
        if other.width > 1:
            firsts = np.arange(other.width + 1) * self.cells
            shift = to * self.cells - firsts[:-1]
            codes = codes + np.repeat(shift, np.diff(np.searchsorted(codes, firsts)))
        elif to.any():
            codes = codes + to.item(0) * self.cells
        if len(codes):
            self._place(codes, counts)

    def take(self, slots: Slots) -> Self:
        new = type(self)(self.shape, len(slots))
        self._settle()
        if self.table is None and self._is_full():
            self._make_table()
        if self.table is not None:
            new.table, new.top = self.table[slots], self.top
            return new
        if len(slots) == self.width and np.array_equal(slots, np.arange(self.width)):
            new.codes, new.counts = self.codes, self.counts  # these are never written to
            return new
        first = np.searchsorted(self.codes, slots * self.cells)
        positions, sizes = ranges(first, np.searchsorted(self.codes, (slots + 1) * self.cells))
        shift = (np.arange(len(slots)) - slots) * self.cells
        new.codes = self.codes[positions]
        new.codes += np.repeat(shift, sizes)
        new.counts = self.counts[positions]
        return new

    def encode(self, out: Writer) -> None:
        codes, counts = self._sparse()
        if 4 * len(codes) > self.width * self.cells:
            out.uint(1)
            everything = np.zeros(self.width * self.cells, np.int64)
            everything[codes] = counts
            out.ints(everything)
            return
        out.uint(0)
        firsts = np.arange(self.width + 1) * self.cells
        sizes = np.diff(np.searchsorted(codes, firsts))
        out.ints(sizes)
        positions = np.repeat(firsts[:-1], sizes)
        out.ints(np.subtract(codes, positions, out=positions))
        out.ints(counts)

    def encode_each(self, slots: Slots) -> list[bytes]:
        codes, counts = self.cells_of(slots)
        ends = np.searchsorted(codes, np.arange(len(slots) + 1) * self.cells)
        sizes = ends[1:] - ends[:-1]
        cells = codes - (np.arange(len(slots)) * self.cells).repeat(sizes)
        fields = [ints_each(sizes, np.arange(len(slots) + 1))]
        fields += [ints_each(column, ends) for column in (cells, counts)]
        encoded = [*map(b"".join, zip(repeat(b"\0"), *fields))]
        full = np.flatnonzero(4 * sizes > self.cells)
        if len(full):
            tables, edges = self.tables(slots[full]), np.arange(len(full) + 1) * self.cells
            for i, table in zip(full.tolist(), ints_each(tables.reshape(-1), edges), strict=True):
                encoded[i] = b"\1" + table
        return encoded

    def read(self, data: Reader) -> None:
        """Fill an empty column from the bytes that `encode` wrote."""
        width, cells = self.width, self.cells
        if data.uint(1):
            if width * cells > data.left:
                raise damaged(f"a table of {width * cells} cells in {data.left} bytes")
            everything, self.top = data.narrow(width * cells)
            used = np.count_nonzero(everything)
            if 4 * used <= width * cells:
                raise damaged(f"a table of {width * cells} cells with {used} occupied")
            self.table = everything.astype(kind_for(self.top)).reshape(width, cells)
            return
        sizes: list[int] = [data.int_()] if width == 1 else data.ints(width).tolist()
        n = sum(sizes)
        if n > data.left or 4 * n > width * cells:
            raise damaged(f"{n} of {width * cells} cells in {data.left} bytes")
        positions, last = data.narrow(n)
        amounts, top = data.narrow(n)
        if self.table is None:
            self.top = top
        if not n:
            return
        counts = amounts.astype(np.int64)
        if width == 1:
            codes = positions.astype(np.int64)
        else:
            codes = np.repeat(np.arange(width) * cells, sizes)
            np.add(codes, positions, out=codes, dtype=np.int64, casting="unsafe")
        ascending = bool((codes[1:] > codes[:-1]).all())
        if not (ascending and last < cells and amounts.min() > 0):
            raise damaged("cells out of order, out of range or empty")
        if self.table is None:
            self.codes, self.counts = codes, counts
        else:
            self._cells()[codes] = counts

    def read_stack(self, stack: Stack) -> None:
        """Fill an empty column with the table in each row; all rows may be without counts."""
        cells = self.cells
        flag = stack.same()
        if flag == 1:
            table, top = stack.narrow(cells)
            if any(4 * np.count_nonzero(row) <= cells for row in table):
                raise Unlike
            self.table, self.top = table.astype(kind_for(top), copy=False), top
        elif any([flag, stack.int_(), stack.narrow(0)[1], stack.narrow(0)[1]]):
            raise Unlike

    def _sparse(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All occupied codes, ascending, and their counts."""
        if self.table is None:
            self._settle()
            return self.codes, self.counts
        flat = self.table[: self.width].reshape(-1)
        codes = np.flatnonzero(flat != 0)
        return codes, flat[codes].astype(np.int64, copy=False)

    def _cells(self) -> NDArray[np.int64]:
        """All cells of the table, as int64, to add rows to."""
        assert self.table is not None
        if self.table.itemsize < 8:
            self.table, self.top = self.table.astype(np.int64), _UNKNOWN
        return cast("NDArray[np.int64]", self.table.reshape(-1))

    def _merge_tables(self, tables: NDArray[np.integer], top: int) -> None:
        """Add tables [n, cells], as many at once as their narrow type can add up."""
        n = len(tables)
        step = max(n, 1) if tables.itemsize == 8 else (1 << 8 * tables.itemsize) // (top + 1)
        for i in range(0, n, step):
            piece = tables[i : i + step]
            if len(piece) > 1:
                piece = np.add.reduce(piece, axis=0, dtype=piece.dtype, keepdims=True)
            self._merge_table(piece, top * min(step, n - i))

    def _merge_table(self, other_table: NDArray[np.integer], top: int) -> None:
        """Add a table in which no count exceeds `top`."""
        if self.table is None and not (len(self.codes) or self.pending_bytes):
            self.table, self.top = other_table.copy(), top
            return
        if self.table is None:
            self._make_table()
        table = self.table
        assert table is not None
        self.top += top
        if self.top >> 8 * table.itemsize and table.itemsize < 8:
            self.table = table = table.astype(kind_for(self.top))
        np.add(table, other_table, out=table)

    def _place(self, codes: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add counts to the cells of these codes."""
        if self._dense(len(codes)):
            np.add.at(self._cells(), codes, counts)
        else:
            self.pending.append((codes, counts))
            self._append(16 * len(codes))

    def _append(self, nbytes: int) -> None:
        """Note bytes of new pending codes, and settle all if there are enough."""
        self.top = _UNKNOWN
        self.pending_bytes += nbytes
        if self.pending_bytes > 16 * max(_FEW_PENDING, len(self.codes)):
            self._settle()
            if self._is_full():
                self._make_table()

    @property
    def _kind(self) -> type[np.uint32 | np.int64]:
        """The type of pending rows: the narrowest that holds every code."""
        return np.uint32 if self.width * self.cells <= _NARROW else np.int64

    def _settle(self) -> None:
        if not self.pending_bytes:
            return
        size = self.width * self.cells
        if self.pending:
            self.codes, self.counts = summed([(self.codes, self.counts), *self.pending], size)
        if self.rows:
            pieces, settled = self.rows, (self.codes, self.counts)
            if exact_total(self.counts) <= _FEW_ROWS * len(self.codes):
                # To sort these again takes less time than to merge cells.
                settled_rows = np.repeat(self.codes.astype(self._kind, copy=False), self.counts)
                pieces, settled = [*pieces, settled_rows], (NO_CODES, NO_CODES)
            rows = np.concatenate(pieces)
            rows.sort()
            self.codes, self.counts = merged(settled, counted(rows), size)
        self.pending, self.rows, self.pending_bytes = [], [], 0

    def _dense(self, n: int) -> bool:
        """Whether there is a table; creates it for a small state that `n` more rows may fill."""
        if self.table is None:
            self.fed += n
            cells = self.width * self.cells
            if cells <= _DENSE_WHEN_FED and 4 * self.fed > cells:
                self._make_table()
        return self.table is not None

    def _is_full(self) -> bool:
        """Whether more than a quarter of the cells of the sparse form is occupied."""
        return 4 * len(self.codes) > self.width * self.cells

    def _is_thin(self, width: int) -> bool:
        """Whether a table for `width` states would be at most a quarter full."""
        assert self.table is not None
        return 4 * int(np.count_nonzero(self.table[: self.width])) <= width * self.cells

    def _make_table(self) -> None:
        codes, counts = self._sparse()
        self.top = int(counts.max(initial=0))
        table = np.zeros(self.width * self.cells, kind_for(self.top))
        table[codes] = counts
        self.table = table.reshape(self.width, self.cells)
        self.codes = self.counts = NO_CODES


T = TypeVar("T", bound=CountsColumn)


class Tables(Part[T]):
    """Tables whose axes are sizes, or names of settings or properties that hold them."""

    column: type[T]

    def __init__(self, *axes: int | str) -> None:
        self.axes = axes

    def shape(self, owner: Declared) -> tuple[int, ...]:
        """The shape of one state under these settings."""
        return tuple([a if isinstance(a, int) else int(getattr(owner, a)) for a in self.axes])

    def empty(self, owner: Declared, width: int) -> T:
        return self.column(self.shape(owner), width)

    def decode(self, owner: Declared, width: int, data: Reader) -> T:
        template = owner.__dict__.get(self.name)  # a column of these settings
        column = self.column(template.shape if template is not None else self.shape(owner), width)
        column.read(data)
        return column

    def decode_stack(self, owner: Declared, stack: Stack) -> T:
        column = self.column(self.shape(owner), stack.n)
        column.read_stack(stack)
        return column


class Counts(Tables[CountsColumn]):
    """An int64 table whose axes are sizes, or names of settings or properties that hold them."""

    column = CountsColumn
