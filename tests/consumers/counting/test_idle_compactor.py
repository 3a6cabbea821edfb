"""A worker merges its delta rows in time that nobody misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from streammetrics_consumers.counting.housekeeping import SHARE, IdleCompactor
from streammetrics_consumers.ledger.compact import ABOVE, LEAVE, Compactor
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.sources.memory_source import Deliver

from tests.consumers.folded import records
from tests.consumers.ledger.conftest import *  # noqa: F403 - the fixtures of a ledger
from tests.consumers.ledger.counted_log import PANES, begun, committed, require_true_rows
from tests.consumers.memory_run import ONE, UNTIL_END, Run, log
from tests.consumers.stores import stored


class Clock:
    """Each look takes as long as the test says."""

    def __init__(self) -> None:
        self.now_s = self.each_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.each_s
        return self.now_s


@pytest.fixture
def begun_head(ledger: Ledger) -> tuple[Generation, Head]:
    generation, heads = begun(ledger)
    return generation, heads[0]


def rows(ledger: Ledger) -> int:
    return max(size.rows for size in ledger.snapshot().panes)


@pytest.mark.slow
def test_it_merges_once_a_head_has_more_commits_than_rows_may_stand_also_of_an_earlier_worker(
    ledger: Ledger, begun_head: tuple[Generation, Head]
) -> None:
    generation, head = begun_head
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
    upkeep = IdleCompactor(ledger.store, Clock())
    upkeep.step(idle=True)
    assert rows(ledger) == 2 * ABOVE, "nothing was committed yet"
    seen = []
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
        upkeep.step(idle=True)
        seen.append(rows(ledger))
    assert seen[0] == LEAVE + 1
    assert max(seen) <= ABOVE + LEAVE + 1
    assert min(seen[1:]) == LEAVE + 1
    require_true_rows(stored(ledger), 5)


@pytest.mark.slow
def test_while_records_come_it_takes_a_tenth_of_the_time(
    ledger: Ledger, begun_head: tuple[Generation, Head]
) -> None:
    generation, head = begun_head
    clock = Clock()
    upkeep = IdleCompactor(ledger.store, clock)
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
    clock.each_s = 1.0  # so long does a look or a merge take
    steps = 0
    while rows(ledger) > LEAVE + 1:
        before = rows(ledger), clock.now_s
        upkeep.step(idle=False)
        clock.now_s += 1.0
        steps += 1
        assert steps < 1000, before
    assert clock.now_s >= 2 / SHARE, "it has waited its turn"


@pytest.mark.slow
def test_a_store_that_is_away_costs_the_merge_alone(
    ledger: Ledger, begun_head: tuple[Generation, Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    generation, head = begun_head
    upkeep = IdleCompactor(ledger.store, Clock())
    for _ in range(2 * ABOVE):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)

    def away(*_: object) -> None:
        raise StoreUnavailable("store: away")

    with monkeypatch.context() as patch:
        patch.setattr(Compactor, "plan", away)
        upkeep.step(idle=True)
    assert rows(ledger) == 2 * ABOVE
    for _ in range(ABOVE + 1):
        head = committed(ledger, generation, head, 14, keys=5)
        upkeep.committed(head)
    upkeep.step(idle=True)
    assert rows(ledger) == LEAVE + 1


@pytest.mark.slow
def test_a_run_keeps_the_rows_of_its_store_few(tmp_path: Path) -> None:
    values = records(3, 400)
    made = log(0)
    made.append(*values)
    run = Run(tmp_path, {ONE: made}, rest="[store]\ncommit_interval_s = 0.01")
    run.clock.tick_s = 0.02
    run(UNTIL_END, [Deliver(4)] * 100)
    panes = run.seen().panes
    assert len(panes) > len(PANES)
    assert max(size.rows for size in panes) <= 3 * ABOVE
