"""`verify` reads the log again and compares the result with the ledger, bit for bit.

The ledger is copied at one moment. The records of each log from its head's start to its next offset
are decoded and counted as a worker does, into a scratch store, so memory is always bounded. Then
each pane of each metric is merged on both sides and compared as bytes (see diff.py), with counters,
event times, refused events and recorded retries.

Where a log has lost its beginning, or a head is closed, the rest is compared, with a note. Delta
rows count ranges of offsets, and a compactor merges them into wider ones. So for a part of a log,
the smallest range around it is compared whose edges no row spans, with a note if it is wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.audit import cut, retries_of
from streammetrics_consumers.ledger.changes import compared
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation, fingerprint
from streammetrics_consumers.model.partition import SPARK, Name, Partition, names_of, names_without
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.replay.diff import compare_states
from streammetrics_consumers.replay.replay import Replay, read_again
from streammetrics_consumers.replay.scratch import Findings, Scratch
from streammetrics_consumers.sources import Skips, Source, Unsuitable
from streammetrics_consumers.sources.open_source import open_source

READ: Final = Options(until_end=True, skips=Skips(None))

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
        """The wanted offsets of a head. Raises Unsuitable where they were not counted."""
        start = head.start_offset
        end: int | None = head.next_offset
        name: Name = head.partition.number
        for partition_name, offsets in (self.offsets or {}).items():
            if head.partition.is_named([partition_name]):
                name, (start, end) = partition_name, offsets
        to = head.next_offset if end is None else end
        if not head.start_offset <= start < to <= head.next_offset:
            raise Unsuitable(
                f"--offsets: expected a range within the counted offsets {head.start_offset} to "
                f"{head.next_offset} of {head.partition}, got {name}:{start}-"
                f"{'' if end is None else end}; correct it"
            )
        return start, to


ALL: Final = Wanted()


def verify(
    config: Config,
    ledger: Ledger,
    scratch: Ledger,
    *,
    scope: Wanted = ALL,
    report: Callable[[Progress], None] = lambda progress: None,
    monotonic: Callable[[], float],
    opener: Opener = open_source,
) -> Findings:
    """Compare a ledger with its logs. `scratch` is an empty store that nothing else uses.

    Raises SettingsChanged where the config is not that of the store, Unsuitable where wanted
    offsets were never counted, and SourceError.
    """
    began_s = monotonic()
    read = ledger.as_read(config.fingerprints(), config.descriptions)
    _compare_settings(config, read, (), Findings())  # before anything is copied
    findings = Findings()
    work = Scratch(config, ledger, scratch, findings)
    read = ledger.as_read(config.fingerprints(), config.descriptions)
    _compare_settings(config, read, work.heads, findings)
    for metric in work.generation.metrics:
        if fingerprint(metric.description) != metric.fingerprint:
            findings.differs(
                f"metric {metric.name}", "its description does not match its fingerprint"
            )
    limits = (reading.source.max_event_bytes for reading in (config, *work.retries.values()))
    limit = max(work.periods.max_event_bytes, *limits)
    config = replace(config, source=replace(config.source, max_event_bytes=limit))
    replays = _replays(config, work, _chosen(work.heads, scope, findings), scope, opener)
    if replays:
        names = tuple(sorted(map(str, replays)))
        with closing(opener(config, replace(READ, partitions=names))) as source:
            read_again(
                source,
                replays,
                lambda left: report(Progress(findings.rows, monotonic() - began_s, left)),
            )
    for replay in replays.values():
        replay.finish()
    compare_states(work, list(replays.values()))
    findings.logs = len(replays)
    return findings


def _compare_settings(
    config: Config, generation: Generation, heads: Sequence[Head], findings: Findings
) -> None:
    times = [head.greatest_event_ms for head in heads if head.greatest_event_ms is not None]
    changes = compared(
        generation, config.fingerprints(), config.descriptions, max(times, default=None)
    )
    for name in changes.added:
        findings.note(f"metric {name}: the store does not count it yet")
    for name in changes.ended:
        findings.note(f"metric {name}: not verified, since it is not in the config")
    for metric in generation.metrics:
        if metric.ended:
            findings.note(f"metric {metric.name}: not verified, since it has ended")
            continue
        for head in heads:
            if (missed := metric.missed.get(head.id)) is not None:
                text = missed.text(head.partition)
                findings.note(f"metric {metric.name}: was dropped and resumed, and lacks {text}")


def _chosen(heads: Sequence[Head], scope: Wanted, findings: Findings) -> list[Head]:
    """The heads whose logs can be read again. Raises Unsuitable for a partition without a head."""
    heads = [head for head in heads if not head.is_join]
    names = scope.names
    logs = {head.partition for head in heads}
    missing = names_without(names or (), logs)
    if missing:
        is_partition = not {*missing}.isdisjoint(scope.partitions or ())
        raise Unsuitable(
            f"--{'partitions' if is_partition else 'offsets'}: expected counted partitions "
            f"({names_of(logs)}), got {', '.join(map(str, missing))}; leave out those that were "
            "not counted"
        )
    chosen = []
    for head in heads:
        span = f"{head.start_offset} to {head.next_offset}"
        if names is not None and not head.partition.is_named(names):
            continue
        if head.partition.cluster == SPARK:
            findings.note(
                f"{head.partition}: not verified, since batches {span} come from a streaming query "
                "of Spark, which has no log to read again"
            )
        elif head.closed:
            findings.note(
                f"{head.partition}: not verified, since the log of a closed head (offsets {span}) "
                "cannot be read again"
            )
        elif head.next_offset == head.start_offset:
            findings.note(f"{head.partition}: nothing is counted yet")
        else:
            chosen.append(head)
    return chosen


def _replays(
    config: Config, work: Scratch, heads: Sequence[Head], scope: Wanted, opener: Opener
) -> dict[Partition, Replay]:
    """The replay of each log that can be read."""
    findings = work.found
    spans = {head.partition: scope.span(head) for head in heads}
    replays: dict[Partition, Replay] = {}
    if not heads:
        return replays
    with closing(opener(config, Options(until_end=True))) as source:
        logs, ends = source.partitions(), source.ends()
        for head in heads:
            log = head.partition
            if log not in logs or not source.replayable:
                findings.note(f"{log}: not verified, since this log can no longer be read")
                continue
            span = _span(work, head, spans[log], source.beginning(log))
            if span is None:
                continue
            if config.dedup is not None and span[0] > head.start_offset:
                findings.note(
                    f"{log}: not verified, since the events before offset {span[0]} determine "
                    "which later ones are repeats; verify it from its beginning"
                )
                continue
            end = ends.get(log, 0)
            if end < span[1]:
                subject = "the head is" if span[1] == head.next_offset else "a delta row ends"
                findings.differs(str(log), f"{subject} at {span[1]}, but the log ends at {end}")
                continue
            inside, across = retries_of(work.store, head, *span)
            for number in sorted(across & work.retries.keys()):
                findings.note(
                    f"{log}: retry {number} is not verified, since it has counted events inside "
                    "and outside of these offsets"
                )
            replays[log] = Replay(work, head, span, inside)
    return replays


def _span(
    work: Scratch, head: Head, given_range: tuple[int, int], beginning: int
) -> tuple[int, int] | None:
    """The offsets to compare; None where too many of them are lost."""
    start, end = given_range
    if start > head.start_offset:
        start = cut(work.store, head, start, after=False)
    if end < head.next_offset:
        end = cut(work.store, head, end, after=True)
    if (start, end) != given_range:
        work.found.note(
            f"{head.partition}: offsets {start} to {end} are verified, since delta rows that span "
            "the edges of the given range cannot be divided"
        )
    if start >= beginning:
        return start, end
    begins = f"{head.partition}: the log begins at {beginning} now"
    first = cut(work.store, head, beginning, after=True)
    if first >= end:
        work.found.note(
            f"{begins}; not verified, since the rest of it was merged with the lost offsets"
        )
        return None
    work.found.note(f"{begins}; offsets {start} to {first} and the counters are not verified")
    return first, end
