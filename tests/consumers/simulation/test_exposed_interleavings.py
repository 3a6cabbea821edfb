"""Whatever order things happen in, events are counted in the arms of their units' first exposures
before them: see `exposed.py`. And programs that are broken on purpose are found out: each lacks one
of the conditions that tests/model/protocol.pml names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streammetrics_consumers.counting.closer as closer_module
import streammetrics_consumers.counting.exposure_closing as exposure_closing
import streammetrics_consumers.ledger.closing as ledger_closing
import streammetrics_consumers.ledger.compact as ledger_compact
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.ledger.quarantine as ledger_quarantine
import streammetrics_consumers.ledger.write as ledger_write
import streammetrics_consumers.replay.retry as retry_module
from sqlalchemy import ColumnElement, Connection, delete, insert, update
from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.tables import WindowsConfig
from streammetrics_consumers.counting.entering_experiments import exposed_experiments
from streammetrics_consumers.counting.exposed_states import ExposedStates
from streammetrics_consumers.counting.housekeeping import KnownHeads
from streammetrics_consumers.counting.pending_events import PendingEvents
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.ledger.closing import PendingMetadata
from streammetrics_consumers.ledger.compact import Compactor, MergeGroup, MergeRun
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.quarantine import RetriedEntries
from streammetrics_consumers.ledger.read import read_generation
from streammetrics_consumers.ledger.schema import delta, generation, head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import EXPOSED_UNITS, Generation, Pane
from streammetrics_consumers.model.partition import Partition

import streammetrics.join.as_of as as_of
import streammetrics.join.exposed_rows as exposed_rows
from tests.consumers.simulation.exposed import (
    ACTIONS,
    KILLS,
    UPSETS,
    Exposed,
    PassedOver,
    back_after_all_was_read,
    back_while_closing,
    closed_after_a_deployment,
    closed_over_records_in_hand,
    closing_that_was_lost,
    merged_after_a_closing,
    retried_after_a_while,
)
from tests.consumers.simulation.interleaved import Simulation, first_found, interleave, opened
from tests.consumers.simulation.lives import FusedLedger, FusedSource, Killed, Length
from tests.consumers.simulation.upsets import Upset, commit_into_another_store, handed_over
from tests.depth import tries

FIRST = 16  # of the seeds: in these few everything happens
SEEDS = tries(8, 500)
FEW = 8  # seeds, in which each mistake is found
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What is logged is expected, and there is much of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def killed_while_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closers are killed before, inside and after the transaction that closes, and some pause
    before it, while their workers go on."""
    whole, write_delta = closer_module.write_closing, ledger_write.write_delta
    close = closer_module.Closer.close

    def close_a_while(self: closer_module.Closer, **keywords: bool) -> bool:
        monkeypatch.setattr(closer_module, "SLICE_S", 0 if KILLS.random() < 0.3 else 1)
        return close(self, **keywords)

    def write_closing(store: Store, *arguments: Any) -> None:
        KILLS.passes("before closing")
        whole(store, *arguments)
        KILLS.passes("after closing")

    def killed_inside(connection: Connection, commit: Commit) -> None:
        write_delta(connection, commit)
        KILLS.passes("inside closing")

    monkeypatch.setattr(closer_module.Closer, "close", close_a_while)
    monkeypatch.setattr(closer_module, "write_closing", write_closing)
    monkeypatch.setattr(ledger_closing, "write_delta", killed_inside)


def simulated(
    ledger: FusedLedger, plots: Sequence[type[Exposed]] = (Exposed, PassedOver), *upsets: Upset
) -> Simulation:
    """Three workers, and a store that goes back, or is another one, but is not emptied: the holes
    of a metric that was resumed are those of the heads that were there."""
    share = 0.6 if upsets else 0.4
    return Simulation(ledger, Length(3, 10, 24), plots, upsets or UPSETS, share, 0.0)


