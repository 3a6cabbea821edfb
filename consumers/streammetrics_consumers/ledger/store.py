"""The database under a ledger: connections, transactions, and repeating those that fail.

SQLAlchemy Core, so that SQLite and PostgreSQL are one code path. They differ in how connections are
made, which is below, and in their errors (failures.py).

SQLite, for one machine, runs in WAL mode: readers see one state while a writer writes, and a writer
takes the lock at once (BEGIN IMMEDIATE), so that two writers wait for each other and never fail
halfway. PostgreSQL, for several machines, writes at READ COMMITTED, where each statement sees all
earlier commits: the transactions lock the rows that their conditions depend on. No session state
outlives a transaction, so a pooler such as PgBouncer can be used, in transaction mode.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool, QueuePool

from streammetrics_consumers.ledger import schema as ledger_schema
from streammetrics_consumers.ledger.failures import (
    Damaged,
    LedgerError,
    NoStoreYet,
    NotAStore,
    SchemaMismatch,
    StoreReplaced,
    StoreUnavailable,
    explained,
    may_pass,
)
from streammetrics_consumers.ledger.former_schemas import FormerViews
from streammetrics_consumers.ledger.migrations import migrate
from streammetrics_consumers.ledger.store_file import PATH, StoreFile

T = TypeVar("T")

log = logging.getLogger(__name__)

# A failed transaction is tried again after these pauses, in seconds; each try may itself wait
# `busy_s` for another writer. Half a minute is enough for a checkpoint, a backup or a restart.
PAUSES_S: Final = (0.1, 0.5, 2.0, 5.0)
BUSY_S: Final = 5.0

_SCHEMA_LOCK: Final = 0x73_6D_6C_65_64_67_65_72  # PostgreSQL's advisory lock: an arbitrary number


Accept = Callable[[Connection, int], None]


class Store:
    """A database that is known to hold a ledger: of this version, or of an older one that is only
    read."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        *,
        sleep: Callable[[float], None],
        pauses_s: tuple[float, ...],
    ) -> None:
        self.engine, self.name = engine, name
        self._sleep, self._pauses_s = sleep, pauses_s
        self.id = ""  # created with the store; "" until it is known to hold a ledger
        self.version = ledger_schema.VERSION  # of its schema, when it was opened
        self._views = FormerViews()
        self._file = StoreFile.from_engine(engine)
        self.tried_again = 0  # transactions repeated because the database was locked or unreachable
        self._writers = engine.execution_options(ledger_begin="BEGIN IMMEDIATE")
        self._readers = engine
        if engine.dialect.name != "sqlite":
            # A reader runs several queries and needs one consistent state.
            self._readers = engine.execution_options(isolation_level="REPEATABLE READ")

    def read(self, work: Callable[[Connection], T], *, patient: bool = True) -> T:
        """Run `work` in one read transaction; if the connection fails, again where `patient`."""
        pauses_s = self._pauses_s if patient else ()

        def read_through_views(connection: Connection, _: bool) -> T:
            version = ledger_schema.stored_version(connection) or 0
            self._views.create(connection, version)
            result = work(connection)
            self._views.drop(connection, version)
            return result

        is_older = self.version < ledger_schema.VERSION
        plainly = read_through_views if is_older else lambda connection, _: work(connection)
        return self._attempt(self._readers, plainly, pauses_s)

    def require_same(self, connection: Connection, *, lock: bool = False) -> None:
        """Raise StoreReplaced where this is not the store that was opened. With `lock`, it stays
        the same until the end of the transaction."""
        current_id = ledger_schema.stored_id(connection, lock=lock)
        if self.id and current_id != self.id:
            raise StoreReplaced(
                f"store {self.name}: expected the store that this process opened (its id is "
                f"{self.id}), got "
                f"{'one without an id' if current_id is None else f'another ({current_id})'}: it "
                "was emptied, restored or re-created while this process ran; start again to count "
                "into the new one"
            )

    def write(self, work: Callable[[Connection, bool], T]) -> T:
        """Run `work` in one write transaction; if the connection fails, again.

        The second argument of `work` is whether an earlier try failed. It may have been committed
        all the same, if the connection was lost after the COMMIT and before the answer.
        Raises StoreReplaced, before `work` runs, where this is not the store that was opened, and
        SchemaMismatch where it was opened with an older schema.
        """
        self.require_current()

        def checked(connection: Connection, is_repeated: bool) -> T:
            self.require_same(connection, lock=True)
            return work(connection, is_repeated)

        return self._attempt(self._writers, checked if self.id else work, self._pauses_s)

    def _attempt(
        self, engine: Engine, work: Callable[[Connection, bool], T], pauses_s: tuple[float, ...]
    ) -> T:
        for attempt, pause_s in enumerate((*pauses_s, None)):
            try:
                self._file.require_same(self.name)
                with engine.begin() as connection:
                    return work(connection, attempt > 0)
            except Damaged as error:
                raise NotAStore(
                    f"store {self.name}: {error}; it is damaged: restore a copy, or start a new one"
                ) from error
            except DBAPIError as error:
                if pause_s is None or not may_pass(error):
                    raise explained(error, self.name) from error
                log.warning("store %s: %s; trying again in %g s", self.name, error.orig, pause_s)
                self.tried_again += 1
                self._sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def require_current(self) -> None:
        """Raise SchemaMismatch where the store was opened with an older schema, which is only
        read."""
        if self.version < ledger_schema.VERSION:
            raise _mismatch(self.name, self.version)

    def opened(self, version: int) -> None:
        """Note that it holds a ledger of this version: from now on it must stay the same store."""
        self._file.remember()
        self.version = version
        self.id = self.read(ledger_schema.stored_id) or ""

    def outlive_power_cuts(self) -> None:
        """Have SQLite sync each commit to the disk before it returns: for a writer whose records
        cannot be read again once they are committed. PostgreSQL does so by default."""
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _synchronous)
            self.engine.dispose()

    def close_idle(self) -> None:
        """Close the connections that no transaction uses, unless there is only one, which the next
        transaction would open again. A connection costs PostgreSQL a process, and SQLite a cache of
        pages."""
        pool = self.engine.pool
        if isinstance(pool, QueuePool) and pool.checkedin() > 1:
            self.engine.dispose()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _synchronous(connection: sqlite3.Connection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA synchronous = FULL")


def open_store(
    url: str,
    *,
    create: bool,
    accept: Accept | None = None,
    sleep: Callable[[float], None] = time.sleep,
    pauses_s: tuple[float, ...] = PAUSES_S,
    busy_s: float = BUSY_S,
) -> Store:
    """The store of this name, created or migrated to this version where `create` allows it.

    accept: called with the connection and the former version after a migration, in its
    transaction: what it raises undoes the migration. Raises NotAStore, SchemaMismatch or
    StoreUnavailable.
    """
    engine, name = connect(url, create=create, busy_s=busy_s)
    store = Store(engine, name, sleep=sleep, pauses_s=pauses_s)
    try:
        version = store.read(ledger_schema.stored_version)
        if create and (version is None or 0 < version < ledger_schema.VERSION):
            former_version = version
            version = store.write(partial(_make_current, accept))
            if former_version is not None:
                log.warning(
                    "store %s: its schema was migrated from version %d to %d",
                    name,
                    former_version,
                    version,
                )
    except BaseException:
        store.close()
        raise
    if version and version <= ledger_schema.VERSION:
        store.opened(version)
        return store
    store.close()
    if not version:
        none = f"store {name}: there is no ledger in this database; check the name"
        if version is None:
            raise NoStoreYet(f"{none}, or {_FIRST}")
        raise NotAStore(none)
    raise _mismatch(name, version)


def _mismatch(name: str, version: int) -> SchemaMismatch:
    return SchemaMismatch(
        f"store {name}: its schema has version {version}, but this program writes "
        f"{ledger_schema.VERSION}; "
        + (
            "start `streammetrics run` on it to migrate it"
            if version < ledger_schema.VERSION
            else "use the version of streammetrics that wrote it, or a later one"
        ),
        version,
        ledger_schema.VERSION,
    )


def _make_current(accept: Accept | None, connection: Connection, is_repeated: bool) -> int | None:
    if connection.dialect.name != "sqlite":
        # Held until the end of the transaction; in SQLite this is the only writer already.
        connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
    # Another process may have done it since the version was read.
    version = ledger_schema.stored_version(connection)
    if version is None:
        ledger_schema.create(connection)
    elif version:
        migrate(connection, version)
        if accept is not None and version < ledger_schema.VERSION:
            accept(connection, version)
    return ledger_schema.stored_version(connection)


_FIRST: Final = "start `streammetrics run` first, which creates it"

# -- from a name to connections ----------------------------------------------------------------
_EXPECTED: Final = "expected a path of a SQLite file, or postgresql://USER@HOST/DATABASE"

# The settings of PostgreSQL's client, where the URL has none. A host that vanished is given up
# after half a minute, not after two hours.
_CLIENT: Final[dict[str, str]] = {
    "application_name": "streammetrics",
    "client_encoding": "utf8",  # else a database in SQL_ASCII returns bytes for texts
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# A process that is stopped within a transaction holds the head of its log for this long.
_IDLE_LIMIT_S: Final = 60


def shown(url: str) -> str:
    """The name of a store for messages, without a password."""
    if "://" not in url:
        return url
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return f"{url.split('://')[0]}://..."
    if "@" in (parsed.host or ""):  # a password with one, of which the host has the end
        return f"{parsed.drivername}://..."
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
            f"store {shown(url)}: {_EXPECTED}, got an invalid URL; correct it"
        ) from None
    name = shown(url)
    if "@" in (parsed.host or ""):
        raise NotAStore(f"store {name}: {_EXPECTED}, got @ twice; write %40 in a password")
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(parsed, name, create, busy_s), name
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres(parsed, name, busy_s), name
    raise NotAStore(f"store {name}: {_EXPECTED}, got {parsed.drivername}://; correct it")


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
            f"store {name}: expected the package psycopg, got an installation without it "
            f"({error}); install it with: pip install '.[postgres]' in a clone of streammetrics"
        ) from None

    # Set for each transaction: poolers refuse them as parameters of the connection, and behind a
    # pooler a setting of the session would reach other clients.
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
    if path.exists() and not path.is_file():
        got = "a pipe or a device; correct the name"
        if path.is_dir():
            got = "a folder; name a file in it"
        raise NotAStore(f"store {name}: expected a file, got {got}")
    if not path.absolute().parent.is_dir():
        raise NotAStore(
            f"store {name}: no such folder: {path.parent}; create it, or correct the name"
        )
    if not create and not path.exists():
        raise NoStoreYet(f"store {name}: no such file; check the name, or {_FIRST}")

    # In a folder that cannot be written, a store that no process has open is a file that does not
    # change. A process elsewhere may open it at any moment, so each transaction checks again.
    is_fixed = not create and not _may_write(path.absolute().parent)

    def connect() -> sqlite3.Connection:
        mode, kind = f"mode={'rwc' if create else 'rw'}", sqlite3.Connection
        if is_fixed and _is_at_rest(path, name):
            mode, kind = "mode=ro&immutable=1", _AtRest
        # isolation_level None: BEGIN and COMMIT are ours, not Python's.
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?{mode}",
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            check_same_thread=False,
            factory=kind,
        )

    options = {PATH: str(path.absolute())}
    pool = NullPool if is_fixed else QueuePool
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, execution_options=options)
    if create:
        # The mode is kept in the file, which a reader must not change: it may not be a ledger.
        event.listen(engine, "connect", _use_wal)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    if is_fixed:
        _refuse_changes(engine, path, name)
    return engine


