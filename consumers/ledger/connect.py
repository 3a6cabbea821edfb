"""From a name to connections: SQLite for one machine, PostgreSQL for several.

SQLite runs in WAL mode: readers see one state while a writer writes, and a writer says so at once
(BEGIN IMMEDIATE), so that two writers wait for each other and never fail halfway. PostgreSQL
writes at READ COMMITTED, where each statement sees what others have committed before it: the
transactions lock what their conditions rest on. Nothing of ours outlives a transaction on a
connection with it, so that a pooler such as PgBouncer may stand between, in transaction mode.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from consumers.ledger.failures import NoStoreYet, NotAStore

_EXPECTED: Final = "expected a path of a SQLite file, or postgresql://USER@HOST/DATABASE"

# What PostgreSQL's client is told unless the URL says otherwise. A host that is gone without a word
# is given up after half a minute, not after two hours.
_CLIENT: Final[dict[str, str]] = {
    "application_name": "streammetrics",
    "client_encoding": "utf8",  # else a database in SQL_ASCII answers bytes for texts
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# A process that is stopped within a transaction holds the head of its log for this long.
_IDLE_LIMIT_S: Final = 60


def shown(url: str) -> str:
    """A store as messages name it, without a password."""
    if "://" not in url:
        return url
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return f"{url.split('://')[0]}://..."
    secret = {key: "***" for key in parsed.query if "password" in key.lower()}
    return parsed.update_query_dict(secret).render_as_string(hide_password=True)


def connect(url: str, *, create: bool, busy_s: float) -> tuple[Engine, str]:
    """The connections to a store, and its name for messages, without a password.

    Raises NotAStore.
    """
    try:
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
    except (ArgumentError, ValueError):
        raise NotAStore(
            f"store {shown(url)}: {_EXPECTED}, came a URL that cannot be read; correct it"
        ) from None
    name = shown(url)
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(parsed, name, create, busy_s), name
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres(parsed, name, busy_s), name
    raise NotAStore(f"store {name}: {_EXPECTED}, came {parsed.drivername}://; correct it")


def _postgres(url: URL, name: str, busy_s: float) -> Engine:
    settings: dict[str, object] = {
        key: value for key, value in _CLIENT.items() if key not in url.query
    }
    # A pooler may hand the next transaction to another connection with the server, where a
    # statement that was prepared on this one does not exist, or another one has its name.
    settings["prepare_threshold"] = None
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=settings,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise NotAStore(
            f"store {name}: expected the package psycopg, came an installation without it "
            f"({error}); install it with: pip install 'streammetrics[postgres]'"
        ) from None

    # For one transaction each: they are not sent with the connection, since poolers refuse that,
    # and with a pooler a setting of a session would meet strangers.
    limits = (
        f"SELECT set_config('lock_timeout', '{int(busy_s * 1000)}', true), "
        f"set_config('idle_in_transaction_session_timeout', '{_IDLE_LIMIT_S}s', true)"
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(limits))
    return engine


def _sqlite(url: URL, name: str, create: bool, busy_s: float) -> Engine:
    if not url.database or url.database == ":memory:":
        raise NotAStore(f"store {name}: a store must outlive the process; name a file")
    path = Path(url.database)
    if path.is_dir():
        raise NotAStore(f"store {name}: expected a file, came a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise NotAStore(
            f"store {name}: there is no such folder: {path.parent}; make it, or correct the name"
        )
    if not create and not path.exists():
        raise NoStoreYet(f"store {name}: there is no such file; check the name")

    def connect() -> sqlite3.Connection:
        # isolation_level None: BEGIN and COMMIT are ours, not Python's.
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            check_same_thread=False,
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    if create:
        # It is kept in the file, which a reader must not change: it may not be ours at all.
        event.listen(engine, "connect", _use_wal)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


# `Any` is SQLAlchemy's own type for the record of a connection in its pool.
def _use_wal(connection: sqlite3.Connection, _record: Any) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA journal_mode = WAL")


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    with closing(connection.cursor()) as cursor:
        # In WAL mode NORMAL survives a crash of the process, and a power cut loses whole commits
        # at most: head and deltas together, which are then read again.
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA journal_size_limit = 67108864")  # bytes of WAL kept for reuse


def _begin(connection: Connection) -> None:
    begin = connection.get_execution_options().get("ledger_begin", "BEGIN")
    connection.exec_driver_sql(str(begin))
