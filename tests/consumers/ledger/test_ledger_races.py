"""Workers that write at the same moment: each condition holds when the transaction ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update
from streammetrics_consumers.ledger.failures import SettingsChanged, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged
from streammetrics_consumers.ledger.quarantine import RetriedEntries, write_retry
from streammetrics_consumers.ledger.schema import head as head_table
from streammetrics_consumers.ledger.store import open_store
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation

from tests.consumers.ledger.small_ledger import (
    DESCRIPTIONS,
    HOUR,
    LOG,
    PRINTS,
    TOTAL,
    WITH_KS,
    before_statement,
    commit,
    opened,
    together,
)
from tests.consumers.stores import stored
from tests.patience import LIMIT_S

pytestmark = pytest.mark.usefixtures("each_store")
WORKERS = 4
ROUNDS = 2


def test_workers_that_begin_at_once_start_one_generation(ledgers: Sequence[Ledger]) -> None:
    begun = together(lambda n: ledgers[n].begin(PRINTS, DESCRIPTIONS).generation.id)
    assert begun == [1] * WORKERS
    assert len(ledgers[0].generations()) == 1


def test_of_two_logs_under_one_name_one_is_followed(ledgers: Sequence[Ledger]) -> None:
    generation = ledgers[0].begin(PRINTS, DESCRIPTIONS).generation
    for number in range(ROUNDS):
        logs = [replace(LOG, number=number, topic_id=f"id-{n % 2}") for n in range(WORKERS)]
        outcomes = together(lambda n, logs=logs: ledgers[n].resolve(generation, logs[n], 0))  # type: ignore[misc]
        assert sum(isinstance(outcome, LogChanged) for outcome in outcomes) == WORKERS // 2
        assert len({repr(outcome) for outcome in outcomes if isinstance(outcome, Head)}) == 1
    assert len(ledgers[0].heads(generation)) == ROUNDS


def test_a_head_that_all_close_at_once_has_one_follower(ledgers: Sequence[Ledger]) -> None:
    generation = ledgers[0].begin(PRINTS, DESCRIPTIONS).generation
    head = ledgers[0].resolve(generation, LOG, 10)
    outcomes = together(lambda n: ledgers[n].follow(generation, head, LOG, 3))
    assert len(set(map(repr, outcomes))) == 1
    assert len(ledgers[0].snapshot().heads) == 2


def test_of_those_who_commit_the_same_records_one_succeeds(ledgers: Sequence[Ledger]) -> None:
    generation = ledgers[0].begin(PRINTS, DESCRIPTIONS).generation
    head = ledgers[0].resolve(generation, LOG, 0)
    for _ in range(ROUNDS):
        same = commit(head, 4, TOTAL)
        outcomes = together(lambda n, same=same: ledgers[n].commit(generation, same))  # type: ignore[misc]
        (head,) = (outcome for outcome in outcomes if isinstance(outcome, Head))
    snapshot, rows = stored(ledgers[0])
    assert (snapshot.counters.rows, len(rows)) == (4 * ROUNDS, ROUNDS)


def test_no_window_below_the_floor_is_left_by_those_who_commit_while_it_rises(
    ledgers: Sequence[Ledger],
) -> None:
    generation = ledgers[0].begin(PRINTS, DESCRIPTIONS).generation
    hour_ms = 3_600_000

    def work(n: int) -> None:
        head = ledgers[n].resolve(generation, replace(LOG, number=n), 0)
        for i in range(5):
            pane = HOUR._replace(start_ms=i * hour_ms, end_ms=(i + 1) * hour_ms)
            try:
                head = ledgers[n].commit(generation, commit(head, 2, pane, TOTAL))
            except Fenced:
                head = ledgers[n].commit(generation, commit(head, 2, TOTAL))
            if n % 2:
                ledgers[n].raise_floor(generation, i * hour_ms)

    assert together(work) == [None] * WORKERS
    snapshot = ledgers[0].snapshot()
    assert snapshot.generation.floor_ms == 4 * hour_ms
    assert min(size.pane.start_ms or 10**9 for size in snapshot.panes) >= 4 * hour_ms
    assert snapshot.counters.rows == WORKERS * 10


def test_a_metric_that_is_added_under_way_starts_where_each_head_stands(
    ledgers: Sequence[Ledger],
) -> None:
    generation = ledgers[0].begin(PRINTS, DESCRIPTIONS).generation
    heads = [ledgers[0].resolve(generation, replace(LOG, number=n), 0) for n in range(WORKERS)]

    def work(n: int) -> Generation | None:
        if n == 0:
            return ledgers[0].begin(*WITH_KS).generation
        head = heads[n]
        for _ in range(20):
            head = ledgers[n].commit(generation, commit(head, 2, TOTAL))
        return None

    now, *outcomes = together(work)
    assert isinstance(now, Generation)
    assert all(outcome is None or isinstance(outcome, SettingsChanged) for outcome in outcomes)
    added = next(metric for metric in now.metrics if metric.name == "ks")
    # Those who did not know it have written nothing since.
    reached = {head.id: head.next_offset for head in ledgers[0].heads(now)}
    refused = [
        heads[n].id for n in range(1, WORKERS) if isinstance(outcomes[n - 1], SettingsChanged)
    ]
    assert all(reached[head] == added.start_offsets[head] for head in refused)


def test_retries_are_numbered_as_they_commit_and_no_worker_waits_for_one(
    ledgers: Sequence[Ledger], tmp_path: Path
) -> None:
    first, worker = ledgers[:2]
    generation = first.begin(PRINTS, DESCRIPTIONS).generation
    counted, log_head = (first.resolve(generation, replace(LOG, number=n), 0) for n in range(2))
    for _ in range(2):
        counted = first.commit(generation, commit(counted, 4, TOTAL))
    entries = first.quarantine()
    url = str(tmp_path / "ledger.db")
    with closing(Ledger.open(url, create=True, pauses_s=(), busy_s=0.02)) as second:

        def count(ledger: Ledger, number: int) -> int:
            batch = RetriedEntries([entries[number]], commit(counted, 1, TOTAL))
            note = f"retry {number}"
            return write_retry(ledger.store, generation, [batch], created_ms=1, note=note)

        def go_on() -> None:
            with pytest.raises(StoreUnavailable):
                count(second, 1)
            if second.store.engine.dialect.name != "sqlite":
                worker.commit(generation, commit(log_head, 4, TOTAL))

        with before_statement(first.store, "UPDATE quarantine", go_on):
            number = count(first, 0)
        assert count(second, 1) > number


def test_transactions_that_wait_for_each_other_are_tried_again(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        generation = ledger.begin(PRINTS, DESCRIPTIONS).generation
        ids = [ledger.resolve(generation, replace(LOG, number=n), 0).id for n in range(2)]
    barrier = threading.Barrier(2)

    def work(n: int) -> None:
        def cross(connection: Connection, is_retry: bool) -> None:
            for turn, head_id in enumerate((ids[n], ids[1 - n])):
                connection.execute(
                    update(head_table)
                    .where(head_table.c.id == head_id)
                    .values(lost=head_table.c.lost + 1)
                )
                if turn == 0 and not is_retry and store.engine.dialect.name != "sqlite":
                    barrier.wait(LIMIT_S)

        url = str(tmp_path / "ledger.db")
        with closing(open_store(url, create=True, pauses_s=(0.0, 0.1))) as store:
            store.write(cross)
            assert store.read(lambda c: c.scalar(select(head_table.c.lost).limit(1)))

    assert together(work, 2) == [None, None]
    with closing(opened(tmp_path)) as ledger:
        assert [head.lost for head in ledger.heads(generation)] == [2, 2]
