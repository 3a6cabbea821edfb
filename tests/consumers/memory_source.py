"""An in-memory source that follows a script, for tests of code that reads sources.

    source = MemorySource({partition: Log([b"{}", b"{}"])}, script=[Deliver(), Fail(OSError())])

Each poll takes the next step of the script. After the last step, polls deliver the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.sources import GapError, Listener


@dataclass
class Log:
    """The records of one partition. `offsets` may have holes; by default they count from
    `beginning`. `next_offset` may leave a gap after the last record, as an aborted transaction
    does."""

    values: list[bytes | None]
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: Sequence[int | None] | None = None
    beginning: int = 0
    next_offset: int = 0

    def __post_init__(self) -> None:
        if not self.offsets:
            self.offsets = list(range(self.beginning, self.beginning + len(self.values)))
        self.next_offset = max(self.next_offset, *(o + 1 for o in self.offsets[-1:]), 0)

    def append(self, *values: bytes | None) -> None:
        """Append records."""
        for value in values:
            self.values.append(value)
            self.offsets.append(self.next_offset)
            self.next_offset += 1


@dataclass(frozen=True)
class Deliver:
    """Deliver the next records of each assigned or named partition, at most `limit` each."""

    limit: int = 100
    partitions: tuple[Partition, ...] | None = None


@dataclass(frozen=True)
class Again:
    """Deliver the last chunks again, as after a rebalance."""


@dataclass(frozen=True)
class Stall:
    """Deliver nothing."""


@dataclass(frozen=True)
class Fail:
    """Raise `error` from the poll."""

    error: BaseException


@dataclass(frozen=True)
class Assign:
    """Assign these partitions to the reader."""

    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class Revoke:
    """Revoke these partitions; the next owner waits until the reader is ready."""

    partitions: tuple[Partition, ...]


@dataclass(frozen=True)
class Lose:
    """Report these partitions as lost: another consumer already owns them."""

    partitions: tuple[Partition, ...]


Step = Deliver | Again | Stall | Fail | Assign | Revoke | Lose


class MemorySource:
    """See the module. `acknowledged` and `closed` record the calls of the reader."""

    def __init__(
        self,
        logs: Mapping[Partition, Log],
        script: Iterable[Step] = (),
        *,
        assigned: Sequence[Partition] | None = None,
        replayable: bool = True,
        limit: int = 100,
    ) -> None:
        """assigned: the partitions that `assign` assigns immediately, by default all."""
        self.logs = dict(logs)
        self.script = deque(script)
        self.replayable = replayable
        self.limit = limit
        self.acknowledged: dict[Partition, int] = {}
        self.closed = False
        self._first = tuple(self.logs) if assigned is None else tuple(assigned)
        self._positions: dict[Partition, int] = {}
        self._listener: Listener | None = None
        self._last: list[Chunk] = []

    def partitions(self) -> list[Partition]:
        """All partitions, in order."""
        return sorted(self.logs)

    def beginning(self, partition: Partition) -> int:
        """The first offset that the log still has."""
        return self.logs[partition].beginning

    def ends(self) -> dict[Partition, int]:
        """The next offset of each log."""
        return {partition: log.next_offset for partition, log in self.logs.items()}

    def assign(self, listener: Listener) -> None:
        """Assign the first partitions to the listener."""
        self._listener = listener
        self._assign(self._first)

    def seek(self, partition: Partition, offset: int) -> None:
        """Continue reading at `offset`. Raises GapError outside of the log."""
        log = self.logs[partition]
        if not log.beginning <= offset <= log.next_offset:
            raise GapError(partition, offset, log.beginning, log.next_offset)
        self._positions[partition] = offset

    def poll(self, timeout_s: float) -> list[Chunk]:
        """Take the next step of the script. Never waits."""
        if self._listener is None or self.closed:
            raise SourceError("polled before it was assigned, or after it was closed")
        match self.script.popleft() if self.script else Deliver(self.limit):
            case Deliver(limit, partitions):
                targets = tuple(self._positions) if partitions is None else partitions
                chunks = (self._next(partition, limit) for partition in targets)
                self._last = [chunk for chunk in chunks if chunk is not None]
                return self._last
            case Again():
                return self._last
            case Stall():
                return []
            case Fail(error):
                raise error
            case Assign(partitions):
                self._assign(partitions)
            case Revoke(partitions):
                self._listener.on_revoked(list(partitions))
                self._drop(partitions)
            case Lose(partitions):
                self._listener.on_lost(list(partitions))
                self._drop(partitions)
        return []

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        """Record the acknowledged offsets."""
        self.acknowledged.update(offsets)

    def close(self) -> None:
        """Record the call."""
        self.closed = True

    def _assign(self, partitions: Sequence[Partition]) -> None:
        assert self._listener is not None
        heads = self._listener.on_assigned(list(partitions))
        for partition in partitions:
            self.seek(partition, heads[partition])

    def _drop(self, partitions: Sequence[Partition]) -> None:
        for partition in partitions:
            self._positions.pop(partition, None)

    def _next(self, partition: Partition, limit: int) -> Chunk | None:
        log, start = self.logs[partition], self._positions[partition]
        places = [i for i, offset in enumerate(log.offsets) if offset >= start][:limit]
        if not places and start >= log.next_offset:
            return None
        last = not places or places[-1] == len(log.offsets) - 1
        end = log.next_offset if last else log.offsets[places[-1]] + 1
        self._positions[partition] = end
        times = log.timestamps_ms
        return Chunk(
            partition,
            start,
            end,
            [log.offsets[i] for i in places],
            [log.values[i] for i in places],
            timestamps_ms=None if times is None else [times[i] for i in places],
        )
