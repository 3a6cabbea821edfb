"""Refused events in the ledger: those that a retry counts, each at most once, and those forwarded
to a Kafka topic.

A retry is one transaction, and one runs at a time. It (1) checks that the generation is still the
current one, (2) writes the retry, (3) marks each entry done on the condition that it is open, (4)
writes the delta of these events under the number of the retry, and (5) takes them out of the head's
counts of refused, future and late events. If one entry is not open any more, nothing is written: a
concurrent retry has counted it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from streammetrics_consumers.ledger.read import read_quarantine
from streammetrics_consumers.ledger.schema import head, quarantine, retry, take_turn
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import (
    Fenced,
    check_generation,
    is_same,
    refuse_closed,
    refuse_floor,
    write_shards,
)
from streammetrics_consumers.model.commit import LATE, LATE_OUTCOMES, Commit, Head, QuarantineRow
from streammetrics_consumers.model.generation import Generation


class NotOpen(Exception):
    """Another retry has counted one of these events, or their windows are dropped or closed.

    Nothing was written. Read the open entries again.
    """


@dataclass(frozen=True, slots=True)
class RetriedEntries:
    """The entries of one log that are good now, and the delta of their events.

    Of `delta` only the head, the shards, their offsets, the conditions on windows and the counter
    `expired` are used.
    """

    entries: Sequence[QuarantineRow]
    delta: Commit


def write_retry(
    store: Store,
    generation: Generation,
    retried: Sequence[RetriedEntries],
    *,
    created_ms: int,
    note: str,
) -> int:
    """Count these events, all or none. Returns the number of the retry.

    `note` must be unique for each call, so that a COMMIT whose answer was lost is recognized.
    Raises NotOpen, SettingsChanged or StoreUnavailable.
    """

    def work(connection: Connection, is_repeated: bool) -> int:
        # Retries are numbered in the order of their commits: readers know them by the last one.
        # An exclusive lock of the generation would wait long beside many workers.
        take_turn(connection)
        floor_ms = check_generation(connection, generation)
        if is_repeated:
            stored_number = connection.scalar(
                select(retry.c.id).where(retry.c.generation == generation.id, retry.c.note == note)
            )
            if stored_number is not None:
                return int(stored_number)  # an earlier try succeeded, and its answer was lost
        number = connection.execute(
            insert(retry)
            .values(generation=generation.id, created_ms=created_ms, note=note)
            .returning(retry.c.id)
        ).scalar_one()
        for counted in retried:
            _count(connection, number, counted, floor_ms)
        return int(number)

    return store.write(work)


def _count(
    connection: Connection, number: int, counted: RetriedEntries, floor_ms: int | None
) -> None:
    log_head = counted.delta.head
    for entry in counted.entries:
        marked = connection.execute(
            update(quarantine)
            .where(*_is_same(entry, log_head.id), quarantine.c.done.is_(False))
            .values(done=True, retry=number)
        )
        if marked.rowcount != 1:
            raise NotOpen(f"{entry.partition} offset {entry.offset} is no longer open")
    try:
        refuse_floor(counted.delta, floor_ms)
        refuse_closed(connection, counted.delta)
    except Fenced as fenced:
        raise NotOpen(str(fenced)) from fenced
    write_shards(connection, counted.delta, number)
    updated = connection.execute(
        update(head)
        .where(*is_same(log_head))
        .values(
            quarantined=head.c.quarantined - len(counted.entries),
            future=head.c.future - _refused_entries(counted.entries, "future"),
            late=head.c.late - _refused_entries(counted.entries, *LATE),
            late_outcomes=head.c.late_outcomes - _refused_entries(counted.entries, *LATE_OUTCOMES),
            expired=head.c.expired + counted.delta.counters.expired,
        )
    )
    if updated.rowcount != 1:
        raise NotOpen(f"{log_head.partition}: its head no longer exists")


def _is_same(entry: QuarantineRow, head: int) -> tuple[ColumnElement[bool], ...]:
    """The condition that a row is this entry. An id alone is not enough: a store that went back
    reuses it."""
    return (
        quarantine.c.id == entry.id,
        quarantine.c.head == head,
        quarantine.c.offset == entry.offset,
        quarantine.c.index == entry.index,
        quarantine.c.sha256 == entry.sha256,
    )


def _refused_entries(entries: Sequence[QuarantineRow], *reasons: str) -> int:
    """The number of entries that were refused for one of these reasons."""
    return sum(entry.reason in reasons for entry in entries)


@dataclass(frozen=True, slots=True)
class Entries:
    """The numbers of a generation's refused events that are open and that a retry has counted."""

    open: int
    done: int


