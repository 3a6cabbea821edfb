"""The steps of the transactions that move a head, each on a connection of the caller."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from consumers.ledger.read import read_heads
from consumers.ledger.rows import JOIN, Commit, Generation, Head, Piece
from consumers.ledger.schema import delta, generation, head, quarantine
from consumers.ledger.seen import write_seen
from consumers.ledger.settings import SettingsChanged
from consumers.sources.source import Partition

_ROWS_A_STATEMENT: Final = 100  # of a delta: SQLite takes at least 999 parameters


class Fenced(Exception):
    """Another worker has counted these records, or windows of the delta are gone by now.

    Nothing was written. Throw the delta away and read on from the head as it is now.
    """


def check_generation(
    connection: Connection, known: Generation, *, alone: bool = False
) -> int | None:
    """Refuse to write for settings that are not those of the store any more; answers the floor.

    Until the end of the transaction nobody changes the generation. With `alone`, nobody else
    writes to it either: so must those do who change it or the set of its heads. (Whoever shared it
    first would wait for the others who share it, and they for him.)
    """
    row = connection.execute(
        select(generation.c.current, generation.c.revision, generation.c.floor_ms)
        .where(generation.c.id == known.id)
        .with_for_update(read=not alone)
    ).one_or_none()
    if row is None or not row.current:
        raise SettingsChanged(
            [f"generation {known.id} is closed"],
            "Another process has started a new generation; start again with its config.",
        )
    if row.revision != known.revision:
        raise SettingsChanged(
            [f"the metrics or variants of generation {known.id} have changed"],
            "Another process has added a variant, or added or removed a metric; start again with "
            "its config.",
        )
    floor_ms: int | None = row.floor_ms
    return floor_ms


def refuse_closed(connection: Connection, commit: Commit) -> None:
    """Raise Fenced where label windows that events of this commit belong to are closed. Until the
    end of the transaction nobody closes more."""
    if commit.closed_at_most is None:
        return
    closed = connection.scalar(
        select(head.c.next_offset)
        .where(
            head.c.generation == commit.head.generation,
            head.c.closed.is_(False),
            head.c.topic == JOIN.topic,
        )
        .with_for_update(read=True)
    )
    if closed is not None and closed > commit.closed_at_most:
        raise Fenced(f"label windows are closed up to {closed} ms")


def live(of: Generation) -> tuple[ColumnElement[bool], ...]:
    """Which heads of a generation are read."""
    return (head.c.generation == of.id, head.c.closed.is_(False))


def head_of(connection: Connection, of: Generation, partition: Partition) -> Head | None:
    """The head that is read under this topic and number, whatever its cluster and topic id."""
    found = read_heads(
        connection,
        *live(of),
        head.c.topic == partition.topic,
        head.c.partition == partition.number,
    )
    return found[-1] if found else None


def insert_head(connection: Connection, of: Generation, partition: Partition, start: int) -> Head:
    """A new head at `start`."""
    same = (
        head.c.generation == of.id,
        head.c.cluster == partition.cluster,
        head.c.topic_id == partition.topic_id,
        head.c.partition == partition.number,
    )
    earlier = connection.scalar(select(func.count()).select_from(head).where(*same)) or 0
    connection.execute(
        insert(head).values(
            generation=of.id,
            cluster=partition.cluster,
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.number,
            incarnation=earlier,
            closed=False,
            start_offset=start,
            next_offset=start,
        )
    )
    (made,) = read_heads(connection, *same, head.c.incarnation == earlier)
    return made


def move_head(connection: Connection, commit: Commit) -> bool:
    """Move the head from `start` to `end` if it still stands at `start`; whether it did."""
    counted = commit.counters
    moved = connection.execute(
        update(head)
        .where(*stands_at(commit.head, commit.start))
        .values(
            next_offset=commit.end,
            greatest_event_ms=commit.greatest_event_ms,
            rows=head.c.rows + counted.rows,
            late=head.c.late + counted.late,
            future=head.c.future + counted.future,
            expired=head.c.expired + counted.expired,
            quarantined=head.c.quarantined + counted.quarantined,
            tombstones=head.c.tombstones + counted.tombstones,
            late_outcomes=head.c.late_outcomes + counted.late_outcomes,
            ignored=head.c.ignored + counted.skipped,
            closed_rows=head.c.closed_rows + counted.closed,
            conflicts=head.c.conflicts + counted.conflicts,
            repeated=head.c.repeated + counted.repeated,
        )
    )
    return moved.rowcount == 1


def stands_at(known: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
    """The condition that fences: this head is read, and its next offset is `offset`."""
    return (head.c.id == known.id, head.c.closed.is_(False), head.c.next_offset == offset)


def is_at(connection: Connection, known: Head, offset: int) -> bool:
    """Whether a head stands at this offset now."""
    return bool(read_heads(connection, *stands_at(known, offset)))


def write_delta(connection: Connection, commit: Commit) -> None:
    """The states and the refused events of the records that the head has moved over."""
    write_pieces(connection, commit)
    if commit.seen is not None:
        write_seen(connection, commit.head, commit.seen)
    refused = [
        {
            "generation": commit.head.generation,
            "head": commit.head.id,
            "offset": event.offset,
            "index": event.index,
            "reason": event.reason,
            "field": event.field and storable(event.field),
            "detail": storable(event.detail),
            "payload": event.payload,
            "size": event.size,
            "sha256": event.sha256,
            "record_ms": event.record_ms,
            "done": False,
        }
        for event in commit.refused
    ]
    if refused:
        connection.execute(insert(quarantine), refused)


def write_pieces(connection: Connection, commit: Commit, retry: int | None = None) -> None:
    """The states alone, under the number of a retry where they are not the log's own."""
    rows = [{**_delta_row(commit, piece), "retry": retry} for piece in commit.pieces]
    for at in range(0, len(rows), _ROWS_A_STATEMENT):
        connection.execute(insert(delta), rows[at : at + _ROWS_A_STATEMENT])


