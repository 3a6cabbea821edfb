"""A store as it was, put back in place: what a fail-over to a standby that lags behind does, and
an older copy that is restored, to those who have the store open."""

from __future__ import annotations

import secrets
from collections.abc import Collection

from sqlalchemy import Connection, Row, Table, delete, func, insert, select, text, update
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.store import Store


class SavedStore:
    """All rows of a store at the time when this was made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows: dict[Table, list[Row[tuple[object, ...]]]] = {}
        with store.engine.begin() as connection:
            for table in schema._tables.sorted_tables:
                self.rows[table] = list(connection.execute(select(table)).all())

    def put_back(self) -> None:
        """The store is as it was then."""
        with self._store.engine.begin() as connection:
            for table in reversed(self.rows):
                connection.execute(delete(table))
            for table, rows in self.rows.items():
                if rows:
                    connection.execute(insert(table), [dict(row._mapping) for row in rows])
                if connection.dialect.name != "sqlite" and "id" in table.c:
                    _count_on(connection, table)


def make_anew(store: Store, keep: Collection[str] = ()) -> None:
    """Empty a store in place, but for these tables; without `meta` it is another one."""
    with store.engine.begin() as connection:
        for table in reversed(schema._tables.sorted_tables):
            if table.name not in (*keep, "meta"):
                connection.execute(delete(table))
        if "meta" not in keep:
            mine = update(schema.meta).where(schema.meta.c.key == schema.STORE_ID)
            connection.execute(mine.values(value=secrets.token_hex(16)))


def _count_on(connection: Connection, table: Table) -> None:
    """The numbers that PostgreSQL gives next go back too."""
    last = connection.scalar(select(func.max(table.c.id)))
    number = text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), :last, :called)")
    connection.execute(number, {"last": last or 1, "called": last is not None})
