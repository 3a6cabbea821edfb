"""Collapsed counts: counts by key and cell, of which neighbouring keys share one as soon as a state
has more different keys than it may have.

`collapsed_keys` says how keys collapse: a state is a function of its rows, however they were split
and merged.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import Reader, Writer, require
from streammetrics.core.parts.cell_runs import NO_CODES, Run, counted, summed
from streammetrics.core.parts.collapsed_keys import (
    MOST,
    NO_KEYS,
    Ints,
    Keys,
    least_shifts,
    masks,
    ordered_pairs,
    united,
)
from streammetrics.core.parts.part import Column, Slots
from streammetrics.core.parts.score_bits import score_keys
from streammetrics.core.rows import exact_total, ranges, sorted_distinct

_FEW_PENDING: Final = 1 << 15  # rows
_DENSE: Final = 1 << 22  # cells of a table, 32 megabytes
_NARROW: Final = 1 << 32  # codes below this one are sorted as uint32
_MARKED: Final = 1 << 20  # possible keys that are marked, where more are sorted
_PLACES: Final = 8  # for each row, of a table that rows are added to at once
_SAMPLE: Final = 1 << 11  # rows that show most of the shift
_MOST_SHIFT: Final = 62
_ENDS: Final = score_keys(np.array([-np.inf, np.inf]))


class _Counted(NamedTuple):
    """The counts of some keys: a table [keys, cells]; or, sparse, the codes (number of the key ·
    cells + cell), ascending, with their counts."""

    keys: Keys
    table: Ints | None = None
    codes: Ints = NO_CODES
    amounts: Ints = NO_CODES

    def sparse(self) -> Run:
        """The codes, ascending, and the counts."""
        if self.table is None:
            return self.codes, self.amounts
        flat = self.table.reshape(-1)
        codes = np.flatnonzero(flat != 0)
        return codes, flat[codes]


class _Rows(NamedTuple):
    """Rows that are not counted yet; slots None: all of slot 0; weights None: 1 each."""

    slots: Slots | None
    keys: Ints
    cells: NDArray[np.intp]
    weights: Ints | None

    def take(self, positions: NDArray[np.intp]) -> _Rows:
        """Some of the rows, in separate memory."""
        slots, weights = (
            None if array is None else array[positions] for array in (self.slots, self.weights)
        )
        return _Rows(slots, self.keys[positions], self.cells[positions], weights)

    def narrowed(self, width: int, possible: int | None, cells: int) -> _Rows:
        """All rows, in separate memory, of integers as narrow as their limits allow."""
        return _Rows(
            None if self.slots is None else self.slots.astype(np.min_scalar_type(width)),
            self.keys.astype(np.int64 if possible is None else np.min_scalar_type(possible)),
            self.cells.astype(np.min_scalar_type(cells)),
            None if self.weights is None else self.weights.copy(),
        )


class CollapsedColumn(Column):
    """`width` states of counts by key and cell, of `cells` cells.

    possible: keys are from 0 to below it; None: they are those of scores. most: different keys of a
    state, at least MOST. Rows and other states are pending until there are as many as counts, so
    each is placed about once.
    """

    def __init__(self, cells: int, possible: int | None, width: int, most: int = MOST) -> None:
        self.cells, self.possible, self.width, self.most = cells, possible, width, most
        self.shifts = np.zeros(width, np.int64)  # while anything is pending, at most the final ones
        self.counted = _Counted(NO_KEYS)
        self.rows: list[_Rows] = []
        self.others: list[_Counted] = []
        self.n_pending = 0

    @property
    def total_count(self) -> int:
        self.settle()
        return exact_total(self.counted.sparse()[1])

    @property
    def nbytes(self) -> int:
        arrays = [self.shifts]
        for counts in (self.counted, *self.others):
            arrays += [*counts.keys, counts.codes, counts.amounts]
            arrays += [] if counts.table is None else [counts.table]
        for rows in self.rows:
            arrays += [array for array in rows if array is not None]
        return sum(array.nbytes for array in arrays)

    def add(
        self,
        keys: Ints,
        cells: NDArray[np.intp],
        slots: Slots | None = None,
        weights: Ints | None = None,
    ) -> None:
        """Add 1, or the weight (at least 1), to the cell of each key; all [n], and copied."""
        if not len(keys):
            return
        rows = _Rows(slots, keys, cells, weights)
        if self.counted.table is not None and not self.others and len(keys) >= _FEW_PENDING:
            rows = self._without_known(rows)
        if len(rows.keys):
            self.rows.append(rows)
            self._append(len(rows.keys))
        if self.rows and self.rows[-1] is rows:  # they are still pending
            self.rows[-1] = rows.narrowed(self.width, self.possible, self.cells)

    def state(self, slot: int) -> tuple[int, Ints, Run]:
        """The shift of a state, its keys, ascending, and its counts by number of the key · cells +
        cell."""
        self.settle()
        column = self.take(np.array([slot], np.intp))
        return int(column.shifts[0]), column.counted.keys.keys, column.counted.sparse()

    def widen(self, width: int) -> None:
        self.shifts = np.concatenate([self.shifts, np.zeros(width - self.width, np.int64)])
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        other.settle()
        key_counts = other.counted
        if not len(key_counts.keys.keys):
            return
        np.maximum.at(self.shifts, to, other.shifts)
        table = None if key_counts.table is None else key_counts.table.copy()
        keys = key_counts.keys._replace(slots=to[key_counts.keys.slots])
        self.others.append(_Counted(keys, table, key_counts.codes, key_counts.amounts))
        self._append(len(key_counts.codes) if key_counts.table is None else key_counts.table.size)

    def take(self, slots: Slots) -> Self:
        self.settle()
        new = type(self)(self.cells, self.possible, len(slots), self.most)
        new.shifts, key_counts = self.shifts[slots], self.counted
        first = np.searchsorted(key_counts.keys.slots, slots)
        numbers, sizes = ranges(first, np.searchsorted(key_counts.keys.slots, slots, "right"))
        keys = Keys(np.repeat(np.arange(len(slots)), sizes), key_counts.keys.keys[numbers])
        if key_counts.table is not None:
            new.counted = _Counted(keys, key_counts.table[numbers])
            return new
        begin = np.searchsorted(key_counts.codes, numbers * self.cells)
        entries, sizes = ranges(
            begin, np.searchsorted(key_counts.codes, (numbers + 1) * self.cells)
        )
        moved = np.repeat((np.arange(len(numbers)) - numbers) * self.cells, sizes)
        new.counted = _Counted(
            keys, None, key_counts.codes[entries] + moved, key_counts.amounts[entries]
        )
        return new

    def encode(self, out: Writer) -> None:
        self.settle()
        key_counts = self.counted
        out.raw(self.shifts.astype(np.uint8).tobytes())
        out.ints(np.bincount(key_counts.keys.slots, minlength=self.width))
        if self.possible is None:
            out.words(key_counts.keys.keys.view(np.uint64) ^ np.uint64(1 << 63))
        else:
            out.ints(key_counts.keys.keys)
        codes, counts = key_counts.sparse()
        room = len(key_counts.keys.keys) * self.cells
        if 4 * len(codes) > room:
            out.uint(1)
            table = np.zeros(room, np.int64)
            table[codes] = counts
            out.ints(table)
            return
        out.uint(0)
        number, cell = np.divmod(codes, self.cells)
        out.ints(np.bincount(number, minlength=len(key_counts.keys.keys)))
        out.ints(cell)
        out.ints(counts)

    def read(self, data: Reader) -> None:
        """Fill an empty column from the bytes that `encode` wrote."""
        width, cells = self.width, self.cells
        self.shifts = np.frombuffer(data.raw(width), np.uint8).astype(np.int64)
        require(not width or int(self.shifts.max()) <= _MOST_SHIFT, "keys shifted by too many bits")
        sizes = data.ints(width)
        fit = not width or int(sizes.max()) <= self.most
        require(fit, "more different keys than a state can have")
        n = int(sizes.sum())
        require(n <= data.left, f"{n} keys in {data.left} bytes")
        keys = Keys(np.repeat(np.arange(width), sizes), self._read_keys(n, data))
        self._require_keys(keys)
        if data.uint(1):
            require(n * cells <= data.left, f"a table of {n * cells} cells in {data.left} bytes")
            table = data.ints(n * cells)
            used = int(np.count_nonzero(table))
            require(4 * used > n * cells, "a table with few occupied cells")
            self.counted = _Counted(keys, table.reshape(n, cells))
        else:
            cells_by_key = data.ints(n)
            n_cells = sum(cells_by_key.tolist())
            require(n_cells <= data.left, f"{n_cells} cells in {data.left} bytes")
            require(4 * n_cells <= n * cells, "a sparse form of many occupied cells")
            codes = np.repeat(np.arange(n) * cells, cells_by_key) + self._read_cells(n_cells, data)
            counts = data.ints(n_cells)
            require(bool((np.diff(codes) > 0).all() and (counts > 0).all()), "cells out of order")
            self.counted = _Counted(keys, None, codes, counts)
        self._require_least_shifts()

    def _read_keys(self, n: int, data: Reader) -> Ints:
        if self.possible is not None:
            return data.ints(n)
        return (data.words(n) ^ np.uint64(1 << 63)).view(np.int64)

    def _read_cells(self, n: int, data: Reader) -> Ints:
        cells = data.ints(n)
        require(not n or int(cells.max()) < self.cells, "a cell that does not exist")
        return cells

    def _require_keys(self, keys: Keys) -> None:
        slots, integers = keys
        mask = masks(self.shifts)[slots]
        least, most = (0, self.possible - 1) if self.possible is not None else _ENDS.tolist()
        ascending = (slots[1:] > slots[:-1]) | (integers[1:] > integers[:-1])
        within = (integers >= (least & mask)) & (integers <= most) & (integers == integers & mask)
        require(bool(ascending.all() and within.all()), "keys out of order or out of range")

    def _require_least_shifts(self) -> None:
        """StateError unless rows can have needed these shifts: with one bit more, each key that has
        several units of weight can have been two, and there must have been more than MOST: those of
        pairs of models had no more than that formerly."""
        key_counts = self.counted
        codes, counts = key_counts.sparse()
        first = np.searchsorted(codes, np.arange(len(key_counts.keys.keys)) * self.cells)
        require(
            len(sorted_distinct(codes // self.cells)) == len(key_counts.keys.keys),
            "a key without rows",
        )
        if not self.shifts.any():
            return
        most = np.minimum(counts, 2)
        units = np.minimum(np.add.reduceat(most, first) if len(first) else most, 2)
        before = np.bincount(key_counts.keys.slots, units, self.width)
        require(bool((before[self.shifts > 0] > MOST).all()), "keys shifted by too many bits")

    # -- placing what is pending ------------------------------------------------------------------
    def _append(self, n: int) -> None:
        self.n_pending += n
        key_counts = self.counted
        size = len(key_counts.codes) if key_counts.table is None else key_counts.table.size
        if self.n_pending >= max(_FEW_PENDING, size):
            self.settle()

    def _without_known(self, rows: _Rows) -> _Rows:
        """Add those rows to the table whose keys it has, and return the others: few, once most keys
        are known. All, if there are far more places for keys than rows."""
        window, table = _window(rows, self.shifts), self.counted.table
        if window is None or table is None:
            return rows
        places, size, least = window
        slots, keys = self.counted.keys
        shifted = keys >> self.shifts[slots]
        shifted -= least
        numbers = np.flatnonzero((shifted >= 0) & (shifted < size))
        first = np.full(size * len(self.shifts), -1)
        first[slots[numbers] * size + shifted[numbers]] = numbers * self.cells
        codes = first[places]
        new = np.flatnonzero(codes < 0)
        new_rows, flat = rows.take(new), table.reshape(-1)
        codes += rows.cells
        codes[new] = 0  # they are added there, and taken away again
        np.add.at(flat, codes, 1 if rows.weights is None else rows.weights)
        flat[0] -= len(new) if new_rows.weights is None else new_rows.weights.sum()
        return new_rows

    def settle(self) -> None:
        """Count everything that is pending."""
        if not self.n_pending:
            return
        rows, all_counts = _joined(self.rows), [self.counted, *self.others]
        placed: _Placed | None = None
        if rows is not None:
            if rows.slots is None and len(rows.keys) > _SAMPLE and not len(self.counted.keys.keys):
                self._foresee(rows.keys[:_SAMPLE])
            counts_or_places = _distinct(rows, self.shifts, self.cells)
            if isinstance(counts_or_places, _Counted):
                all_counts, rows = [*all_counts, counts_or_places], None
            else:
                placed = counts_or_places
        sets = [key_counts.keys for key_counts in all_counts]
        sets += [] if placed is None else [placed.keys]
        keys, to = united(sets, self.shifts, self.most)
        ends = np.cumsum([0, *[len(key_set.keys) for key_set in sets]])
        positions = [to[a:b] for a, b in pairwise(ends.tolist())]
        self.rows, self.others, self.n_pending = [], [], 0
        codes = NO_CODES
        if rows is not None and placed is not None:
            first = np.empty(placed.size, np.intp)  # of each place the code of its first cell
            first[placed.places] = positions[-1] * self.cells
            codes = first[placed.at]
            codes += rows.cells
        weights = None if rows is None else rows.weights
        self.counted = self._placed(keys, all_counts, positions, codes, weights)

    def _foresee(self, keys: Ints) -> None:
        """Raise the shift of slot 0 to the least of these rows, so that others are few at once."""
        distinct_keys = sorted_distinct(keys & (-1 << int(self.shifts[0])))
        self.shifts[:1] = least_shifts(
            Keys(np.zeros(len(distinct_keys), np.intp), distinct_keys), self.shifts, self.most
        )[:1]

    def _placed(
        self,
        keys: Keys,
        all_counts: list[_Counted],
        positions: list[NDArray[np.intp]],
        codes: NDArray[np.intp],
        weights: Ints | None,
    ) -> _Counted:
        """The counts of all of these. positions: of the keys of each of `all_counts`, where they
        are among `keys`. codes, weights: of single rows."""
        size = len(keys.keys) * self.cells
        n_entries = sum(
            len(key_counts.codes) if key_counts.table is None else key_counts.table.size
            for key_counts in all_counts
        )
        if size <= _DENSE and 4 * (n_entries + len(codes)) > size:
            table = np.zeros((len(keys.keys), self.cells), np.int64)
            for key_counts, to in zip(all_counts, positions, strict=False):
                _add_to(table, key_counts, to, self.cells)
            np.add.at(table.reshape(-1), codes, 1 if weights is None else weights)
            if 4 * np.count_nonzero(table) > size:
                return _Counted(keys, table)
            return _Counted(keys, None, *_Counted(keys, table).sparse())
        runs = [
            _moved(key_counts, to, self.cells)
            for key_counts, to in zip(all_counts, positions, strict=False)
        ]
        if len(codes):
            runs.append((codes, np.ones(len(codes), np.int64) if weights is None else weights))
        runs = [run for run in runs if len(run[0])]
        return _Counted(keys, None, *(summed(runs, size) if runs else (NO_CODES, NO_CODES)))


def _joined(rows: list[_Rows]) -> _Rows | None:
    """All rows together, of wide integers, or None."""
    if not rows:
        return None
    slots = None
    if any(piece.slots is not None for piece in rows):
        pieces = (np.zeros(len(piece.keys), np.intp) if piece.slots is None else piece.slots
                  for piece in rows)  # fmt: skip
        slots = np.concatenate([*pieces], dtype=np.intp)
    weights = None
    if any(piece.weights is not None for piece in rows):
        weights = np.concatenate([np.ones(len(piece.keys), np.int64) if piece.weights is None
                                  else piece.weights for piece in rows])  # fmt: skip
    keys = np.concatenate([piece.keys for piece in rows], dtype=np.int64)
    cells = np.concatenate([piece.cells for piece in rows], dtype=np.intp)
    return _Rows(slots, keys, cells, weights)


class _Placed(NamedTuple):
    """The different keys of rows. places: of each key, from 0 to below `size`; at: of each row, the
    place of its key."""

    keys: Keys
    places: NDArray[np.intp]
    size: int
    at: NDArray[np.intp]


def _distinct(rows: _Rows, shifts: Ints, cells: int) -> _Placed | _Counted:
    """The different keys of rows under these shifts, by marking them if few are possible; or the
    counts of the rows, by sorting them. cells: of each key."""
    slots, width = rows.slots, 1 if rows.slots is None else len(shifts)
    shifted = _shifted(rows, shifts)
    least = int(shifted.min())
    size = int(shifted.max()) - least + 1
    every = width * size
    if every * cells < 1 << 62:
        shifted -= least
        if slots is not None:
            shifted += slots * size
        if every <= _MARKED:
            marks = np.zeros(every, np.bool_)
            marks[shifted] = True
            places = np.flatnonzero(marks)
            return _Placed(_keys_at(places, size, least, shifts), places, every, shifted)
        shifted *= cells
        shifted += rows.cells
        codes, counts = _sorted_counts(shifted, rows.weights, every * cells)
        number = codes // cells
        new = np.flatnonzero(np.diff(number, prepend=-1))
        keys = _keys_at(number[new], size, least, shifts)
        codes = codes - number * cells
        codes += np.repeat(np.arange(len(new)) * cells, np.diff(new, append=len(codes)))
        return _Counted(keys, None, codes, counts)
    row_slots = np.zeros(len(shifted), np.intp) if slots is None else slots
    distinct_keys, numbers = ordered_pairs(row_slots, shifted << shifts[row_slots], shifts)
    return _Placed(
        distinct_keys, np.arange(len(distinct_keys.keys)), len(distinct_keys.keys), numbers
    )


def _shifted(rows: _Rows, shifts: Ints) -> Ints:
    shifted: Ints = rows.keys >> (int(shifts[0]) if rows.slots is None else shifts[rows.slots])
    return shifted


def _window(rows: _Rows, shifts: Ints) -> tuple[Ints, int, int] | None:
    """For `_add_to_table`, if there are not far more places than rows; else None."""
    shifted = _shifted(rows, shifts)
    least = int(shifted.min())
    size = int(shifted.max()) - least + 1
    if size * len(shifts) > _PLACES * len(shifted):
        return None
    shifted -= least
    if rows.slots is not None:
        shifted += rows.slots * size
    return shifted, size, least


def _keys_at(places: Ints, size: int, least: int, shifts: Ints) -> Keys:
    """The keys of these places: slot · size + (key, shifted, - least)."""
    slots, shifted = np.divmod(places, size)
    return Keys(slots, (shifted + least) << shifts[slots])


def _sorted_counts(codes: Ints, weights: Ints | None, size: int) -> Run:
    """The different codes, each below `size`, ascending, and their rows or the sums of weights."""
    if weights is not None:
        return summed([(codes, weights)], size)
    ordered = codes.astype(np.uint32) if size <= _NARROW else codes
    ordered.sort()
    return counted(ordered)


def _add_to(table: Ints, key_counts: _Counted, to: NDArray[np.intp], cells: int) -> None:
    """Add counts to the rows of a table; to: of each key its row."""
    if key_counts.table is None:
        codes, counts = _moved(key_counts, to, cells)
        np.add.at(table.reshape(-1), codes, counts)
    elif len(to) == len(table) and (np.diff(to) > 0).all():
        table += key_counts.table
    elif len(to) and (np.diff(to) > 0).all():
        table[to] += key_counts.table
    elif len(to):
        np.add.at(table, to, key_counts.table)


def _moved(key_counts: _Counted, to: NDArray[np.intp], cells: int) -> Run:
    """The codes with other numbers of their keys, and the counts."""
    codes, counts = key_counts.sparse()
    if not len(codes):
        return codes, counts
    number = codes // cells
    return codes + (to[number] - number) * cells, counts
