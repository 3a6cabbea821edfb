"""Detects a store that went back: a head was seen at a later offset, or with another history.

This happens where a standby that lacks the last commits takes over, or an older copy is restored.
The store is consistent then, since heads and states went back together, but it has counted less
than before. The process that detects it records it in the head (`known_offset`), and the events are
read again from the head on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import Connection, case, update

from streammetrics_consumers.ledger.read import read_heads
from streammetrics_consumers.ledger.schema import head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import check_generation, is_same
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition


class Witness:
    """Remembers how far each head of a generation was seen, and reports those that went back.

    A head at a later offset is assumed to have the same history: commits of other workers cannot
    be distinguished from another history then. The next commit requires its digest all the same.
    """

    def __init__(self) -> None:
        self._known: dict[Identity, Head] = {}

    def saw(self, head: Head) -> None:
        """Remember a head, unless it went back from the known one."""
        last_head = self._known.get(identity(head))
        if last_head is None or not went_back(last_head, head):
            self._known[identity(head)] = head

    def forget(self, head: Head) -> Head:
        """Forget a head. Returns it as it was known, or `head` if it was not."""
        return self._known.pop(identity(head), head)

    def compare(self, heads: Iterable[Head]) -> list[tuple[Head, Head | None]]:
        """Compare all heads of the generation. Returns those that went back, as they were known
        and as they are now (None: gone). They are forgotten; the others are remembered."""
        now = {identity(head): head for head in heads}
        pairs: list[tuple[Head, Head | None]] = []
        for key, last_head in list(self._known.items()):
            current = now.pop(key, None)
            if current is None or went_back(last_head, current):
                pairs.append((self._known.pop(key), current))
            else:
                self._known[key] = current
        self._known.update(now)
        return pairs


def went_back(known_head: Head, now: Head) -> bool:
    """Whether a head is behind the known one, or has another history."""
    if known_head.closed and not now.closed:
        return True
    if now.next_offset != known_head.next_offset:
        return now.next_offset < known_head.next_offset
    return now.digest != known_head.digest


Identity = tuple[int, Partition, int]


def identity(log_head: Head) -> Identity:
    """The generation, the log and the incarnation of a head. Its row number is not enough: it may
    change where the store lost the head and it was created again."""
    return (log_head.generation, log_head.partition, log_head.incarnation)


def read_now(store: Store, generation: Generation) -> tuple[Head, ...]:
    """All the heads of a generation, to compare with the known ones.

    It tries once, and does not wait for an unavailable store. Raises StoreReplaced where this is
    not the store that was opened, and StoreUnavailable.
    """

    def work(connection: Connection) -> tuple[Head, ...]:
        store.require_same(connection)
        return read_heads(connection, head.c.generation == generation.id)

    return store.read(work, patient=False)


def note_known(store: Store, generation: Generation, log_head: Head, offset: int) -> Head:
    """Record that a head was counted up to an offset before the store went back. Until it is
    again, results are incomplete. Returns the head with this offset."""
    # Another process may have recorded a greater one since the head was read.
    greatest = case((head.c.known_offset > offset, head.c.known_offset), else_=offset)
    change = update(head).where(*is_same(log_head)).values(known_offset=greatest)

    def work(connection: Connection, _: bool) -> int:
        check_generation(connection, generation)
        known_offset: int | None = connection.scalar(change.returning(head.c.known_offset))
        return offset if known_offset is None else known_offset

    return replace(log_head, known_offset=store.write(work))
