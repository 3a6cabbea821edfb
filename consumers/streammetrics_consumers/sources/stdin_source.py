"""Standard input as a log of one partition that nobody can read twice."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from collections.abc import Mapping

from streammetrics_consumers.config.tables import SourceConfig
from streammetrics_consumers.events.json_and_csv import split_header
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources.source import Listener
from streammetrics_consumers.sources.text_file import Overlong, Record, Records, text_chunk

CHUNK_RECORDS = 8192
_READ_BYTES = 1 << 18


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
        self._records = Records(config.format, config.max_event_bytes)
        self._csv = config.format == "csv"
        self._header: tuple[str, ...] | None = None
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
        return [text_chunk(self.partition, start, found, self._header)]

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Standard input keeps no account of its readers."""

    def close(self) -> None:
        """Read no more; the descriptor belongs to the process."""
        self._closed = True

    def _fill(self) -> None:
        block = os.read(self._descriptor, _READ_BYTES)
        records = self._records.feed(block) if block else self._records.finish()
        self._ended = not block
        if self._csv and self._header is None and records:
            first = records.pop(0)
            if isinstance(first, Overlong):
                raise SourceError("standard input begins with a header over the size limit")
            self._header = split_header(first, "standard input")
        self._ready.extend(records)
