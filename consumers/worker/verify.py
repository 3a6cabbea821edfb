"""`verify`: the log is read again, and what it says is compared with the ledger, bit for bit.

Of each log the records from its head's start to its next offset, as all heads stood at one moment,
are decoded and counted as a worker counts them, into a scratch store, so that memory is bounded
whatever there is. Then each pane of each metric is merged on both sides and compared as bytes (see
compared.py), and counters, event times, refused events and recorded retries with them. What workers
count meanwhile is left out, unless it was merged with what is compared: then it is read as well.

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
from consumers.config.fingerprint import fingerprint
from consumers.counting.options import Options, Progress
from consumers.events.decoder import Decoder
from consumers.ledger.audit import Stand, stand
from consumers.ledger.ledger import Ledger
from consumers.ledger.references import loose_ends
from consumers.ledger.rows import Pane
from consumers.ledger.settings import compared
from consumers.sources.open_source import open_source
from consumers.sources.source import Chunk, Partition, Skips, Source
from consumers.worker.chosen_logs import Opener, Wanted, chosen_heads, recounts_of
from consumers.worker.compared import compare_panes, named
from consumers.worker.compared_joined import compare_joined
from consumers.worker.reading import with_reading
from consumers.worker.recount import Recount
from consumers.worker.scratch import Scratch
from consumers.worker.verified import Verified

POLL_S: Final = 0.5
READ: Final = Options(until_end=True, skips=Skips(None))
ALL: Final = Wanted()
PASSES: Final = 10  # over panes that are merged again and again with what workers count meanwhile


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
    wanted: Wanted = ALL,
    report: Callable[[Progress], None] = lambda progress: None,
    monotonic: Callable[[], float],
    opener: Opener = open_source,
) -> Verified:
    """Compare a ledger with its logs. `scratch` is an empty store that nobody else uses.

    Raises SettingsChanged where the config is not that of the store, Unsuitable where what is
    wanted was never counted, and SourceError.
    """
    began_s = monotonic()
    found = Verified()
    now = stand(ledger.store)
    _compare_settings(config, now, found)
    for text in loose_ends(ledger.store, now.generation):
        found.differs("store", text)
    heads = chosen_heads(now.heads, wanted, found)
    readings = {number: with_reading(config, text) for number, text in now.retries.items()}
    limit = max([config, *readings.values()], key=lambda one: one.source.max_event_bytes)
    source_config = replace(
        config, source=replace(config.source, max_event_bytes=limit.source.max_event_bytes)
    )
    work = Scratch(config, now.generation, scratch, readings, now.seen)
    recounts = recounts_of(source_config, ledger.store, heads, wanted, work, found, opener)

    def say(rows: int, left: int) -> None:
        report(Progress(rows, monotonic() - began_s, left))

    _replay(source_config, recounts, found, opener, say)
    for recount in recounts.values():
        recount.finish()
    left: list[Pane] | None = None
    for _ in range(PASSES):
        left = compare_panes(ledger.store, work, now.heads, list(recounts.values()), left, found)
        if not left:
            break
        # Workers count on, and a compactor has merged what they counted with what we compare.
        for recount in recounts.values():
            recount.extend()
        _replay(source_config, recounts, found, opener, say)
        for recount in recounts.values():
            recount.flush()
    for pane in left or ():
        found.skips(f"{named(pane)}: merged with what was counted since; verify again")
    if config.join is not None:
        compare_joined(config, ledger, work, now.heads, list(recounts.values()), found)
    found.logs = len(recounts)
    return found


def _compare_settings(config: Config, now: Stand, found: Verified) -> None:
    to_ms = max((h.greatest_event_ms for h in now.heads if h.greatest_event_ms is not None),
                default=None)  # fmt: skip
    changes = compared(now.generation, config.fingerprints(), config.descriptions, to_ms)
    for name in changes.added:
        found.note(f"metric {name}: the store does not count it yet")
    for name in changes.ended:
        found.note(f"metric {name}: it is not in the config, and is not verified")
    for metric in now.generation.metrics:
        if fingerprint(metric.description) != metric.fingerprint:
            found.differs(f"metric {metric.name}", "its description is not that of its fingerprint")
        if metric.ended:
            found.note(f"metric {metric.name}: it has ended, and is not verified")


def _replay(
    config: Config,
    recounts: dict[Partition, Recount],
    found: Verified,
    opener: Opener,
    report: Callable[[int, int], None],
) -> None:
    """Read on in each log, from where its recount stands to its end."""
    waiting = {log: one for log, one in recounts.items() if one.at < one.end}
    if not waiting:
        return
    names = tuple(sorted(map(str, waiting)))
    with closing(opener(config, replace(READ, partitions=names))) as source:
        _count(source, Decoder(config), waiting, found, report)


def _count(
    source: Source,
    decoder: Decoder,
    recounts: dict[Partition, Recount],
    found: Verified,
    report: Callable[[int, int], None],
) -> None:
    source.assign(_From({log: one.at for log, one in recounts.items()}))
    while True:
        left = sum(one.end - one.at for one in recounts.values())
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
    start, end = max(chunk.start, recount.at), min(chunk.end, recount.end)
    edges = [start, *(cut for cut in recount.cuts if start < cut < end), end]
    parts = []
    for a, b in pairwise(edges):
        first, last = bisect_left(chunk.offsets, a), bisect_left(chunk.offsets, b)
        parts.append(chunk.part(first, last, a, b))
    return parts if start < end else []
