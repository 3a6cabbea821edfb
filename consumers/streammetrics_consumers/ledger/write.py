"""The steps of the transactions that move a head, each on a connection of the caller.

The chained digest of a head identifies its history. A chain begins with a random number, so no two
heads share one. Each commit adds a link:

    digest = sha256(digest before, offsets, greatest event time, counters,
                    and the position and sha256 of each state, refused event and row of ids)

It is written in the transaction that moves the head, and a commit requires the digest that it
continues. So a head is identified by its commits, not by its row number, and a worker detects a
store that went back by an unexpected digest. The digest identifies a chain of commits, not a set of
events: other commits over the same events give another digest and the same results. Compaction and
retries are not links: they move no head.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from hashlib import sha256
from itertools import groupby
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from streammetrics_consumers.ledger.failures import Damaged, SettingsChanged, StoreReplaced
from streammetrics_consumers.ledger.read import COUNTERS, REFUSED, read_heads
from streammetrics_consumers.ledger.schema import delta, generation, head, quarantine, seen
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import JOIN, Commit, Head, Seen
from streammetrics_consumers.model.generation import PENDING, Generation, StateShard
from streammetrics_consumers.model.partition import Partition


def head_after_commit(commit: Commit) -> Head:
    """The head of a commit after it."""
    seen_ids = commit.seen
    states = {shard.state for shard in commit.shards}  # a window's is often that of the total
    hashes = {state: sha256(state).hexdigest() for state in states}
    link = (
        commit.start,
        commit.end,
        commit.greatest_event_ms,
        astuple(commit.counters),
        [
            (
                *shard.pane,
                shard.key_range,
                shard.key_ranges,
                shard.for_coarser,
                hashes[shard.state],
            )
            for shard in commit.shards
        ],
        [
            (event.offset, event.index, event.reason, event.size, event.sha256)
            for event in commit.refused
        ],
        None
        if seen_ids is None
        else (
            seen_ids.since_ms,
            list(seen_ids.replaced),
            [(start, sha256(ids).hexdigest()) for start, ids in seen_ids.rows],
        ),
    )
    return replace(
        commit.head,
        next_offset=commit.end,
        greatest_event_ms=commit.greatest_event_ms,
        counters=commit.head.counters + commit.counters,
        digest=_linked(commit.head.digest, "commit", link),
    )


def head_after_skip(known_head: Head, to: int) -> Head:
    """A head after a move over offsets that its log has lost."""
    return replace(
        known_head,
        next_offset=to,
        lost=known_head.lost + to - known_head.next_offset,
        digest=_linked(known_head.digest, "skip", (known_head.next_offset, to)),
    )


def _linked(before: str, kind: str, link: Sequence[object]) -> str:
    text = json.dumps([before, kind, link], separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


SHARED_BYTES: Final = 1024  # of a stored state; a smaller one is written twice
_ROWS_A_STATEMENT: Final = 100  # of a delta: SQLite takes at least 999 parameters


class Fenced(Exception):
    """Another worker has counted these records, or windows of the delta are dropped or closed.

    Nothing was written. Drop the delta and read on from the head as it is now.
    """


def check_generation(
    connection: Connection, known_generation: Generation, *, is_exclusive: bool = False
) -> int | None:
    """The retention floor. Raises StoreReplaced or SettingsChanged if the generation has changed.

    The generation is locked against changes until the end of the transaction, and with
    `is_exclusive` against other writers too: required to change it or the set of its heads.
    (Transactions that shared the lock first would wait for each other.)
    """
    row = connection.execute(
        select(
            generation.c.current, generation.c.revision, generation.c.floor_ms, generation.c.token
        )
        .where(generation.c.id == known_generation.id)
        .with_for_update(read=not is_exclusive)
    ).one_or_none()
    if (
        row is None
        or row.revision < known_generation.revision
        or (row.revision == known_generation.revision and row.token != known_generation.token)
    ):
        raise StoreReplaced(
            f"generation {known_generation.id}: expected revision {known_generation.revision}, "
            f"which this process has seen, got {'none' if row is None else 'another one'}: the "
            "store went back (a restored copy, a fail-over); start again to continue from its "
            "current heads"
        )
    if not row.current:
        raise SettingsChanged(
            [f"generation {known_generation.id} is closed"],
            "Another process has started a new generation; start again with its config.",
        )
    if row.revision != known_generation.revision:
        raise SettingsChanged(
            [f"the metrics or variants of generation {known_generation.id} have changed"],
            "Another process has added a variant, or added or removed a metric; start again with "
            "its config.",
        )
    floor_ms: int | None = row.floor_ms
    return floor_ms


def refuse_floor(commit: Commit, floor_ms: int | None) -> None:
    """Raise Fenced where the retention floor does not fit this commit: windows of its states were
    dropped, or windows that it left events out of are kept (the store went back).
    """
    for shard in commit.shards:
        start_ms = shard.pane.start_ms
        if floor_ms is not None and start_ms is not None and start_ms < floor_ms:
            raise Fenced(f"windows before {floor_ms} ms were dropped")
    left_out_ms = commit.floor_ms
    if left_out_ms is not None and (floor_ms is None or floor_ms < left_out_ms):
        raise Fenced(f"windows before {left_out_ms} ms are kept: the store went back")


def refuse_closed(connection: Connection, commit: Commit) -> None:
    """Raise Fenced where label windows of this commit's events are closed, or windows for which it
    refused events are open. No more are closed until the end of the transaction."""
    if commit.closed_at_most is None and commit.closed_at_least is None:
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
    most, least = commit.closed_at_most, commit.closed_at_least
    if most is not None and closed is not None and closed > most:
        raise Fenced(f"label windows are closed up to {closed} ms")
    if least is not None and (closed is None or closed < least):
        raise Fenced(f"label windows before {least} ms are open: the store went back")


def live(current: Generation) -> tuple[ColumnElement[bool], ...]:
    """The condition for the open heads of a generation."""
    return (head.c.generation == current.id, head.c.closed.is_(False))


def head_of(connection: Connection, current: Generation, partition: Partition) -> Head | None:
    """The open head under this topic and number, whatever its cluster and topic id."""
    heads = read_heads(
        connection,
        *live(current),
        head.c.topic == partition.topic,
        head.c.partition == partition.number,
    )
    return heads[-1] if heads else None


def insert_head(
    connection: Connection, current: Generation, partition: Partition, start: int
) -> Head:
    """A new head at `start`."""
    same = (
        head.c.generation == current.id,
        head.c.cluster == partition.cluster,
        head.c.topic_id == partition.topic_id,
        head.c.partition == partition.number,
    )
    earlier = connection.scalar(select(func.count()).select_from(head).where(*same)) or 0
    connection.execute(
        insert(head).values(
            generation=current.id,
            cluster=partition.cluster,
            topic=partition.topic,
            topic_id=partition.topic_id,
            partition=partition.number,
            incarnation=earlier,
            closed=False,
            start_offset=start,
            next_offset=start,
            digest=secrets.token_hex(32),  # where its chain begins
        )
    )
    (new_head,) = read_heads(connection, *same, head.c.incarnation == earlier)
    return new_head


def move_head(connection: Connection, commit: Commit, moved: Head) -> bool:
    """Move the head from `start` to `end` if it still stands at `start`; returns whether it did.

    moved: the head afterwards.
    """
    counted = zip(COUNTERS, astuple(commit.counters), strict=True)
    result = connection.execute(
        update(head)
        .where(*same_head_at(commit.head, commit.start))
        .values(
            next_offset=commit.end,
            greatest_event_ms=commit.greatest_event_ms,
            digest=moved.digest,
            **{column.name: column + n for column, n in counted},
        )
    )
    return result.rowcount == 1


def is_same(known_head: Head) -> tuple[ColumnElement[bool], ...]:
    """The condition that a row is this head's. A row number alone is not enough: a store that went
    back, or was emptied, reuses it."""
    log = known_head.partition
    return (
        head.c.id == known_head.id,
        head.c.generation == known_head.generation,
        head.c.cluster == log.cluster,
        head.c.topic == log.topic,
        head.c.topic_id == log.topic_id,
        head.c.partition == log.number,
        head.c.incarnation == known_head.incarnation,
    )


def same_head_at(known_head: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
    """The fencing condition: this head is open, its next offset is `offset`, and its commits are
    the known ones."""
    conditions = (
        head.c.closed.is_(False),
        head.c.next_offset == offset,
        head.c.digest == known_head.digest,
    )
    return (*is_same(known_head), *conditions)


def has_head(connection: Connection, known_head: Head) -> bool:
    """Whether the store has a head exactly as known."""
    return bool(read_heads(connection, *same_head_at(known_head, known_head.next_offset)))


def write_delta(connection: Connection, commit: Commit) -> None:
    """Write the states and the refused events of the records that the head has moved over."""
    write_shards(connection, commit)
    if commit.seen is not None:
        write_seen(connection, commit.head, commit.seen)
    refused = [
        {
            **{column.name: getattr(event, column.name) for column in REFUSED},
            "field": event.field and storable(event.field),
            "detail": storable(event.detail),
            "generation": commit.head.generation,
            "head": commit.head.id,
            "done": False,
        }
        for event in commit.refused
    ]
    if refused:
        connection.execute(insert(quarantine), refused)


def write_shards(connection: Connection, commit: Commit, retry: int | None = None) -> None:
    """Write only the states, under the number of a retry where they are not the log's own."""
    total_of = _totals_of(commit.shards)
    totals = {id(total) for total in total_of.values()}
    ids: dict[int, int] = {}
    rows = []
    for shard in commit.shards:
        row = {**delta_row(commit.head, shard, commit.start, commit.end), "retry": retry}
        if id(shard) in totals:
            key = connection.execute(insert(delta), row).inserted_primary_key
            assert key is not None
            ids[id(shard)] = key[0]
        else:
            rows.append((row, total_of.get(id(shard))))
    written = [
        row if total is None else {**row, "state": b"", "same_as": ids[id(total)]}
        for row, total in rows
    ]
    for start in range(0, len(written), _ROWS_A_STATEMENT):
        connection.execute(insert(delta), written[start : start + _ROWS_A_STATEMENT])


