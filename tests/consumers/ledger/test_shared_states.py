"""What a commit adds to a window is mostly what it adds to the total, and is stored once. No reader
can see it, whichever of the rows goes first."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError
from streammetrics_consumers.ledger import write
from streammetrics_consumers.ledger.compact import Compactor, compact
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.model.generation import Pane

from tests.consumers.ledger.counted_log import (
    HOUR,
    PANES,
    begun,
    committed,
    filled,
    require_true_rows,
    sums,
)
from tests.consumers.stores import over_stores, stored

KEYS = 50


@pytest.fixture(autouse=True)
def small_states_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "SHARED_BYTES", 0)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(str(tmp_path / "a.db"), create=True)


def sharing(ledger: Ledger) -> tuple[int, int]:
    """The rows whose state is that of another; the bytes of states in the table."""
    query = select(func.count(delta.c.same_as), func.sum(func.length(delta.c.state)))
    count, nbytes = ledger.store.read(lambda connection: connection.execute(query).one())
    return count, nbytes


def test_the_state_of_a_commit_within_a_window_is_in_the_store_once(tmp_path: Path) -> None:
    outcomes = []
    for least in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(write, "SHARED_BYTES", least)
            with closing(Ledger.open(str(tmp_path / f"{least}.db"), create=True)) as ledger:
                generation, heads = begun(ledger)
                committed(ledger, generation, heads[0], 7, keys=KEYS)
                outcomes.append((sharing(ledger), sums(stored(ledger)), ledger.snapshot().panes))
    ((shared, once), *same), ((none, twice), *expected) = outcomes
    assert (shared, none) == (1, 0)
    assert twice == 2 * once
    assert same == expected


def test_a_commit_over_two_windows_has_three_states(ledger: Ledger) -> None:
    with closing(ledger):
        generation, heads = begun(ledger)
        committed(ledger, generation, heads[0], 14, keys=KEYS)
        assert sharing(ledger)[0] == 0


@pytest.mark.parametrize(
    ("databases", "seed"), over_stores((1,), (2,), (3,), postgres=1), indirect=["databases"]
)
def test_no_order_of_merges_and_of_retention_changes_a_sum(
    each_store: None, seed: int, tmp_path: Path
) -> None:
    lucky = random.Random(seed)
    with closing(Ledger.open(str(tmp_path / "a.db"), create=True)) as ledger:
        generation, heads = filled(ledger, 12, keys=KEYS, seed=seed)
        for _ in range(3):
            for _ in range(6):
                index = lucky.randrange(len(heads))
                n = lucky.randrange(1, 8)
                heads[index] = committed(ledger, generation, heads[index], n, keys=KEYS)
            before = sums(stored(ledger))
            assert sharing(ledger)[0] > 0
            compactor = Compactor(ledger.store, above=1, leave=lucky.randrange(3))
            runs = compactor.runs()
            lucky.shuffle(runs)  # totals before windows, too: their states move to the windows
            for run in runs[: lucky.randrange(1, len(runs) + 1)]:
                for group in compactor.plan(run):
                    compactor.merge(run, group)
            assert sums(stored(ledger)) == before
            require_true_rows(stored(ledger), KEYS)
        ledger.raise_floor(generation, HOUR)
        left = sums(stored(ledger))
        assert left == {key: data for key, data in before.items() if key[0] != PANES[1]}
        compact(ledger.store)
        assert sums(stored(ledger)) == left
        assert sharing(ledger)[0] == 0


def test_a_merge_of_windows_first_copies_no_state(ledger: Ledger) -> None:
    with closing(ledger):
        generation, heads = begun(ledger)
        head = heads[0]
        for n in (3, 2, 2):  # all in the first window
            head = committed(ledger, generation, head, n, keys=KEYS)
        runs = Compactor(ledger.store, above=1).runs()
        assert [run.pane.is_total for run in runs] == [False, True]


def test_the_database_itself_refuses_to_lose_a_shared_state(ledger: Ledger) -> None:
    with closing(ledger), pytest.raises(IntegrityError):
        generation, heads = begun(ledger)
        committed(ledger, generation, heads[0], 7, keys=KEYS)
        gone = text("DELETE FROM delta WHERE window_start_ms IS NULL")
        with ledger.store.engine.begin() as connection:
            connection.execute(gone)


def test_states_of_other_metrics_or_ranges_are_never_shared() -> None:
    total = write.StateShard(Pane("auc", 0, None, None), 0, 2, b"same")
    window = Pane("auc", 0, 0, HOUR)
    shards = [
        replace(total, pane=window._replace(metric="ctr")),
        replace(total, pane=window._replace(grouping=1)),
        replace(total, pane=window, key_range=1),
        replace(total, pane=window, key_ranges=1),
        replace(total, pane=window, state=b"other"),
    ]
    shared = replace(total, pane=window)
    assert write._totals_of([*shards, shared, total]) == {id(shared): total}
