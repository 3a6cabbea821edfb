"""Reading a store of an older schema, which stays as it is.

A reader changes nothing, so it cannot migrate. For each transaction it creates temporary views
under the names of the tables, which both databases prefer to the tables themselves: columns that
the older schema lacks have their defaults, and tables that it lacks are empty. At the end of the
transaction the views are dropped. A writer of the older version may go on meanwhile, and one of
this version may migrate: each transaction looks at the version first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Column, Connection, Table, inspect, text

from streammetrics_consumers.ledger.schema import (
    VERSION,
    head,
    source,
    tables,
)

# Columns of `head` that had another name before version 6.
_RENAMED_IN: Final = 6
_RENAMED: Final[Mapping[str, str]] = {"lost": "skipped", "skipped": "ignored"}


class FormerViews:
    """The views of stores of older versions; their statements are made once for each version."""

    def __init__(self) -> None:
        self._statements: dict[int, Sequence[tuple[str, str]]] = {}

    def create(self, connection: Connection, version: int) -> None:
        """Create the views of a store of this version, unless it is the current one."""
        for create, _ in self._schema_objects(connection, version):
            connection.exec_driver_sql(create)

    def drop(self, connection: Connection, version: int) -> None:
        """Drop them again."""
        for _, drop in self._schema_objects(connection, version):
            connection.exec_driver_sql(drop)

    def _schema_objects(self, connection: Connection, version: int) -> Sequence[tuple[str, str]]:
        if version >= VERSION:
            return ()
        if version not in self._statements:
            self._statements[version] = _statements(connection, version)
        return self._statements[version]


def _statements(connection: Connection, version: int) -> list[tuple[str, str]]:
    """For each table, the statement that creates its view, and the one that drops it."""
    stored = inspect(connection)
    names = set(stored.get_table_names())
    quote = connection.dialect.identifier_preparer.quote
    permanent, temporary = "main", "temp"
    if connection.dialect.name != "sqlite":
        schema = connection.scalar(text("SELECT current_schema()"))
        permanent, temporary = quote(str(schema)), "pg_temp"
    statements = []
    for table in tables():
        columns: set[str] = set()
        if table.name in names:
            columns = {column["name"] for column in stored.get_columns(table.name)}
        query = _query(connection, table, columns, version, permanent)
        name = f"{temporary}.{quote(table.name)}"
        create = f"CREATE TEMPORARY VIEW {quote(table.name)} AS {query}"
        statements.append((create, f"DROP VIEW {name}"))
    return statements


def _query(
    connection: Connection, table: Table, columns: set[str], version: int, schema: str
) -> str:
    """The rows of a table, as the current schema has them."""
    quote = connection.dialect.identifier_preparer.quote
    if table is source and not columns:
        return (
            f"SELECT DISTINCT generation, cluster, topic FROM {schema}.{quote(head.name)} "
            "WHERE topic <> '(join)'"
        )
    shown = []
    for column in table.columns:
        stored = column.name
        if table is head and version < _RENAMED_IN:
            stored = _RENAMED.get(stored, stored)
        value = quote(stored) if stored in columns else _default(connection, column)
        shown.append(f"{value} AS {quote(column.name)}")
    rows = f"SELECT {', '.join(shown)}"
    if not columns:
        return f"{rows} WHERE 1 = 0"
    return f"{rows} FROM {schema}.{quote(table.name)}"


def _default(connection: Connection, column: Column[object]) -> str:
    """The value of a column in rows from before it existed."""
    kind = column.type.compile(connection.dialect)
    if column.nullable:
        return f"CAST(NULL AS {kind})"
    if column.type.python_type is str:
        return "''"
    return "FALSE" if column.type.python_type is bool else "0"
