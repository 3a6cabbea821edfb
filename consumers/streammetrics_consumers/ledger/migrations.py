"""The steps that bring a store of an older schema to the present one.

A step is written out here and never changed: the tables change later, and a store of any older
version must take the same steps. Both databases roll back changes of tables, so a store has one
version or the next, whenever the process dies.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, update

from streammetrics_consumers.ledger.schema import VERSION, meta


def migrate(connection: Connection, version: int) -> None:
    """Migrate a store of this version to the current one; a later one is left unchanged."""
    for old in range(version, VERSION):
        _STEPS[old](connection)
        connection.execute(
            update(meta).where(meta.c.key == "schema_version").values(value=str(old + 1))
        )


def _types(connection: Connection) -> tuple[bool, str, str]:
    """Whether this is SQLite; the types of an id and of a reference to one."""
    if connection.dialect.name == "sqlite":
        return True, "INTEGER", "INTEGER"
    return False, "BIGSERIAL", "BIGINT"


def _retries_and_tombstones(connection: Connection) -> None:
    """Version 2: events counted by a retry are distinguished from those of the log, and messages
    without a value are counted."""
    sqlite, number, reference = _types(connection)
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


def _delta_metadata(connection: Connection) -> None:
    """Version 3: rows that stand for coarser groupings, and an index of all columns but the state.
    Older rows stand only for their own grouping."""
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
    sqlite, number, reference = _types(connection)
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
    """Version 5: counters of joined events, and ids by which repeats are recognized."""
    for name in ("late_outcomes", "ignored", "closed_rows", "conflicts", "repeated"):
        connection.exec_driver_sql(f"ALTER TABLE head ADD COLUMN {name} BIGINT DEFAULT 0 NOT NULL")
    sqlite, number, reference = _types(connection)
    for statement in (
        f"CREATE TABLE seen (id {number} NOT NULL PRIMARY KEY, "
        f"head {reference} NOT NULL REFERENCES head (id), pane_start_ms BIGINT NOT NULL, "
        f"ids {'BLOB' if sqlite else 'BYTEA'} NOT NULL)",
        "CREATE INDEX seen_by_pane ON seen (head, pane_start_ms)",
    ):
        connection.exec_driver_sql(statement)


def _identities(connection: Connection) -> None:
    """Version 6: a random id of the store, a random token of each generation, and a chained digest
    of each head, by which a store that was replaced or went back is detected; the topics that a
    generation counts from; and the names `lost`, of offsets that a log lost, and `skipped`, of
    events that the config leaves out."""
    _, _, reference = _types(connection)
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


def _shared_states(connection: Connection) -> None:
    """Version 7: rows that have the state of the total, and packed states (see packing.py). Older
    rows have their own, as they are."""
    _, _, reference = _types(connection)
    for statement in (
        f"ALTER TABLE delta ADD COLUMN same_as {reference} REFERENCES delta (id)",
        "CREATE INDEX delta_same_as ON delta (same_as) WHERE same_as IS NOT NULL",
    ):
        connection.exec_driver_sql(statement)


def _periods(connection: Connection) -> None:
    """Version 8: which version of the program, with which config, counted which offsets. Those
    counted before have no period."""
    _, number, reference = _types(connection)
    for statement in (
        f"CREATE TABLE period (id {number} NOT NULL PRIMARY KEY, "
        f"generation {reference} NOT NULL REFERENCES generation (id), "
        "version TEXT NOT NULL, schema_version INTEGER NOT NULL, config VARCHAR(64) NOT NULL, "
        "settings TEXT NOT NULL)",
        f"CREATE TABLE period_start (head {reference} NOT NULL REFERENCES head (id), "
        f"start_offset BIGINT NOT NULL, period {reference} NOT NULL REFERENCES period (id), "
        "PRIMARY KEY (head, start_offset))",
    ):
        connection.exec_driver_sql(statement)


def _hooks(connection: Connection) -> None:
    """Version 9: the events that hooks send."""
    sqlite, number, _ = _types(connection)
    for statement in (
        f"CREATE TABLE hook (id {number} NOT NULL PRIMARY KEY, hook VARCHAR(64) NOT NULL, "
        "generation BIGINT NOT NULL, experiment VARCHAR(64) NOT NULL, name VARCHAR(64) NOT NULL, "
        "event VARCHAR(32) NOT NULL, metric TEXT NOT NULL, arm TEXT NOT NULL, "
        "episode TEXT NOT NULL, subject VARCHAR(64) NOT NULL, key VARCHAR(64) NOT NULL, "
        f"body {'BLOB' if sqlite else 'BYTEA'} NOT NULL, created_ms BIGINT NOT NULL, "
        "state VARCHAR(16) NOT NULL, attempts INTEGER NOT NULL, due_ms BIGINT NOT NULL, "
        "host TEXT NOT NULL, answered_ms BIGINT, answer TEXT NOT NULL, UNIQUE (hook, subject))",
        "CREATE INDEX hook_by_state ON hook (state, due_ms)",
    ):
        connection.exec_driver_sql(statement)


# By the version that a step starts from.
_STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {
    1: _retries_and_tombstones,
    2: _delta_metadata,
    3: _looks,
    4: _joins,
    5: _identities,
    6: _shared_states,
    7: _periods,
    8: _hooks,
}
