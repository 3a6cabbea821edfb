"""A worker in a simulation: it can be killed at every point where it could matter."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.ledger.write as ledger_write
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.stop import Stop

from tests.consumers.memory_source import Log, MemorySource, Step

POINTS = (
    "in the listener",
    "after poll",
    "mid-batch",
    "before the transaction",
    "inside it",
    "after it",
    "told",
)


@dataclass(frozen=True)
class Length:
    """How much happens in a run."""

    workers: int
    steps: int
    records: int  # of each log


LONG, SHORT = Length(3, 16, 24), Length(2, 6, 8)


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


class Fuse:
    """Burns down at one point in a worker's life."""

    def __init__(self) -> None:
        self.point: str | None = None

    def passes(self, point: str) -> None:
        """The worker is at this point."""
        if self.point == point:
            raise Killed(point)


class Group:
    """What Kafka remembers of a group: committed offsets, which decide nothing."""

    def __init__(self) -> None:
        self.acknowledged: dict[Partition, int] = {}


class FusedSource(MemorySource):
    """A source whose reader may be killed when it has been given partitions, when it has the
    records, or when it tells Kafka."""

    fuse: Fuse
    group: Group

    def poll(self, timeout_s: float) -> list[Chunk]:
        chunks = super().poll(timeout_s)
        self.fuse.passes("after poll")
        return chunks

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        self.fuse.passes("told")
        super().acknowledge(offsets)
        self.group.acknowledged.update(offsets)

    def _assign(self, partitions: Any) -> None:
        super()._assign(partitions)
        if partitions:
            self.fuse.passes("in the listener")


class FusedDecoder(Decoder):
    """A decoder whose caller may be killed."""

    fuse: Fuse

    def decode(self, chunk: Chunk) -> Decoded:
        self.fuse.passes("mid-batch")
        return super().decode(chunk)


class FusedLedger(Ledger):
    """A ledger whose writer may be killed before, inside and after the transaction."""

    fuse: Fuse | None = None  # that of the worker whose turn it is

    def commit(self, generation: Generation, commit: Commit) -> Head:
        def write_delta(connection: Connection, commit: Commit) -> None:
            self.reach("inside it")
            ledger_write.write_delta(connection, commit)

        self.reach("before the transaction")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_module, "write_delta", write_delta)
            moved = super().commit(generation, commit)
        self.reach("after it")
        return moved

    def reach(self, point: str) -> None:
        if self.fuse is not None:
            self.fuse.passes(point)


class Unsteady:
    """Stands in for an engine that writes: its connection may go, before COMMIT or after it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.fails: list[str] = []  # of the next transactions: "before" or "after"

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        fails = self.fails.pop(0) if self.fails else None
        with self.engine.begin() as connection:
            yield connection
            if fails == "before":
                raise _lost()
        if fails == "after":
            raise _lost()


def _lost() -> OperationalError:
    why = sqlite3.OperationalError("the connection is gone")
    why.sqlite_errorname = "SQLITE_BUSY"
    return OperationalError("COMMIT", {}, why)


class Life:
    """One worker process, from its start to its end."""

    def __init__(
        self,
        config: Config,
        ledger: FusedLedger,
        generation: Generation,
        logs: Mapping[Partition, Log],
        group: Group,
    ) -> None:
        self.fuse, self.ledger = Fuse(), ledger
        self.now_s = 0.0
        self.source = FusedSource(logs, assigned=())
        self.source.fuse, self.source.group = self.fuse, group
        self.owned: set[Partition] = set()  # as the group knows it
        self.worker = Worker(
            config, ledger, generation, self.source, Options(),
            stop=Stop(), monotonic=lambda: self.now_s,
        )  # fmt: skip
        decoder = FusedDecoder(config)
        decoder.fuse = self.fuse
        self.worker.decoder = decoder
        self.worker.prepare()
        self.source.assign(self.worker)

    def step(self, *script: Step) -> None:
        """One round of the worker's loop."""
        self.source.script.extend(script)
        self.ledger.fuse = self.fuse
        try:
            self.worker.step()
        finally:
            self.ledger.fuse = None

    def leave(self) -> None:
        """End in good order."""
        self.ledger.fuse = self.fuse
        try:
            self.worker.commit(last=True)
        finally:
            self.ledger.fuse = None