def _is_at_rest(path: Path, name: str) -> bool:
    """Whether a store in a folder that cannot be written is read without the files that WAL mode
    needs beside it: no process has it open, and all of its commits are in the one file.

    Raises LedgerError where its last commits cannot be read there.
    """
    if path.with_name(f"{path.name}-shm").exists():
        return False
    if _size(path.with_name(f"{path.name}-wal")):
        raise LedgerError(
            f"store {name}: its last commits are in {path.name}-wal, which cannot be read in a "
            "read-only folder; copy both files to another folder, and read them there"
        )
    return True


class _AtRest(sqlite3.Connection):
    """A connection that assumes that its file does not change."""


def _refuse_changes(engine: Engine, path: Path, name: str) -> None:
    """Have a transaction fail if a file that was assumed not to change has changed meanwhile."""

    def look() -> tuple[int, int, int]:
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def begin(connection: Connection) -> None:
        driver_connection: object = connection.connection.dbapi_connection
        if isinstance(driver_connection, _AtRest):
            connection.info["stood"] = look()

    def commit(connection: Connection) -> None:
        if connection.info.get("stood", look()) != look():
            raise StoreUnavailable(
                f"store {name}: another process wrote to it during the read; try again"
            )

    event.listen(engine, "begin", begin)
    event.listen(engine, "commit", commit)


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _size(path: Path) -> int:
    """Bytes of a file, 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


# `Any` is SQLAlchemy's own type for the record of a connection in its pool.
def _use_wal(connection: sqlite3.Connection, _record: Any) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA journal_mode = WAL")


def _prepare(connection: sqlite3.Connection, _record: Any) -> None:
    with closing(connection.cursor()) as cursor:
        # In WAL mode NORMAL survives a crash of the process, and a power cut loses at most whole
        # commits: head and deltas together, whose records are then read again.
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA journal_size_limit = 67108864")  # bytes of WAL kept for reuse


def _begin(connection: Connection) -> None:
    begin = connection.get_execution_options().get("ledger_begin", "BEGIN")
    connection.exec_driver_sql(str(begin))
