"""Where logs are read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from consumers.ledger.rows import Head
from consumers.sources.source import GapError, Name, Partition, SeeksByTime, Source, Unsuitable
from consumers.worker.checking import require_partitions
from consumers.worker.run_options import Options


def chosen(partitions: Sequence[Partition], wanted: Sequence[Name] | None) -> list[Partition]:
    """The partitions to read, of all that there are; Unsuitable where one is not there."""
    if wanted is None:
        return list(partitions)
    if partitions:
        require_partitions(wanted, partitions)
    return [partition for partition in partitions if partition.is_named(wanted)]


def start_of(
    options: Options, source: Source, partition: Partition, ends: Mapping[Partition, int]
) -> int:
    """The offset that `options.start` means; Unsuitable where the source knows no times."""
    start = options.start
    if start == "beginning":
        return source.beginning(partition)
    if start == "latest":
        return ends.get(partition, 0)
    if isinstance(source, SeeksByTime):
        return source.offset_at(partition, start)
    raise Unsuitable("--from TIME: this source has no times of its own; use --from beginning")


def require_within(head: Head, source: Source, ends: Mapping[Partition, int]) -> None:
    """Raise GapError where a log has lost its end: its head lies behind it, so there would be
    nothing to read, and nobody would be told."""
    end = ends.get(head.partition, head.next_offset)
    if head.next_offset > end:
        beginning = source.beginning(head.partition)
        raise GapError(head.partition, head.next_offset, beginning, end)
