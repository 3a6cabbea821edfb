"""Which logs, and what offsets of them, `verify` reads again.

Delta rows count ranges of offsets, and a compactor merges them into wider ones. So what is compared
is the smallest range around the one asked for whose edges no row lies across; where that is wider,
it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from consumers.config.config import Config
from consumers.counting.options import Options
from consumers.ledger.audit import cut_after, cut_before, retries_of
from consumers.ledger.rows import Head
from consumers.ledger.store import Store
from consumers.sources.source import (
    SPARK,
    Name,
    Partition,
    Source,
    Unsuitable,
    names_of,
    names_without,
)
from consumers.worker.recount import Recount
from consumers.worker.scratch import Scratch
from consumers.worker.verified import Verified

Opener = Callable[[Config, Options], Source]
Offsets = tuple[int, int | None]  # [from, to); None is as far as it was counted


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to verify: these partitions and these offsets, by partition; all where both are None."""

    partitions: tuple[Name, ...] | None = None
    offsets: Mapping[Name, Offsets] | None = None

    @property
    def names(self) -> frozenset[Name] | None:
        """The partitions; None for all."""
        if self.partitions is None and self.offsets is None:
            return None
        return frozenset((*(self.partitions or ()), *(self.offsets or {})))

    def span(self, head: Head) -> tuple[int, int]:
        """The offsets of a head that are wanted. Raises Unsuitable where they were not counted."""
        start = head.start_offset
        end: int | None = head.next_offset
        name: Name = head.partition.number
        for named, offsets in (self.offsets or {}).items():
            if head.partition.is_named([named]):
                name, (start, end) = named, offsets
        to = head.next_offset if end is None else end
        if not head.start_offset <= start < to <= head.next_offset:
            raise Unsuitable(
                f"--offsets: expected some of offsets {head.start_offset} to {head.next_offset} of "
                f"{head.partition}, which were counted, came {name}:{start}-"
                f"{'' if end is None else end}; name offsets between these"
            )
        return start, to


def chosen_heads(heads: Sequence[Head], wanted: Wanted, found: Verified) -> list[Head]:
    """The heads whose logs can be read again. Raises Unsuitable for a partition without a head."""
    heads = [head for head in heads if not head.is_join]
    names = wanted.names
    there = {head.partition for head in heads}
    missing = names_without(names or (), there)
    if missing:
        flag = "--partitions" if wanted.partitions and {*missing} & {*wanted.partitions} else (
            "--offsets")  # fmt: skip
        raise Unsuitable(
            f"{flag}: expected some of {names_of(there)}, which were counted, came "
            f"{', '.join(map(str, missing))}; leave out what was not counted"
        )
    chosen = []
    for head in heads:
        if names is not None and not head.partition.is_named(names):
            continue
        if head.partition.cluster == SPARK:
            found.note(
                f"{head.partition}: a streaming query of Spark has counted batches "
                f"{head.start_offset} to {head.next_offset} of it; there is no log to read again, "
                "and it is not verified"
            )
        elif head.closed:
            found.note(
                f"{head.partition}: the log of a closed head (offsets {head.start_offset} to "
                f"{head.next_offset}) cannot be read again, and is not verified"
            )
        elif head.next_offset == head.start_offset:
            found.note(f"{head.partition}: nothing was counted yet")
        else:
            chosen.append(head)
    return chosen


def recounts_of(
    config: Config,
    store: Store,
    heads: Sequence[Head],
    wanted: Wanted,
    work: Scratch,
    found: Verified,
    opener: Opener,
) -> dict[Partition, Recount]:
    """What is counted again of each log that can be read."""
    spans = {head.id: wanted.span(head) for head in heads}
    if not heads:
        return {}
    recounts: dict[Partition, Recount] = {}
    with closing(opener(config, Options(until_end=True))) as source:
        there, ends = source.partitions(), source.ends()
        for head in heads:
            log = head.partition
            if log not in there or not source.replayable:
                found.note(f"{log}: this log is not there any more, and is not verified")
                continue
            span = _span(store, head, spans[head.id], source.beginning(log), found)
            if span is None:
                continue
            if config.dedup is not None and span[0] > head.start_offset:
                found.note(
                    f"{log}: which events from offset {span[0]} on are repeats follows from those "
                    "before, so it is not verified; verify it from its beginning"
                )
                continue
            end = ends.get(log, 0)
            if end < span[1]:
                what = "the head stands" if span[1] == head.next_offset else "a delta row ends"
                found.differs(str(log), f"{what} at {span[1]}, and the log ends at {end}")
                continue
            inside, across = retries_of(store, head, *span)
            for number in sorted(across & work.retries.keys()):
                found.note(
                    f"{log}: retry {number} has counted events of these offsets and others, and is "
                    "not verified"
                )
            recounts[log] = Recount(store, head, span, inside, work, found)
    return recounts


def _span(
    store: Store, head: Head, asked: tuple[int, int], beginning: int, found: Verified
) -> tuple[int, int] | None:
    """The offsets to compare; None where too much is gone."""
    log = head.partition
    start, end = asked
    if start > head.start_offset:
        start = cut_before(store, head, start)
    if end < head.next_offset:
        end = cut_after(store, head, end)
    if (start, end) != asked:
        found.note(
            f"{log}: offsets {start} to {end} are verified, since delta rows that lie across the "
            "edges of those that were named cannot be divided"
        )
    if start >= beginning:
        return start, end
    first = cut_after(store, head, beginning)
    if first >= end:
        found.note(
            f"{log}: the log begins at {beginning} now, and what is left of it was merged with "
            "what is gone; it is not verified"
        )
        return None
    found.note(
        f"{log}: the log begins at {beginning} now; offsets {start} to {first}, and the counters, "
        "are not verified"
    )
    return first, end