def count_entries(store: Store, generation: int) -> Entries:
    """Both numbers at one moment."""

    def work(connection: Connection) -> Entries:
        query = (
            select(quarantine.c.done, func.count())
            .where(quarantine.c.generation == generation)
            .group_by(quarantine.c.done)
        )
        numbers = {bool(is_done): int(n) for is_done, n in connection.execute(query)}
        return Entries(numbers.get(False, 0), numbers.get(True, 0))

    return store.read(work)


def open_by_reason(
    store: Store, generation: int, limit: int
) -> tuple[Mapping[str, int], Sequence[QuarantineRow]]:
    """The numbers of a generation's open refused events by reason, the most frequent first, and the
    newest `limit` of them, the newest first."""

    def work(connection: Connection) -> tuple[Mapping[str, int], Sequence[QuarantineRow]]:
        conditions = quarantine.c.generation == generation, quarantine.c.done.is_(False)
        many = func.count()
        query = select(quarantine.c.reason, many).where(*conditions).group_by(quarantine.c.reason)
        numbers = {str(reason): int(n) for reason, n in connection.execute(query)}
        reasons = dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))
        last = (
            select(quarantine.c.id).where(*conditions).order_by(quarantine.c.id.desc()).limit(limit)
        )
        ids = list(connection.scalars(last))
        rows = read_quarantine(connection, quarantine.c.id.in_(ids), limit=limit)
        return reasons, sorted(rows, key=lambda row: -row.id)

    return store.read(work)


def open_kinds(
    store: Store, generation: int, limit: int, newest: int
) -> Sequence[tuple[str, str | None, int]]:
    """The most frequent reasons and fields of a generation's newest open refused events, with how
    many: a page asks again and again, and there may be millions."""
    last = (
        select(quarantine.c.reason, quarantine.c.field)
        .where(quarantine.c.generation == generation, quarantine.c.done.is_(False))
        .order_by(quarantine.c.id.desc())
        .limit(newest)
        .subquery()
    )
    many = func.count()
    query = (
        select(last.c.reason, last.c.field, many)
        .group_by(last.c.reason, last.c.field)
        .order_by(many.desc(), last.c.reason, last.c.field)
        .limit(limit)
    )
    rows = store.read(lambda connection: list(connection.execute(query)))
    return [(str(reason), field, int(count)) for reason, field, count in rows]


def open_since(store: Store, log_head: Head, offset: int) -> int:
    """The number of open refused events of a log from this offset on."""
    query = select(func.count()).where(
        quarantine.c.head == log_head.id,
        quarantine.c.offset >= offset,
        quarantine.c.done.is_(False),
    )
    return store.read(lambda connection: int(connection.scalar(query) or 0))


def not_forwarded(store: Store, heads: Collection[int], limit: int) -> Sequence[QuarantineRow]:
    """At most `limit` refused events of these heads that no topic has acknowledged, by id."""
    conditions = quarantine.c.head.in_(sorted(heads)), quarantine.c.forwarded.is_(False)
    return store.read(lambda connection: read_quarantine(connection, *conditions, limit=limit))


def mark_forwarded(store: Store, entries: Sequence[QuarantineRow]) -> None:
    """Mark entries that the topic has acknowledged."""

    def work(connection: Connection, _: bool) -> None:
        for entry in entries:
            statement = update(quarantine).where(*_is_same(entry, entry.head))
            connection.execute(statement.values(forwarded=True))

    store.write(work)
