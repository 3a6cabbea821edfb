"""A Kafka topic as it is being read, whichever library reads it.

It knows which partitions are ours and where reading stands in each, passes on what the group says
to the listener, and remembers what Kafka was told. A library may call `assigned` and `released`
from a thread of its own, so what the listener raises is kept until `raise_failure`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Generic, TypeVar, overload

from consumers.sources.source import Chunk, Listener, Partition

R = TypeVar("R")
V = TypeVar("V")

Headers = Sequence[Sequence[tuple[str, bytes]]]


class Asked(Sequence[V], Generic[R, V]):
    """Something of each record that few configs read: asked for where it is read, not before."""

    def __init__(self, records: Sequence[R], ask: Callable[[R], V]) -> None:
        self._records, self._ask = records, ask

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, at: int) -> V: ...
    @overload
    def __getitem__(self, at: slice) -> Asked[R, V]: ...
    def __getitem__(self, at: int | slice) -> V | Asked[R, V]:
        if isinstance(at, slice):
            return Asked(self._records[at], self._ask)
        return self._ask(self._records[at])


class TopicReading:
    """See the module. Partitions are named by their numbers.

    `lock` guards the positions: hold it while they and the library's own are changed together.
    `given[n]` is how often partition n was given to us; where it has changed, records that were
    asked for before belong to an earlier assignment.
    """

    def __init__(self, cluster: str, topic: str, topic_id: str | None, numbers: Iterable[int]):
        """topic_id: None where the broker has no such thing (before 2.8)."""
        self.topic, self.topic_id = topic, topic_id
        self.lock = RLock()
        self.positions: dict[int, int] = {}
        self.given: Counter[int] = Counter()
        self._cluster = cluster
        self._known = {number: self._named(number) for number in numbers}
        self._acknowledged: dict[int, int] = {}
        self._listener: Listener | None = None
        self._failure: Exception | None = None

    def _named(self, number: int) -> Partition:
        return Partition(self._cluster, self.topic, self.topic_id or self.topic, number)

    def partitions(self) -> list[Partition]:
        """All partitions of the topic, in order."""
        return [self._known[number] for number in sorted(self._known)]

    def partition(self, number: int) -> Partition:
        """A partition; it may be a new one."""
        return self._known.setdefault(number, self._named(number))

    # -- what the group says ------------------------------------------------------------------
    def listen(self, listener: Listener | None) -> None:
        """Who hears of assignments from now on; None: nobody."""
        self._listener = listener

    def assigned(self, numbers: Sequence[int]) -> dict[int, int]:
        """Where to start in each of these, now ours; empty if the listener failed or is gone."""
        if self._listener is None:
            return {}
        partitions = [self.partition(number) for number in numbers]
        try:
            heads = self._listener.on_assigned(partitions)
        except Exception as error:
            self._failure = error
            return {}
        return {partition.number: heads[partition] for partition in partitions}

    def start(self, heads: Mapping[int, int]) -> None:
        """Reading stands at these places; the caller holds the lock and has sought them."""
        self.positions.update(heads)
        self.given.update(heads.keys())

    def released(self, numbers: Sequence[int], *, lost: bool) -> None:
        """These are not ours any more; with `lost` somebody else has them already."""
        listener = self._listener
        if listener is None:
            return
        partitions = [self.partition(number) for number in numbers]
        try:
            listener.on_lost(partitions) if lost else listener.on_revoked(partitions)
        except Exception as error:
            self._failure = error
        with self.lock:
            for number in numbers:
                self.positions.pop(number, None)
                self._acknowledged.pop(number, None)

    def raise_failure(self) -> None:
        """Raise what the listener raised."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- records ------------------------------------------------------------------------------
    def chunk(
        self,
        number: int,
        end: int,
        offsets: Sequence[int] = (),
        values: Sequence[bytes | None] = (),
        timestamps_ms: Sequence[int | None] = (),
        keys: Sequence[bytes | None] = (),
        headers: Headers = (),
    ) -> Chunk:
        """Records from the position of a partition that is ours up to `end`, the new position.

        Offsets have holes where control records and aborted ones stood, so a chunk runs from
        position to position, and no hole is mistaken for a loss.
        """
        start = self.positions[number]
        self.positions[number] = end
        partition = self._known[number]
        start = min([start, *offsets[:1]])
        return Chunk(partition, start, end, offsets, values, timestamps_ms, keys, headers)

    # -- Kafka's own offsets ------------------------------------------------------------------
    def not_acknowledged(self, offsets: Mapping[Partition, int]) -> dict[int, int]:
        """Which of these Kafka has not been told; from now on it has."""
        numbers = {partition.number: offset for partition, offset in offsets.items()}
        moved = {n: o for n, o in numbers.items() if self._acknowledged.get(n) != o}
        self._acknowledged.update(moved)
        return moved

    def acknowledged(self) -> dict[int, int]:
        """What Kafka was told of the partitions that are ours."""
        return {n: o for n, o in self._acknowledged.items() if n in self.positions}
