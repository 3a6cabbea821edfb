"""The tables of a ledger, version 9. A change of them needs a new version, and a migration step
(migrations.py).

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
    hook         an event that a hook sends: its content, and how far it was sent

A head and the deltas and refused events of the same records change in one transaction.
The events of a commit mostly lie in one window, and what they add to it is what they add to the
total. Then the state is stored once, with the total, which retention never drops.
The counters of a head are statistics of its events; recovery does not read them.
Looks belong to no log and no digest: without them, every result but that of a monitor is the same.
An event of a hook is added in the transaction of its look, and its content never changes.
"""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    inspect,
    select,
)

VERSION: Final = 9
STORE_ID: Final = "store_id"  # the key of the store's id in `meta`


class AnyText(TypeDecorator[str]):
    """A text with names that events have, in which any character may stand. PostgreSQL has no NUL,
    so there two characters stand for it, and two for the first of these."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it is stored."""
        if value is None or dialect.name != "postgresql":
            return value
        return value.replace("\x1a", "\x1a1").replace("\0", "\x1a0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """The text as it was."""
        if value is None or dialect.name != "postgresql":
            return value
        return value.replace("\x1a0", "\0").replace("\x1a1", "\x1a")


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
    Column("comparison", AnyText, primary_key=True),
    Column("effect", Double),  # NULL where undefined
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
    Column("log_e", Double, nullable=False),
    Column("gated", Boolean, nullable=False),
    Column("reason", AnyText, nullable=False),
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

hook = Table(
    "hook",
    _tables,
    Column("id", _Id, primary_key=True),
    Column("hook", String(64), nullable=False),  # its name in the config
    # No reference: a store that went back may lack a generation whose events were sent.
    Column("generation", BigInteger, nullable=False),
    Column("experiment", String(64), nullable=False),  # its fingerprint
    Column("name", String(64), nullable=False),  # of the experiment in the config
    Column("event", String(32), nullable=False),
    Column("metric", AnyText, nullable=False),
    Column("arm", AnyText, nullable=False),
    Column("episode", AnyText, nullable=False),
    Column("subject", String(64), nullable=False),  # the hash of these: no event is there twice
    Column("key", String(64), nullable=False),  # by which the receiver recognizes a repetition
    Column("body", LargeBinary, nullable=False),
    Column("created_ms", BigInteger, nullable=False),  # times are of the clocks of processes
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("due_ms", BigInteger, nullable=False),  # of the next attempt, or when a claim ends
    Column("host", Text, nullable=False, default=""),  # of the last attempt
    Column("answered_ms", BigInteger),
    Column("answer", Text, nullable=False, default=""),  # of the last attempt: a status, an error
    UniqueConstraint("hook", "subject"),
)
Index("hook_by_state", hook.c.state, hook.c.due_ms)


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


def wait_for_turn(connection: Connection) -> None:
    """Wait until every transaction that has called this has ended: of those that do, one runs at a
    time. Other writers share the row of the store's id, which is not the one that this locks."""
    query = select(meta.c.value).where(meta.c.key == "schema_version")
    connection.execute(query.with_for_update())


def create(connection: Connection) -> None:
    """Create the tables of this version in an empty database."""
    # Here, and not for both databases above: the option of a dialect imports that dialect.
    _same_as.dialect_kwargs[f"{connection.dialect.name}_where"] = _shares
    _tables.create_all(connection)
    values = {"schema_version": str(VERSION), STORE_ID: secrets.token_hex(16)}
    connection.execute(
        meta.insert(), [{"key": key, "value": value} for key, value in values.items()]
    )
