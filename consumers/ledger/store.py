"""The database under a ledger: connections, transactions, and what to do when it fails.

SQLAlchemy Core, so that SQLite and PostgreSQL are one code path. SQLite runs in WAL mode: readers
see one state while a writer writes, and a writer says so at once (BEGIN IMMEDIATE), so that two
writers wait for each other and never fail halfway.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.pool import QueuePool

from consumers.ledger import schema as ledger_schema

T = TypeVar("T")

log = logging.getLogger(__name__)

# A failed transaction is tried again after these pauses, in seconds; each try may itself wait
# `busy_s` for another writer. Half a minute outlives a checkpoint, a backup and a fail-over.
PAUSES_S: Final = (0.1, 0.5, 2.0, 5.0)
BUSY_S: Final = 5.0


class LedgerError(Exception):
    """A store that cannot be used as asked. `exit_code` is what the process ends with."""

    exit_code = 1


class StoreUnavailable(LedgerError):
    """Locked, full or away: nothing is lost, and the same command may work later."""

    exit_code = 75


class NotAStore(LedgerError):
    """There is no ledger there, or it is damaged."""


class NoStoreYet(NotAStore):
    """Nothing is there; a writer would make it."""


class SchemaMismatch(LedgerError):
    """A store that another version of this program wrote."""

    exit_code = 3


class Store:
    """A database that is known to hold a ledger of this version."""

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
        self._writers = engine.execution_options(ledger_begin="BEGIN IMMEDIATE")
        self._readers = engine
        if engine.dialect.name != "sqlite":
            # A reader asks several questions and wants one answer.
            self._readers = engine.execution_options(isolation_level="REPEATABLE READ")

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one read transaction."""
        return self._attempt(self._readers, lambda connection, _: work(connection))

    def write(self, work: Callable[[Connection, bool], T]) -> T:
        """Run `work` in one write transaction; where the connection fails, again.

        The second argument of `work` says that an earlier try failed. It may have been committed
        all the same: the connection may have gone after the COMMIT and before the answer.
        """
        return self._attempt(self._writers, work)

    def _attempt(self, engine: Engine, work: Callable[[Connection, bool], T]) -> T:
        for attempt, pause_s in enumerate((*self._pauses_s, None)):
            try:
                with engine.begin() as connection:
                    return work(connection, attempt > 0)
            except DBAPIError as error:
                if pause_s is None or not _may_pass(error):
                    raise explained(error, self.name) from error
                log.warning("store %s: %s; trying again in %g s", self.name, error.orig, pause_s)
                self._sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def open_store(
    url: str,
    *,
    create: bool,
    sleep: Callable[[float], None] = time.sleep,
    pauses_s: tuple[float, ...] = PAUSES_S,
    busy_s: float = BUSY_S,
) -> Store:
    """The store at a path of a SQLite file or an SQLAlchemy URL, made where `create` allows it.

    Raises NotAStore, SchemaMismatch or StoreUnavailable.
    """
    engine, name = _engine(url, create, busy_s)
    store = Store(engine, name, sleep=sleep, pauses_s=pauses_s)
    try:
        version = store.read(ledger_schema.stored_version)
        if version is None and create:
            version = store.write(_create)
    except BaseException:
        store.close()
        raise
    if version == ledger_schema.VERSION:
        return store
    store.close()
    if not version:
        missing = NoStoreYet if version is None else NotAStore
        raise missing(f"store {name}: there is no ledger in this database; check the name")
    raise SchemaMismatch(
        f"store {name}: its schema has version {version}, this program knows "
        f"{ledger_schema.VERSION}; use the version of streammetrics that wrote it, or a later one"
    )


def _create(connection: Connection, again: bool) -> int | None:
    # Another process may have made them since we looked.
    if ledger_schema.stored_version(connection) is None:
        ledger_schema.create(connection)
    return ledger_schema.stored_version(connection)


def _engine(url: str, create: bool, busy_s: float) -> tuple[Engine, str]:
    try:
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
        name = parsed.render_as_string(hide_password=True) if "://" in url else url
        if parsed.get_backend_name() != "sqlite":
            return create_engine(parsed, pool_pre_ping=True), name
    except ImportError as error:
        raise NotAStore(
            f"store {url.split('://')[0]}://...: expected the package {error.name}, came an "
            f"installation without it; install it with: pip install {error.name}"
        ) from None
    except (ArgumentError, NoSuchModuleError) as error:
        raise NotAStore(
            f"store {url.split('://')[0]}://...: expected a path of a SQLite file or an SQLAlchemy "
            f"URL, came one that cannot be used ({error}); correct it"
        ) from None
    if not parsed.database or parsed.database == ":memory:":
        raise NotAStore(f"store {name}: a store must outlive the process; name a file")
    path = Path(parsed.database)
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
    return engine, name


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


def _may_pass(error: DBAPIError) -> bool:
    """Whether the same transaction may work in a moment."""
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_kind(error.orig) in ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
    return isinstance(error, (OperationalError, InterfaceError))


def _sqlite_kind(error: BaseException) -> str:
    """SQLite's primary error code, such as SQLITE_FULL."""
    name = getattr(error, "sqlite_errorname", "")
    return "_".join(str(name).split("_")[:2])


_SAID: Final[dict[str, tuple[type[LedgerError], str]]] = {
    "SQLITE_BUSY": (StoreUnavailable, "another process holds its lock; try again later"),
    "SQLITE_LOCKED": (StoreUnavailable, "another process holds its lock; try again later"),
    "SQLITE_PROTOCOL": (StoreUnavailable, "another process holds its lock; try again later"),
    "SQLITE_FULL": (StoreUnavailable, "its disk is full; make room and start again"),
    "SQLITE_IOERR": (StoreUnavailable, "its disk fails or is full; check it and start again"),
    "SQLITE_READONLY": (LedgerError, "it cannot be written; check its permissions and folder's"),
    "SQLITE_CANTOPEN": (NotAStore, "it cannot be opened; check that its folder exists and is ours"),
    "SQLITE_NOTADB": (NotAStore, "this file is not a SQLite database; check the name"),
    "SQLITE_CORRUPT": (NotAStore, "the file is damaged; restore a copy, or start a new one"),
}


def explained(error: DBAPIError, name: str) -> LedgerError:
    """The error that a user reads."""
    if isinstance(error.orig, sqlite3.Error):
        known = _SAID.get(_sqlite_kind(error.orig))
        if known is not None:
            kind, todo = known
            return kind(f"store {name}: {error.orig}; {todo}")
    if _may_pass(error):
        return StoreUnavailable(f"store {name}: {error.orig}; nothing is lost, start again later")
    return LedgerError(f"store {name}: {error.orig}")
