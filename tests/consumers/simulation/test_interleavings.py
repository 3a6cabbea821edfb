"""Whatever order things happen in, the ledger holds what a fold over the log gives, to the byte.

Each seed is one interleaving of workers, crashes at every named point, rebalances, zombies, store
failures, compactors, retention and an upgrade: see `interleaved.py`. Short ones (two workers, few
steps and records) take half the time of long ones and find most mistakes sooner; some show up in
long ones alone. STREAMMETRICS_INTERLEAVINGS says how many more of each to run (for a long run:
20000).

Then programs that are broken on purpose: each must be found out, or the simulation is worth little.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streammetrics_consumers.ledger.compact as ledger_compact
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.ledger.looks as ledger_looks
import streammetrics_consumers.ledger.quarantine as ledger_retry
import streammetrics_consumers.ledger.write as ledger_write
from sqlalchemy import ColumnElement, Connection, delete, insert, update
from streammetrics_consumers.counting.housekeeping import KnownHeads
from streammetrics_consumers.counting.seen_ids import Repeats, SeenIds
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.compact import MergeGroup as Rows
from streammetrics_consumers.ledger.compact import MergeRun
from streammetrics_consumers.ledger.quarantine import RetriedEntries
from streammetrics_consumers.ledger.schema import delta, generation, head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head, Seen
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition

from tests.consumers.simulation.interleaved import (
    EVENTS,
    FEW,
    Simulation,
    first_found,
    interleave,
    opened,
)
from tests.consumers.simulation.lives import LONG, SHORT, FusedLedger, FusedSource, Length
from tests.consumers.simulation.plots import Clocked, Joined, Late, Plain, Repeated
from tests.consumers.simulation.upsets import (
    Upset,
    commit_into_another_store,
    floor_of_a_lost_commit,
    floor_rose_over_records_in_hand,
    handed_over,
    look_beyond_the_heads,
    look_of_a_lost_claim,
    made_in_another_order,
)
from tests.depth import tries

FIRST = 40  # of the seeds: in these few everything happens
SEEDS = tries(18, 500)
OVER_POSTGRES = tries(6, FEW)  # the same statements, but other locks and failures
ASKED = int(os.environ.get("STREAMMETRICS_INTERLEAVINGS", "0"))
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What is logged is expected, and there is much of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_the_ledger_equals_a_fold_over_the_log(
    each_store: None, databases: object, tmp_path: Path
) -> None:
    with closing(opened(tmp_path)) as ledger:
        simulation = Simulation(ledger, length=SHORT)
        for seed in range(SEEDS if databases is None else OVER_POSTGRES):
            interleave(simulation, FIRST + seed)
    # What happens is up to the seeds, whatever the store.
    assert databases or not [event for event in EVENTS if not simulation.seen[event]]


def test_long_interleavings(each_store: None, databases: object, tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        for seed in range((SEEDS if databases is None else OVER_POSTGRES) // 2):
            interleave(Simulation(ledger), seed)


@pytest.mark.skipif(not ASKED, reason="STREAMMETRICS_INTERLEAVINGS is not set")
@pytest.mark.timeout(0)
@pytest.mark.parametrize("length", [LONG, SHORT])
def test_as_many_interleavings_as_asked_for(length: Length, tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        for seed in range(1_000_000, 1_000_000 + ASKED):
            interleave(Simulation(ledger, length=length), seed)


# -- broken on purpose: ledgers -------------------------------------------------------------------
def two_steps(patch: pytest.MonkeyPatch) -> None:
    """The head moves in a transaction of its own."""
    whole = FusedLedger.commit

    def commit(self: FusedLedger, expected: Generation, commit: Commit) -> Head:
        self.reach("before the transaction")
        moved = whole(self, expected, replace(commit, shards=(), refused=()))
        self.reach("inside it")
        self._store.write(lambda connection, _: ledger_write.write_delta(connection, commit))
        return moved

    patch.setattr(FusedLedger, "commit", commit)


def one_too_few(patch: pytest.MonkeyPatch) -> None:
    """The last record's offset is stored and not the one after it: `next = offset`."""
    whole = FusedLedger.commit

    def commit(self: FusedLedger, expected: Generation, commit: Commit) -> Head:
        return whole(self, expected, replace(commit, end=max(commit.end - 1, commit.start)))

    patch.setattr(FusedLedger, "commit", commit)


