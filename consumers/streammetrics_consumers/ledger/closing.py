"""Closing pending events in the ledger: their rows become counted rows.

Pending events are stored as rows of a metric of their own, by panes of event time. They are read
outside of any transaction. Then one write transaction (1) moves the head JOIN from one event time
to a later one, on the conditions that it still stands there, and that no head of a log has gone
back since it was decided what can be closed, (2) deletes the pending rows of all
earlier panes, on the condition that all rows that were read, and no others, are still there, and
(3) writes the results: states of metrics, and events to remember. If a condition fails, nothing is
written: another process has closed events, the store went back, rows were merged, or a retry has
added an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, select

from streammetrics_consumers.ledger.delta_metadata import (
    DeltaMetadata,
    read_rows,
    read_states,
    state_bytes,
)
from streammetrics_consumers.ledger.read import read_heads
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import (
    Fenced,
    check_generation,
    has_head,
    head_after_commit,
    head_of,
    insert_head,
    live,
    move_head,
    write_delta,
)
from streammetrics_consumers.model.commit import JOIN, JOIN_START, Commit, Head
from streammetrics_consumers.model.generation import Generation

_ROWS_A_QUERY: Final = 100  # SQLite takes at least 999 parameters


class WentBack(Fenced):
    """The logs are counted less far than when it was decided what can be closed."""


class PendingMetadata(NamedTuple):
    """All rows of a metric of pending events, of panes that start before a time; without their
    states."""

    metric: str
    before_ms: int
    rows: tuple[DeltaMetadata, ...]

    def nbytes_before(self, end_ms: int) -> int:
        """The bytes of those of panes that start before a time."""
        return sum(row.nbytes for row in self.rows if (row.pane.start_ms or 0) < end_ms)


def join_head(store: Store, generation: Generation) -> Head:
    """The head JOIN, which holds how far events are closed; created if there is none."""

    def work(connection: Connection, _: bool) -> Head:
        check_generation(connection, generation, is_exclusive=True)
        head = head_of(connection, generation, JOIN)
        return insert_head(connection, generation, JOIN, JOIN_START) if head is None else head

    stored_head = store.read(lambda connection: head_of(connection, generation, JOIN))
    return store.write(work) if stored_head is None else stored_head


def closing_heads(store: Store, generation: Generation) -> tuple[Head, ...]:
    """The heads of logs, and that of JOIN if there is one, all at one moment."""
    return store.read(lambda connection: read_heads(connection, *live(generation)))


def pending(store: Store, generation: Generation, metric: str, before_ms: int) -> PendingMetadata:
    """The rows of pending events that a metric holds, of panes that start before a time."""
    return store.read(lambda connection: _pending(connection, generation, metric, before_ms))


def states(store: Store, rows: Sequence[DeltaMetadata]) -> Iterator[tuple[DeltaMetadata, bytes]]:
    """These rows with the bytes of their states, those of one query in memory at a time.

    Raises Fenced where one of them is gone.
    """
    for start in range(0, len(rows), _ROWS_A_QUERY):
        batch = rows[start : start + _ROWS_A_QUERY]
        stored = store.read(lambda connection, batch=batch: _stored(connection, batch))  # type: ignore[misc]
        yield from ((row, state_bytes(row, data)) for row, data in stored)


def _stored(
    connection: Connection, rows: Sequence[DeltaMetadata]
) -> list[tuple[DeltaMetadata, bytes]]:
    """These rows with their stored bytes. An id alone is not enough: SQLite reuses those of deleted
    rows."""
    now = read_rows(connection, delta.c.id.in_([row.id for row in rows]))
    if frozenset(now) != frozenset(rows):
        raise Fenced("rows were merged while they were read")
    return list(read_states(connection, rows))


def known_bytes(store: Store, generation: Generation, metric: str) -> int:
    """The bytes of all states of a metric."""
    conditions = delta.c.generation == generation.id, delta.c.metric == metric
    total = select(func.sum(delta.c.nbytes)).where(*conditions)
    return store.read(lambda connection: int(connection.scalar(total) or 0))


def known_states(
    store: Store, generation: Generation, metric: str, key_range: int, ranges: int
) -> list[tuple[DeltaMetadata, bytes]]:
    """The rows of a metric that may hold keys of one of equal ranges, with their states: all at one
    moment, so that merging them meanwhile changes nothing. A closing that adds to them moves the
    head JOIN."""

    def work(connection: Connection) -> list[tuple[DeltaMetadata, bytes]]:
        rows = read_rows(connection, delta.c.generation == generation.id, delta.c.metric == metric)
        range_rows = [row for row in rows if row.may_share_keys(key_range, ranges)]
        return [(row, state_bytes(row, data)) for row, data in read_states(connection, range_rows)]

    return store.read(work)


def write_closing(
    store: Store,
    generation: Generation,
    commit: Commit,
    read: Sequence[PendingMetadata],
    replaced: Sequence[DeltaMetadata],
    logs: Sequence[Head] = (),
) -> None:
    """Close up to `commit.end`. read: the rows of pending events that were read; replaced: those of
    them that the commit rewrites or drops. logs: the heads by which this can be closed.

    Raises Fenced, SettingsChanged or StoreUnavailable.
    """
    ids = [row.id for row in replaced]

    def work(connection: Connection, is_repeated: bool) -> None:
        check_generation(connection, generation)
        if is_repeated and has_head(connection, moved):
            return  # an earlier try succeeded, and its answer was lost
        if not move_head(connection, commit, moved):
            if is_repeated and has_head(connection, moved):
                return  # the earlier try succeeded just now
            raise Fenced("another process has closed these events")
        _require_counted(connection, generation, logs)
        for metadata in read:
            now = _pending(connection, generation, metadata.metric, metadata.before_ms)
            if frozenset(now.rows) != frozenset(metadata.rows):
                raise Fenced("rows were merged or added meanwhile")
        deleted = 0
        for start in range(0, len(ids), _ROWS_A_QUERY):
            condition = delta.c.id.in_(ids[start : start + _ROWS_A_QUERY])
            deleted += connection.execute(delete(delta).where(condition)).rowcount
        if deleted != len(ids):  # in PostgreSQL a compactor may commit between two statements
            raise Fenced("rows were merged meanwhile")
        write_delta(connection, commit)

    moved = head_after_commit(commit)
    store.write(work)


def _require_counted(connection: Connection, generation: Generation, logs: Sequence[Head]) -> None:
    """Raise WentBack unless these logs are counted as far as their heads say."""
    now = {head.id: head for head in read_heads(connection, *live(generation))} if logs else {}
    for log_head in logs:
        stored = now.get(log_head.id)
        if (
            stored is None
            or stored.partition != log_head.partition
            or stored.next_offset < log_head.next_offset
        ):
            raise WentBack(f"{log_head.partition} is counted less far: the store went back")


def _pending(
    connection: Connection, generation: Generation, metric: str, before_ms: int
) -> PendingMetadata:
    of_metric = delta.c.generation == generation.id, delta.c.metric == metric
    rows = read_rows(connection, *of_metric, delta.c.window_start_ms < before_ms)
    return PendingMetadata(metric, before_ms, tuple(sorted(rows, key=lambda row: row.id)))
