"""The JSON of results, written in pieces: one text for each row, without a copy of the whole.

`results --json` keeps the rows of an answer in a temporary file until they can be put in order: the
states are read metric by metric, and rows are ordered by window and slice.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.encoding import Encoder, as_bytes, members
from streammetrics_consumers.query.query import Slice, SliceValue, slice_key
from streammetrics_consumers.query.rows import SliceRow, Window
from streammetrics_consumers.query.slices import window_key
from streammetrics_consumers.query.turns import checkpoint

ROWS: Final = 100  # of one piece
ROWS_KEPT: Final = 6000  # one and a half kilobytes each
ROWS_NAME: Final = '"results": '  # as `members` gives it


class KeptRows:
    """The JSON of the rows of the last answers, most of which the next one has too. Thread-safe.
    most: how many it keeps at most."""

    def __init__(self, most: int = ROWS_KEPT) -> None:
        self._half = most // 2
        # By the identity of the value and of the slice, which the kept row holds.
        self._newer: dict[tuple[int, int], tuple[SliceRow, bytes]] = {}
        self._older: dict[tuple[int, int], tuple[SliceRow, bytes]] = {}  # as in `CellCache`

    def each(self, rows: Iterable[SliceRow]) -> Iterator[bytes]:
        """The JSON of each of these rows."""
        row_json = Encoder().text
        for row in rows:
            key = id(row.shown), id(row.slice)
            entry = self._newer.get(key) or self._older.get(key)
            if entry is None or entry[0] != row:
                entry = row, as_bytes(row_json(row))
            if len(self._newer) >= self._half:
                self._newer, self._older = {}, self._newer
            self._newer[key] = entry
            yield entry[1]


def to_json(results: ResultsAnswer, kept_rows: KeptRows | None = None) -> bytes:
    """The bytes of `results --json` and of `GET /api/results`. kept_rows: of former answers."""
    return b"".join(json_pieces(results, kept_rows))


def json_pieces(results: ResultsAnswer, kept_rows: KeptRows | None = None) -> Iterator[bytes]:
    """The bytes of `to_json`, piece by piece."""
    if kept_rows is not None:
        return _document(results, kept_rows.each(results.rows))
    row_json = Encoder().text
    return _document(results, (as_bytes(row_json(row)) for row in results.rows))


class RowSpool:
    """The rows of an answer as JSON, in a temporary file. is_final: whether the rows of a slice are
    as they will be; the results hold the others until `pieces`."""

    def __init__(self, is_final: Callable[[Slice], bool]) -> None:
        self._is_final = is_final
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `pieces`
        self._row_json = Encoder().text
        self._ends = array("q", [0])
        self._places: tuple[array[int], array[int], array[int]] = array("i"), array("i"), array("i")
        self._windows: dict[Window, int] = {}
        self._slices: dict[tuple[SliceValue, ...], int] = {}  # name, value, name, value, ...
        self._metrics: dict[str, int] = {}

    def keep(self, rows: Sequence[SliceRow]) -> Sequence[SliceRow]:
        """Write the rows of one state, in order, unless they may still change; returns those."""
        if rows and self._is_final(rows[0].slice):
            self._write(rows)
            return ()
        return rows

    def pieces(self, results: ResultsAnswer) -> Iterator[bytes]:
        """The bytes of `to_json` for all rows: those written, and those of the results. The file is
        closed at the end."""
        return _document(results, self.rows(results))

    def rows(self, results: ResultsAnswer) -> Iterator[bytes]:
        """All rows in order, those of one state in a piece, with commas between them. The file is
        closed at the end."""
        with self._file:
            for row in results.rows:
                self._write([row])
            yield from self._sorted_pieces()

    def close(self) -> None:
        """Forget all rows."""
        self._file.close()

    def _write(self, rows: Sequence[SliceRow]) -> None:
        row, data = rows[0], as_bytes(", ".join(map(self._row_json, rows)))
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))
        windows, slices, metrics = self._places
        windows.append(self._windows.setdefault(row.window, len(self._windows)))
        items = tuple(chain.from_iterable(row.slice.items()))
        slices.append(self._slices.setdefault(items, len(self._slices)))
        metrics.append(self._metrics.setdefault(row.metric, len(self._metrics)))

    def _sorted_pieces(self) -> Iterator[bytes]:
        ranks = (
            _ranks([window_key(window) for window in self._windows]),
            _ranks([slice_key(_slice_of(items)) for items in self._slices]),
            _ranks(list(self._metrics)),
        )
        keys = [rank[np.array(places)] for rank, places in zip(ranks, self._places, strict=True)]
        self._file.flush()
        file, ends = self._file.fileno(), self._ends
        for i in np.lexsort(keys[::-1]).tolist():
            yield os.pread(file, ends[i + 1] - ends[i], ends[i])


def _document(results: ResultsAnswer, rows: Iterable[bytes]) -> Iterator[bytes]:
    """The JSON object of results, with these rows."""
    encoder, text = Encoder(), "{"
    for name, value in members(results):
        text += f"{', ' * (text != '{')}{name}"
        if name == ROWS_NAME:
            yield as_bytes(f"{text}[")
            yield from _joined(rows)
            text = "]"
        else:
            text += encoder.text(value)
    yield as_bytes(f"{text}}}\n")


def _joined(rows: Iterable[bytes]) -> Iterator[bytes]:
    """The rows with commas between them, many in one piece."""
    piece: list[bytes] = []
    comma = b""
    for row in rows:
        piece.append(row)
        if len(piece) == ROWS:
            checkpoint()
            yield comma + b", ".join(piece)
            piece, comma = [], b", "
    if piece:
        yield comma + b", ".join(piece)


def _slice_of(items: Sequence[SliceValue]) -> Slice:
    """The slice of these names and values, which alternate."""
    return dict(zip(map(str, items[::2]), items[1::2], strict=True))


def _ranks(keys: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The place of each key in their order."""
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type]
    ranks = np.empty(len(keys), np.intp)
    ranks[order] = np.arange(len(keys))
    return ranks
