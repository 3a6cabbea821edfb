"""A file of lines or CSV rows, read in order and in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from consumers.events.csv_rows import split_header
from consumers.model.chunk import Chunk
from consumers.model.partition import Partition
from consumers.sources.source import GapError, SourceError
from consumers.sources.text_records import BLOCK_BYTES, Overlong, Record, Records

_HEAD_BYTES: Final = 4096


class TextFile:
    """See `file_source.Table`, whose text form this is."""

    def __init__(self, path: Path, format: str, max_bytes: int, *, follow: bool) -> None:
        self.path = path
        self.format = format
        self.max_bytes = max_bytes
        self.follow = follow
        self._file = path.open("rb", buffering=0)
        self._restart()

    def _restart(self) -> None:
        self._file.seek(0)
        self._records = Records(self.format, self.max_bytes)
        self._ready: deque[Record] = deque()
        self._ended = False
        self._read_bytes = 0
        self.offset = 0
        self.header: tuple[str, ...] | None = None

    def beginning(self) -> bytes | None:
        """The first line, or as much of it as tells files apart; in CSV the first two."""
        head = os.pread(self._file.fileno(), _HEAD_BYTES, 0)
        needed = 2 if self.format == "csv" else 1
        *ended, last = head.split(b"\n", needed)
        # What follows the last needed line end may still change while it is followed.
        if len(ended) < needed and len(head) < _HEAD_BYTES:
            if self.follow or len(ended) < needed - 1 or not last:
                return None
            ended.append(last)
        return b"\n".join(ended) if len(ended) == needed else head

    def count(self) -> int:
        """Records in the file as it is now."""
        other = TextFile(self.path, self.format, self.max_bytes, follow=self.follow)
        try:
            return other.skip_to(None)
        finally:
            other.close()

    def skip_to(self, offset: int | None) -> int:
        """Stand before this record (None: at the end); answers where it stands."""
        self._restart()
        while offset is None or self.offset < offset:
            if not self._ready and not self._fill():
                break
            step = len(self._ready)
            if offset is not None and step > offset - self.offset:
                step = offset - self.offset
                for _ in range(step):
                    self._ready.popleft()
            else:
                self._ready.clear()
            self.offset += step
        return self.offset

    def read(self, partition: Partition, limit: int) -> Chunk | None:
        """The next records."""
        while len(self._ready) < limit and self._fill():
            pass
        if not self._ready:
            self._refuse_shorter(partition)
            return None
        found = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        start, self.offset = self.offset, self.offset + len(found)
        return text_chunk(partition, start, found, self.header)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fill(self) -> bool:
        """Read on; whether there may be more."""
        if self._ended:
            return False
        block = self._file.read(BLOCK_BYTES)
        self._read_bytes += len(block)
        if block:
            self._take(self._records.feed(block))
            return True
        if not self.follow:
            self._ended = True
            self._take(self._records.finish())
            return bool(self._ready)
        return False

    def _take(self, records: list[Record]) -> None:
        if self.format == "csv" and self.header is None and records:
            first = records.pop(0)
            if isinstance(first, Overlong):
                raise SourceError(f"{self.path.name} has a header over the size limit")
            self.header = split_header(first, self.path.name)
        self._ready.extend(records)

    def _refuse_shorter(self, partition: Partition) -> None:
        size = self.path.stat().st_size
        if size < self._read_bytes:
            raise GapError(partition, self.offset, 0, self.count())


def text_chunk(
    partition: Partition, start: int, records: Sequence[Record], header: tuple[str, ...] | None
) -> Chunk:
    """Records that follow each other, as a chunk."""
    end = start + len(records)
    overlong = {i: r for i, r in enumerate(records) if isinstance(r, Overlong)}
    return Chunk(
        partition,
        start,
        end,
        range(start, end),
        [r.beginning if isinstance(r, Overlong) else r for r in records],
        cut={i: r.cut for i, r in overlong.items()},
        fields=header,
    )
