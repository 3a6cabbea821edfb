"""`streammetrics` in a process that kills itself (SIGKILL) the n-th time it comes to a point.

    python -m tests.consumers.killed_worker POINT N TALLY run CONFIG --no-serve

The points are those of `lives.py`; "-" stands for none, and after "stop at " the process is
stopped there (SIGSTOP) instead of killed. In the file TALLY ("-" for none) four
numbers of 8 bytes follow what the worker does, up to the moment of its death: see `Tally`.

    python -m tests.consumers.killed_worker POINT N pause GO NOTES run CONFIG --no-serve

The process stands still there instead, and goes on. GO is a file: the worker waits until it is
there, and its other threads live on (a slow update). Or it is "SIGSTOP", which stops all of them,
until someone sends SIGCONT; "SIGTERM", which asks it to end and lets it go on; or "SIGTERM
SIGTERM", which asks twice. Each commit that the ledger took adds a line to the file NOTES: the
number of the partition and its head before and after. Beside it lies the tally of each process.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streammetrics_consumers.ledger.ledger as ledger_module
from sqlalchemy import Connection
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting import worker
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger import write as ledger_write
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service

PAUSED = "the worker pauses"


class Tally:
    """What workers have done: records taken from the log, those of them that were counted already,
    commits, and commits that were refused since another worker was first."""

    FORM = struct.Struct("<4q")

    def __init__(self, path: str) -> None:
        self.taken = self.duplicates = self.commits = self.fenced = 0
        self._path = path
        self._file: int | None = None

    def write(self) -> None:
        if self._path == "-":
            return
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        counts = (self.taken, self.duplicates, self.commits, self.fenced)
        os.pwrite(self._file, self.FORM.pack(*counts), 0)

    @classmethod
    def read(cls, path: Path) -> tuple[int, ...]:
        content = path.read_bytes() if path.exists() else b""
        return cls.FORM.unpack(content) if len(content) == cls.FORM.size else (0, 0, 0, 0)


class Fuse:
    """Burns down at one point in the life of this process."""

    def __init__(self, point: str, count: int) -> None:
        self.point, self.left = point.removeprefix("stop at "), count
        self.signal = signal.SIGKILL if self.point == point else signal.SIGSTOP

    def passes(self, point: str) -> None:
        """The process is at this point."""
        if point == self.point:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), self.signal)


def install(fuse: Fuse, tally: Tally) -> None:
    """From now on a worker of this process passes its points."""

    class FusedDecoder(Decoder):
        def decode(self, chunk: Chunk) -> Decoded:
            fuse.passes("mid-batch")
            return super().decode(chunk)

    class FusedWorker(Worker):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            poll, acknowledge = self.source.poll, self.source.acknowledge

            def fused_poll(timeout_s: float) -> list[Chunk]:
                chunks = poll(timeout_s)
                if chunks:
                    fuse.passes("after poll")
                return chunks

            def fused_acknowledge(offsets: Mapping[Partition, int]) -> None:
                fuse.passes("told")
                acknowledge(offsets)

            self.source.poll = fused_poll  # type: ignore[method-assign]
            self.source.acknowledge = fused_acknowledge  # type: ignore[method-assign]

        def take(self, chunk: Chunk) -> None:
            tally.taken += len(chunk)
            tally.write()  # it may die in there
            super().take(chunk)
            tally.duplicates = self.duplicates
            tally.write()

        def on_assigned(self, partitions: list[Partition]) -> dict[Partition, int]:
            heads = super().on_assigned(partitions)
            if partitions:
                fuse.passes("in the listener")
            return heads

    def write_delta(connection: Connection, commit: Commit) -> None:
        fuse.passes("inside it")
        ledger_write.write_delta(connection, commit)

    true_commit = Ledger.commit

    def commit(self: Ledger, generation: Generation, commit: Commit) -> Head:
        fuse.passes("before the transaction")
        try:
            moved = true_commit(self, generation, commit)
        except Fenced:
            tally.fenced += 1
            tally.write()
            raise
        tally.commits += 1
        tally.write()
        fuse.passes("after it")
        return moved

    worker.Decoder = FusedDecoder  # type: ignore[misc]
    service.Worker = FusedWorker  # type: ignore[misc]
    ledger_module.write_delta = write_delta
    Ledger.commit = commit  # type: ignore[method-assign]


class Pause(Fuse):
    """Stands still at one point in the life of this process."""

    def __init__(self, point: str, count: int, go: str) -> None:
        super().__init__(point, count)
        self.go = go

    def passes(self, point: str) -> None:
        if point != self.point:
            return
        self.left -= 1
        if self.left:
            return
        os.write(2, f"{PAUSED}\n".encode())
        if self.go.startswith("SIG"):
            for name in self.go.split():
                os.kill(os.getpid(), signal.Signals[name])
                # The main thread hears it, which may be another one: the next one is the system's.
                while name == "SIGTERM" and signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
                    time.sleep(0.02)
        else:
            while not Path(self.go).exists():
                time.sleep(0.02)


def note_commits(notes: str) -> None:
    """From now on each commit that the ledger takes is written down, in one write."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    true_commit = Ledger.commit

    def commit(self: Ledger, generation: Generation, commit: Commit) -> Head:
        head = true_commit(self, generation, commit)
        os.write(file, f"{head.partition.number} {commit.start} {commit.end}\n".encode())
        return head

    Ledger.commit = commit  # type: ignore[method-assign]


def pause(point: str, count: str, go: str, notes: str, *command: str) -> None:
    """From here on this process is a worker that stands still at the point."""
    note_commits(notes)
    install(Pause(point, int(count), go), Tally(f"{notes}.{os.getpid()}"))
    raise SystemExit(main(command))


def run(point: str, count: str, tally_file: str, *command: str) -> None:
    """From here on this process is a worker, until the point."""
    install(Fuse(point, int(count)), Tally(tally_file))
    raise SystemExit(main(command))


if __name__ == "__main__":
    if sys.argv[3:4] == ["pause"]:
        pause(*sys.argv[1:3], *sys.argv[4:])
    run(*sys.argv[1:])
