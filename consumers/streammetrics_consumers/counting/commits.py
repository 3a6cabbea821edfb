"""From a delta to a commit: the limits of its size and of its share of refused events."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from streammetrics_consumers.config.tables import StoreConfig
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES
from streammetrics_consumers.ledger.quarantine import open_since
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Counters, Head, Refused
from streammetrics_consumers.model.partition import Partition

# The counts and the refused events of a log that are not committed yet.
Counted: TypeAlias = "tuple[Partition, Counters, Sequence[Refused]]"
FIRST_ROWS: Final = 1000  # events, before a share of them is meaningful


def commit_of(head: Head, delta: Delta, limit: int = SHARD_BYTES) -> Commit:
    """The commit of `delta` to the log that `head` follows, in shards of at most `limit` bytes.

    Only the state of one key may be larger. A delta is bounded, so it still fits into a row of
    either database; a caller that can commit less at once does so: see `CommitLimits`.
    """
    pending = delta.pending
    return Commit(
        head,
        delta.start,
        delta.end,
        delta.greatest_event_ms,
        delta.counters,
        list(delta.shards(limit)),
        delta.quarantine,
        None if pending is None else pending.closed_at_most,
        floor_ms=delta.floor_ms if delta.counters.expired else None,
        closed_at_least=None if pending is None else pending.closed_at_least,
    )


class CommitLimits:
    """The limits of one commit: a number of events and of bytes, and, once a row was too large for
    the store, a number of offsets.

    The state of one key cannot be split into ranges of keys. Its log is read again from the head,
    with half as many offsets per commit. A single record is committed whatever its size.
    """

    def __init__(self, store: StoreConfig, limit: int = SHARD_BYTES) -> None:
        self._store, self._limit = store, limit
        self._spans: dict[Partition, int] = {}

    def is_too_large(self, commit: Commit) -> bool:
        """Whether a smaller commit would make smaller rows. If so, the next commits are smaller."""
        span, limit = commit.end - commit.start, self._spans.get(commit.head.partition)
        is_one = span <= 1 or (limit is not None and span > limit)  # a hole, and a record after it
        if is_one or all(len(shard.state) <= self._limit for shard in commit.shards):
            return False
        self._spans[commit.head.partition] = span // 2
        return True

    def are_passed(self, delta: Delta, rows: int, end: int) -> bool:
        """Whether a delta would hold too much with this many more rows, up to this offset."""
        if delta.end == delta.start:
            return False
        counted, span = delta.counters.rows, self._spans.get(delta.partition)
        return (
            (counted > 0 and counted + rows > self._store.commit_events)
            or delta.nbytes >= self._store.commit_bytes
            or (span is not None and end - delta.start > span)
        )

    def parts(self, chunk: Chunk) -> Iterator[Chunk]:
        """A chunk in parts of at most the offsets that one commit may cover. A longer part is one
        record after a hole, or a hole."""
        span = self._spans.get(chunk.partition, chunk.end - chunk.start)
        first, start = 0, chunk.start
        while chunk.end - start > span and first < len(chunk):
            last = max(bisect_left(chunk.offsets, start + span, first), first + 1)
            end = min(max(chunk.offsets[last - 1] + 1, start + span), chunk.end)
            yield chunk.part(first, last, start, end)
            first, start = last, end
        if start < chunk.end or not first:
            yield chunk.part(first, len(chunk), start, chunk.end) if first else chunk


class ErrorBudgetExceeded(Exception):
    """More events were refused than `store.max_bad_share` allows.

    Events since the last commit are neither counted nor in quarantine: they are read again once
    the cause is fixed.
    """


class ErrorBudget:
    """The share of refused events among those that one worker has read and not skipped.

    A worker that starts again includes the last records of each assigned log: else each start
    would let FIRST_ROWS bad events through. While the share is too high, commits within the limit
    still pass, so that good events are counted once the cause is fixed.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._known: set[int] = set()  # heads
        self.rows = self.refused = 0

    def began(self, store: Store, head: Head) -> None:
        """Include an assigned log: the open refused events of its last FIRST_ROWS records.

        A record may hold many events; the number is taken to be the log's average.
        """
        records = head.next_offset - head.start_offset - head.lost
        if records <= 0 or self.limit >= 1 or head.id in self._known:
            return
        self._known.add(head.id)
        refused = open_since(store, head, head.next_offset - FIRST_ROWS)
        events = head.counters.rows - head.counters.skipped
        rows = events * min(FIRST_ROWS, records) // records
        self.rows += max(rows, refused)
        self.refused += refused

    def count(self, counters: Counters) -> None:
        """Include committed events."""
        self.rows += counters.rows - counters.skipped
        self.refused += counters.quarantined

    def check(self, counted: Sequence[Counted], *, last: bool) -> None:
        """Raise ErrorBudgetExceeded rather than commit these. `last`: no more events will come."""
        new = sum(counters.rows - counters.skipped for _, counters, _ in counted)
        bad = sum(counters.quarantined for _, counters, _ in counted)
        rows, refused = self.rows + new, self.refused + bad
        if bad <= self.limit * new:
            return
        if refused <= self.limit * rows or (rows < FIRST_ROWS and not last):
            return
        summary = (
            f"{refused} of {rows} events were refused, more than max_bad_share = {self.limit:g}"
        )
        entries = [(partition, entry) for partition, _, refused in counted for entry in refused]
        reasons = Counter(entry.reason for _, entry in entries).most_common(3)
        for partition, first in entries[:1]:
            summary += ": " + ", ".join(f"{count} {reason}" for reason, count in reasons)
            summary += f"; the first is {partition} offset {first.offset}"
            summary += (
                f", field {first.field}: {first.detail}" if first.field else f": {first.detail}"
            )
        raise ErrorBudgetExceeded(
            f"{summary}. Events since the last commit are not counted; fix the events or the "
            "config, or raise [store] max_bad_share"
        )