def _totals_of(shards: Sequence[StateShard]) -> dict[int, StateShard]:
    """By `id`, the shards that need no state of their own, each with the shard of the total that
    has the same one."""

    def place(shard: StateShard) -> tuple[object, ...]:
        return (shard.pane.metric, shard.pane.grouping, shard.key_range, shard.key_ranges)

    totals = {place(shard): shard for shard in shards if shard.pane.is_total}
    pairs = [(shard, totals.get(place(shard), shard)) for shard in shards]
    return {
        id(shard): total
        for shard, total in pairs
        if total is not shard and total.state == shard.state and len(shard.stored) >= SHARED_BYTES
    }


def storable(text: str) -> str:
    """A text that quotes an event, as every database accepts it: PostgreSQL has no NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def delta_row(log_head: Head, shard: StateShard, start: int, end: int) -> dict[str, object]:
    """The columns of a delta row that counts the offsets [start, end) of a head."""
    return {
        "generation": log_head.generation,
        "metric": shard.pane.metric,
        "grouping": shard.pane.grouping,
        "window_start_ms": shard.pane.start_ms,
        "window_end_ms": shard.pane.end_ms,
        "key_range": shard.key_range,
        "key_ranges": shard.key_ranges,
        "head": log_head.id,
        "start_offset": start,
        "end_offset": end,
        "nbytes": len(shard.state),
        "state": shard.stored,
        "for_coarser": shard.for_coarser,
        "same_as": None,
    }


def skip_offsets(connection: Connection, known_head: Head, moved: Head) -> bool:
    """Move a head over offsets that the log has lost; returns whether it did."""
    result = connection.execute(
        update(head)
        .where(*same_head_at(known_head, known_head.next_offset))
        .values(
            next_offset=moved.next_offset,
            lost=head.c.lost + (moved.next_offset - known_head.next_offset),
            digest=moved.digest,
        )
    )
    return result.rowcount == 1


def close_head(connection: Connection, known_head: Head) -> bool:
    """Close a head; returns whether it was open."""
    closed = connection.execute(
        update(head).where(*is_same(known_head), head.c.closed.is_(False)).values(closed=True)
    )
    return closed.rowcount == 1


def raise_floor(connection: Connection, current: Generation, floor_ms: int) -> None:
    """Raise the floor, if this is higher, and drop the panes that start before it. Those of pending
    events stay, since impressions are remembered after they are closed: a closing drops them."""
    lower = or_(generation.c.floor_ms.is_(None), generation.c.floor_ms < floor_ms)
    raised = connection.execute(
        update(generation).where(generation.c.id == current.id, lower).values(floor_ms=floor_ms)
    )
    if raised.rowcount == 1:
        old = (
            delta.c.generation == current.id,
            delta.c.metric.not_in(PENDING),
            delta.c.window_start_ms < floor_ms,
        )
        connection.execute(delete(delta).where(*old))  # no other row has its state from a window's


def note_lateness(connection: Connection, current: Generation, lateness_ms: int) -> None:
    """Store the lateness of the last config, for display."""
    connection.execute(
        update(generation).where(generation.c.id == current.id).values(lateness_ms=lateness_ms)
    )


def read_seen(store: Store, log_head: Head) -> list[tuple[int, bytes]]:
    """The remembered ids of a log: each row a pane's start and ids, as written."""
    query = select(seen.c.pane_start_ms, seen.c.ids).where(seen.c.head == log_head.id)

    def work(connection: Connection) -> list[tuple[int, bytes]]:
        rows = [(int(start), bytes(ids)) for start, ids in connection.execute(query)]
        if any(len(ids) % 8 for _, ids in rows):
            raise Damaged(
                f"expected ids of events of {log_head.partition}, got bytes that are not ids"
            )
        return rows

    return store.read(work)


