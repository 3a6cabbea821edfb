"""How much there is for the compactor to do."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from consumers.ledger.schema import delta
from consumers.ledger.store import Store


def count_mergeable(store: Store) -> int:
    """Delta rows that have another of their pane and head beside them. What comes of merging them
    may be merged again, so it is what is known before, and not all that will be done."""

    def work(connection: Connection) -> int:
        of_strand = (
            select(func.count().label("rows"))
            .where(delta.c.retry.is_(None))
            .group_by(
                delta.c.generation, delta.c.metric, delta.c.grouping,
                delta.c.window_start_ms, delta.c.window_end_ms, delta.c.head,
            )
            .having(func.count() > 1)
            .subquery()
        )  # fmt: skip
        return int(connection.scalar(select(func.sum(of_strand.c.rows))) or 0)

    return store.read(work)
