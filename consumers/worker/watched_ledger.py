"""A ledger whose commits are told to a watch."""

from __future__ import annotations

from collections.abc import Callable

from consumers.ledger.ledger import Fenced, Ledger
from consumers.ledger.store import Store
from consumers.model.commit import Commit, Head
from consumers.model.generation import Generation
from consumers.worker.vitals import Watch


class WatchedLedger(Ledger):
    """The same ledger, seen by `watch`."""

    def __init__(
        self,
        store: Store,
        watch: Watch,
        monotonic: Callable[[], float],
        moved: Callable[[Head], None] = lambda head: None,
    ) -> None:
        """moved: hears of each head after its commit."""
        super().__init__(store)
        self._moved = moved
        self._watch, self._monotonic = watch, monotonic

    def commit(self, of: Generation, commit: Commit) -> Head:
        """See Ledger.commit."""
        began_s, tries = self._monotonic(), self.store.tried_again
        try:
            moved = super().commit(of, commit)
        except Fenced:
            self._watch.refused("fenced")
            raise
        finally:
            self._watch.refused("locked", self.store.tried_again - tries)
        self._watch.committed(commit, self._monotonic() - began_s)
        self._moved(moved)
        return moved
