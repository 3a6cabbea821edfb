"""What a worker is told, and what it says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from consumers.model.generation import NOTHING_REQUESTED, Requested
from consumers.model.partition import Name, Partition
from consumers.sources.unreadable import NO_SKIPS, Skips


@dataclass(frozen=True, slots=True)
class Options:
    """How to run.

    until_end: stop at the end offsets seen at the start. start: where to begin in partitions that
    have no head yet; a number is a time in milliseconds. on_gap: what to do where the log has lost
    what was to be read next. new_source: count from topics and clusters that the store has not
    counted from. skips: batches that are left out if they cannot be read. partitions: only these,
    without a group. close: at the end, close all label windows, since there will be no more events.
    requested: which metrics end, and which are resumed. The delta of a partition is committed early
    when it passes `max_delta_rows`, and all are when they pass `max_delta_bytes` together.
    """

    until_end: bool = False
    start: Literal["beginning", "latest"] | int = "beginning"
    on_gap: Literal["stop", "skip"] = "stop"
    skips: Skips = NO_SKIPS
    partitions: tuple[Name, ...] | None = None
    close: bool = False
    new_source: bool = False
    requested: Requested = NOTHING_REQUESTED
    max_delta_bytes: int = 64 << 20
    max_delta_rows: int = 200_000

    def takes(self, known: Partition, found: Partition) -> bool:
        """Whether a log may take the place of another one that was counted under its name: one of
        another cluster, or one that was made anew."""
        return self.new_source if known.cluster != found.cluster else self.on_gap == "skip"


@dataclass(frozen=True, slots=True)
class Progress:
    """rows: events read by this worker. remaining: offsets to its ends, None where unknown."""

    rows: int
    seconds: float
    remaining: int | None

    @property
    def rows_per_second(self) -> float:
        """Since the worker started."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At this rate; None where the end is unknown."""
        rate = self.rows_per_second
        return self.remaining / rate if self.remaining is not None and rate > 0 else None
