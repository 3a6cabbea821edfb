"""The compactor changes how many rows there are, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import insert, update
from streammetrics_consumers.ledger import compact as compact_module
from streammetrics_consumers.ledger.compact import ABOVE, Compacted, Compactor, compact, depth
from streammetrics_consumers.ledger.delta_metadata import split
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta, retry
from streammetrics_consumers.model.commit import Commit, Counters

from streammetrics import ExactAUC, PerKey
from tests.consumers.ledger.counted_log import (
    HOUR,
    PANES,
    begun,
    committed,
    filled,
    require_true_rows,
    sums,
)
from tests.consumers.stores import Stored, over_stores, stored
from tests.depth import DEEP

pytestmark = pytest.mark.usefixtures("each_store")

KEYS = 50


def counted(held: Stored) -> object:
    """What a reader can see: all but the rows."""
    seen = held.seen
    return seen.generation, seen.heads, sums(held), {size.pane for size in seen.panes}


def per_run(held: Stored) -> list[int]:
    """How many rows each merge run has."""
    return sorted(Counter((row.pane, row.head) for row, _ in held.rows).values())


# How many rows a head may have, bytes of a group, and bytes of a row: each two values of two of
# them together; all three, where more is tried.
SETTINGS = [(8, 3000, 2000), (1, 20_000, 8 << 20), (1, 32 << 20, 2000), (8, 32 << 20, 8 << 20)]
FURTHER = [(1, 20_000, 2000), (8, 20_000, 8 << 20), (8, 32 << 20, 2000), (1, 32 << 20, 8 << 20)]


@pytest.mark.parametrize(
    ("databases", "settings"),
    over_stores(*zip([*SETTINGS, *(FURTHER if DEEP else ())]), postgres=8 if DEEP else 1),
    indirect=["databases"],
)
def test_at_every_moment_bytes_and_offsets_are_as_they_were(
    ledger: Ledger, settings: tuple[int, int, int]
) -> None:
    above, merge_bytes, limit = settings
    filled(ledger, 30, limit=limit)
    before = stored(ledger)
    compactor = Compactor(ledger.store, above=above, merge_bytes=merge_bytes, row_bytes=limit)
    total = Compacted()
    for step in compactor.steps():
        total += step
        if merge_bytes < 20_000:
            require_true_rows(stored(ledger), KEYS, limit)
    after = stored(ledger)
    require_true_rows(after, KEYS, limit)
    is_cut = max(row.key_ranges for row, _ in after.rows) > 1
    assert is_cut or merge_bytes >= 20_000
    assert total.rows_before > total.rows_after > 0
    assert len(before.rows) - len(after.rows) == total.rows_before - total.rows_after
    assert counted(after) == counted(before)
    assert {row.head for row, _ in after.rows} == {head.id for head in after.seen.heads}
    for run in compactor.runs():
        rows = [row for row, _ in after.rows if (row.pane, row.head) == (run.pane, run.head)]
        assert depth(rows) <= above


@pytest.mark.slow
def test_only_heads_with_many_rows_are_merged_unasked(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    for head, commits in zip(heads, (ABOVE, ABOVE + 1, 3), strict=True):
        for _ in range(commits):
            head = committed(ledger, generation, head, 14, keys=KEYS)
    list(Compactor(ledger.store).steps())
    held = stored(ledger)
    rows = Counter(row.head for row, _ in held.rows)
    assert [rows[head.id] // len(PANES) for head in heads] == [ABOVE, 5, 3]
    require_true_rows(held, KEYS)


@pytest.mark.slow
def test_work_that_never_ends_keeps_the_rows_few(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    head = heads[0]
    for _ in range(90):
        head = committed(ledger, generation, head, 9, keys=KEYS)
        list(Compactor(ledger.store).steps([head.id]))
    seen = stored(ledger)
    assert max(per_run(seen)) <= ABOVE
    require_true_rows(seen, KEYS)


@pytest.mark.slow
def test_a_row_that_is_gone_rolls_the_whole_group_back(ledger: Ledger) -> None:
    filled(ledger, 40)
    first, second = (Compactor(ledger.store, above=1) for _ in range(2))
    run = first.runs()[0]
    (group,) = first.plan(run)
    half = replace(group, extents=group.extents[: len(group.extents) // 2])
    read = ledger.store.read(lambda c: compact_module._states(c, run, group))
    assert read is not None
    of, states = read
    made = second._fold(run.pane, group, states, ())
    assert first.merge(run, half) is not None
    before = stored(ledger)
    with pytest.raises(compact_module._NotAsRead):
        ledger.store.write(lambda c, _: compact_module._exchange(c, of, run, group, made))
    assert stored(ledger) == before
    assert second.merge(run, group) is None
    require_true_rows(before, KEYS)


def test_an_id_that_was_given_again_is_another_row(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    head, compactor = heads[0], Compactor(ledger.store, above=1)
    for _ in range(3):
        head = committed(ledger, generation, head, 14, keys=KEYS, panes=PANES[:1])
    (run,) = compactor.runs()
    (group,) = compactor.plan(run)
    compact(ledger.store)
    for _ in range(2):
        head = committed(ledger, generation, head, 14, keys=KEYS, panes=PANES[:1])
    seen = stored(ledger)
    if ledger.store.engine.dialect.name == "sqlite":
        assert {extent.id for extent in group.extents} == {row.id for row, _ in seen.rows}
    assert compactor.merge(run, group) is None
    with pytest.raises(compact_module._NotAsRead):
        ledger.store.write(lambda c, _: compact_module._exchange(c, head, run, group, []))
    assert stored(ledger) == seen


@pytest.mark.slow
def test_windows_below_the_floor_stay_gone_and_the_total_stays(ledger: Ledger) -> None:
    generation, _ = filled(ledger, 40)
    compactor = Compactor(ledger.store, above=1)
    planned = [(run, compactor.plan(run)) for run in compactor.runs()]
    total = {key: data for key, data in sums(stored(ledger)).items() if key[0].is_total}
    generation = ledger.raise_floor(generation, HOUR)
    for run, groups in planned:
        for group in groups:
            merged = compactor.merge(run, group)
            assert (merged is None) == (run.pane == PANES[1])
    seen = stored(ledger)
    assert {size.pane for size in seen.seen.panes} == {PANES[0], PANES[2]}
    assert {key: data for key, data in sums(seen).items() if key[0].is_total} == total
    ledger.raise_floor(generation, 2 * HOUR)
    seen = stored(ledger)
    assert {size.pane for size in seen.seen.panes} == {PANES[0]}
    assert sums(seen) == total


@pytest.mark.slow
def test_an_old_generation_and_a_closed_head_are_merged_too(ledger: Ledger) -> None:
    generation, heads = filled(ledger, 40)
    ledger.follow(generation, heads[0], heads[0].partition, 0)
    ledger.begin({"ctr": "other"}, {"ctr": {}}, new_generation=True)
    before = stored(ledger, generation.id)
    said: list[Compacted] = []
    total = compact(ledger.store, said.append)
    assert said[-1] == total
    assert [one.rows_before for one in said] == sorted({one.rows_before for one in said})
    assert compact(ledger.store) == Compacted()
    after = stored(ledger, generation.id)
    assert counted(after) == counted(before)
    assert per_run(after) == [1] * 9


def large(ledger: Ledger, commits: int, rows: int) -> None:
    """One key whose rows do not become smaller when they are merged."""
    generation, heads = begun(ledger)
    head, pane = heads[0], PANES[0]
    rng = random.Random(1)
    for _ in range(commits):
        state = PerKey(ExactAUC())
        state.update(["a"] * rows, labels=[1] * rows, scores=[rng.random() for _ in range(rows)])
        start = head.next_offset
        shards = list(split(pane, state))
        commit = Commit(head, start, start + rows, 5, Counters(rows), shards)
        head = ledger.commit(generation, commit)


def test_a_key_that_would_be_too_large_for_a_row_keeps_several(ledger: Ledger) -> None:
    large(ledger, 12, 100)
    before = stored(ledger)
    size = len(before.rows[0][1])
    compactor = Compactor(ledger.store, above=1, row_bytes=4 * size)
    list(compactor.steps())
    after = stored(ledger)
    assert counted(after) == counted(before)
    assert 3 <= len(after.rows) <= 6
    assert all(len(state) <= 4 * size for _, state in after.rows)
    spans = sorted((row.start_offset, row.end_offset) for row, _ in after.rows)
    assert all(earlier[1] == later[0] for earlier, later in pairwise(spans))
    assert list(compactor.steps()) == [], "what cannot be merged is not tried again"


@pytest.mark.slow
def test_rows_of_a_retry_are_left_alone(ledger: Ledger) -> None:
    generation, _ = filled(ledger, 40)
    ids = sorted(row.id for row, _ in stored(ledger).rows)[::3]
    with ledger.store.engine.begin() as connection:
        row = {"id": 1, "generation": generation.id, "created_ms": 5, "note": ""}
        connection.execute(insert(retry).values(row))
        connection.execute(update(delta).where(delta.c.id.in_(ids)).values(retry=1))
    before = stored(ledger)
    compact(ledger.store)
    after = stored(ledger)
    assert sums(after) == sums(before)
    assert {one for one in before.rows if one[0].id in ids} <= set(after.rows)
