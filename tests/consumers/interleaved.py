"""Several workers over one ledger, one step at a time, in an order that a seed decides.

Workers are killed at every point where it could matter, partitions move with and without a word
to their old owner, and records come twice. At the end all that is left is read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from consumers.config.config import Config
from consumers.events.decoder import Decoded, Decoder
from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import Commit, Generation, Head
from consumers.sources.memory_source import (
    Again,
    Assign,
    Deliver,
    Log,
    Lose,
    MemorySource,
    Revoke,
    Stall,
)
from consumers.sources.source import Chunk, Partition
from consumers.worker.run_options import Options
from consumers.worker.stop import Stop
from consumers.worker.worker import Worker
from tests.consumers.folded import Counted, Records, counted

POINTS = ("after poll", "mid-batch", "before the transaction", "inside it", "after it", "told")


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


class FusedSource(MemorySource):
    """A source whose reader may be killed when it has the records, or when it tells Kafka."""

    fuse: Fuse

    def poll(self, timeout_s: float) -> list[Chunk]:
        found = super().poll(timeout_s)
        self.fuse.passes("after poll")
        return found

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        self.fuse.passes("told")
        super().acknowledge(offsets)


class FusedDecoder(Decoder):
    """A decoder whose caller may be killed."""

    fuse: Fuse

    def decode(self, chunk: Chunk) -> Decoded:
        self.fuse.passes("mid-batch")
        return super().decode(chunk)


class FusedLedger(Ledger):
    """A ledger whose writer may be killed before, inside and after the transaction."""

    fuse: Fuse | None = None  # that of the worker whose turn it is

    def commit(self, of: Generation, commit: Commit) -> Head:
        self.at("before the transaction")
        moved = super().commit(of, commit)
        self.at("after it")
        return moved

    def at(self, point: str) -> None:
        if self.fuse is not None:
            self.fuse.passes(point)


class Life:
    """One worker process, from its start to its end."""

    def __init__(
        self,
        config: Config,
        ledger: FusedLedger,
        generation: Generation,
        logs: Mapping[Partition, Log],
    ) -> None:
        self.fuse, self.ledger = Fuse(), ledger
        self.now_s = 0.0
        self.source = FusedSource(logs, assigned=())
        self.source.fuse = self.fuse
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

    def step(self, *script: Deliver | Again | Assign | Revoke | Lose | Stall) -> None:
        """One round of the worker's loop."""
        self.source.script.extend(script)
        self.ledger.fuse = self.fuse
        try:
            self.worker.step()
        finally:
            self.ledger.fuse = None


def interleave(
    seed: int,
    folder: Path,
    config: Config,
    logs: Mapping[Partition, Records],
    *,
    steps: int = 60,
    ledger_type: type[FusedLedger] = FusedLedger,
    seen: Counter[str] | None = None,
) -> Counted:
    """Run it, and answer what the ledger holds in the end."""
    rng = random.Random(seed)
    seen = Counter() if seen is None else seen
    memory = {partition: Log(list(values)) for partition, values in logs.items()}
    opened = ledger_type.open(str(folder / f"{seed}.db"), create=True, pauses_s=())
    assert isinstance(opened, FusedLedger)
    generation = opened.begin(config.fingerprints(), config.descriptions).generation

    def born() -> Life:
        return Life(config, opened, generation, memory)

    lives = [born() for _ in range(3)]

    def attempt(index: int, *script: Deliver | Again | Assign | Revoke | Lose | Stall) -> None:
        life = lives[index]
        try:
            life.step(*script)
        except Killed as point:
            seen[str(point)] += 1
            lives[index] = born()
            share(index, life.owned)

    def share(index: int, partitions: set[Partition]) -> None:
        if partitions:
            lives[index].owned |= partitions
            attempt(index, Assign(tuple(sorted(partitions))))

    for partition in logs:
        share(rng.randrange(3), {partition})
    for _ in range(steps):
        index = rng.randrange(3)
        life = lives[index]
        draw = rng.random()
        if rng.random() < 0.7:
            life.now_s += config.store.commit_interval_s
        life.fuse.point = rng.choice(POINTS) if rng.random() < 0.4 else None
        if draw < 0.7:
            attempt(index, Deliver(rng.randrange(1, 12)))
        elif draw < 0.8:
            seen["again"] += 1
            attempt(index, Again())
        elif life.owned:
            moved = {rng.choice(sorted(life.owned))}
            life.owned -= moved
            how = rng.choice(["revoked", "lost", "not told"])
            seen[how] += 1
            if how == "revoked":
                attempt(index, Revoke(tuple(moved)))
            elif how == "lost":
                attempt(index, Lose(tuple(moved)))
            # Else it goes on as if the partition were its own, as after a long pause.
            share(rng.randrange(3), moved)
    finish(lives, logs, opened, generation)
    found = counted(opened)
    opened.close()
    return found


def finish(
    lives: Sequence[Life], logs: Mapping[Partition, Records], ledger: Ledger, generation: Generation
) -> None:
    """Let all workers read on, zombies too, until every head is at its end."""
    for _ in range(1000):
        heads = {head.partition: head.next_offset for head in ledger.heads(generation)}
        if all(heads[partition] >= len(values) for partition, values in logs.items()):
            return
        for life in lives:
            life.fuse.point = None
            life.now_s += 1000
            life.step()
    raise AssertionError("the workers do not reach the end")
