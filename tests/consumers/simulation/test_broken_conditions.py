"""Conditions of the store that are left out on purpose: the simulation of `interleaved.py` must
find each within a few seeds, by the upset (see upsets.py) that the condition is there for.

Where another condition refuses the same writes, it is left out too, and the test says so: alone,
neither could be found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import streammetrics_consumers.ledger.looks as ledger_looks
import streammetrics_consumers.ledger.write as ledger_write
from sqlalchemy import ColumnElement, Connection
from streammetrics_consumers.counting.seen_ids import SeenIds
from streammetrics_consumers.ledger import ledger as ledger_module
from streammetrics_consumers.ledger.schema import generation, head
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Commit, Head, Seen
from streammetrics_consumers.model.generation import Generation

from tests.consumers.simulation.interleaved import Simulation, first_found, opened
from tests.consumers.simulation.lives import SHORT
from tests.consumers.simulation.plots import Clocked, Late, Plain
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

SEEDS = range(10)
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What is logged is expected, and there is much of it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def clock_of_ids_not_stored(patch: pytest.MonkeyPatch) -> None:
    """The newest pane of a log's ids is stored only where it has ids."""
    take = SeenIds.take

    def without(self: SeenIds) -> Seen:
        found = take(self)
        return found._replace(rows=[(start, ids) for start, ids in found.rows if ids])

    patch.setattr(SeenIds, "take", without)


def head_known_by_number_and_offset(patch: pytest.MonkeyPatch) -> None:
    """Neither the log of a head nor its digest is in the condition of a commit: each refuses alone
    what the other would."""

    def anything(known: Head, offset: int) -> tuple[ColumnElement[bool], ...]:
        return (head.c.id == known.id, head.c.closed.is_(False), head.c.next_offset == offset)

    patch.setattr(ledger_write, "stands_at", anything)


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
    """Neither the id of a store nor the token of its generation is compared: each refuses alone
    what the other would."""

    def unchecked(connection: Connection, known: Generation, *, alone: bool = False) -> object:
        query = generation.select().with_only_columns(generation.c.floor_ms)
        return connection.scalar(query.where(generation.c.id == known.id))

    patch.setattr(Store, "require_same", lambda *arguments, **named: None)
    patch.setattr(ledger_module, "check_generation", unchecked)


def look_not_reached(patch: pytest.MonkeyPatch) -> None:
    """A look may be at more than the store has counted."""
    patch.setattr(ledger_looks, "_is_reached", lambda *_: True)


def claim_lost(patch: pytest.MonkeyPatch) -> None:
    """A look may be taken by a claim that is not the last one."""
    patch.setattr(ledger_looks, "_is_claimed", lambda *_: True)


@pytest.mark.slow
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
        made = Simulation(ledger, length=SHORT, plots=[plot], upsets=[upset], upset_share=0.5)
        assert first_found(made, SEEDS) is None  # it is the mistake that is found
        with monkeypatch.context() as patch:
            broken(patch)
            assert first_found(made, SEEDS) is not None
