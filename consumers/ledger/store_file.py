"""The file of a SQLite store, and whether it is still there.

A process that has a file open goes on to write to it when somebody has deleted it, or has put
another one in its place, and everything that it writes is lost without an error. So the path is
looked at before each transaction. The file is never opened here: to close it would give up the
locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import os

from sqlalchemy import Engine

from consumers.ledger.failures import StoreReplaced

PATH = "ledger_path"  # the execution option under which an engine knows its file


class StoreFile:
    """Where a store lies, and which file that was; nothing where it is no file."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._known: tuple[int, int] | None = None

    @classmethod
    def of(cls, engine: Engine) -> StoreFile:
        """The file that an engine connects to."""
        path = engine.get_execution_options().get(PATH)
        return cls(None if path is None else str(path))

    def remember(self) -> None:
        """The file that is there now is ours."""
        self._known = self._found()

    def require_same(self, store: str) -> None:
        """Raise StoreReplaced where the file is gone, or another one is in its place."""
        if self._known is None:
            return
        found = self._found()
        if found == self._known:
            return
        if found is None:
            raise StoreReplaced(
                f"store {store}: expected the file that this process opened, came none: it was "
                "deleted or moved under this process. Put it back, or start again to count anew"
            )
        raise StoreReplaced(
            f"store {store}: expected the file that this process opened, came another one under "
            "its name: it was replaced under this process. Start again to count into the new one"
        )

    def _found(self) -> tuple[int, int] | None:
        """Device and inode of what the path names; None where there is nothing."""
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return (found.st_dev, found.st_ino)
