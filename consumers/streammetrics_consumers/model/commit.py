"""The content of a write transaction and of a read: heads, counters, and refused events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, attrgetter
from typing import Final, NamedTuple

from streammetrics_consumers.model.generation import Generation, PaneSize, StateShard
from streammetrics_consumers.model.partition import Partition

# The pseudo-partition that joined rows are counted under: its offsets are event times, in
# milliseconds, up to which label windows are closed. No topic and no file has this name.
JOIN: Final = Partition("(join)", "(join)", "(join)", 0)
JOIN_START: Final = -(1 << 62)  # the first offset of JOIN: before all event times
# The reasons of events that are too late in their log; and of those that `late_outcomes` counts.
LATE: Final = ("late_impression", "late_outcome", "late_exposure", "late_event")
LATE_OUTCOMES: Final = ("late_outcome", "late_event")
# The counters of events that no metric has.
COUNTED: Final = ("quarantined", "late", "future", "expired", "repeated", "skipped")


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of events: `rows` is the number of events read, accepted or refused. `tombstones` are
    messages without a value, which are no events. `skipped` are events that the config leaves out:
    those that `[event] where` excludes, and those that are neither impressions nor outcomes. Where
    events are joined, late ones are refused, and `late_outcomes` of them are outcomes; JOIN has
    counted `closed` impressions and left out `conflicts`. With exposures and no join,
    `late_outcomes` are events, JOIN has counted `closed` events, and `conflicts` are first
    exposures of a unit to a further arm. `repeated` have ids seen before."""

    rows: int = 0
    late: int = 0
    future: int = 0
    expired: int = 0
    quarantined: int = 0
    tombstones: int = 0
    late_outcomes: int = 0
    skipped: int = 0
    closed: int = 0
    conflicts: int = 0
    repeated: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*map(add, _counts(self), _counts(other)))


_counts = attrgetter(*Counters.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Head:
    """How far one log was counted: [start_offset, next_offset).

    `lost` counts offsets that the log lost before they were read (`--on-gap skip`). Where a log
    lost its end or was recreated, and reading went on all the same, the head is `closed` and
    another one follows the log. Recovery reads only next_offset and greatest_event_ms.

    `incarnation` counts the earlier heads of the same log. `digest` covers all commits of the head
    (see ledger/write.py): two heads with one digest have one history. `known_offset` is set where
    the store went back: the offset up to which a worker knew the log to be counted.
    """

    id: int
    generation: int
    partition: Partition
    closed: bool
    start_offset: int
    next_offset: int
    greatest_event_ms: int | None
    counters: Counters
    lost: int
    incarnation: int = 0
    digest: str = ""
    known_offset: int | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether the store went back and has not yet counted again all that it had."""
        known_offset = self.known_offset
        return known_offset is not None and known_offset > self.next_offset and not self.closed

    @property
    def is_join(self) -> bool:
        """Whether it follows no log but holds the time up to which label windows are closed."""
        return self.partition == JOIN


@dataclass(frozen=True, slots=True)
class Refused:
    """One event that was not counted: its position, the reason, and its content.

    `offset` is the offset of its record and `index` its position in the record; a record that
    cannot be opened into its events is refused whole, at index 0. `payload` holds its first bytes;
    `size` (in bytes) and `sha256` (hex) are those of the whole event. `record_ms` is the timestamp
    of its record, None where it has none.
    """

    offset: int
    index: int
    reason: str
    field: str | None
    detail: str
    payload: bytes
    size: int
    sha256: str
    record_ms: int | None = None

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return len(self.payload) + len(self.detail) + 300


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRow(Refused):
    """A refused event as stored. `done`: whether a retry has counted it, `retry`: which one."""

    id: int
    partition: Partition
    head: int
    done: bool
    retry: int | None


class Seen(NamedTuple):
    """Changes of a commit to the ids that a log has seen: panes that start before `since_ms` are
    forgotten, the rows of the panes in `replaced` are deleted, and `rows` (pane start, ids) are
    added."""

    since_ms: int
    replaced: Sequence[int]
    rows: Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of one transaction: the records [start, end) of the log that `head` follows.

    `greatest_event_ms` is that of all events before `end`. `closed_at_most`: events of the commit
    are joined, which requires that label windows are closed up to this time at most. `floor_ms`:
    events below this retention floor are left out of their windows. `closed_at_least`: events are
    refused because label windows are closed up to this time. None: no such events.
    """

    head: Head
    start: int
    end: int
    greatest_event_ms: int | None
    counters: Counters
    shards: Sequence[StateShard] = ()
    refused: Sequence[Refused] = ()
    closed_at_most: int | None = None
    seen: Seen | None = None
    floor_ms: int | None = None
    closed_at_least: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A generation as one read transaction saw it, all of it at the same moment.

    `heads` includes closed ones, in the order of their creation. `panes` lists all panes of the
    generation. `retry` is the number of the last retry of refused events, 0 before the first.
    """

    generation: Generation
    heads: tuple[Head, ...]
    panes: tuple[PaneSize, ...]
    retry: int = 0

    @property
    def counters(self) -> Counters:
        """The sum over all heads."""
        return sum((head.counters for head in self.heads), Counters())

    @property
    def stored_rows(self) -> int:
        """The number of delta rows in the store."""
        return sum(size.own_rows for size in self.panes)

    @property
    def stored_nbytes(self) -> int:
        """The size of these rows in bytes."""
        return sum(size.own_nbytes for size in self.panes)

    @property
    def offsets(self) -> dict[str, int]:
        """The next offset of each log by its name (`topic/0`); where events are joined, also the
        event time up to which label windows are closed."""
        return {
            str(head.partition): head.next_offset
            for head in self.heads
            if not head.closed and head.next_offset != JOIN_START
        }

    @property
    def incomplete(self) -> dict[str, int]:
        """The logs of which the store has counted less than before it went back, each with the
        offset (or event time) up to which it had been counted."""
        return {str(h.partition): h.known_offset or 0 for h in self.heads if h.is_incomplete}

    @property
    def logs(self) -> tuple[Head, ...]:
        """The heads that follow logs."""
        return tuple(head for head in self.heads if not head.is_join)

    @property
    def closed_ms(self) -> int | None:
        """The event time up to which label windows are closed; later impressions are not counted
        yet. None where events are not joined, or no window is closed."""
        joins = [head for head in self.heads if head.is_join and head.next_offset != JOIN_START]
        return max((head.next_offset for head in joins), default=None)

    @property
    def greatest_event_ms(self) -> int | None:
        """The greatest event time read over all partitions, None before the first event."""
        times = [h.greatest_event_ms for h in self.heads if h.greatest_event_ms is not None]
        return max(times, default=None)
