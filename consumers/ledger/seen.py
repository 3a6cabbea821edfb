"""Rows of ids that a partition has seen: written with its commits, read when it is assigned."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

import numpy as np
from sqlalchemy import Connection, delete, insert, or_, select

from consumers.ledger.failures import Damaged
from consumers.ledger.schema import seen
from consumers.ledger.store import Store
from consumers.model.commit import Head, Seen


def read_seen(store: Store, of: Head) -> list[tuple[int, bytes]]:
    """What is remembered of a log: each row a pane's start and ids, as they were written."""
    query = select(seen.c.pane_start_ms, seen.c.ids).where(seen.c.head == of.id)

    def work(connection: Connection) -> list[tuple[int, bytes]]:
        rows = [(int(start), bytes(ids)) for start, ids in connection.execute(query)]
        if any(len(ids) % 8 for _, ids in rows):
            raise Damaged(f"expected ids of events of {of.partition}, came bytes that are none")
        return rows

    return store.read(work)


def seen_digests(connection: Connection, heads: Collection[int]) -> Mapping[int, Mapping[int, str]]:
    """What heads remember, as `digest_of` the ids of each pane, by head and the pane's start."""
    query = select(seen.c.head, seen.c.pane_start_ms, seen.c.ids).where(seen.c.head.in_(heads))
    rows = connection.execute(query.order_by(seen.c.head, seen.c.pane_start_ms))
    found: dict[int, dict[int, str]] = {of: {} for of in heads}
    for (of, start), some in groupby(rows, key=lambda row: (row.head, row.pane_start_ms)):
        found[of][start] = digest_of([bytes(row.ids) for row in some])
    return found


def digest_of(parts: Iterable[bytes]) -> str:
    """The hash (hex) of the ids of a pane, however they were divided into rows."""
    whole = b"".join(parts)
    if len(whole) % 8:
        return f"{len(whole)} bytes, which are no ids"
    return hashlib.sha256(np.sort(np.frombuffer(whole, "<u8")).tobytes()).hexdigest()


def write_seen(connection: Connection, of: Head, found: Seen) -> None:
    """Forget what is too old, and add what is new."""
    old = or_(seen.c.pane_start_ms < found.since_ms, seen.c.pane_start_ms.in_(found.anew))
    connection.execute(delete(seen).where(seen.c.head == of.id, old))
    rows = [{"head": of.id, "pane_start_ms": start, "ids": ids} for start, ids in found.rows]
    if rows:
        connection.execute(insert(seen), rows)
