"""Closing label windows in a worker: after its commits, if its config joins events."""

from __future__ import annotations

from consumers.config.config import Config
from consumers.ledger.ledger import Ledger
from consumers.model.commit import JOIN_START
from consumers.model.generation import Generation
from consumers.worker.closer import Closer
from consumers.worker.upkeep import Upkeep


class Closing:
    """Does nothing where nothing is joined. Any number of workers may have one."""

    def __init__(self, config: Config, ledger: Ledger, generation: Generation) -> None:
        self._closer = None if config.join is None else Closer(config, ledger, generation)

    @property
    def closed_ms(self) -> int | None:
        """Up to where label windows are known to be closed; None: nowhere."""
        return None if self._closer is None else self._closer.closed_ms

    @property
    def floor_ms(self) -> int | None:
        """No window may be dropped that ends later: some of its rows are not counted yet. None:
        all are."""
        if self._closer is None:
            return None
        return JOIN_START if self._closer.closed_ms is None else self._closer.closed_ms

    def look(self) -> None:
        """Read again how far label windows are closed."""
        if self._closer is not None:
            self._closer.look()

    def step(self, upkeep: Upkeep) -> None:
        """Close what can be closed. What comes of it are rows to merge, like those of a commit."""
        if self._closer is not None and self._closer.close():
            upkeep.committed(self._closer.head)

    def last(self) -> None:
        """Close everything: there will be no more events."""
        if self._closer is not None:
            self._closer.close(everything=True)
