"""Which refused events a Kafka topic has been given, as the ledger remembers it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, update

from consumers.ledger.read import read_not_forwarded
from consumers.ledger.schema import quarantine
from consumers.ledger.store import Store
from consumers.model.commit import QuarantineRow


def not_forwarded(store: Store, heads: Collection[int], limit: int) -> Sequence[QuarantineRow]:
    """At most `limit` refused events of these heads that no topic has acknowledged, by id."""
    return store.read(lambda connection: read_not_forwarded(connection, sorted(heads), limit))


def mark_forwarded(store: Store, entries: Sequence[QuarantineRow]) -> None:
    """The topic has acknowledged these."""

    def work(connection: Connection, _: bool) -> None:
        for entry in entries:
            connection.execute(
                update(quarantine)
                .where(
                    # A number alone says nothing: a store that went back gives it again.
                    quarantine.c.id == entry.id,
                    quarantine.c.head == entry.head,
                    quarantine.c.offset == entry.offset,
                    quarantine.c.index == entry.index,
                    quarantine.c.sha256 == entry.sha256,
                )
                .values(forwarded=True)
            )

    store.write(work)
