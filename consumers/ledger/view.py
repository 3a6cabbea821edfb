"""One moment of a ledger, for a reader that decides as it reads which states it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from consumers.ledger.ledger import Ledger
from consumers.ledger.outline import Outline, read_outlines, read_state_bytes
from consumers.ledger.read import generation_of, read_heads, read_panes
from consumers.ledger.rows import Pane, Snapshot
from consumers.ledger.schema import head

T = TypeVar("T")


class View:
    """What one read transaction sees. `snapshot` is without deltas."""

    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        self._connection = connection
        self.snapshot = snapshot

    def outlines(self, panes: Collection[Pane]) -> list[Outline]:
        """The delta rows of these panes, without their states."""
        return list(read_outlines(self._connection, self.snapshot.generation.id, panes))

    def states(self, rows: Sequence[Outline]) -> Iterator[tuple[Outline, bytes]]:
        """Each of these rows with its state, in no certain order, a few in memory at a time."""
        by_id = {row.id: row for row in rows}
        for row, state in read_state_bytes(self._connection, list(by_id)):
            yield by_id[row], state


def view(ledger: Ledger, look: Callable[[View], T], *, generation: int | None = None) -> T:
    """What `look` answers, in one read transaction; over before this returns.

    Where the connection fails, `look` runs again on a new view.
    """

    def work(connection: Connection) -> T:
        found = generation_of(connection, ledger.store.name, generation)
        heads = read_heads(connection, head.c.generation == found.id)
        return look(View(connection, Snapshot(found, heads, read_panes(connection, found.id))))

    return ledger.store.read(work)
