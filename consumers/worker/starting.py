"""Where logs are read from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from consumers.ledger.ledger import Ledger, LogChanged
from consumers.model.commit import Head
from consumers.model.generation import Generation
from consumers.model.partition import Name, Partition
from consumers.sources.source import GapError, SeeksByTime, Source, Unsuitable
from consumers.worker.checking import require_partitions
from consumers.worker.run_options import Options

log = logging.getLogger(__name__)


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


def head_to_read(
    ledger: Ledger,
    generation: Generation,
    options: Options,
    source: Source,
    partition: Partition,
    start: int,
    first: int | None = None,
) -> Head:
    """The head to read a log from, made at `start` if there is none; `first` is where a log that
    takes another's place begins.

    Raises LogChanged where another log was counted under this name, unless the options say that
    the new one is meant: `--new-source` for one of another cluster, `--on-gap skip` for one that
    was made anew.
    """
    try:
        return ledger.resolve(generation, partition, start)
    except LogChanged as changed:
        if not options.takes(changed.known.partition, partition):
            raise
        log.warning("%s; going on with the new one", changed)
        first = source.beginning(partition) if first is None else first
        return ledger.follow(generation, changed.known, partition, first)


def require_within(head: Head, source: Source, ends: Mapping[Partition, int]) -> None:
    """Raise GapError where a log has lost its end: its head lies behind it, so there would be
    nothing to read, and nobody would be told."""
    end = ends.get(head.partition, head.next_offset)
    if head.next_offset > end:
        beginning = source.beginning(head.partition)
        raise GapError(head.partition, head.next_offset, beginning, end)
