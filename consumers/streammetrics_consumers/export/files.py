"""Files that rows are appended to, CSV or JSON Lines: what they hold is the position of an export.

A killed process leaves a torn last line, which is cut off when the file is opened again. All other
lines are whole, so nothing beside the file says how far it was written, and nothing can disagree
with it. One process may append to a file at a time.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from streammetrics import InputError, StateError
from streammetrics_consumers.export.columns import (
    COLUMNS,
    NAMES,
    PART,
    Cell,
    Row,
    json_cell,
    text_cell,
)

log = logging.getLogger(__name__)

BLOCK_BYTES: Final = 1 << 16  # of lines that are written at once
MAX_LINE_BYTES: Final = 16 << 20
CSV_CELL: Final = 131_072  # characters; by default Python's readers of CSV take no more
CSV: Final = ".csv"
JSON_LINES: Final = ".jsonl"
ENDING: Final = "\n"
UNCLOSED: Final = "unexpected end of data"  # what the reader of CSV says of a torn cell
OBJECT_START: Final = b'{"part":'


class LineForm(Protocol):
    """How rows are lines of text."""

    head: bytes  # the first line of a file, b"" if it has none

    def line(self, row: Row) -> bytes:
        """A row as a line, with its end."""
        ...

    def rows(
        self, lines: Iterator[bytes], position: Callable[[], int]
    ) -> Iterator[tuple[Row, int]]:
        """The rows of the lines of a file, each with the position after it; at a torn line it ends.
        Raises ValueError for a line that this form does not have."""
        ...


class Target(Protocol):
    """What rows are appended to."""

    def rows(self) -> Iterator[Row]:
        """All rows that it has; to be read to the end before the first `append`."""
        ...

    def append(self, rows: Iterable[Row]) -> int:
        """Append rows, each of them as a whole or not at all; returns their number."""
        ...

    @property
    def next_part(self) -> int:
        """The number of the next rows that are appended together, after `rows`."""
        ...

    def close(self) -> None:
        """Let other processes append."""
        ...


class JsonLines:
    """A JSON object a line, its members in the order of the columns."""

    head = b""

    def line(self, row: Row) -> bytes:
        """The row; an infinity, which JSON lacks, is a text."""
        cells = dict(zip(NAMES, map(_finite, row), strict=True))
        text = json.dumps(cells, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return (text + ENDING).encode()

    def rows(
        self, lines: Iterator[bytes], position: Callable[[], int]
    ) -> Iterator[tuple[Row, int]]:
        """See `LineForm`."""
        for line in lines:
            if not line.endswith(b"\n"):
                if not (line.startswith(OBJECT_START) or OBJECT_START.startswith(line)):
                    raise OtherColumns  # it is not ours, and must not be cut off
                return
            value = json.loads(line)
            if not isinstance(value, dict) or tuple(value) != NAMES:
                raise OtherColumns
            cells = zip(COLUMNS, value.values(), strict=True)
            yield tuple(json_cell(column, cell) for column, cell in cells), position()


class Csv:
    """RFC 4180 with a header line; missing cells are empty."""

    head = (",".join(NAMES) + ENDING).encode()

    def line(self, row: Row) -> bytes:
        """The row. Raises InputError for a cell that readers of CSV do not take."""
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=ENDING).writerow(map(_plain, row))
        for name, cell in zip(NAMES, row, strict=True):
            if isinstance(cell, str) and len(cell) >= CSV_CELL:
                raise InputError(
                    expected=f"cells of less than {CSV_CELL:,} characters",
                    got=f"{len(cell):,}",
                    where=f"column {name}",
                    hint="export to .jsonl or .parquet",
                )
        return text.getvalue().encode()

    def rows(
        self, lines: Iterator[bytes], position: Callable[[], int]
    ) -> Iterator[tuple[Row, int]]:
        """See `LineForm`. A line in quotes may have ends of lines within it."""
        first = next(lines, b"")
        if not first.endswith(b"\n") and self.head.startswith(first):
            return
        if first != self.head:
            raise OtherColumns
        whole = takewhile(lambda line: line.endswith(b"\n"), lines)
        reader = csv.reader(map(bytes.decode, whole), strict=True)
        while True:
            try:
                values = next(reader, None)
            except csv.Error as error:
                if str(error) != UNCLOSED:
                    raise ValueError(str(error)) from None
                return
            if values is None:
                return
            if len(values) != len(COLUMNS):
                raise OtherColumns
            cells = zip(COLUMNS, values, strict=True)
            yield tuple(text_cell(column, cell) for column, cell in cells), position()


class OtherColumns(ValueError):
    """A line with other columns than ours."""


FORMS: Final[dict[str, LineForm]] = {CSV: Csv(), JSON_LINES: JsonLines()}


def _finite(cell: Cell) -> Cell:
    """The cell as JSON has it."""
    return str(cell) if isinstance(cell, float) and cell - cell != 0 else cell


def _plain(cell: Cell) -> str:
    """The cell as CSV has it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)