def test_events_count_in_the_arms_of_their_units(
    each_store: None, databases: object, tmp_path: Path
) -> None:
    with closing(opened(tmp_path)) as ledger:
        simulation = simulated(ledger)
        for seed in range(SEEDS if databases is None else SEEDS // 4):
            interleave(simulation, FIRST + seed)
    events = (*ACTIONS, "before closing", "inside closing", "after closing", "retried", "compacted",
              "went back", "zombie", "restart for settings", "refused as closed", "verified",
              *(upset.__name__ for upset in UPSETS))  # fmt: skip
    assert databases or not [event for event in events if not simulation.seen[event]]


# -- broken on purpose: heads ---------------------------------------------------------------------
def unfenced(patch: pytest.MonkeyPatch) -> None:
    """HEAD_AT_START, JOIN_STANDS: a commit or a closing is written wherever the head stands."""

    def anywhere(expected: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
        return (head.c.id == expected.id,)

    patch.setattr(ledger_write, "same_head_at", anywhere)


def two_commits(patch: pytest.MonkeyPatch) -> None:
    """ONE_COMMIT: the head moves in a transaction of its own."""
    whole = FusedLedger.commit

    def commit(self: FusedLedger, expected: Generation, commit: Commit) -> Head:
        self.reach("before the transaction")
        moved = whole(self, expected, replace(commit, shards=(), refused=()))
        self.reach("inside it")
        self._store.write(lambda connection, _: ledger_write.write_delta(connection, commit))
        return moved

    patch.setattr(FusedLedger, "commit", commit)


def not_at_the_head(patch: pytest.MonkeyPatch) -> None:
    """SEEK_TO_HEAD: reading goes on where Kafka stands, and what comes is taken for the next."""
    assign, take_next = FusedSource._assign, Worker.take

    def _assign(self: FusedSource, partitions: Sequence[Partition]) -> None:
        assign(self, partitions)
        for partition in partitions:
            offset = self.group.acknowledged.get(partition)
            self.seek(partition, self.beginning(partition) if offset is None else offset)

    def take(self: Worker, chunk: Chunk) -> None:
        work = self._work.get(chunk.partition)
        if work is not None:
            work.delta.end = chunk.start
        take_next(self, chunk)

    patch.setattr(FusedSource, "_assign", _assign)
    patch.setattr(Worker, "take", take)


def blind(patch: pytest.MonkeyPatch) -> None:
    """HEADS_COMPARED: a worker never compares what it knows with the store."""
    patch.setattr(KnownHeads, "lost", lambda self, expected: iter(()))


def any_store(patch: pytest.MonkeyPatch) -> None:
    """TOKEN_EQUAL: neither the id of a store nor the generation in it is compared."""
    patch.setattr(Store, "require_same", lambda *arguments, **named: None)
    for module in (ledger_module, ledger_closing):
        patch.setattr(module, "check_generation", _unchecked)


# -- closings -------------------------------------------------------------------------------------
def _unchecked(
    connection: Connection, expected: Generation, *, is_exclusive: bool = False
) -> object:
    query = generation.select().with_only_columns(generation.c.floor_ms)
    return connection.scalar(query.where(generation.c.id == expected.id))


def closed_by_the_former_config(patch: pytest.MonkeyPatch) -> None:
    """CLOSING_REVISION: a worker closes without an experiment that was added meanwhile."""
    patch.setattr(ledger_closing, "check_generation", _unchecked)


def fastest_partition(patch: pytest.MonkeyPatch) -> None:
    """ALL_PARTITIONS: the fastest partition decides what is closed."""
    whole = closer_module.closable_ms

    def closable_ms(windows: WindowsConfig, rule: Closing, heads: Sequence[Head]) -> int | None:
        times = [entry.greatest_event_ms for entry in heads if entry.greatest_event_ms is not None]
        return whole(
            windows,
            rule,
            [replace(entry, greatest_event_ms=max(times)) for entry in heads] if times else heads,
        )

    patch.setattr(closer_module, "closable_ms", closable_ms)


def closed_all_the_same(patch: pytest.MonkeyPatch) -> None:
    """CLOSED_AT_MOST: events are added to times that are closed."""
    refuse = ledger_write.refuse_closed

    def only_open(connection: Connection, commit: Commit) -> None:
        refuse(connection, replace(commit, closed_at_most=None))

    patch.setattr(ledger_module, "refuse_closed", only_open)


def refused_although_open(patch: pytest.MonkeyPatch) -> None:
    """CLOSED_AT_LEAST: events stay refused although the store went back to before the closing."""
    refuse = ledger_write.refuse_closed

    def only_closed(connection: Connection, commit: Commit) -> None:
        refuse(connection, replace(commit, closed_at_least=None))

    patch.setattr(ledger_module, "refuse_closed", only_closed)


def late_ones_accepted(patch: pytest.MonkeyPatch) -> None:
    """LATE_REFUSED: late events become pending."""
    patch.setattr(PendingEvents, "too_late", lambda *arguments: {})


def two_closings(patch: pytest.MonkeyPatch) -> None:
    """ONE_CLOSING: the head of closings moves in a transaction of its own."""
    whole = closer_module.write_closing

    def write_closing(
        store: Store,
        expected: Generation,
        commit: Commit,
        read: Sequence[PendingMetadata],
        replaced: Sequence[DeltaMetadata],
        logs: Sequence[Head],
    ) -> None:
        whole(store, expected, replace(commit, shards=()), read, (), logs)
        if KILLS.random() < 0.3:
            raise Killed("between")
        store.write(lambda connection, _: _results(connection, commit, replaced))

    def _results(connection: Connection, commit: Commit, rows: Sequence[DeltaMetadata]) -> None:
        for row in rows:
            connection.execute(delete(delta).where(delta.c.id == row.id))
        ledger_write.write_delta(connection, commit)

    patch.setattr(closer_module, "write_closing", write_closing)


def rows_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """ROWS_AS_READ: rows that were merged or added since a closing has read them are not seen."""
    whole = closer_module.write_closing

    def write_closing(
        store: Store,
        expected: Generation,
        commit: Commit,
        read: Sequence[PendingMetadata],
        replaced: Sequence[DeltaMetadata],
        logs: Sequence[Head],
    ) -> None:
        list(Compactor(store, above=1).steps())  # beside the closing
        now = [
            ledger_closing.pending(store, expected, rows.metric, rows.before_ms) for rows in read
        ]
        remaining = {row for rows in now for row in rows.rows}
        whole(store, expected, commit, now, [row for row in replaced if row in remaining], logs)

    patch.setattr(closer_module, "write_closing", write_closing)


def closed_although_logs_went_back(patch: pytest.MonkeyPatch) -> None:
    """A closing goes on where the store went back to before what allowed it."""
    patch.setattr(ledger_closing, "_require_counted", lambda connection, expected, logs: None)


def known_in_two_readings(patch: pytest.MonkeyPatch) -> None:
    """KNOWN_AT_ONCE: known exposures that are merged while they are read are missed."""

    def known_states(
        store: Store, expected: Generation, metric: str, key_range: int, ranges: int
    ) -> list[tuple[DeltaMetadata, bytes]]:
        terms = delta.c.generation == expected.id, delta.c.metric == metric
        rows = store.read(lambda connection: list(ledger_closing.read_rows(connection, *terms)))
        list(Compactor(store, above=1).steps())
        survivors = store.read(lambda connection: set(ledger_closing.read_rows(connection, *terms)))
        return list(ledger_closing.states(store, [row for row in rows if row in survivors]))

    patch.setattr(exposure_closing, "known_states", known_states)


# -- compactors and retries -----------------------------------------------------------------------
def uncounted_deletes(patch: pytest.MonkeyPatch) -> None:
    """ROWS_COUNTED: a compactor does not count what it deletes."""

    def exchange(
        connection: Connection,
        log_head: Head,
        run: MergeRun,
        group: MergeGroup,
        merged: Sequence[ledger_compact._Merged],
    ) -> None:
        ids = [extent.id for extent in group.extents]
        connection.execute(delete(delta).where(delta.c.id.in_(ids)))
        rows = [
            ledger_write.delta_row(log_head, merge.shard, merge.start, merge.end)
            for merge in merged
        ]
        connection.execute(insert(delta), rows)

    patch.setattr(ledger_compact, "_exchange", exchange)


def retried_twice(patch: pytest.MonkeyPatch) -> None:
    """RETRY_OPEN: an entry that another retry has counted is counted again."""
    count = ledger_quarantine._count

    def reopened(
        connection: Connection, number: int, batch: RetriedEntries, floor_ms: int | None
    ) -> None:
        table = ledger_quarantine.quarantine
        for entry in batch.entries:
            connection.execute(update(table).where(table.c.id == entry.id).values(done=False))
        count(connection, number, batch, floor_ms)

    patch.setattr(ledger_quarantine, "_count", reopened)


def two_retries(patch: pytest.MonkeyPatch) -> None:
    """ONE_RETRY: entries are marked in a transaction of their own."""
    whole, write_shards = retry_module.write_retry, ledger_write.write_shards

    def write_retry(
        store: Store, expected: Generation, batches: Sequence[RetriedEntries], **keywords: Any
    ) -> int:
        marked = [replace(entries, delta=replace(entries.delta, shards=())) for entries in batches]
        number = whole(store, expected, marked, **keywords)
        if KILLS.random() < 0.5:
            raise StoreUnavailable("between")
        for batch in batches:
            delta_ = batch.delta
            store.write(
                lambda connection, _, change=delta_: write_shards(connection, change, number)
            )
        return number

    patch.setattr(retry_module, "write_retry", write_retry)


def retried_although_closed(patch: pytest.MonkeyPatch) -> None:
    """RETRY_NOT_CLOSED: a retry adds events to times that were closed meanwhile."""
    patch.setattr(ledger_quarantine, "refuse_closed", lambda connection, commit: None)


# -- exposures ------------------------------------------------------------------------------------
def exposed_after(patch: pytest.MonkeyPatch) -> None:
    """EXPOSED_BEFORE: an event counts in the arm of an exposure after it."""
    whole = as_of.attributed

    def attributed(exposures: Any, units: Any, times: Any, window_ms: int | None) -> Any:
        return whole(exposures, units, times + 10**9, window_ms)

    patch.setattr(exposed_rows, "attributed", attributed)


def last_exposure(patch: pytest.MonkeyPatch) -> None:
    """EXPOSED_FIRST: the last exposure of a unit decides."""
    whole = as_of.first_exposures

    def first_exposures(exposures: Any, units: Any) -> Any:
        table = exposures.settled()
        rows, positions = whole(exposures, units)
        experiments, times = table.fields[0], table.times
        last = []
        for first in positions.tolist():
            is_same = (table.ids == table.ids[first]) & (experiments == experiments[first])
            last.append(max(np.flatnonzero(is_same).tolist(), key=lambda i: int(times[i])))
        return rows, np.array(last, np.intp)

    patch.setattr(as_of, "first_exposures", first_exposures)
    patch.setattr(exposed_rows, "first_exposures", first_exposures)


def known_from_the_next_closing_on(patch: pytest.MonkeyPatch) -> None:
    """EXPOSURES_ENTER: exposures are known to the events of later closings only."""
    close = exposed_rows.ExposedRows.close

    def later(self: Any, before_ms: int, experiments: Any = None) -> Any:
        exposures = self.known()
        closed = close(self, before_ms, experiments)
        attribution = exposures.attribute(
            closed.units.view(np.int64).view(exposure_closing.HashedIds), closed.times_ms
        )
        return replace(closed, attribution=attribution)

    patch.setattr(exposed_rows.ExposedRows, "close", later)


def exposures_of_others_dropped(patch: pytest.MonkeyPatch) -> None:
    """EXPOSURES_KEPT: exposures are dropped where the config does not have their experiment."""
    accumulate = ExposedStates.accumulate

    def only_own(self: ExposedStates, decoded: Decoded) -> None:
        names = decoded.keys.get("(experiment)")
        if names is not None and decoded.kinds is not None:
            mask = np.array([name in self._arms for name in names.values], np.bool_)
            is_kept = (decoded.kinds != self._exposure_kind) | mask[names.codes]
            decoded = decoded.take(np.flatnonzero(is_kept))
        accumulate(self, decoded)

    patch.setattr(ExposedStates, "accumulate", only_own)


def exposures_of_the_ended_dropped(patch: pytest.MonkeyPatch) -> None:
    """Merging rows drops the exposures of an experiment that has ended: it may be resumed."""
    fold = Compactor._fold

    def _fold(
        self: Compactor, pane: Pane, group: MergeGroup, states: list[bytes], groupings: Any
    ) -> Any:
        if pane.metric == EXPOSED_UNITS:
            current = self._store.read(read_generation)
            assert current is not None
            ended = {name for name, metric in exposed_experiments(current).items() if metric.ended}
            states = [_without(state, ended) for state in states]
        return fold(self, pane, group, states, groupings)

    def _without(data: bytes, ended: set[str]) -> bytes:
        state = exposed_rows.ExposedRows.from_bytes(data)
        *pending, exposures = state._sets()
        is_kept = np.array([name not in ended for name in exposures.key_values(0)], np.bool_)
        positions = np.flatnonzero(is_kept[exposures.settled().fields[0]])
        return state._with([*pending, exposures.picked(positions)]).to_bytes()

    patch.setattr(Compactor, "_fold", _fold)


Case = tuple[Break, type[Exposed], Upset | None, int]
BROKEN: Sequence[Case] = (  # the last is a seed that finds it, or one shortly before it
    (unfenced, Exposed, handed_over, 3),
    (two_commits, Exposed, closed_after_a_deployment, 2),
    (not_at_the_head, Exposed, None, 2),
    (blind, Exposed, back_after_all_was_read, 4),
    (any_store, Exposed, commit_into_another_store, 0),
    (closed_by_the_former_config, Exposed, closed_after_a_deployment, 2),
    (fastest_partition, Exposed, None, 5),
    (closed_all_the_same, PassedOver, closed_over_records_in_hand, 3),
    (refused_although_open, PassedOver, closing_that_was_lost, 6),
    (late_ones_accepted, Exposed, None, 5),
    (two_closings, Exposed, handed_over, 3),
    (rows_as_they_are, Exposed, handed_over, 6),
    (closed_although_logs_went_back, Exposed, back_while_closing, 2),
    (known_in_two_readings, Exposed, handed_over, 0),
    (uncounted_deletes, Exposed, merged_after_a_closing, 0),
    (retried_twice, Exposed, retried_after_a_while, 4),
    (two_retries, Exposed, retried_after_a_while, 4),
    (retried_although_closed, Exposed, retried_after_a_while, 6),
    (exposed_after, Exposed, None, 0),
    (last_exposure, Exposed, None, 4),
    (known_from_the_next_closing_on, Exposed, None, 0),
    (exposures_of_others_dropped, Exposed, closed_after_a_deployment, 3),
    (exposures_of_the_ended_dropped, Exposed, merged_after_a_closing, 3),
)


@pytest.mark.parametrize(
    ("broken", "plot", "upset", "first"), BROKEN, ids=[case[0].__name__ for case in BROKEN]
)
def test_a_program_that_lacks_a_condition_is_found_out(
    broken: Break,
    plot: type[Exposed],
    upset: Upset | None,
    first: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken(monkeypatch)
    with closing(opened(tmp_path)) as ledger:
        simulation = simulated(ledger, [plot], *([] if upset is None else [upset]))
        assert first_found(simulation, range(first, first + FEW), ValueError) is not None
