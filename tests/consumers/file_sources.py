"""File sources for tests, which are closed when the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streammetrics_consumers.config.source import SourceConfig
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import Listener
from streammetrics_consumers.sources.files import FileSource

_OPEN: list[FileSource] = []


def close_all() -> None:
    """Close every source that a test has opened."""
    while _OPEN:
        _OPEN.pop().close()


class From(Listener):
    """A listener that starts everything at one offset."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.assigned: list[Partition] = []

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        self.assigned = partitions
        return dict.fromkeys(partitions, self.offset)

    def on_revoked(self, partitions: list[Partition]) -> None:
        raise AssertionError("a file is never revoked")

    def on_lost(self, partitions: list[Partition]) -> None:
        raise AssertionError("a file is never lost")


def source(path: Path, *, follow: bool = False, limit: int = 1000) -> FileSource:
    """The source of a file, whose format its name tells."""
    format = {".csv": "csv", ".parquet": "parquet"}.get(path.suffix, "jsonl")
    config = SourceConfig("file", format, path, max_event_bytes=limit)  # type: ignore[arg-type]
    _OPEN.append(FileSource(config, follow=follow))
    return _OPEN[-1]


def drained(opened: FileSource) -> Iterator[Chunk]:
    """The chunks up to the end."""
    while chunks := opened.poll(0):
        yield from chunks
