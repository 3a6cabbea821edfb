"""A file, or standard input, as a log of one partition: offset = number of the line, or of the row.

The log is named after the file (`clicks.jsonl/0`), wherever it lies. Its topic id is a digest of
the file's beginning, so that another file under the same name is seen to be another log. Before
its first complete record is there a file could become any log, so it has no partition until then.
A file has no record timestamps. Standard input is a log that nobody can read twice.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Final, Protocol

from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import GapError, Listener
from streammetrics_consumers.sources.files.parquet_file import ParquetFile
from streammetrics_consumers.sources.files.text_file import Record, Records, TextFile, text_chunk

CHUNK_RECORDS: Final = 8192  # large enough that numpy's cost of a call does not show
STDIN_BYTES: Final = 1 << 18  # of one read
CLUSTER: Final = "file"


class Table(Protocol):
    """One file, read in order from a record on."""

    def beginning(self) -> bytes | None:
        """Bytes that no other file under this name has at its beginning, and that stay as they
        are while the file grows; None before its first complete record is there."""
        ...

    def count(self) -> int:
        """How many records the file holds now."""
        ...

    def skip_to(self, offset: int) -> int:
        """Stand before this record, or at the end where there are fewer; answers the place."""
        ...

    def read(self, partition: Partition, limit: int) -> Chunk | None:
        """The next records, at most `limit`, None at the end."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class FileSource:
    """Reads a file of events: jsonl, csv or parquet.

    With `follow` a line counts once its line end is there, and reading waits at the end for more;
    without it the file is finished, and its last line needs no line end.
    """

    replayable = True

    def __init__(self, config: SourceConfig, *, follow: bool = False) -> None:
        path = config.path
        assert path is not None, "load_config demands it"
        self._table = _open(path, config, follow=follow)
        self._name = path.name
        self.partition: Partition | None = None
        self._listener: Listener | None = None
        self._position: int | None = None
        self._closed = Event()

    def partitions(self) -> list[Partition]:
        """The one there is; none before the first record."""
        if self.partition is None:
            beginning = self._table.beginning()
            if beginning is None:
                return []
            digest = hashlib.sha256(beginning).hexdigest()
            self.partition = Partition(CLUSTER, self._name, digest[:32], 0)
        return [self.partition]

    def beginning(self, partition: Partition) -> int:
        """A file begins with record 0."""
        return 0

    def ends(self) -> dict[Partition, int]:
        """How many records the file holds now; reads the file once."""
        return {partition: self._table.count() for partition in self.partitions()}

    def assign(self, listener: Listener) -> None:
        """Ask the listener where to start: at once, or during a poll once there is a record."""
        self._listener = listener
        self._begin()

    def _begin(self) -> bool:
        """Whether reading has begun."""
        if self._position is None and self._listener is not None:
            for partition in self.partitions():
                heads = self._listener.on_assigned([partition])
                self.seek(partition, heads[partition])
        return self._position is not None

    def seek(self, partition: Partition, offset: int) -> None:
        """Stand before a record. Raises GapError where the file has become shorter than that."""
        self._position = None
        found = self._table.skip_to(offset)
        if found != offset:
            raise GapError(partition, offset, 0, found)
        self._position = offset

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The next records; at the end, nothing after the time is over."""
        if self._listener is None:
            raise SourceError(f"{self._name} is read before it is assigned")
        chunk = None
        if self._begin() and self.partition is not None:
            chunk = self._table.read(self.partition, CHUNK_RECORDS)
        if chunk is None:
            self._closed.wait(timeout_s)
            return []
        self._position = chunk.end
        return [chunk]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """A file keeps no account of its readers."""

    def close(self) -> None:
        """Close the file, and wake a poll that waits."""
        self._closed.set()
        self._table.close()


class StdinSource:
    """Reads events from standard input: jsonl or csv.

    What was read and not committed is lost with the process, since it cannot be asked for again.
    So a store that has already counted from standard input is refused: the numbers of this run's
    lines would be taken for those of the last.
    """

    replayable = False

    def __init__(self, config: SourceConfig, *, descriptor: int | None = None) -> None:
        """descriptor: the file descriptor to read, standard input's where it is None."""
        self.partition = Partition("stdin", "stdin", "stdin", 0)
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._records = Records(config.format, config.max_event_bytes, "standard input")
        self._ready: deque[Record] = deque()
        self._offset = 0
        self._ended = False
        self._closed = False

    def partitions(self) -> list[Partition]:
        """The one there is."""
        return [self.partition]

    def beginning(self, partition: Partition) -> int:
        """What comes first is record 0."""
        return 0

    def ends(self) -> dict[Partition, int]:
        """Known once the input has ended."""
        return {self.partition: self._offset + len(self._ready)} if self._ended else {}

    def assign(self, listener: Listener) -> None:
        """Ask the listener where to start, at once; it must be the beginning."""
        self.seek(self.partition, listener.on_assigned([self.partition])[self.partition])

    def seek(self, partition: Partition, offset: int) -> None:
        """Only to where reading stands already."""
        if offset != self._offset:
            raise SourceError(
                f"standard input cannot be resumed: the store has counted {offset} records of an "
                "earlier one, which cannot be read again; use another --store, start over with "
                "--new-generation, or write the events to a file and read that"
            )

    def poll(self, timeout_s: float) -> list[Chunk]:
        """What has arrived."""
        if not self._ready and not self._ended and not self._closed:
            readable, _, _ = select.select([self._descriptor], [], [], timeout_s)
            if readable:
                self._fill()
        if not self._ready:
            return []
        found = [self._ready.popleft() for _ in range(min(CHUNK_RECORDS, len(self._ready)))]
        start, self._offset = self._offset, self._offset + len(found)
        return [text_chunk(self.partition, start, found, self._records.header)]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Standard input keeps no account of its readers."""

    def close(self) -> None:
        """Read no more; the descriptor belongs to the process."""
        self._closed = True

    def _fill(self) -> None:
        block = os.read(self._descriptor, STDIN_BYTES)
        self._ready.extend(self._records.feed(block) if block else self._records.finish())
        self._ended = not block


def _open(path: Path, config: SourceConfig, *, follow: bool) -> Table:
    try:
        if config.format == "parquet":
            return ParquetFile(path)
        return TextFile(path, config.format, config.max_event_bytes, follow=follow)
    except OSError as error:
        raise SourceError(
            f"[source] path: expected a file of events, got {path}: {error.strerror or error}; "
            "check the path and its permissions"
        ) from None
