"""The file of a SQLite store: whether it is still the one that a process has opened."""

from __future__ import annotations

import os
from typing import Final

from sqlalchemy import Engine

from streammetrics_consumers.ledger.failures import StoreReplaced

PATH: Final = "ledger_path"  # the execution option that holds the path of an engine's file


class StoreFile:
    """The path of a store's file, and the file's identity; nothing where it is no file.

    A process keeps writing to an open file after it was deleted or replaced, and everything that it
    writes is lost without an error. So the path is checked before each transaction. The file is
    never opened here: closing it would release the locks that SQLite holds on it in this process.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._known: tuple[int, int] | None = None

    @classmethod
    def from_engine(cls, engine: Engine) -> StoreFile:
        """The file that an engine connects to."""
        path = engine.get_execution_options().get(PATH)
        return cls(None if path is None else str(path))

    def remember(self) -> None:
        """Remember the file that is there now."""
        self._known = self._found()

    def require_same(self, store: str) -> None:
        """Raise StoreReplaced where the file is gone or was replaced."""
        if self._known is None:
            return
        identity = self._found()
        if identity == self._known:
            return
        if identity is None:
            raise StoreReplaced(
                f"store {store}: expected the file that this process opened, got none: it was "
                "deleted or moved while this process ran. Move it back, or start again to count "
                "into a new one"
            )
        raise StoreReplaced(
            f"store {store}: expected the file that this process opened, got another one under "
            "its name: it was replaced while this process ran. Start again to count into the new "
            "one"
        )

    def _found(self) -> tuple[int, int] | None:
        """Device and inode of the file at the path; None where there is none."""
        if self._path is None:
            return None
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        return (status.st_dev, status.st_ino)
