"""The database under a ledger: transactions, and what to do when one fails.

SQLAlchemy Core, so that SQLite and PostgreSQL are one code path. What differs between them is how
they are connected to (connect.py) and how their errors read (failures.py).
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, event, func, select
from sqlalchemy.exc import DBAPIError

from streammetrics_consumers.ledger import schema as ledger_schema
from streammetrics_consumers.ledger.connect import StoreFile, connect
from streammetrics_consumers.ledger.failures import (
    Damaged,
    NoStoreYet,
    NotAStore,
    SchemaMismatch,
    StoreReplaced,
    explained,
    may_pass,
)
from streammetrics_consumers.ledger.schema import migrate

T = TypeVar("T")

log = logging.getLogger(__name__)

# A failed transaction is tried again after these pauses, in seconds; each try may itself wait
# `busy_s` for another writer. Half a minute outlives a checkpoint, a backup and a restart.
PAUSES_S: Final = (0.1, 0.5, 2.0, 5.0)
BUSY_S: Final = 5.0

_SCHEMA_LOCK: Final = 0x73_6D_6C_65_64_67_65_72  # of PostgreSQL: any number that is ours


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
        self.id = ""  # that was made with it; "" until it is known to hold a ledger of ours
        self._file = StoreFile.of(engine)
        self.tried_again = 0  # transactions that were, since the database was locked or away
        self._writers = engine.execution_options(ledger_begin="BEGIN IMMEDIATE")
        self._readers = engine
        if engine.dialect.name != "sqlite":
            # A reader asks several questions and wants one answer.
            self._readers = engine.execution_options(isolation_level="REPEATABLE READ")

    def read(self, work: Callable[[Connection], T], *, patient: bool = True) -> T:
        """Run `work` in one read transaction; where the connection fails, again if `patient`."""
        pauses_s = self._pauses_s if patient else ()
        return self._attempt(self._readers, lambda connection, _: work(connection), pauses_s)

    def require_same(self, connection: Connection, *, lock: bool = False) -> None:
        """Raise StoreReplaced where this is another store than the one that was opened. With
        `lock`, it stays the same until the end of the transaction."""
        found = ledger_schema.stored_id(connection, lock=lock)
        if self.id and found != self.id:
            raise StoreReplaced(
                f"store {self.name}: expected the store that this process opened (its id is "
                f"{self.id}), got {'one without an id' if found is None else f'another ({found})'}"
                ": it was emptied, restored or made anew under this process; start again to count "
                "into the one that is there now"
            )

    def write(self, work: Callable[[Connection, bool], T]) -> T:
        """Run `work` in one write transaction; where the connection fails, again.

        The second argument of `work` says that an earlier try failed. It may have been committed
        all the same: the connection may have gone after the COMMIT and before the answer.
        Raises StoreReplaced, before `work` is run, where this is another store than was opened.
        """

        def checked(connection: Connection, again: bool) -> T:
            self.require_same(connection, lock=True)
            return work(connection, again)

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

    def opened(self) -> None:
        """It holds a ledger of ours: from now on it must be this one."""
        self._file.remember()
        self.id = self.read(ledger_schema.stored_id) or ""

    def outlive_power_cuts(self) -> None:
        """Have SQLite write each commit to the disk before it is answered: for a writer whose
        records do not come again once they are committed. PostgreSQL does so by itself."""
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _synchronous)
            self.engine.dispose()

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def _synchronous(connection: sqlite3.Connection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("PRAGMA synchronous = FULL")


def open_store(
    url: str,
    *,
    create: bool,
    sleep: Callable[[float], None] = time.sleep,
    pauses_s: tuple[float, ...] = PAUSES_S,
    busy_s: float = BUSY_S,
) -> Store:
    """The store of this name, made or brought to this version where `create` allows it.

    Raises NotAStore, SchemaMismatch or StoreUnavailable.
    """
    engine, name = connect(url, create=create, busy_s=busy_s)
    store = Store(engine, name, sleep=sleep, pauses_s=pauses_s)
    try:
        version = store.read(ledger_schema.stored_version)
        if create and (version is None or 0 < version < ledger_schema.VERSION):
            version = store.write(_make_current)
    except BaseException:
        store.close()
        raise
    if version == ledger_schema.VERSION:
        store.opened()
        return store
    store.close()
    if not version:
        missing = NoStoreYet if version is None else NotAStore
        raise missing(f"store {name}: there is no ledger in this database; check the name")
    raise SchemaMismatch(
        f"store {name}: its schema has version {version}, this program knows "
        f"{ledger_schema.VERSION}; "
        + (
            "start `streammetrics run` on it, which brings it to this version"
            if version < ledger_schema.VERSION
            else "use the version of streammetrics that wrote it, or a later one"
        ),
        version,
        ledger_schema.VERSION,
    )


def _make_current(connection: Connection, again: bool) -> int | None:
    if connection.dialect.name != "sqlite":
        # Held until the end of the transaction; SQLite has let us in alone already.
        connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
    # Another process may have done it since we looked.
    version = ledger_schema.stored_version(connection)
    if version is None:
        ledger_schema.create(connection)
    elif version:
        migrate(connection, version)
    return ledger_schema.stored_version(connection)