def storable(text: str) -> str:
    """A text that quotes an event, as every database takes it: PostgreSQL knows no NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _delta_row(commit: Commit, piece: Piece) -> dict[str, object]:
    return {
        "generation": commit.head.generation,
        "metric": piece.pane.metric,
        "grouping": piece.pane.grouping,
        "window_start_ms": piece.pane.start_ms,
        "window_end_ms": piece.pane.end_ms,
        "key_range": piece.key_range,
        "key_ranges": piece.key_ranges,
        "head": commit.head.id,
        "start_offset": commit.start,
        "end_offset": commit.end,
        "nbytes": len(piece.state),
        "state": piece.state,
        "for_coarser": piece.for_coarser,
    }


def skip_offsets(connection: Connection, known: Head, to: int) -> bool:
    """Move a head to `to` over offsets that the log has lost; whether it did."""
    moved = connection.execute(
        update(head)
        .where(*stands_at(known, known.next_offset))
        .values(next_offset=to, skipped=head.c.skipped + (to - known.next_offset))
    )
    return moved.rowcount == 1


def close_head(connection: Connection, known: Head) -> bool:
    """End a head; whether it was open."""
    closed = connection.execute(
        update(head).where(head.c.id == known.id, head.c.closed.is_(False)).values(closed=True)
    )
    return closed.rowcount == 1


def raise_floor(connection: Connection, of: Generation, floor_ms: int) -> None:
    """Raise the floor, if this is higher, and drop the panes that start before it."""
    lower = or_(generation.c.floor_ms.is_(None), generation.c.floor_ms < floor_ms)
    raised = connection.execute(
        update(generation).where(generation.c.id == of.id, lower).values(floor_ms=floor_ms)
    )
    if raised.rowcount == 1:
        connection.execute(
            delete(delta).where(delta.c.generation == of.id, delta.c.window_start_ms < floor_ms)
        )


def note_lateness(connection: Connection, of: Generation, lateness_ms: int) -> None:
    """Keep the lateness of the last config, for display."""
    connection.execute(
        update(generation).where(generation.c.id == of.id).values(lateness_ms=lateness_ms)
    )
