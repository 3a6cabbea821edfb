"""A file, or standard input, as a log of one partition: the offset is the line or row number.

The log has the name of the file (`clicks.jsonl/0`), without its folder. Its topic id is a digest of
the beginning of the file, so another file with the same name is another log. A file has no
partition before its first complete record, because until then it has no identity. A file has no
record timestamps. Standard input is a log that cannot be read twice.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Final, Protocol

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import GapError, Listener
from streammetrics_consumers.sources.files.parquet_file import ROWS, ParquetFile
from streammetrics_consumers.sources.files.text_file import (
    Record,
    TextFile,
    TextRecords,
    text_chunk,
)

CHUNK_RECORDS: Final = 8_192  # of text; more of them would leave the cache before they are decoded
STDIN_BYTES: Final = 1 << 18  # per read
CLUSTER: Final = "file"


class FileTable(Protocol):
    """One file, read sequentially from a record on."""

    def beginning(self) -> bytes | None:
        """The bytes that identify the file among files of this name. They do not change while the
        file grows; None before its first complete record."""
        ...

    def count(self) -> int:
        """The current number of records in the file."""
        ...

    def skip_to(self, offset: int) -> int:
        """Move to this record, or to the end if there are fewer; returns the new offset."""
        ...

    def read(self, partition: Partition, limit: int) -> Chunk | None:
        """The next records, at most `limit`; None at the end."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class FileSource:
    """Reads a file of events: jsonl, csv or parquet.

    With `follow`, a line counts once its line end is written, and reading waits at the end for
    more. Without it the file is complete, and its last line needs no line end.
    """

    replayable = True

    def __init__(self, config: SourceConfig, *, follow: bool = False) -> None:
        path = config.path
        assert path is not None, "load_config requires it"
        self._table = _open(path, config, follow=follow)
        self._name = path.name
        self.partition: Partition | None = None
        self._listener: Listener | None = None
        self._position: int | None = None
        self._closed = Event()

    def partitions(self) -> list[Partition]:
        """The only partition; none before the first record."""
        if self.partition is None:
            beginning = self._table.beginning()
            if beginning is None:
                return []
            digest = hashlib.sha256(beginning).hexdigest()
            self.partition = Partition(CLUSTER, self._name, digest[:32], 0)
        return [self.partition]

    def beginning(self, partition: Partition) -> int:
        """A file starts at record 0."""
        return 0

    def ends(self) -> dict[Partition, int]:
        """The current number of records; reads the whole file."""
        return {partition: self._table.count() for partition in self.partitions()}

    def assign(self, listener: Listener) -> None:
        """Ask the listener for the start offset, now or in the first poll that finds a record."""
        self._listener = listener
        self._begin()

    def _begin(self) -> bool:
        """Start reading if possible; returns whether reading has started."""
        if self._position is None and self._listener is not None:
            for partition in self.partitions():
                heads = self._listener.on_assigned([partition])
                self.seek(partition, heads[partition])
        return self._position is not None

    def seek(self, partition: Partition, offset: int) -> None:
        """Move to a record. Raises GapError if the file is now shorter than that."""
        self._position = None
        position = self._table.skip_to(offset)
        if position != offset:
            raise GapError(partition, offset, 0, position)
        self._position = offset

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The next records; at the end, an empty list after `timeout_s`."""
        if self._listener is None:
            raise SourceError(f"{self._name} is read before it is assigned")
        chunk = None
        if self._begin() and self.partition is not None:
            limit = ROWS if isinstance(self._table, ParquetFile) else CHUNK_RECORDS
            chunk = self._table.read(self.partition, limit)
        if chunk is None:
            self._closed.wait(timeout_s)
            return []
        self._position = chunk.end
        return [chunk]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Do nothing: a file does not record the offsets of its readers."""

    def close(self) -> None:
        """Close the file, and wake a waiting poll."""
        self._closed.set()
        self._table.close()


class StdinSource:
    """Reads events from standard input: jsonl or csv.

    Uncommitted records are lost with the process, since they cannot be read again. A store that
    has already counted from standard input is therefore refused: the line numbers of this run
    would be mistaken for those of the last one.
    """

    replayable = False

    def __init__(self, config: SourceConfig, *, descriptor: int | None = None) -> None:
        """descriptor: the file descriptor to read; None: that of standard input."""
        self.partition = Partition("stdin", "stdin", "stdin", 0)
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._records = TextRecords(config.format, config.max_event_bytes, "standard input")
        self._ready: list[Record] = []
        self._offset = 0
        self._ended = False
        self._closed = False

    def partitions(self) -> list[Partition]:
        """The only partition."""
        return [self.partition]

    def beginning(self, partition: Partition) -> int:
        """The first record is record 0."""
        return 0

    def ends(self) -> dict[Partition, int]:
        """Known once the input has ended."""
        return {self.partition: self._offset + len(self._ready)} if self._ended else {}

    def assign(self, listener: Listener) -> None:
        """Ask the listener for the start offset, which must be the beginning."""
        self.seek(self.partition, listener.on_assigned([self.partition])[self.partition])

    def seek(self, partition: Partition, offset: int) -> None:
        """Accept the current position only. Raises SourceError for another."""
        if offset != self._offset:
            raise SourceError(
                f"standard input cannot be resumed: the store has counted {offset} records of an "
                "earlier input, which cannot be read again; use another --store, start over with "
                "--new-generation, or read the events from a file"
            )

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The records that arrived."""
        if not self._ready and not self._ended and not self._closed:
            readable, _, _ = select.select([self._descriptor], [], [], timeout_s)
            if readable:
                self._fill()
        if not self._ready:
            return []
        records, self._ready = self._ready[:CHUNK_RECORDS], self._ready[CHUNK_RECORDS:]
        start, self._offset = self._offset, self._offset + len(records)
        return [text_chunk(self.partition, start, records, self._records)]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Do nothing: standard input does not record the offsets of its readers."""

    def close(self) -> None:
        """Stop reading; the descriptor stays open, since it belongs to the process."""
        self._closed = True

    def _fill(self) -> None:
        block = os.read(self._descriptor, STDIN_BYTES)
        self._ready.extend(self._records.feed(block) if block else self._records.finish())
        self._ended = not block


def _open(path: Path, config: SourceConfig, *, follow: bool) -> FileTable:
    try:
        if config.format == "parquet":
            return ParquetFile(path)
        return TextFile(path, config.format, config.max_event_bytes, follow=follow)
    except OSError as error:
        raise SourceError(
            f"[source] path: expected a file of events, got {path}: {error.strerror or error}; "
            "check the path and its permissions"
        ) from None
