"""A ledger of five groupings and few keys, in which anything may happen, beside a fold of its logs
that knows of no rows: no delta, no flag, no compaction."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from sqlalchemy import select
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.delta_metadata import (
    SHARD_BYTES,
    split,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation, Pane
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query.follow import IncrementalView
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from tests.consumers.folded import METRICS, SIZE_MS, State, fold
from tests.consumers.memory_run import ONE, TWO, Run
from tests.consumers.memory_source import Log
from tests.consumers.messages import states_of
from tests.consumers.replay.verified_run import WITH_C, tried, verified
from tests.consumers.small_config import config, event
from tests.consumers.stores import stored

GROUPINGS = ((), ("variant",), ("phase",), ("variant", "phase"), ("user",))
FINEST = (3, 4)
MAX_KEYS = 5
SLICES = f'by = [[], ["variant"], ["phase"], ["variant", "phase"], ["user"]]\nmax_keys = {MAX_KEYS}'
QUERIES = (Query("all"), Query("total", by=frozenset({"variant"})))


def values(seed: int, n: int, phases: int = 4) -> list[bytes | None]:
    """Events over three hours, of few keys at first and of more later; some of a variant that
    nobody has declared, and some tombstones."""
    rng = random.Random(seed)
    records: list[bytes | None] = []
    for i in range(n):
        if rng.random() < 0.02:
            records.append(None)
            continue
        minute = max(i * 180 // n - rng.randrange(2), 0)
        key_count = 1 + rng.randrange(phases) * i // n
        records.append(
            event(
                f"2024-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z",
                "c" if rng.random() < 0.04 else rng.choice("ab"),
                int(rng.random() < 0.3),
                rng.randrange(20) / 20,
                user=f"u{rng.randrange(key_count)}",
                phase=f"p{rng.randrange(key_count)}",
            )
        )
    return records


class GroupedRun:
    """Two logs that are counted by hand, a few records in a commit."""

    def __init__(self, folder: Path, logs: Sequence[Sequence[bytes | None]]) -> None:
        self.folder = folder
        partition_logs = dict(zip((ONE, TWO), logs, strict=False))
        self.run = Run(
            folder,
            {partition: Log(list(log)) for partition, log in partition_logs.items()},
            slices=SLICES,
        )
        self.ledger = Ledger.open(self.run.config.store.url, create=True)
        self.generation: Generation
        self.heads: dict[Partition, Head] = {}
        self.retried: dict[Partition, int] = dict.fromkeys(partition_logs, 0)  # offsets before it
        self.begin()
        self.followers = [IncrementalView(self.ledger, query) for query in QUERIES]

    def __enter__(self) -> GroupedRun:
        return self

    def __exit__(self, *why: object) -> None:
        self.ledger.close()

    def begin(self) -> None:
        run_config = self.run.config
        self.generation = self.ledger.begin(
            run_config.fingerprints(), run_config.descriptions
        ).generation
        self.heads = {
            partition: self.ledger.resolve(self.generation, partition, 0)
            for partition in self.run.logs
        }

    # -- what may happen ----------------------------------------------------------------------
    def commit(
        self, log: Partition, n: int, limit: int = SHARD_BYTES, *, version_2: bool = False
    ) -> None:
        """Count the next `n` records of a log, in rows of at most `limit` bytes; as stores of an
        older version hold them, each grouping has rows of its own."""
        head, run_config = self.heads[log], self.run.config
        start = head.next_offset
        records = self.run.logs[log].values[start : start + n]
        if not records:
            return
        delta = Delta(run_config, log, start, head.greatest_event_ms, self.generation.floor_ms)
        end = start + len(records)
        decoder = Decoder(run_config)
        for decoded in decoder.pieces(Chunk(log, start, end, range(start, end), records, None)):
            delta.add(decoded)
        commit = commit_of(head, delta, limit)
        if version_2:
            apart = [
                shard
                for pane_state in states_of(delta)
                for shard in split(
                    Pane(
                        pane_state.metric,
                        pane_state.grouping,
                        pane_state.start_ms,
                        pane_state.end_ms,
                    ),
                    pane_state.state,
                    limit,
                )
            ]
            commit = replace(commit, shards=apart)
        self.heads[log] = self.ledger.commit(self.generation, commit)

    def compact(self, steps: int | None = None, **settings: int) -> None:
        """So many transactions of a compactor; all of them for None."""
        for _ in islice(Compactor(self.ledger.store, **settings).steps(), steps):
            pass

    def raise_floor(self, hours: int) -> None:
        floor_ms = 1_704_067_200_000 + hours * SIZE_MS
        self.generation = self.ledger.raise_floor(self.generation, floor_ms)

    def retry(self) -> None:
        """Count what stands in quarantine with a config that declares its variant."""
        tried(self.run, config(event=WITH_C, slices=SLICES))
        self.retried = {log: head.next_offset for log, head in self.heads.items()}
        self.begin()

    # -- what must be -------------------------------------------------------------------------
    def expected(self) -> dict[State, bytes]:
        """The states by a fold of the records, as if nothing but events had ever been."""
        logs = {
            log: [
                value
                if offset < self.retried[log] or value is None or b'"variant":"c"' not in value
                else None
                for offset, value in enumerate(self.run.logs[log].values[: head.next_offset])
            ]
            for log, head in self.heads.items()
        }
        states = fold(logs, groupings=GROUPINGS, metrics=METRICS, max_keys=MAX_KEYS).states
        floor_ms = self.generation.floor_ms
        return {
            state: data
            for state, data in states.items()
            if state[2] is None or floor_ms is None or state[2] >= floor_ms
        }

    def require_true_states(self) -> None:
        """Every way to read the ledger says what the fold says."""
        expected = self.expected()
        contents = stored(self.ledger)
        sums = contents.sums(lambda row: (row.pane.metric, row.pane.grouping, row.pane.start_ms))
        assert {state: total.to_bytes() for state, total in sums.items()} == expected
        sizes = {size.pane: (size.rows, size.nbytes) for size in contents.seen.panes}
        rows, nbytes = Counter[Pane](), Counter[Pane]()
        for row, _ in contents.rows:
            rows[row.pane] += 1
            nbytes[row.pane] += row.nbytes
        assert sizes == {pane: (n, nbytes[pane]) for pane, n in rows.items()}
        row_sizes = {row.id: row.nbytes for row, _ in contents.rows}
        assert (contents.seen.stored_rows, contents.seen.stored_nbytes) == (
            len(row_sizes),
            sum(row_sizes.values()),
        )

    def require_true_readers(self) -> None:
        """Who has followed says what a fresh read says."""
        for query, follower in zip(QUERIES, self.followers, strict=True):
            assert to_json(follower.results()) == to_json(read_results(self.ledger, query))

    def require_verified(self) -> None:
        findings = verified(self.run, self.folder)
        assert findings.differences == []

    def rows(self) -> list[tuple[Pane, int, int, bool]]:
        """The rows of metric `auc` as they are stored, in order: pane, offsets, and whether they
        stand for coarser groupings."""
        query = (
            select(schema.delta)
            .where(schema.delta.c.metric == "auc")
            .order_by(schema.delta.c.grouping, schema.delta.c.start_offset)
        )
        with self.ledger.store.engine.connect() as connection:
            return [
                (Pane(row.metric, row.grouping, row.window_start_ms, row.window_end_ms),
                 row.start_offset, row.end_offset, bool(row.for_coarser))
                for row in connection.execute(query)
            ]  # fmt: skip

    def totals(self) -> list[tuple[int, int, int, bool]]:
        """Of the rows of totals: grouping, offsets, and whether they stand for coarser ones."""
        return [
            (pane.grouping, start, end, flag)
            for pane, start, end, flag in self.rows()
            if pane.is_total
        ]
