"""Whatever order things happen in, the ledger holds what a fold over the log gives, to the byte.

Each seed is one interleaving of workers, crashes at every named point, rebalances, zombies, store
failures, compactors, retention and an upgrade: see `interleaved.py`. Short ones (two workers, few
steps and records) take half the time of long ones and find most mistakes sooner; some show up in
long ones alone. STREAMMETRICS_INTERLEAVINGS says how many more of each to run (for a long run:
20000).

Then programs that are broken on purpose: each must be found out, or the simulation is worth little.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import streammetrics_consumers.ledger.ledger as ledger_module
import streammetrics_consumers.ledger.write as ledger_write
from sqlalchemy import ColumnElement, Connection
from streammetrics_consumers.ledger.schema import generation, head
from streammetrics_consumers.model.commit import Commit, Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.simulation.interleaved import (
    EVENTS,
    FEW,
    Simulation,
    interleave,
    is_found_out,
    opened,
)
from tests.consumers.simulation.lives import LONG, SHORT, FusedLedger, Length
from tests.consumers.simulation.plots import Joined
from tests.depth import tries

MANY = tries(10, 500)
OVER_POSTGRES = tries(20, FEW)
ASKED = int(os.environ.get("STREAMMETRICS_INTERLEAVINGS", "0"))


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


@pytest.mark.slow
def test_the_ledger_equals_a_fold_over_the_log(
    each_store: None, databases: object, tmp_path: Path
) -> None:
    with closing(opened(tmp_path)) as ledger:
        simulation = Simulation(ledger, length=SHORT)
        for seed in range(FEW if databases is None else OVER_POSTGRES):
            interleave(simulation, seed)
    # What happens is up to the seeds, whatever the store.
    assert databases or not [what for what in EVENTS if not simulation.seen[what]]


@pytest.mark.slow
def test_long_interleavings(each_store: None, databases: object, tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        for seed in range((FEW if databases is None else OVER_POSTGRES) // 2):
            interleave(Simulation(ledger), seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "first"),
    [(LONG, FEW), *((SHORT, FEW + i * MANY) for i in range(tries(1, 8)))],
)
def test_more_interleavings_of_each_length(length: Length, first: int, tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        for seed in range(first, first + MANY):
            interleave(Simulation(ledger, length=length), seed)


@pytest.mark.skipif(not ASKED, reason="STREAMMETRICS_INTERLEAVINGS is not set")
@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("length", [LONG, SHORT])
def test_as_many_interleavings_as_asked_for(length: Length, tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        for seed in range(1_000_000, 1_000_000 + ASKED):
            interleave(Simulation(ledger, length=length), seed)


# -- broken on purpose ----------------------------------------------------------------------------
class TwoSteps(FusedLedger):
    """Moves the head in a transaction of its own."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        self.at("before the transaction")
        moved = super().commit(of, replace(commit, shards=(), refused=()))
        self.at("inside it")
        self._store.write(lambda connection, _: ledger_write.write_delta(connection, commit))
        return moved


class OneTooFew(FusedLedger):
    """Stores the last record's offset and not the one after it: `next = offset`."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        return super().commit(of, replace(commit, end=max(commit.end - 1, commit.start)))


class Unfenced(FusedLedger):
    """Writes wherever the head stands."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        def anywhere(known: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
            return (head.c.id == known.id,)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_write, "stands_at", anywhere)
            return super().commit(of, commit)


class TwiceIfTold(FusedLedger):
    """Counts again when the answer of a COMMIT was lost."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        moves = ledger_write.move_head

        def move_head(connection: Connection, commit: Commit, moved: Head) -> bool:
            return moves(connection, commit, moved) or ledger_write.stands(connection, moved)

        def stands(connection: Connection, known: Head) -> bool:
            return False

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_module, "move_head", move_head)
            patch.setattr(ledger_module, "stands", stands)
            return super().commit(of, commit)


class BelowTheFloor(FusedLedger):
    """Does not look whether windows of the delta are gone by now."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        check = ledger_write.check_generation

        def unfloored(connection: Connection, known: Generation, *, alone: bool = False) -> None:
            check(connection, known, alone=alone)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_module, "check_generation", unfloored)
            return super().commit(of, commit)


class AnySettings(FusedLedger):
    """Does not look whether the metrics of the generation are still those of the delta."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        def unchecked(connection: Connection, known: Generation, *, alone: bool = False) -> object:
            return connection.scalar(
                generation.select().with_only_columns(generation.c.floor_ms)
                .where(generation.c.id == known.id)
            )  # fmt: skip

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger_module, "check_generation", unchecked)
            return super().commit(of, commit)


class AfterClosing(FusedLedger):
    """Adds events to label windows that are closed."""

    def commit(self, of: Generation, commit: Commit) -> Head:
        return super().commit(of, replace(commit, closed_at_most=None))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "length", "first"),
    [
        (TwoSteps, LONG, 0),
        (OneTooFew, LONG, 0),
        (Unfenced, SHORT, 0),
        (TwiceIfTold, SHORT, 10),
        (BelowTheFloor, LONG, 100),  # one seed in a hundred: a late row while the floor rises
        (AnySettings, LONG, 0),
    ],
)
def test_a_broken_ledger_is_found_out(
    mutant: type[FusedLedger], length: Length, first: int, tmp_path: Path
) -> None:
    with closing(opened(tmp_path, mutant)) as ledger:
        made = Simulation(ledger, length=length)
        assert is_found_out(made, seeds=range(first, first + 10 * FEW))


@pytest.mark.slow
def test_events_that_are_added_to_closed_label_windows_are_found_out(tmp_path: Path) -> None:
    with closing(opened(tmp_path, AfterClosing)) as ledger:
        assert is_found_out(Simulation(ledger, plots=[Joined]))
