"""Rows of ids that a partition has seen: written with its commits, read when it is assigned."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, or_, select

from consumers.ledger.rows import Head, Seen
from consumers.ledger.schema import seen
from consumers.ledger.store import Store


def read_seen(store: Store, of: Head) -> list[tuple[int, bytes]]:
    """What is remembered of a log: each row a pane's start and ids, as they were written."""
    query = select(seen.c.pane_start_ms, seen.c.ids).where(seen.c.head == of.id)
    return store.read(
        lambda connection: [(int(start), bytes(ids)) for start, ids in connection.execute(query)]
    )


def write_seen(connection: Connection, of: Head, found: Seen) -> None:
    """Forget what is too old, and add what is new."""
    old = or_(seen.c.pane_start_ms < found.since_ms, seen.c.pane_start_ms.in_(found.anew))
    connection.execute(delete(seen).where(seen.c.head == of.id, old))
    rows = [{"head": of.id, "pane_start_ms": start, "ids": ids} for start, ids in found.rows]
    if rows:
        connection.execute(insert(seen), rows)
