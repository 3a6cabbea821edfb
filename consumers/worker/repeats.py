"""Repeated events: what each partition of a worker has seen, loaded when it is assigned and stored
in the transaction of its commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from consumers.config.config import Config
from consumers.counting.seen_ids import SeenIds
from consumers.events.decoder import Decoded
from consumers.ledger.store import Store
from consumers.ledger.write import read_seen
from consumers.model.commit import Commit, Head, Seen
from consumers.model.partition import Partition


@dataclass(slots=True)
class _Log:
    """A partition of ours. at: up to which offset its ids are known; taken: what is on its way to
    the store."""

    head: int
    at: int
    ids: SeenIds
    taken: Seen | None = None


class Repeats:
    """Does nothing where the config has no [dedup]."""

    def __init__(self, config: Config, store: Store) -> None:
        self._dedup, self._store = config.dedup, store
        self._logs: dict[Partition, _Log] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds, roughly."""
        return sum(log.ids.nbytes for log in self._logs.values())

    def begin(self, head: Head) -> None:
        """Reading goes on at a head. Its ids are those that we hold, if we have read just so far,
        else those of the store: what was not committed is read again."""
        if self._dedup is None:
            return
        known = self._logs.get(head.partition)
        if known is None or (known.head, known.at) != (head.id, head.next_offset):
            rows = read_seen(self._store, head)
            ids = SeenIds(self._dedup.retention_ms, self._dedup.pane_ms, rows)
            self._logs[head.partition] = _Log(head.id, head.next_offset, ids)
        elif known.taken is not None:
            known.ids.committed(known.taken)
            known.taken = None

    def without(self, decoded: Decoded) -> Decoded:
        """The next events of a partition of ours, without repeats."""
        log = self._logs.get(decoded.chunk.partition)
        if log is None:
            return decoded
        log.at = decoded.chunk.end
        return without_repeats(decoded, log.ids)

    def with_ids(self, commit: Commit) -> Commit:
        """The same commit, which also stores the ids of its events."""
        log = self._logs.get(commit.head.partition)
        if log is None:
            return commit
        log.taken = log.ids.take()
        return replace(commit, seen=log.taken)

    def drop(self, partitions: Sequence[Partition]) -> None:
        """These are not ours any more."""
        for partition in partitions:
            self._logs.pop(partition, None)


def without_repeats(decoded: Decoded, seen: SeenIds) -> Decoded:
    """The events that are no repeats, good and refused, and how many are."""
    found = decoded.event_ids
    if found is None:
        return decoded
    places = found.places[seen.repeats(found.ids, found.times_ms)]
    if not len(places):
        return decoded
    chunk = decoded.chunk
    again = {
        (int(chunk.offsets[i]), 0 if chunk.indices is None else int(chunk.indices[i]))
        for i in (places.tolist() if decoded.refused else ())
    }
    left = tuple(one for one in decoded.refused if (one.offset, one.index) not in again)
    some = decoded.take(np.flatnonzero(~np.isin(decoded.at, places)))
    return replace(some, refused=left, repeated=len(places))
