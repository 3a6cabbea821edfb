"""A worker process that kills itself (SIGKILL) the n-th time it comes to a point.

    python -m tests.consumers.killed_worker CONFIG POINT N

The points are those of `interleaved.py`; without POINT and N it runs to the end of its source.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping

from sqlalchemy import Connection

import consumers.ledger.ledger as ledger_module
from consumers.config.config import Config, load_config
from consumers.events.decoder import Decoded, Decoder
from consumers.ledger import write as ledger_write
from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import Commit, Generation, Head
from consumers.sources.file_source import FileSource
from consumers.sources.open_source import open_source
from consumers.sources.source import Chunk, Partition, Source
from consumers.worker import service, worker
from consumers.worker.run_options import Options
from consumers.worker.stop import Stop

POINT, COUNT = (sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else ("", 0)
passed = 0


def passes(point: str) -> None:
    """The process is at this point."""
    global passed
    passed += point == POINT
    if passed == COUNT and point == POINT:
        os.kill(os.getpid(), signal.SIGKILL)


class KilledDecoder(Decoder):
    def decode(self, chunk: Chunk) -> Decoded:
        passes("mid-batch")
        return super().decode(chunk)


def killed_source(config: Config, options: Options) -> Source:
    source = open_source(config, options)
    assert isinstance(source, FileSource)
    return KilledSource(source)


class KilledSource:
    replayable = True

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.partitions, self.beginning = source.partitions, source.beginning
        self.ends, self.assign, self.seek = source.ends, source.assign, source.seek
        self.close: Callable[[], None] = source.close

    def poll(self, timeout_s: float) -> list[Chunk]:
        found = self.source.poll(timeout_s)
        passes("after poll")
        return found

    def acknowledge(self, offsets: Mapping[Partition, int]) -> None:
        passes("told")


def write_delta(connection: Connection, commit: Commit) -> None:
    passes("inside it")
    ledger_write.write_delta(connection, commit)


def commit(self: Ledger, of: Generation, commit: Commit) -> Head:
    passes("before the transaction")
    moved = true_commit(self, of, commit)
    passes("after it")
    return moved


true_commit = Ledger.commit

if __name__ == "__main__":
    worker.Decoder = KilledDecoder  # type: ignore[misc]
    ledger_module.write_delta = write_delta
    Ledger.commit = commit  # type: ignore[method-assign]
    service.run(
        load_config(sys.argv[1]),
        Options(until_end=True, max_delta_rows=5000),
        stop=Stop(),
        opener=killed_source,
    )
