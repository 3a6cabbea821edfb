"""Failures of a store: the errors that a user reads, and which of them are worth another try."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError


class LedgerError(Exception):
    """A store that cannot be used as requested. `exit_code` is that of the process."""

    exit_code = 1


class SettingsChanged(LedgerError):
    """The settings are not those that the store was counted with. `differences` names each."""

    exit_code = 3

    def __init__(self, differences: Sequence[str], hint: str) -> None:
        self.differences, self.hint = tuple(differences), hint
        super().__init__("\n".join([*differences, hint]))


class StoreUnavailable(LedgerError):
    """Locked, full or unreachable: nothing is lost, and the same command may work later."""

    exit_code = 75


class StoreRefusesUs(LedgerError):
    """The store rejects the user, password or rights: a person must correct them."""

    exit_code = 77


class NotAStore(LedgerError):
    """There is no ledger there, or it is damaged."""


class NoStoreYet(NotAStore):
    """The store does not exist; a writer would create it, so the same command may work later: a
    page and its worker may start at the same time."""

    exit_code = 75


class StoreReplaced(LedgerError):
    """The store is not the one that this process opened, or lost data that it depends on."""


class Damaged(Exception):
    """Invalid stored data, described in a text that follows the store's name in a NotAStore."""


class SchemaMismatch(LedgerError):
    """A store that another version of this program wrote; a writer migrates an older one."""

    exit_code = 3

    def __init__(self, message: str, version: int, own_version: int) -> None:
        self.version, self.ours = version, own_version
        super().__init__(message)

    @property
    def is_older(self) -> bool:
        """Whether a run migrates it to this version."""
        return self.version < self.ours


Said = tuple[type[LedgerError], str]

_LOCKED: Final = (StoreUnavailable, "another process holds its lock; try again later")
_FULL: Final = (StoreUnavailable, "its disk is full; free some space and start again")
_DAMAGED: Final = (NotAStore, "it is damaged; restore a copy, or start a new one")

# By the name of SQLite's primary error code.
_SQLITE: Final[dict[str, Said]] = {
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_PROTOCOL": _LOCKED,
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": (StoreUnavailable, "its disk fails or is full; check it and start again"),
    "SQLITE_READONLY": (LedgerError, "it cannot be written; check its permissions and folder's"),
    "SQLITE_CANTOPEN": (
        NotAStore,
        "it cannot be opened; check that its folder exists, belongs to this user and is not "
        "mounted read-only",
    ),
    "SQLITE_NOTADB": (NotAStore, "this file is not a SQLite database; check the name"),
    "SQLITE_CORRUPT": _DAMAGED,
}
# By PostgreSQL's SQLSTATE.
_POSTGRES: Final[dict[str, Said]] = {
    "53100": _FULL,
    "55P03": _LOCKED,
    # A standby before its promotion, or a server made read-only because its disk is full.
    "25006": (StoreUnavailable, "it cannot be written now; name the primary, or start again later"),
    "42501": (
        StoreRefusesUs,
        "its user lacks a privilege; GRANT it, including CREATE on the schema",
    ),
    "3F000": (
        LedgerError,
        "the schema in search_path does not exist; create it with CREATE SCHEMA",
    ),
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}
# The messages, in English, with which a PostgreSQL server refuses a connection: they have no code.
# A server with another language is treated as unreachable.
_REFUSED: Final[tuple[tuple[str, Said], ...]] = (
    (
        "password authentication failed|no password supplied",
        (StoreRefusesUs, "correct the user or the password (PGPASSWORD keeps it out of the URL)"),
    ),
    (
        "authentication failed|no pg_hba.conf entry",
        (StoreRefusesUs, "correct the user, or allow it in pg_hba.conf of the server"),
    ),
    (
        "unsupported startup parameter",
        (
            LedgerError,
            "a pooler such as PgBouncer does not accept it: remove it from the URL, and choose a "
            "schema with ALTER ROLE ... SET search_path",
        ),
    ),
    (
        "permission denied for database",
        (StoreRefusesUs, "this user needs GRANT CONNECT on the database"),
    ),
    (
        'role ".*" does not exist',
        (StoreRefusesUs, "correct the user, or create it with createuser"),
    ),
    (
        'database ".*" does not exist',
        (NotAStore, "correct the name of the database, or create it with createdb"),
    ),
)


def may_pass(error: DBAPIError) -> bool:
    """Whether the same transaction may work in a moment."""
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(_sqlite_kind(error.orig)) == _LOCKED
    explanation = _known(error)
    if explanation is not None:
        return issubclass(explanation[0], StoreUnavailable)
    # These include deadlocks, serialization failures and failed connections.
    return isinstance(error, (OperationalError, InterfaceError))


def explained(error: DBAPIError, name: str) -> LedgerError:
    """The error that a user reads."""
    text = " ".join(str(error.orig).split())
    explanation = _known(error)
    if explanation is not None:
        kind, hint = explanation
        return kind(f"store {name}: {text}; {hint}")
    if may_pass(error):
        return StoreUnavailable(f"store {name}: {text}; nothing is lost, start again later")
    return LedgerError(f"store {name}: {text}")


def _known(error: DBAPIError) -> Said | None:
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(_sqlite_kind(error.orig))
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return _POSTGRES.get(str(state))
    explanations = (
        explanation for words, explanation in _REFUSED if re.search(words, str(error.orig))
    )
    return next(explanations, None)


def _sqlite_kind(error: BaseException) -> str:
    """SQLite's primary error code, such as SQLITE_FULL."""
    name = getattr(error, "sqlite_errorname", "")
    return "_".join(str(name).split("_")[:2])
