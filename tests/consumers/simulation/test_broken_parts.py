"""Sources, workers, compactors, retries and ids that are broken on purpose: the simulation of
`interleaved.py` must find each out, or is worth little. Broken ledgers are beside it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import streammetrics_consumers.ledger.compact as ledger_compact
import streammetrics_consumers.ledger.quarantine as ledger_retry
from sqlalchemy import Connection, delete, insert, update
from streammetrics_consumers.counting import worker
from streammetrics_consumers.counting.seen_ids import Repeats
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.compact import Group as Rows
from streammetrics_consumers.ledger.compact import MergeRun
from streammetrics_consumers.ledger.quarantine import Counted
from streammetrics_consumers.ledger.schema import delta, head
from streammetrics_consumers.ledger.write import delta_row
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.partition import Partition

from tests.consumers.simulation.interleaved import FEW, Simulation, is_found_out, opened
from tests.consumers.simulation.lives import SHORT, FusedSource
from tests.consumers.simulation.plots import Plain, Repeated


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What is logged is expected, and there is much of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def of_sqlite(tmp_path: Path) -> Iterator[Simulation]:
    with closing(opened(tmp_path)) as ledger:
        yield Simulation(ledger)


class WhereKafkaStands(FusedSource):
    """No seek on assignment: reading starts at Kafka's own committed offset."""

    def _assign(self, partitions: Sequence[Partition]) -> None:
        super()._assign(partitions)
        for partition in partitions:
            known = self.group.acknowledged.get(partition)
            self.seek(partition, self.beginning(partition) if known is None else known)


class Trusting(Worker):
    """Takes what comes for what comes next."""

    def take(self, chunk: Chunk) -> None:
        work = self._work.get(chunk.partition)
        if work is not None:
            work.delta.end = chunk.start
        super().take(chunk)


@pytest.mark.slow
def test_no_seek_on_assignment_is_made_good_by_a_worker_that_looks(of_sqlite: Simulation) -> None:
    of_sqlite.source_type = WhereKafkaStands
    assert not is_found_out(of_sqlite, seeds=range(8))


@pytest.mark.slow
def test_no_seek_on_assignment_is_found_out(of_sqlite: Simulation) -> None:
    of_sqlite.source_type, of_sqlite.worker_type = WhereKafkaStands, Trusting
    assert is_found_out(of_sqlite)


class Dropping(Worker):
    """Passes over records behind a hole, and does not go back for what lies in it."""

    def take(self, chunk: Chunk) -> None:
        work = self._work.get(chunk.partition)
        if work is None or chunk.start <= work.delta.end:
            super().take(chunk)


@pytest.mark.slow
def test_records_behind_a_hole_that_are_dropped_without_a_seek_are_found_out(
    of_sqlite: Simulation,
) -> None:
    of_sqlite.source_type, of_sqlite.worker_type = WhereKafkaStands, Dropping
    assert is_found_out(of_sqlite)


class Blind(Worker):
    """Never compares what it knows with the store."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._known_heads.lost = lambda of: iter(())


@pytest.mark.slow
def test_a_worker_that_never_looks_whether_the_store_went_back_is_found_out(
    of_sqlite: Simulation,
) -> None:
    of_sqlite.worker_type, of_sqlite.length = Blind, SHORT
    assert is_found_out(of_sqlite)


class Deaf(Worker):
    """Lets go without a commit."""

    def on_revoked(self, partitions: list[Partition]) -> None:
        self.on_lost(partitions)


@pytest.mark.slow
def test_a_worker_that_does_not_commit_when_it_lets_go_costs_more_reading_and_no_more(
    of_sqlite: Simulation,
) -> None:
    of_sqlite.worker_type, of_sqlite.length = Deaf, SHORT
    assert not is_found_out(of_sqlite, seeds=range(15))


@pytest.mark.slow
def test_a_retry_that_leaves_the_count_of_future_events_is_found_out(
    of_sqlite: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = ledger_retry._count

    def leaves(connection: Connection, number: int, one: Counted, floor_ms: int | None) -> None:
        count(connection, number, one, floor_ms)
        ahead = sum(entry.reason == "future" for entry in one.entries)
        connection.execute(
            update(head).where(head.c.id == one.delta.head.id).values(future=head.c.future + ahead)
        )

    monkeypatch.setattr(ledger_retry, "_count", leaves)
    of_sqlite.plots = [Plain]
    assert is_found_out(of_sqlite)


class Deserializing(FusedSource):
    """A deserializer in the consumer: one bad record fails every poll that meets it."""

    def poll(self, timeout_s: float) -> list[Chunk]:
        found = super().poll(timeout_s)
        for chunk in found:
            for value in chunk.values:
                json.loads(value or b"null")
        return found


@pytest.mark.slow
def test_a_deserializer_in_the_consumer_is_found_out(of_sqlite: Simulation) -> None:
    of_sqlite.source_type = Deserializing
    assert is_found_out(of_sqlite, ValueError)


@pytest.mark.slow
def test_a_compactor_that_does_not_count_what_it_deletes_is_found_out(
    of_sqlite: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange(
        connection: Connection,
        of: Head,
        run: MergeRun,
        group: Rows,
        made: Sequence[ledger_compact._Merged],
    ) -> None:
        connection.execute(
            delete(delta).where(delta.c.id.in_([extent.id for extent in group.extents]))
        )
        rows = [delta_row(of, one.shard, one.start, one.end) for one in made]
        connection.execute(insert(delta), rows)

    monkeypatch.setattr(ledger_compact, "_exchange", exchange)
    of_sqlite.length = SHORT
    assert is_found_out(of_sqlite, seeds=range(20, 20 + FEW))


class KeepsAll(Repeats):
    """Goes on with the ids of records that were not committed."""

    def begin(self, head: Head) -> None:
        known = self._logs.get(head.partition)
        if known is not None:
            known.at, known.head = head.next_offset, head.id
        super().begin(head)


class StoresNone(Repeats):
    """Leaves the ids out of its commits."""

    def with_ids(self, commit: Commit) -> Commit:
        return commit


class Passes(Repeats):
    """Stores the ids of one commit of each log alone."""

    def with_ids(self, commit: Commit) -> Commit:
        return super().with_ids(commit) if not commit.start else commit


@pytest.mark.slow
@pytest.mark.parametrize("broken", [KeepsAll, StoresNone, Passes])
def test_ids_of_events_that_are_kept_or_stored_wrongly_are_found_out(
    of_sqlite: Simulation, monkeypatch: pytest.MonkeyPatch, broken: type[Repeats]
) -> None:
    monkeypatch.setattr(worker, "Repeats", broken)
    of_sqlite.plots, of_sqlite.length = [Repeated], SHORT
    assert is_found_out(of_sqlite)
