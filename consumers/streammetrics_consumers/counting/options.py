"""The options of a run, and where reading starts in each log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import NOTHING_REQUESTED, Requested
from streammetrics_consumers.model.partition import Name, Partition, names_of, names_without
from streammetrics_consumers.sources import (
    NO_SKIPS,
    GapError,
    Remote,
    Skips,
    Source,
    Unsuitable,
)


@dataclass(frozen=True, slots=True)
class Options:
    """How to run.

    until_end: stop at the end offsets seen at the start. start: where to begin in partitions that
    have no head yet; a number is a time in milliseconds. on_gap: what to do where the log has lost
    the next records to read. new_source: count from topics and clusters that the store has not
    counted from. skips: batches to leave out if they cannot be read. partitions: read only these,
    without a consumer group. close: at the end, close all label windows, since there will be no
    more events. requested: which metrics end, and which are resumed.
    """

    until_end: bool = False
    start: Literal["beginning", "latest"] | int = "beginning"
    on_gap: Literal["stop", "skip"] = "stop"
    skips: Skips = NO_SKIPS
    partitions: tuple[Name, ...] | None = None
    close: bool = False
    new_source: bool = False
    requested: Requested = NOTHING_REQUESTED

    def takes(self, partition: Partition, other: Partition) -> bool:
        """Whether a log may replace the one that was counted under its name: a log of another
        cluster, or a recreated one."""
        return self.new_source if partition.cluster != other.cluster else self.on_gap == "skip"


def chosen(partitions: Sequence[Partition], names: Sequence[Name] | None) -> list[Partition]:
    """The partitions to read, out of all; raises Unsuitable where one does not exist."""
    if names is None:
        return list(partitions)
    if partitions:
        require_partitions(names, partitions)
    return [partition for partition in partitions if partition.is_named(names)]


def start_of(
    options: Options, source: Source, partition: Partition, ends: Mapping[Partition, int]
) -> int:
    """The offset of `options.start`; raises Unsuitable where the source has no times."""
    start = options.start
    if start == "beginning":
        return source.beginning(partition)
    if start == "latest":
        return ends.get(partition, 0)
    if isinstance(source, Remote):
        return source.offset_at(partition, start)
    raise Unsuitable("--from TIME: this source has no record times; use --from beginning")


def require_within(head: Head, source: Source, ends: Mapping[Partition, int]) -> None:
    """Raise GapError where a log has lost its end: its head lies beyond it, so there would be
    nothing to read, and the loss would go unnoticed."""
    end = ends.get(head.partition, head.next_offset)
    if head.next_offset > end:
        beginning = source.beginning(head.partition)
        raise GapError(head.partition, head.next_offset, beginning, end)


def require_partitions(names: Collection[Name], partitions: Collection[Partition]) -> None:
    """Raise Unsuitable where a named partition does not exist."""
    missing = names_without(names, partitions)
    if missing:
        raise Unsuitable(
            f"--partitions: expected existing partitions ({names_of(partitions)}), "
            f"got {', '.join(map(str, missing))}; leave out those that do not exist"
        )


def require_no_loss(config: Config, heads: Sequence[Head]) -> None:
    """Raise GapError where a file that was counted has no records any more."""
    path = config.source.path
    for head in heads:
        if path is not None and head.partition.topic == path.name and head.next_offset:
            raise GapError(head.partition, head.next_offset, 0, 0)
