"""From an older schema to today's, step by step, within one transaction of a writer.

A step is written out here and never changed: the tables of schema.py move on, and a store of any
older version must come the same way. Both databases undo what a transaction did to tables, so a
store is of one version or of the next, whenever the process dies.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, update

from consumers.ledger.schema import VERSION, meta

log = logging.getLogger(__name__)


def migrate(connection: Connection, version: int) -> None:
    """Bring a store of this version to the current one; a later one is left alone."""
    for old in range(version, VERSION):
        _STEPS[old](connection)
        connection.execute(
            update(meta).where(meta.c.key == "schema_version").values(value=str(old + 1))
        )
        log.warning("the store's schema of version %d is now of version %d", old, old + 1)


def _retries_and_tombstones(connection: Connection) -> None:
    """Version 2: what a retry of refused events counted is told from what the log brought, and
    messages without a value are counted."""
    sqlite = connection.dialect.name == "sqlite"
    number, reference = ("INTEGER", "INTEGER") if sqlite else ("BIGSERIAL", "BIGINT")
    false = "0" if sqlite else "FALSE"
    for statement in (
        f"CREATE TABLE retry (id {number} NOT NULL PRIMARY KEY, "
        f"generation {reference} NOT NULL REFERENCES generation (id), "
        "created_ms BIGINT NOT NULL, note TEXT NOT NULL)",
        f"ALTER TABLE quarantine ADD COLUMN retry {reference} REFERENCES retry (id)",
        "ALTER TABLE quarantine ADD COLUMN record_ms BIGINT",
        f"ALTER TABLE quarantine ADD COLUMN forwarded BOOLEAN NOT NULL DEFAULT {false}",
        f"ALTER TABLE delta ADD COLUMN retry {reference} REFERENCES retry (id)",
        "ALTER TABLE head ADD COLUMN tombstones BIGINT NOT NULL DEFAULT 0",
    ):
        connection.exec_driver_sql(statement)


def _outlines(connection: Connection) -> None:
    """Version 3: rows that stand for coarser groupings, and an index of all of a row but its
    state. Older rows stand for their own grouping alone."""
    for statement in (
        "ALTER TABLE delta ADD COLUMN for_coarser BOOLEAN DEFAULT FALSE NOT NULL",
        "DROP INDEX delta_by_pane",
        "CREATE INDEX delta_outline ON delta (generation, metric, grouping, window_start_ms, "
        "window_end_ms, head, end_offset, start_offset, key_range, key_ranges, nbytes, retry, "
        "for_coarser, id)",
    ):
        connection.exec_driver_sql(statement)


def _looks(connection: Connection) -> None:
    """Version 4: looks at an experiment."""
    sqlite = connection.dialect.name == "sqlite"
    number, reference = ("INTEGER", "INTEGER") if sqlite else ("BIGSERIAL", "BIGINT")
    double = "DOUBLE" if sqlite else "DOUBLE PRECISION"
    for statement in (
        f"CREATE TABLE experiment (generation {reference} NOT NULL REFERENCES generation (id), "
        "fingerprint VARCHAR(64) NOT NULL, last_look_ms BIGINT NOT NULL, "
        "PRIMARY KEY (generation, fingerprint))",
        f"CREATE TABLE look (id {number} NOT NULL PRIMARY KEY, "
        f"generation {reference} NOT NULL REFERENCES generation (id), "
        "experiment VARCHAR(64) NOT NULL, place BIGINT NOT NULL, "
        "heads_sha256 VARCHAR(64) NOT NULL, heads TEXT NOT NULL, watermark_ms BIGINT, "
        "UNIQUE (generation, experiment, place, heads_sha256))",
        f"CREATE TABLE look_reading (look {reference} NOT NULL REFERENCES look (id), "
        f"comparison TEXT NOT NULL, effect {double}, lower {double} NOT NULL, "
        f"upper {double} NOT NULL, log_e {double} NOT NULL, gated BOOLEAN NOT NULL, "
        "reason TEXT NOT NULL, PRIMARY KEY (look, comparison))",
    ):
        connection.exec_driver_sql(statement)


def _joins(connection: Connection) -> None:
    """Version 5: what became of events that are joined, and ids by which repeats are known."""
    for name in ("late_outcomes", "ignored", "closed_rows", "conflicts", "repeated"):
        connection.exec_driver_sql(f"ALTER TABLE head ADD COLUMN {name} BIGINT DEFAULT 0 NOT NULL")
    sqlite = connection.dialect.name == "sqlite"
    number, reference = ("INTEGER", "INTEGER") if sqlite else ("BIGSERIAL", "BIGINT")
    for statement in (
        f"CREATE TABLE seen (id {number} NOT NULL PRIMARY KEY, "
        f"head {reference} NOT NULL REFERENCES head (id), pane_start_ms BIGINT NOT NULL, "
        f"ids {'BLOB' if sqlite else 'BYTEA'} NOT NULL)",
        "CREATE INDEX seen_by_pane ON seen (head, pane_start_ms)",
    ):
        connection.exec_driver_sql(statement)


def _identities(connection: Connection) -> None:
    """Version 6: a random id of the store, a random token of each generation, and a chained digest
    of each head, by which a store that is another one, or that went back, is known; the topics that
    a generation counts from; and offsets that a log had lost are `lost`, events that the config
    leaves out `skipped`."""
    sqlite = connection.dialect.name == "sqlite"
    reference = "INTEGER" if sqlite else "BIGINT"
    for statement in (
        "ALTER TABLE generation ADD COLUMN token VARCHAR(32) DEFAULT '' NOT NULL",
        "ALTER TABLE head ADD COLUMN digest VARCHAR(64) DEFAULT '' NOT NULL",
        "ALTER TABLE head ADD COLUMN known_offset BIGINT",
        "ALTER TABLE head RENAME COLUMN skipped TO lost",
        "ALTER TABLE head RENAME COLUMN ignored TO skipped",
        f"CREATE TABLE source (generation {reference} NOT NULL REFERENCES generation (id), "
        "cluster VARCHAR(512) NOT NULL, topic TEXT NOT NULL, "
        "PRIMARY KEY (generation, cluster, topic))",
        "INSERT INTO source SELECT DISTINCT generation, cluster, topic FROM head "
        "WHERE topic <> '(join)'",
        f"INSERT INTO meta (key, value) VALUES ('store_id', '{secrets.token_hex(16)}')",
    ):
        connection.exec_driver_sql(statement)
    for table, column, nbytes in (("generation", "token", 16), ("head", "digest", 32)):
        for (number,) in connection.exec_driver_sql(f"SELECT id FROM {table}").all():
            connection.exec_driver_sql(
                f"UPDATE {table} SET {column} = '{secrets.token_hex(nbytes)}' WHERE id = {number}"
            )


# By the version that a step starts from.
_STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {
    1: _retries_and_tombstones,
    2: _outlines,
    3: _looks,
    4: _joins,
    5: _identities,
}
