"""`streammetrics quarantine retry` in a process that kills itself (SIGKILL) the n-th time it comes
to a point of a retry, with few entries in each transaction."""

from __future__ import annotations

from collections.abc import Sequence

import streammetrics_consumers.ledger.quarantine as in_ledger
import streammetrics_consumers.replay.retry as of_worker
from sqlalchemy import Connection
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger.quarantine import RetriedEntries
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit
from streammetrics_consumers.model.generation import Generation

from tests.consumers.killed_worker import Fuse

POINTS = ("in the middle of a page", "before the transaction", "inside it", "after its last write",
          "after it")  # fmt: skip
PAGE = 4


def install(fuse: Fuse) -> None:
    """From now on a retry of this process passes its points."""
    write_shards, count, write_retry = (
        in_ledger.write_shards, in_ledger._count, in_ledger.write_retry)  # fmt: skip

    class FusedDecoder(Decoder):
        def decode(self, chunk: Chunk) -> Decoded:
            fuse.passes("in the middle of a page")
            return super().decode(chunk)

    def pieces(connection: Connection, commit: Commit, retry: int | None = None) -> None:
        fuse.passes("inside it")  # entries are marked, and their states are not there yet
        write_shards(connection, commit, retry)

    def counted(
        connection: Connection, number: int, entries: RetriedEntries, floor_ms: int | None
    ) -> None:
        count(connection, number, entries, floor_ms)
        fuse.passes("after its last write")

    def written(
        store: Store,
        generation: Generation,
        entries: Sequence[RetriedEntries],
        *,
        created_ms: int,
        note: str,
    ) -> int:
        fuse.passes("before the transaction")
        number = write_retry(store, generation, entries, created_ms=created_ms, note=note)
        fuse.passes("after it")
        return number

    in_ledger.write_shards, in_ledger._count = pieces, counted
    of_worker.write_retry, of_worker.Decoder = written, FusedDecoder  # type: ignore[misc]
    defaults = of_worker.retry.__kwdefaults__
    assert defaults is not None
    defaults["page"] = PAGE


def retry(point: str, n: int, command: Sequence[str]) -> None:
    """Be such a process."""
    install(Fuse(point, n))
    raise SystemExit(main(command))
