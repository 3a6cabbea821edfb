"""The tables of a ledger, version 8. A change of them needs a new version, and a migration step
below.

    meta         schema_version, and store_id: a random id that is made with the store
    generation   results that belong together; one is current
    source       the topics that a generation counts from
    metric       what a generation counts, by name, with its fingerprint
    metric_start the offset at which a metric that was added later starts, by head
    head         how far each log was counted: one row for each partition (and incarnation)
    delta        states of events that were counted: metric x grouping x pane x range of keys
    quarantine   events that were refused
    seen         ids of events, by which repeats are recognized
    retry        a retry of refused events
    experiment   the time of the last look at an experiment
    look         a look at an experiment: how far the logs were counted then
    look_reading the values of each comparison at a look
    period       a version of the program with a config, which counted
    period_start the offset from which a period counted a log

A head and the deltas and refused events of the same records change in one transaction.
The events of a commit mostly lie in one window, and what they add to it is what they add to the
total. Then the state is stored once, with the total, which retention never drops.
The counters of a head are statistics of its events; recovery does not read them.
Looks belong to no log and no digest: without them, every result but that of a monitor is the same.

A migration step is written out below and never changed: the tables above change later, and a store
of any older version must take the same steps. Both databases roll back changes of tables, so a
store has one version or the next, whenever the process dies.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    select,
    update,
)

VERSION: Final = 8
STORE_ID: Final = "store_id"  # the key of the store's id in `meta`

_tables = MetaData()
# SQLite numbers rows by itself only in a column whose type is INTEGER, and there it has 64 bits.
_Id = BigInteger().with_variant(Integer(), "sqlite")

meta = Table(
    "meta",
    _tables,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

generation = Table(
    "generation",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("current", Boolean, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("floor_ms", BigInteger),  # windows before it are dropped; NULL while none is
    Column("lateness_ms", BigInteger, nullable=False, default=0),  # shows when a window is closed
    Column("token", String(32), nullable=False),  # random, new for each revision
)

source = Table(
    "source",
    _tables,
    Column("generation", _Id, ForeignKey(generation.c.id), primary_key=True),
    Column("cluster", String(512), primary_key=True),
    Column("topic", Text, primary_key=True),
)

metric = Table(
    "metric",
    _tables,
    Column("generation", _Id, ForeignKey(generation.c.id), primary_key=True),
    Column("name", String(256), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("description", Text, nullable=False),  # JSON: the input of the fingerprint
    Column("ended", Boolean, nullable=False),
)

head = Table(
    "head",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("cluster", String(512), nullable=False),
    Column("topic", Text, nullable=False),
    Column("topic_id", String(512), nullable=False),
    Column("partition", BigInteger, nullable=False),
    Column("incarnation", BigInteger, nullable=False),
    Column("closed", Boolean, nullable=False),  # another head follows the log
    Column("start_offset", BigInteger, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("greatest_event_ms", BigInteger),
    Column("rows", BigInteger, nullable=False, default=0),
    Column("late", BigInteger, nullable=False, default=0),
    Column("future", BigInteger, nullable=False, default=0),
    Column("expired", BigInteger, nullable=False, default=0),
    Column("quarantined", BigInteger, nullable=False, default=0),
    Column("lost", BigInteger, nullable=False, default=0),  # offsets that the log lost
    Column("tombstones", BigInteger, nullable=False, default=0),
    Column("late_outcomes", BigInteger, nullable=False, default=0),
    Column("skipped", BigInteger, nullable=False, default=0),  # events that the config leaves out
    Column("closed_rows", BigInteger, nullable=False, default=0),
    Column("conflicts", BigInteger, nullable=False, default=0),
    Column("repeated", BigInteger, nullable=False, default=0),
    Column("digest", String(64), nullable=False),  # of all its commits; see write.py
    # The offset up to which it is known to have been counted, where the store went back since.
    Column("known_offset", BigInteger),
    UniqueConstraint("generation", "cluster", "topic_id", "partition", "incarnation"),
)

metric_start = Table(
    "metric_start",
    _tables,
    Column("generation", _Id, ForeignKey(generation.c.id), primary_key=True),
    Column("metric", String(256), primary_key=True),
    Column("head", _Id, ForeignKey(head.c.id), primary_key=True),
    Column("start_offset", BigInteger, nullable=False),
)

retry = Table(
    "retry",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
)

delta = Table(
    "delta",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("metric", String(256), nullable=False),
    Column("grouping", Integer, nullable=False),
    Column("window_start_ms", BigInteger),  # both NULL: all events since the start
    Column("window_end_ms", BigInteger),
    Column("key_range", Integer, nullable=False),
    Column("key_ranges", Integer, nullable=False),
    Column("head", _Id, ForeignKey(head.c.id), nullable=False),
    Column("start_offset", BigInteger, nullable=False),
    Column("end_offset", BigInteger, nullable=False),
    Column("nbytes", BigInteger, nullable=False),  # of the state, not of its packed form
    Column("state", LargeBinary, nullable=False),  # packed or not: see packing.py
    Column("retry", _Id, ForeignKey(retry.c.id)),  # whose events it counts; NULL: the log's own
    # Whether it stands for the states of coarser groupings too; see delta_metadata.py.
    Column("for_coarser", Boolean, nullable=False, default=False),
    # The row of the total that has the state of this one; then `state` is empty.
    Column("same_as", _Id, ForeignKey("delta.id")),
)
# For the check that no row loses its state when that of the total is deleted.
_shares = delta.c.same_as.is_not(None)
_same_as = Index("delta_same_as", delta.c.same_as)  # of these rows alone: see `create`
# All columns but the state, which may be megabytes long: the rows and their sizes are read from
# this index alone. SQLite would scan the whole state to reach the column that follows it.
Index(
    "delta_outline",
    delta.c.generation,
    delta.c.metric,
    delta.c.grouping,
    delta.c.window_start_ms,
    delta.c.window_end_ms,
    delta.c.head,
    delta.c.end_offset,
    delta.c.start_offset,
    delta.c.key_range,
    delta.c.key_ranges,
    delta.c.nbytes,
    delta.c.retry,
    delta.c.for_coarser,
    delta.c.id,
)

quarantine = Table(
    "quarantine",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("head", _Id, ForeignKey(head.c.id), nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("index", BigInteger, nullable=False),  # its position in the record
    Column("reason", Text, nullable=False),
    Column("field", Text),
    Column("detail", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),  # its beginning
    Column("size", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("done", Boolean, nullable=False),  # a retry has counted it
    Column("retry", _Id, ForeignKey(retry.c.id)),  # which one
    Column("record_ms", BigInteger),  # its record's timestamp, where there is one
    # Whether the topic of `[quarantine] topic` has it.
    Column("forwarded", Boolean, nullable=False, default=False),
    UniqueConstraint("head", "offset", "index"),
)

seen = Table(
    "seen",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("head", _Id, ForeignKey(head.c.id), nullable=False),
    Column("pane_start_ms", BigInteger, nullable=False),
    Column("ids", LargeBinary, nullable=False),  # hashes of 8 bytes, ascending
)
Index("seen_by_pane", seen.c.head, seen.c.pane_start_ms)

experiment = Table(
    "experiment",
    _tables,
    Column("generation", _Id, ForeignKey(generation.c.id), primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("last_look_ms", BigInteger, nullable=False),  # by the clock of the process that looked
)

look = Table(
    "look",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("experiment", String(64), nullable=False),  # its fingerprint
    Column("place", BigInteger, nullable=False),  # the sum of `heads`; it rises from look to look
    Column("heads_sha256", String(64), nullable=False),  # `heads` may be too long for an index
    Column("heads", Text, nullable=False),  # JSON: offset by name
    Column("watermark_ms", BigInteger),
    UniqueConstraint("generation", "experiment", "place", "heads_sha256"),
)

look_reading = Table(
    "look_reading",
    _tables,
    Column("look", _Id, ForeignKey(look.c.id), primary_key=True),
    Column("comparison", Text, primary_key=True),
    Column("effect", Double),  # NULL where undefined
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
    Column("log_e", Double, nullable=False),
    Column("gated", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
)


period = Table(
    "period",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("generation", _Id, ForeignKey(generation.c.id), nullable=False),
    Column("version", Text, nullable=False),  # of the program, with its commit
    Column("schema_version", Integer, nullable=False),  # that it writes
    Column("config", String(64), nullable=False),  # sha256 of all that determines its counts
    Column("settings", Text, nullable=False),  # JSON: those that no description has
)

period_start = Table(
    "period_start",
    _tables,
    Column("head", _Id, ForeignKey(head.c.id), primary_key=True),
    Column("start_offset", BigInteger, primary_key=True),
    Column("period", _Id, ForeignKey(period.c.id), nullable=False),
)


def tables() -> list[Table]:
    """All tables, in an order in which they can be created."""
    return list(_tables.sorted_tables)


def stored_version(connection: Connection) -> int | None:
    """The schema version of this database; None if it has no tables, 0 if it is not a ledger."""
    names = inspect(connection).get_table_names()
    if not names:
        return None
    if meta.name not in names:
        return 0
    version = connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version"))
    return int(version) if isinstance(version, str) and version.isdecimal() else 0


def stored_id(connection: Connection, *, lock: bool = False) -> str | None:
    """The random id that was created with this store; None if there is none. With `lock`, it stays
    until the end of the transaction."""
    query = select(meta.c.value).where(meta.c.key == STORE_ID)
    return connection.scalar(query.with_for_update(read=True) if lock else query)


def create(connection: Connection) -> None:
    """Create the tables of this version in an empty database."""
    # Here, and not for both databases above: the option of a dialect imports that dialect.
    _same_as.dialect_kwargs[f"{connection.dialect.name}_where"] = _shares
    _tables.create_all(connection)
    values = {"schema_version": str(VERSION), STORE_ID: secrets.token_hex(16)}
    connection.execute(
        meta.insert(), [{"key": key, "value": value} for key, value in values.items()]
    )


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


# By the version that a step starts from.
_STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {
    1: _retries_and_tombstones,
    2: _delta_metadata,
    3: _looks,
    4: _joins,
    5: _identities,
    6: _shared_states,
    7: _periods,
}
