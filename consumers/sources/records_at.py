"""Single records of a log, read again at their offsets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from consumers.model.chunk import Chunk
from consumers.model.partition import Partition
from consumers.sources.source import Source

POLL_S: Final = 0.5
FAR: Final = 50_000  # offsets that are sought over rather than read


class Reread:
    """A listener that reads one partition from an offset on. Nothing is committed anywhere."""

    def __init__(self, partition: Partition, start: int) -> None:
        self.partition, self.start = partition, start

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """From the offset; other partitions are read as well, and nobody looks at them."""
        return {p: self.start if p == self.partition else 0 for p in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        """Nothing is ours to lose."""

    def on_lost(self, partitions: list[Partition]) -> None:
        """Nothing is ours to lose."""


def records_at(
    source: Source, partition: Partition, offsets: Sequence[int], *, seeks: bool
) -> Iterator[Chunk]:
    """A chunk of one record for each of these offsets (ascending) that the log still has.

    seeks: whether the source finds an offset without reading up to it. It was opened for this
    partition alone, and is not assigned yet. Raises SourceError.
    """
    beginning, end = source.beginning(partition), source.ends().get(partition, 0)
    wanted = [offset for offset in offsets if beginning <= offset < end]
    if not wanted:
        return
    source.assign(Reread(partition, wanted[0]))
    at, next_ = 0, wanted[0]
    while at < len(wanted):
        if seeks and wanted[at] > next_ + FAR:
            source.seek(partition, wanted[at])
            next_ = wanted[at]
        for chunk in source.poll(POLL_S):
            if chunk.partition != partition or chunk.end <= next_:
                continue
            next_ = chunk.end
            while at < len(wanted) and wanted[at] < chunk.end:
                offset = wanted[at]
                at += 1
                i = bisect_left(chunk.offsets, offset)
                if i < len(chunk) and chunk.offsets[i] == offset:
                    yield chunk.part(i, i + 1, offset, offset + 1)
        if next_ >= end:
            return