def seen_digests(connection: Connection, heads: Collection[int]) -> Mapping[int, Mapping[int, str]]:
    """`digest_of` the ids of each pane, by head and the pane's start.

    A pane without ids is omitted unless it is the newest of its head: it was written as the clock,
    and a newer pane replaces it.
    """
    query = select(seen.c.head, seen.c.pane_start_ms, seen.c.ids).where(seen.c.head.in_(heads))
    rows = connection.execute(query.order_by(seen.c.head, seen.c.pane_start_ms.desc()))
    digests: dict[int, dict[int, str]] = {head_id: {} for head_id in heads}
    for (head_id, start), pane_rows in groupby(rows, key=lambda row: (row.head, row.pane_start_ms)):
        parts = [bytes(row.ids) for row in pane_rows]
        if any(parts) or not digests[head_id]:
            digests[head_id][start] = digest_of(parts)
    return digests


def digest_of(parts: Iterable[bytes]) -> str:
    """The hash (hex) of the ids of a pane, however they were divided into rows."""
    whole = b"".join(parts)
    if len(whole) % 8:
        return f"{len(whole)} bytes that are not ids"
    import numpy as np  # reading commands never come here

    return sha256(np.sort(np.frombuffer(whole, "<u8")).tobytes()).hexdigest()


def write_seen(connection: Connection, log_head: Head, change: Seen) -> None:
    """Delete rows of ids that are too old or replaced, and add new ones."""
    old = or_(seen.c.pane_start_ms < change.since_ms, seen.c.pane_start_ms.in_(change.replaced))
    connection.execute(delete(seen).where(seen.c.head == log_head.id, old))
    rows = [{"head": log_head.id, "pane_start_ms": start, "ids": ids} for start, ids in change.rows]
    if rows:
        connection.execute(insert(seen), rows)