def unfenced(patch: pytest.MonkeyPatch) -> None:
    """A commit is written wherever the head stands."""

    def anywhere(expected: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
        return (head.c.id == expected.id,)

    patch.setattr(ledger_write, "same_head_at", anywhere)


def twice_if_told(patch: pytest.MonkeyPatch) -> None:
    """Records are counted again when the answer of a COMMIT was lost."""
    moves, has_head = ledger_write.move_head, ledger_write.has_head

    def move_head(connection: Connection, commit: Commit, moved: Head) -> bool:
        return moves(connection, commit, moved) or has_head(connection, moved)

    patch.setattr(ledger_module, "move_head", move_head)
    patch.setattr(ledger_module, "has_head", lambda connection, expected: False)


def any_settings(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether the metrics of the generation are still those of the delta."""

    def unchecked(
        connection: Connection, expected: Generation, *, is_exclusive: bool = False
    ) -> object:
        query = generation.select().with_only_columns(generation.c.floor_ms)
        return connection.scalar(query.where(generation.c.id == expected.id))

    patch.setattr(ledger_module, "check_generation", unchecked)


def after_closing(patch: pytest.MonkeyPatch) -> None:
    """Events are added to label windows that are closed."""
    refuse = ledger_write.refuse_closed

    def only_open(connection: Connection, commit: Commit) -> None:
        refuse(connection, replace(commit, closed_at_most=None))

    patch.setattr(ledger_module, "refuse_closed", only_open)


def future_events_left(patch: pytest.MonkeyPatch) -> None:
    """A retry leaves the count of future events as it was."""
    count = ledger_retry._count

    def leaves(
        connection: Connection, number: int, batch: RetriedEntries, floor_ms: int | None
    ) -> None:
        count(connection, number, batch, floor_ms)
        ahead = sum(entry.reason == "future" for entry in batch.entries)
        statement = update(head).where(head.c.id == batch.delta.head.id)
        connection.execute(statement.values(future=head.c.future + ahead))

    patch.setattr(ledger_retry, "_count", leaves)


def uncounted_deletes(patch: pytest.MonkeyPatch) -> None:
    """A compactor does not count what it deletes."""

    def exchange(
        connection: Connection,
        log_head: Head,
        run: MergeRun,
        group: Rows,
        merges: Sequence[ledger_compact._Merged],
    ) -> None:
        ids = [extent.id for extent in group.extents]
        connection.execute(delete(delta).where(delta.c.id.in_(ids)))
        rows = [
            ledger_write.delta_row(log_head, merge.shard, merge.start, merge.end)
            for merge in merges
        ]
        connection.execute(insert(delta), rows)

    patch.setattr(ledger_compact, "_exchange", exchange)


# -- sources, workers and ids ---------------------------------------------------------------------
def where_kafka_stands(patch: pytest.MonkeyPatch) -> None:
    """No seek on assignment: reading starts at Kafka's own committed offset."""
    assign = FusedSource._assign

    def _assign(self: FusedSource, partitions: Sequence[Partition]) -> None:
        assign(self, partitions)
        for partition in partitions:
            offset = self.group.acknowledged.get(partition)
            self.seek(partition, self.beginning(partition) if offset is None else offset)

    patch.setattr(FusedSource, "_assign", _assign)


def trusting(patch: pytest.MonkeyPatch) -> None:
    """What comes is taken for what comes next."""
    where_kafka_stands(patch)
    whole = Worker.take

    def take(self: Worker, chunk: Chunk) -> None:
        work = self._work.get(chunk.partition)
        if work is not None:
            work.delta.end = chunk.start
        whole(self, chunk)

    patch.setattr(Worker, "take", take)


def dropping(patch: pytest.MonkeyPatch) -> None:
    """Records behind a hole are passed over, and nobody goes back for what lies in it."""
    where_kafka_stands(patch)
    whole = Worker.take

    def take(self: Worker, chunk: Chunk) -> None:
        work = self._work.get(chunk.partition)
        if work is None or chunk.start <= work.delta.end:
            whole(self, chunk)

    patch.setattr(Worker, "take", take)


def deserializing(patch: pytest.MonkeyPatch) -> None:
    """A deserializer in the consumer: one bad record fails every poll that meets it."""
    whole = FusedSource.poll

    def poll(self: FusedSource, timeout_s: float) -> list[Chunk]:
        chunks = whole(self, timeout_s)
        for chunk in chunks:
            for value in chunk.values:
                json.loads(value or b"null")
        return chunks

    patch.setattr(FusedSource, "poll", poll)


def blind(patch: pytest.MonkeyPatch) -> None:
    """A worker never compares what it knows with the store."""
    patch.setattr(KnownHeads, "lost", lambda self, expected: iter(()))


def deaf(patch: pytest.MonkeyPatch) -> None:
    """A worker lets go without a commit."""
    patch.setattr(Worker, "on_revoked", Worker.on_lost)


def ids_of_lost_records_kept(patch: pytest.MonkeyPatch) -> None:
    """A worker goes on with the ids of records that were not committed."""
    whole = Repeats.begin

    def begin(self: Repeats, head: Head) -> None:
        log = self._logs.get(head.partition)
        if log is not None:
            log.at, log.head = head.next_offset, head.id
        whole(self, head)

    patch.setattr(Repeats, "begin", begin)


def ids_not_stored(patch: pytest.MonkeyPatch) -> None:
    """Commits have no ids."""
    patch.setattr(Repeats, "with_ids", lambda self, commit: commit)


def ids_stored_once(patch: pytest.MonkeyPatch) -> None:
    """The ids of one commit of each log alone are stored."""
    whole = Repeats.with_ids
    patch.setattr(
        Repeats,
        "with_ids",
        lambda self, commit: whole(self, commit) if not commit.start else commit,
    )


BROKEN: Sequence[tuple[Break, dict[str, Any], int]] = (  # the last is a seed that finds it
    (two_steps, {}, 2),
    (one_too_few, {}, 1),
    (unfenced, {"length": SHORT}, 0),
    (twice_if_told, {"length": SHORT}, 14),
    (any_settings, {}, 2),
    (after_closing, {"plots": [Joined]}, 2),
    (future_events_left, {"plots": [Plain]}, 0),
    (uncounted_deletes, {"length": SHORT}, 38),
    (trusting, {}, 2),
    (dropping, {}, 0),
    (deserializing, {}, 2),
    (blind, {"length": SHORT}, 2),
    (ids_of_lost_records_kept, {"length": SHORT, "plots": [Repeated]}, 3),
    (ids_not_stored, {"length": SHORT, "plots": [Repeated]}, 4),
    (ids_stored_once, {"length": SHORT, "plots": [Repeated]}, 4),
)


@pytest.mark.parametrize(
    ("broken", "settings", "first"), BROKEN, ids=[case[0].__name__ for case in BROKEN]
)
def test_a_program_that_is_broken_is_found_out(
    broken: Break,
    settings: dict[str, Any],
    first: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(monkeypatch)
    with closing(opened(tmp_path)) as ledger:
        seeds = range(first, first + FEW)
        assert first_found(Simulation(ledger, **settings), seeds, ValueError) is not None


@pytest.mark.parametrize(
    ("change", "length", "n"), [(where_kafka_stands, LONG, 4), (deaf, SHORT, 8)]
)
def test_what_costs_more_reading_changes_nothing_else(
    change: Break, length: Length, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch)
    with closing(opened(tmp_path)) as ledger:
        assert first_found(Simulation(ledger, length=length), range(n)) is None


# -- conditions of the store ----------------------------------------------------------------------
# Each is found within a few seeds by the upset (see upsets.py) that it is there for. Where another
# condition refuses the same writes, it is left out too: alone, neither could be found.
def clock_of_ids_not_stored(patch: pytest.MonkeyPatch) -> None:
    """The newest pane of a log's ids is stored only where it has ids."""
    take = SeenIds.take

    def without(self: SeenIds) -> Seen:
        result = take(self)
        return result._replace(rows=[(start, ids) for start, ids in result.rows if ids])

    patch.setattr(SeenIds, "take", without)


def head_known_by_number_and_offset(patch: pytest.MonkeyPatch) -> None:
    """Neither the log of a head nor its digest is in the condition of a commit."""

    def anything(expected: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
        return (head.c.id == expected.id, head.c.closed.is_(False), head.c.next_offset == offset)

    patch.setattr(ledger_write, "same_head_at", anything)


def windows_below_the_floor(patch: pytest.MonkeyPatch) -> None:
    """States of windows that are gone by now are written."""
    refuse = ledger_write.refuse_floor

    def only_left_out(commit: Commit, floor_ms: int | None) -> None:
        refuse(replace(commit, shards=()), floor_ms)

    patch.setattr(ledger_module, "refuse_floor", only_left_out)


def floor_not_in_the_condition(patch: pytest.MonkeyPatch) -> None:
    """Events of windows that are kept are left out, where the floor was higher once."""
    refuse = ledger_write.refuse_floor

    def only_pieces(commit: Commit, floor_ms: int | None) -> None:
        refuse(replace(commit, floor_ms=None), floor_ms)

    patch.setattr(ledger_module, "refuse_floor", only_pieces)


def any_store(patch: pytest.MonkeyPatch) -> None:
    """Neither the id of a store nor the token of its generation is compared."""
    patch.setattr(Store, "require_same", lambda *arguments, **named: None)
    any_settings(patch)


def look_not_reached(patch: pytest.MonkeyPatch) -> None:
    """A look may be at more than the store has counted."""
    patch.setattr(ledger_looks, "_is_reached", lambda *_: True)


def claim_lost(patch: pytest.MonkeyPatch) -> None:
    """A look may be taken by a claim that is not the last one."""
    patch.setattr(ledger_looks, "_is_claimed", lambda *_: True)


@pytest.mark.parametrize(
    ("broken", "upset", "plot"),
    [
        (clock_of_ids_not_stored, handed_over, Clocked),
        (head_known_by_number_and_offset, made_in_another_order, Plain),
        (windows_below_the_floor, floor_rose_over_records_in_hand, Late),
        (floor_not_in_the_condition, floor_of_a_lost_commit, Late),
        (any_store, commit_into_another_store, Plain),
        (look_not_reached, look_beyond_the_heads, Plain),
        (claim_lost, look_of_a_lost_claim, Plain),
    ],
)
def test_a_condition_that_is_left_out_is_found_within_ten_seeds(
    broken: Break,
    upset: Upset,
    plot: type[Plain],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(opened(tmp_path)) as ledger:
        simulation = Simulation(ledger, length=SHORT, plots=[plot], upsets=[upset], upset_share=0.5)
        with monkeypatch.context() as patch:
            broken(patch)
            seed = first_found(simulation, range(10))
        assert seed is not None
        assert first_found(simulation, range(seed + 2)) is None  # it is the mistake that is found
