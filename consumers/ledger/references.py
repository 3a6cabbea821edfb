"""Rows of a ledger that refer to what is not there: what `verify` can say without the log."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, Table, exists, func, not_, or_, select

from consumers.ledger.read import read_heads
from consumers.ledger.schema import delta, generation, head, metric, metric_start, quarantine, seen
from consumers.ledger.store import Store
from consumers.model.generation import Generation


def loose_ends(store: Store, of: Generation) -> list[str]:
    """What is wrong with how the rows of a generation refer to one another, as texts."""
    return store.read(lambda connection: list(_found(connection, of)))


def _found(connection: Connection, of: Generation) -> Iterator[str]:
    def count(table: Table, *which: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(table).where(*which)
        return int(connection.scalar(query) or 0)

    for table, what in ((delta, "delta rows"), (quarantine, "refused events")):
        lost = count(
            table,
            table.c.generation == of.id,
            not_(exists().where(head.c.id == table.c.head, head.c.generation == of.id)),
        )
        if lost:
            yield f"{lost} {what} belong to a log that the generation does not have"
    elsewhere = count(
        quarantine,
        quarantine.c.generation != of.id,
        exists().where(head.c.id == quarantine.c.head, head.c.generation == of.id),
    )
    if elsewhere:
        yield f"{elsewhere} refused events of its logs belong to another generation"
    for table, what in ((seen, "rows of ids"), (metric_start, "starts of metrics")):
        lost = count(table, not_(exists().where(head.c.id == table.c.head)))
        if lost:
            yield f"{lost} {what} belong to a log that is not there"
    lost = count(head, not_(exists().where(generation.c.id == head.c.generation)))
    if lost:
        yield f"{lost} logs belong to a generation that is not there"
    lost = count(metric, not_(exists().where(generation.c.id == metric.c.generation)))
    if lost:
        yield f"{lost} metrics belong to a generation that is not there"
    known = [one.name for one in of.metrics]
    lost = count(delta, delta.c.generation == of.id, delta.c.metric.not_in(known))
    if lost:
        yield f"{lost} delta rows are of a metric that the generation does not have"
    outside = or_(delta.c.key_range < 0, delta.c.key_range >= delta.c.key_ranges)
    lost = count(delta, delta.c.generation == of.id, outside)
    if lost:
        yield f"{lost} delta rows are of a range of keys that there cannot be"
    heads = read_heads(connection, head.c.generation == of.id)
    for closed in heads:
        log = closed.partition
        if closed.closed and not any(
            other.id > closed.id
            and (other.partition.topic, other.partition.number) == (log.topic, log.number)
            for other in heads
        ):
            yield f"the head of {log} is closed, and none goes on with the log"
