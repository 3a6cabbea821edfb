"""`verify`: the log is read again, and what it says is compared with the ledger, bit for bit.

Of each log the records from its head's start to its next offset are decoded and counted as a
worker counts them, into a scratch store, so that memory is bounded whatever there is. Then each
pane of each metric is merged on both sides and compared as bytes (see compared.py), and counters,
event times, refused events and recorded retries with them.

What stands in quarantine is left out of the count, and must be refused again for the same reason.
A retry is read as it was read when it counted: the ledger keeps how.

Where a log has lost its beginning, or a head is closed, the rest is compared and this is said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Final

from consumers.config.config import Config
from consumers.events.decoder import Decoder
from consumers.ledger.audit import Stand, cut_after, stand
from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import Head
from consumers.sources.open_source import open_source
from consumers.sources.source import Chunk, Partition, Source
from consumers.worker.compared import compare_panes
from consumers.worker.reading import with_reading
from consumers.worker.recount import Recount, Scratch
from consumers.worker.run_options import Options, Progress
from consumers.worker.verified import Verified

Opener = Callable[[Config, Options], Source]

POLL_S: Final = 0.5
READ: Final = Options(until_end=True)


class _From:
    """A listener that reads some logs from given offsets on. Nothing is committed anywhere."""

    def __init__(self, starts: dict[Partition, int]) -> None:
        self.starts = starts

    def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
        """Where each is read from."""
        return {partition: self.starts[partition] for partition in partitions}

    def on_revoked(self, partitions: list[Partition]) -> None:
        """Nothing is ours to lose."""

    def on_lost(self, partitions: list[Partition]) -> None:
        """Nothing is ours to lose."""


def verify(
    config: Config,
    ledger: Ledger,
    scratch: Ledger,
    *,
    partitions: tuple[int, ...] | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    monotonic: Callable[[], float],
    opener: Opener = open_source,
) -> Verified:
    """Compare a ledger with its logs. `scratch` is an empty store that nobody else uses.

    Raises SettingsChanged where the config is not that of the store, and SourceError.
    """
    began_s = monotonic()
    found = Verified()
    now = stand(ledger.store)
    begun = ledger.compare(config.fingerprints(), config.descriptions)
    if begun is not None:
        for name in begun.added:
            found.note(f"metric {name}: the store does not count it yet")
        for name in begun.ended:
            found.note(f"metric {name}: it is not in the config, and is not verified")
    for metric in now.generation.metrics:
        if metric.ended:
            found.note(f"metric {metric.name}: it has ended, and is not verified")
    heads = _heads(now, partitions, found)
    readings = {number: with_reading(config, text) for number, text in now.retries.items()}
    limit = max([config, *readings.values()], key=lambda one: one.source.max_event_bytes)
    source_config = replace(
        config, source=replace(config.source, max_event_bytes=limit.source.max_event_bytes)
    )
    work = Scratch(config, now.generation, scratch, readings)
    recounts = _recounts(source_config, ledger, heads, work, found, opener)
    if recounts:
        numbers = tuple(sorted(one.head.partition.number for one in recounts.values()))
        options = replace(READ, partitions=numbers)
        with closing(opener(source_config, options)) as source:

            def say(rows: int, left: int) -> None:
                report(Progress(rows, monotonic() - began_s, left))

            _replay(source, config, recounts, found, say)
    for recount in recounts.values():
        recount.finish()
    if recounts:
        compare_panes(ledger.store, scratch.store, work, list(recounts.values()), found)
    found.logs = len(recounts)
    return found


def _heads(now: Stand, numbers: tuple[int, ...] | None, found: Verified) -> list[Head]:
    heads = []
    for head in now.heads:
        if numbers is not None and head.partition.number not in numbers:
            continue
        if head.closed:
            found.note(
                f"{head.partition}: the log of a closed head (offsets {head.start_offset} to "
                f"{head.next_offset}) cannot be read again, and is not verified"
            )
        elif head.next_offset == head.start_offset:
            found.note(f"{head.partition}: nothing was counted yet")
        else:
            heads.append(head)
    return heads


def _recounts(
    config: Config,
    ledger: Ledger,
    heads: list[Head],
    work: Scratch,
    found: Verified,
    opener: Opener,
) -> dict[Partition, Recount]:
    """What is counted again of each log that can be read."""
    if not heads:
        return {}
    recounts: dict[Partition, Recount] = {}
    with closing(opener(config, READ)) as source:
        there, ends = source.partitions(), source.ends()
        for head in heads:
            log = head.partition
            if log not in there or not source.replayable:
                found.note(f"{log}: this log is not there any more, and is not verified")
                continue
            end = ends.get(log, 0)
            if end < head.next_offset:
                found.differs(
                    str(log), f"the head stands at {head.next_offset}, and the log ends at {end}"
                )
                continue
            start = max(head.start_offset, source.beginning(log))
            if start > head.start_offset:
                first = cut_after(ledger.store, head, start)
                if first >= head.next_offset:
                    found.note(
                        f"{log}: the log begins at {start} now, and what is left of it was "
                        "merged with what is gone; it is not verified"
                    )
                    continue
                found.note(
                    f"{log}: the log begins at {start} now; offsets {head.start_offset} to "
                    f"{first}, and the counters, are not verified"
                )
                start = first
            recounts[log] = Recount(ledger.store, head, start, work, found)
    return recounts


def _replay(
    source: Source,
    config: Config,
    recounts: dict[Partition, Recount],
    found: Verified,
    report: Callable[[int, int], None],
) -> None:
    decoder = Decoder(config)
    source.assign(_From({log: one.start for log, one in recounts.items()}))
    while True:
        left = sum(one.head.next_offset - one.at for one in recounts.values())
        report(found.rows, left)
        if not left:
            return
        for chunk in source.poll(POLL_S):
            recount = recounts.get(chunk.partition)
            if recount is None or chunk.end <= recount.at or chunk.start > recount.at:
                continue
            for part in _parts(chunk, recount):
                for decoded in decoder.pieces(part):
                    recount.take(decoded)
                recount.take_retries(part)


def _parts(chunk: Chunk, recount: Recount) -> list[Chunk]:
    """What is still to be counted of a chunk, cut where a metric starts."""
    start, end = max(chunk.start, recount.at), min(chunk.end, recount.head.next_offset)
    edges = [start, *(cut for cut in recount.cuts if start < cut < end), end]
    parts = []
    for a, b in pairwise(edges):
        first, last = bisect_left(chunk.offsets, a), bisect_left(chunk.offsets, b)
        parts.append(chunk.part(first, last, a, b))
    return parts if start < end else []
