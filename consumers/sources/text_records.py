"""Records in a stream of bytes: one a line, or one a CSV row, in bounded memory."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from consumers.events.refusals import PAYLOAD_BYTES
from consumers.model.chunk import Cut

BLOCK_BYTES: Final = 1 << 20


class Overlong(NamedTuple):
    """A record over the limit: its beginning, and the size and hash of all of it."""

    beginning: bytes
    cut: Cut


Record = bytes | Overlong  # without its line end


class Lines:
    """Cuts blocks into lines. A line may end with LF or CR LF; one over the limit is measured and
    hashed as it passes, and only its beginning is kept."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []  # of the line that has not ended yet
        self._size = 0
        self._passing: _Passing | None = None

    def feed(self, block: bytes) -> list[Record]:
        """The lines that end in this block."""
        lines = block.split(b"\n")
        last = lines.pop()
        found: list[Record] = []
        if lines:
            self._grow(lines[0])
            found.append(self._take())
            del lines[0]
            if b"\r" in block:
                lines = [line.removesuffix(b"\r") for line in lines]
            if max(map(len, lines), default=0) <= self.max_bytes:
                found += lines
            else:
                found += [self._bounded(line) for line in lines]
        self._grow(last)
        return found

    def finish(self) -> list[Record]:
        """The last line, where the stream does not end with a line end."""
        return [self._take()] if self._size else []

    def _grow(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._passing is None and self._size > self.max_bytes + 1:
            # One byte more may be the CR of a line end.
            self._passing = _Passing()
            for part in self._parts:
                self._passing.add(part)
            self._parts = []
        if self._passing is not None:
            self._passing.add(piece)
        elif piece:
            self._parts.append(piece)

    def _take(self) -> Record:
        record: Record
        if self._passing is not None:
            record = self._passing.record()
        else:
            record = self._bounded(b"".join(self._parts).removesuffix(b"\r"))
        self._parts, self._size, self._passing = [], 0, None
        return record

    def _bounded(self, line: bytes) -> Record:
        if len(line) <= self.max_bytes:
            return line
        return Overlong(line[:PAYLOAD_BYTES], Cut(len(line), hashlib.sha256(line).hexdigest()))


class _Passing:
    """The beginning, size and hash of a line that is not kept."""

    def __init__(self) -> None:
        self._start = b""
        self._size = 0
        self._hash = hashlib.sha256()
        self._held = b""  # a last CR, which is a part of the line only if more follows

    def add(self, piece: bytes) -> None:
        piece = self._held + piece
        self._held = b"\r" if piece.endswith(b"\r") else b""
        piece = piece.removesuffix(b"\r")
        if len(self._start) < PAYLOAD_BYTES:
            self._start += piece[: PAYLOAD_BYTES - len(self._start)]
        self._size += len(piece)
        self._hash.update(piece)

    def record(self) -> Overlong:
        return Overlong(self._start, Cut(self._size, self._hash.hexdigest()))


class CsvRows:
    """Joins lines whose quotes are open to rows; the first row is the header.

    A broken quote must not cost its neighbours: lines that do not join to a row as wide as the
    header, within the limit, were never one. Then the first stands alone, and reading goes on
    with the line after it.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._width: int | None = None
        self._open: list[bytes] = []
        self._size = 0

    def feed(self, lines: Iterable[Record]) -> list[Record]:
        """The rows that end with one of these lines."""
        todo = list(lines)
        todo.reverse()
        rows: list[Record] = []
        while todo:
            line = todo.pop()
            if isinstance(line, Overlong):
                if self._open:
                    todo.append(line)
                    self._give_up(rows, todo)
                else:
                    rows.append(line)
                continue
            odd = line.count(b'"') % 2 == 1
            if not self._open and not odd:
                rows.append(line)
            else:
                self._open.append(line)
                self._size += len(line) + 1
                if self._size > self.max_bytes + 1:
                    self._give_up(rows, todo)
                elif odd and len(self._open) > 1:
                    self._close(rows, todo)
            if self._width is None and rows:
                self._width = _width(rows[0])
        return rows

    def finish(self) -> list[Record]:
        """The rows of what is left at the end of the stream."""
        rows: list[Record] = []
        while self._open:
            todo: list[Record] = []
            self._give_up(rows, todo)
            rows += self.feed(reversed(todo))
        return rows

    def _close(self, rows: list[Record], todo: list[Record]) -> None:
        row = b"\n".join(self._open)
        if self._width is not None and _width(row) != self._width:
            self._give_up(rows, todo)
            return
        rows.append(row)
        self._open, self._size = [], 0

    def _give_up(self, rows: list[Record], todo: list[Record]) -> None:
        rows.append(self._open[0])
        todo.extend(reversed(self._open[1:]))
        self._open, self._size = [], 0


def _width(row: Record) -> int:
    """How many values a row has; 0 where it is none."""
    if isinstance(row, Overlong):
        return 0
    try:
        return len(next(csv.reader([row.decode("utf-8", "replace")], strict=True)))
    except (csv.Error, StopIteration):
        return 0


class Records:
    """Records of a stream that comes in blocks: `jsonl` lines or `csv` rows."""

    def __init__(self, format: str, max_bytes: int) -> None:
        self._lines = Lines(max_bytes)
        self._rows = CsvRows(max_bytes) if format == "csv" else None

    def feed(self, block: bytes) -> list[Record]:
        """The records that end in this block."""
        lines = self._lines.feed(block)
        return lines if self._rows is None else self._rows.feed(lines)

    def finish(self) -> list[Record]:
        """The records of what is left at the end of the stream."""
        lines = self._lines.finish()
        return lines if self._rows is None else [*self._rows.feed(lines), *self._rows.finish()]
