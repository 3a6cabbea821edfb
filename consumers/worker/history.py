"""Whether the store is still what its worker knows: it may go back, also while the log is quiet.

A worker remembers how far it has seen each head, its own and those of others, and compares them
with the store at each poll interval. See ledger/witness.py for what is found and what is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from consumers.ledger.failures import StoreUnavailable
from consumers.ledger.store import Store
from consumers.ledger.witness import Witness, note_known, read_now
from consumers.model.commit import Head
from consumers.model.generation import Generation

log = logging.getLogger(__name__)

AUDIT_S: Final = 0.5  # between two comparisons, at least


class History:
    """What one worker knows of the heads of its generation."""

    def __init__(self, store: Store, monotonic: Callable[[], float]) -> None:
        self._store, self._monotonic = store, monotonic
        self._witness = Witness()
        self._compared_s = monotonic()

    def saw(self, head: Head) -> None:
        """A head was read, or committed."""
        self._witness.saw(head)

    def lost(self, of: Generation) -> Iterator[tuple[Head, Head | None]]:
        """The heads that went back, as they were known and as they are now, if it is time to look.

        Nothing moves a head of ours meanwhile: the caller holds the lock of its deltas. Raises
        StoreReplaced.
        """
        now_s = self._monotonic()
        if now_s - self._compared_s < AUDIT_S:
            return
        self._compared_s = now_s
        try:
            heads = read_now(self._store, of)
        except StoreUnavailable as error:  # a commit will say so, if it lasts
            log.debug("%s; the heads are compared later", error)
            return
        yield from self._witness.compare(heads)

    def went_on(self, of: Generation, known: Head, now: Head | None) -> Head | None:
        """Reading goes on where a head stands now, which was known to stand elsewhere. Where it
        went back, that is kept in the store. Answers the head with it."""
        seen = self._witness.forget(known)
        known = max(known, seen, key=lambda one: one.next_offset)
        if now is None or now.next_offset < known.next_offset:
            stands = "nowhere" if now is None else f"at {now.next_offset}"
            log.error(
                "store %s: expected %s to be counted up to %d, as this worker has seen, came a "
                "head that stands %s: the store went back (a fail-over, a restored copy); what it "
                "lost is read again, and results are incomplete until then",
                self._store.name, known.partition, known.next_offset, stands,
            )  # fmt: skip
        if now is not None and now.next_offset < known.next_offset:
            now = note_known(self._store, of, now, known.next_offset)
        if now is not None:
            self._witness.saw(now)
        return now