class GrowingFile:
    """A CSV or JSON Lines file that grows."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or creates it. Raises InputError if another process appends to it."""
        self._path, self._form = path, FORMS[path.suffix.lower()]
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", 0)
        try:
            lock(self._file.fileno(), path)
        except BaseException:
            self._file.close()
            raise
        self._parts = 0

    def rows(self) -> Iterator[Row]:
        """See `Target`. The torn last line of a killed process is cut off after the last row."""
        read = end = number = 0
        # Not a duplicate of the descriptor, which would keep the lock.
        with os.fdopen(self._file.fileno(), "rb", closefd=False) as file:
            file.seek(0)

            def lines() -> Iterator[bytes]:
                nonlocal read, end, number
                while line := file.readline(MAX_LINE_BYTES):
                    if len(line) == MAX_LINE_BYTES:
                        raise ValueError("a longer line")
                    read, number = read + len(line), number + 1
                    if number == 1 and line == self._form.head:
                        end = read
                    yield line

            try:
                for row, position in self._form.rows(lines(), lambda: read):
                    end = position
                    part = row[PART]
                    self._parts = max(self._parts, part if isinstance(part, int) else 0)
                    yield row
            except OtherColumns:
                raise other_columns(f"{self._path}, line {number}") from None
            except (ValueError, KeyError, RecursionError) as error:
                raise StateError(
                    expected="a row that `export --results` has written",
                    got=f"{type(error).__name__}: {error}",
                    where=f"{self._path}, line {number}",
                    hint="name another file, or remove the line",
                ) from None
            size = os.fstat(file.fileno()).st_size
        if size > end:
            log.warning(
                "%s: the last line is torn, and its %d bytes are cut off", self._path, size - end
            )
            self._file.truncate(end)
        self._file.seek(end)
        self._is_empty = end == 0

    @property
    def next_part(self) -> int:
        """See `Target`."""
        return self._parts + 1

    def append(self, rows: Iterable[Row]) -> int:
        """See `Target`."""
        count = 0
        block = bytearray(self._form.head if self._is_empty else b"")
        for row in rows:
            block += self._form.line(row)
            count += 1
            if len(block) >= BLOCK_BYTES:
                self._write(block)
                block = bytearray()
        if not count:
            return 0
        self._write(block)
        os.fsync(self._file.fileno())
        self._parts += 1
        return count

    def _write(self, block: bytearray) -> None:
        remaining_bytes = memoryview(bytes(block))
        while remaining_bytes:
            remaining_bytes = remaining_bytes[os.write(self._file.fileno(), remaining_bytes) :]
        self._is_empty = False

    def close(self) -> None:
        """See `Target`."""
        self._file.close()


def lock(descriptor: int, path: Path) -> None:
    """Be the only process that appends to a file or a folder, until it is closed. Raises
    InputError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            expected="a file that no other process appends to",
            got="one that another export follows",
            where=str(path),
            hint="end the other process, or name another file",
        ) from None


def other_columns(where: str) -> StateError:
    """The error for rows with other columns."""
    return StateError(
        expected=f"the {len(COLUMNS)} columns that this version exports, from part to sentence",
        got="others",
        where=where,
        hint="name another file; the docs list the columns (docs/how_to/results_as_data.md)",
    )


def write_whole(path: Path, write: Callable[[Path], int]) -> int:
    """Write a file atomically, to one beside it, which is then renamed; returns what `write`
    does."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        count = write(unfinished)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def write_text(form: LineForm, path: Path, rows: Iterable[Row]) -> int:
    """Write a whole file; returns the number of rows."""
    count = 0
    with path.open("wb") as file:
        file.write(form.head)
        for row in rows:
            file.write(form.line(row))
            count += 1
    return count
