"""The JSON of results, written in pieces: one text for each row, without a copy of the whole.

`results --json` keeps the rows of an answer in a temporary file until they can be put in order: the
states are read metric by metric, and rows are ordered by window and slice.
"""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from streammetrics_consumers.query import answers
from streammetrics_consumers.query.answers import Interval, Json, Result, Results, Window
from streammetrics_consumers.query.query import Slice, SliceValue, slice_key
from streammetrics_consumers.query.slices import window_key
from streammetrics_consumers.query.turns import checkpoint

ROWS: Final = 100  # of one piece
MAX_KNOWN: Final = 10_000  # names and texts whose JSON is remembered

_ENCODER: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False)


def to_json(results: Results) -> bytes:
    """The bytes of `results --json` and of `GET /api/results`."""
    return b"".join(json_pieces(results))


def json_pieces(results: Results) -> Iterator[bytes]:
    """The bytes of `to_json`, piece by piece."""
    row_json = RowEncoder().encode
    return _document(results, (_bytes(row_json(row)) for row in results.rows))


class RowSpool:
    """The rows of an answer as JSON, in a temporary file. is_final: whether the rows of a slice are
    as they will be; the results hold the others until `pieces`."""

    def __init__(self, is_final: Callable[[Slice], bool]) -> None:
        self._is_final = is_final
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `pieces`
        self._row_json = RowEncoder().encode
        self._ends = array("q", [0])
        self._places: tuple[array[int], array[int], array[int]] = array("l"), array("l"), array("l")
        self._windows: dict[Window, int] = {}
        self._slices: dict[tuple[tuple[str, SliceValue], ...], int] = {}
        self._metrics: dict[str, int] = {}

    def keep(self, rows: Sequence[Result]) -> Sequence[Result]:
        """Write the rows of one state, in order, unless they may still change; returns those."""
        if rows and self._is_final(rows[0].slice):
            self._write(rows)
            return ()
        return rows

    def pieces(self, results: Results) -> Iterator[bytes]:
        """The bytes of `to_json` for all rows: those written, and those of the results. The file is
        closed at the end."""
        with self._file:
            for row in results.rows:
                self._write([row])
            yield from _document(results, self._in_order())

    def close(self) -> None:
        """Forget all rows."""
        self._file.close()

    def _write(self, rows: Sequence[Result]) -> None:
        row, data = rows[0], _bytes(", ".join(map(self._row_json, rows)))
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))
        windows, slices, metrics = self._places
        windows.append(self._windows.setdefault(row.window, len(self._windows)))
        items = tuple(row.slice.items())
        slices.append(self._slices.setdefault(items, len(self._slices)))
        metrics.append(self._metrics.setdefault(row.metric, len(self._metrics)))

    def _in_order(self) -> Iterator[bytes]:
        ranks = (
            _ranks([window_key(window) for window in self._windows]),
            _ranks([slice_key(dict(items)) for items in self._slices]),
            _ranks(list(self._metrics)),
        )
        keys = [rank[np.array(places)] for rank, places in zip(ranks, self._places, strict=True)]
        self._file.flush()
        file, ends = self._file.fileno(), self._ends
        for i in np.lexsort(keys[::-1]).tolist():
            yield os.pread(file, ends[i + 1] - ends[i], ends[i])


class RowEncoder:
    """Writes rows as `answers.dumps` does; the parts that rows share are written once."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[object, str]] = {}
        self._texts: dict[str, str] = {}

    def encode(self, row: Result) -> str:
        """The JSON of a row."""
        text = "" if row.text is UNSET else f'"text": {_json(row.text)}, '
        high, low, value = _number(row.high), _number(row.low), _number(row.value)
        band = "" if row.band is UNSET else f'"band": {self._interval(row.band)}, '
        counts, digest = self._shared("counts", row.counts), _ENCODER.encode(row.digest)
        return (
            f'{{{band}"counts": {counts}, "digest": {digest},'
            f' "high": {high}, "interval": {self._interval(row.interval)}, "low": {low},'
            f' "metric": {self._text(row.metric)}, "slice": {self._shared("slice", row.slice)},'
            f' {text}"type": {self._text(row.type)}, "value": {value},'
            f' "view": {self._text(row.view)}, "window": {self._shared("window", row.window)}}}'
        )

    def _interval(self, interval: Interval | None) -> str:
        if interval is None:
            return "null"
        return (
            f'{{"deff": {_number(interval.deff)}, "level": {_number(interval.level)},'
            f' "lower": {_number(interval.lower)}, "method": {self._text(interval.method)},'
            f' "n": {interval.n}, "n_eff": {_number(interval.n_eff)},'
            f' "reason": {self._text(interval.reason)}, "upper": {_number(interval.upper)}}}'
        )

    def _shared(self, name: str, value: object) -> str:
        """The JSON of an object that the next rows may have as well."""
        entry = self._last.get(name)
        if entry is None or entry[0] is not value:
            text = _object(value) if isinstance(value, dict) else _json(value)
            entry = self._last[name] = value, text
        return entry[1]

    def _text(self, text: str) -> str:
        json_text = self._texts.get(text)
        if json_text is None:
            if len(self._texts) >= MAX_KNOWN:
                self._texts.clear()
            json_text = self._texts[text] = _json(text)
        return json_text


def _document(results: Results, rows: Iterable[bytes]) -> Iterator[bytes]:
    """The JSON object of results, with these rows."""
    fields = answers.plain(replace(results, rows=()))
    assert isinstance(fields, dict)
    names = sorted(fields.keys() - {"tables"})
    start = "{"
    for name in names:
        start += f"{_json(name)}: "
        if name == "results":
            yield _bytes(start + "[")
            yield from _joined(rows)
            start = "]"
        else:
            start += _json(fields[name])
        start += "}\n" if name == names[-1] else ", "
    yield _bytes(start)


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


def _ranks(keys: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The place of each key in their order."""
    order = sorted(range(len(keys)), key=keys.__getitem__)  # type: ignore[arg-type]
    ranks = np.empty(len(keys), np.intp)
    ranks[order] = np.arange(len(keys))
    return ranks


def _object(value: Mapping[str, object]) -> str:
    """As `_json`: most values are texts and whole numbers."""
    pairs = []
    for name, node in sorted(value.items()):
        text = (
            repr(node) if type(node) is int else _ENCODER.encode(node) if type(node) is str else ""
        )
        pairs.append(f"{_ENCODER.encode(name)}: {text or _json(node)}")
    return "{" + ", ".join(pairs) + "}"


def _number(value: float) -> str:
    if type(value) is float and value - value == 0:
        return repr(value)
    return _json(value)


def _json(value: object) -> str:
    """As `answers.dumps`, without its final newline."""
    plain_value: Json = answers.plain(value)  # type: ignore[arg-type]
    return _ENCODER.encode(answers.finite(plain_value))


def _bytes(text: str) -> bytes:
    # A lone surrogate has no UTF-8 form; JSON writes it as a backslash escape.
    return text.encode("utf-8", "backslashreplace")
