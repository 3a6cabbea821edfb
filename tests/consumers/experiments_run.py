"""A store with two experiments that have names, and one without: see `experiment_run`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, insert, select
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta, metric

from tests.consumers.experiment_run import run, write

NAMES: Final = ("ranker", "pricing")


def make(folder: Path, rows: int = 2000) -> Path:
    """The store."""
    store = run(write(folder, 'mde = 0.05\nname = "The ranker"\ndays = 14', rows))
    for name in NAMES:
        copy(store, name)
    return store


def copy(store: Path, name: str, **plan: object) -> None:
    """Store the experiment without a name once more, under this one."""
    with (
        closing(Ledger.open(str(store), create=True)) as ledger,
        ledger.store.engine.begin() as connection,
    ):
        for stored in _rows(connection, metric, metric.c.name, name):
            description = json.loads(str(stored["description"]))
            description["experiment"] |= plan
            description["shown"]["order"] = NAMES.index(name) + 1 if name in NAMES else 9
            stored["description"] = json.dumps(description)
            connection.execute(insert(metric).values(**stored))
        ids: dict[object, int] = {None: 0}
        rows = _rows(connection, delta, delta.c.metric, name)
        for row in sorted(rows, key=lambda row: row["same_as"] is not None):
            old, row["same_as"] = row.pop("id"), ids[row["same_as"]] or None
            ids[old] = connection.execute(
                insert(delta).values(**row).returning(delta.c.id)
            ).scalar_one()


def _rows(
    connection: Connection, table: Table, column: ColumnElement[str], name: str
) -> list[dict[str, object]]:
    """The rows of the experiment without a name, with the metrics of the named one."""
    own = select(table).where(column.like("experiment/%"), ~column.like("%/%/%"))
    rows = [dict(row) for row in connection.execute(own).mappings()]
    for row in rows:
        key = "name" if table is metric else "metric"
        row[key] = f"experiment/{name}/{str(row[key]).partition('/')[2]}"
    return rows
