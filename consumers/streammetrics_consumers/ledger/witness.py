"""Whether a store went back: a head that was seen later than it is, or with another history.

It happens where a standby that lacks the last commits takes over, or an older copy is put back.
What is in the store is sound then, since heads and states went back together; it is less than what
was counted. Whoever notices keeps the fact in the head (`known_offset`), and the events are read
again from where the head stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy import Connection, update

from streammetrics_consumers.ledger.read import read_heads
from streammetrics_consumers.ledger.schema import head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.ledger.write import check_generation, is_same
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition


class Witness:
    """Remembers how far each head of a generation was seen, and tells those that went back.

    A head that is later than it was is taken for the same one: who else counts into the store
    cannot be told from another history then. The next commit requires its digest all the same.
    """

    def __init__(self) -> None:
        self._known: dict[Identity, Head] = {}

    def saw(self, head: Head) -> None:
        """A head stands so. One that is known to have stood further is not forgotten by it."""
        known = self._known.get(identity(head))
        if known is None or not went_back(known, head):
            self._known[identity(head)] = head

    def forget(self, head: Head) -> Head:
        """Answers the head as it was known, if it was, and remembers it no longer."""
        return self._known.pop(identity(head), head)

    def compare(self, heads: Iterable[Head]) -> list[tuple[Head, Head | None]]:
        """Those that went back, as they were known and as they are now (None: not there any
        more), of all the heads of the generation. They are forgotten; the others are remembered."""
        now = {identity(head): head for head in heads}
        found: list[tuple[Head, Head | None]] = []
        for of, known in list(self._known.items()):
            one = now.pop(of, None)
            if one is None or went_back(known, one):
                found.append((self._known.pop(of), one))
            else:
                self._known[of] = one
        self._known.update(now)
        return found


def went_back(known: Head, now: Head) -> bool:
    """Whether a head is behind what was known of it, or has another history."""
    if known.closed and not now.closed:
        return True
    if now.next_offset != known.next_offset:
        return now.next_offset < known.next_offset
    return now.digest != known.digest


Identity = tuple[int, Partition, int]


def identity(of: Head) -> Identity:
    """Which log a head follows, in which generation, and after how many others. Its row number is
    another one where the store lost it and it was made again."""
    return (of.generation, of.partition, of.incarnation)


def read_now(store: Store, of: Generation) -> tuple[Head, ...]:
    """All the heads of a generation, to be compared with what is known of them.

    It asks once, and does not wait for a store that is away. Raises StoreReplaced where this is
    another store than the one that was opened, and StoreUnavailable.
    """

    def work(connection: Connection) -> tuple[Head, ...]:
        store.require_same(connection)
        return read_heads(connection, head.c.generation == of.id)

    return store.read(work, patient=False)


def note_known(store: Store, of: Generation, found: Head, offset: int) -> Head:
    """Keep that a head was counted up to an offset before the store went back. Until it is again,
    results are incomplete. Answers the head with that."""
    known = max(offset, found.known_offset or offset)

    def work(connection: Connection, _: bool) -> None:
        check_generation(connection, of)
        connection.execute(update(head).where(*is_same(found)).values(known_offset=known))

    store.write(work)
    return replace(found, known_offset=known)
