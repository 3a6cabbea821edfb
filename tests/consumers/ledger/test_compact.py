"""The compactor changes how many rows there are, and nothing else: neighbours are merged, of a
bounded size, and each byte only a few times."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import insert, update
from streammetrics_consumers.ledger.compact import (
    Compacted,
    Compactor,
    MergeRun,
    _exchange,
    _NotAsRead,
    _states,
    compact,
    count_mergeable,
)
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, split
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.merge_plan import ABOVE, LEAVE, MergeGroup, depth, node, plan
from streammetrics_consumers.ledger.schema import delta, retry
from streammetrics_consumers.ledger.schema import head as head_table
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Pane

from streammetrics import ExactAUC, PerKey
from tests.consumers.ledger.counted_log import (
    LOGS,
    PANES,
    begun,
    committed,
    filled,
    require_true_rows,
    sums,
)
from tests.consumers.stores import Stored, over_stores, stored
from tests.depth import DEEP

AUC = Pane("auc", 0, None, None)


def row(id_: int, key_range: int, ranges: int, start: int, end: int, nbytes: int) -> DeltaMetadata:
    return DeltaMetadata(id_, AUC, key_range, ranges, 1, start, end, nbytes, None)


def in_a_row(
    n: int, nbytes: int = 100, ranges: int = 1, key_range: int = 0, first: int = 0
) -> list[DeltaMetadata]:
    return [
        row(first + i, key_range, ranges, 10 * (first + i), 10 * (first + i) + 10, nbytes)
        for i in range(n)
    ]


def extents_after_merge(
    extents: Sequence[DeltaMetadata], group: MergeGroup, next_id: int, size: int
) -> list[DeltaMetadata]:
    """What stands after a group was merged, where its rows add up to `size` bytes a range."""
    left = [extent for extent in extents if extent not in group.extents]
    start = min(extent.start_offset for extent in group.extents)
    end = max(extent.end_offset for extent in group.extents)
    coarsest = min(group.extents, key=lambda extent: extent.key_ranges)
    ranges = max(coarsest.key_ranges, group.ranges)
    factor = ranges // coarsest.key_ranges
    nodes = range(coarsest.key_range * factor, coarsest.key_range * factor + factor)
    if coarsest.key_ranges >= group.ranges:
        ranges, single_node = group.ranges, node(coarsest, group.ranges)
        nodes = range(single_node, single_node + 1)
    return left + [
        row(next_id + i, key_range, ranges, start, end, size) for i, key_range in enumerate(nodes)
    ]


def test_more_rows_than_the_limit_are_merged_and_the_newest_stay_for_those_who_follow() -> None:
    extents = in_a_row(ABOVE + 1)
    assert plan(extents[:-1]) == []
    assert plan(extents) == [MergeGroup(tuple(extents[:-LEAVE]), 1)]
    assert plan(extents[:3], above=1) == [MergeGroup(tuple(extents[:3]), 1)]
    assert plan(extents[:1], above=1) == []


def test_an_old_large_row_waits_until_those_after_it_are_half_as_large() -> None:
    old = row(1000, 0, 1, 0, 10, 10_000)
    (group,) = plan([old, *in_a_row(ABOVE + 1, first=1)])
    assert old not in group.extents
    (group,) = plan([old, *in_a_row(ABOVE + 1, nbytes=200, first=1)])
    assert old in group.extents


def test_ranges_of_keys_that_share_none_are_merged_apart() -> None:
    extents = [*in_a_row(40, ranges=2), *in_a_row(40, ranges=2, key_range=1, first=100)]
    groups = plan(extents)
    assert [{extent.key_range for extent in group.extents} for group in groups] == [{0}, {1}]
    assert [group.ranges for group in groups] == [2, 2]


def test_depth_counts_the_rows_over_one_key_and_each_row_lies_in_one_of_fewer_ranges() -> None:
    assert [node(row(0, key_range, 4, 0, 1, 9), 2) for key_range in range(4)] == [0, 0, 1, 1]
    assert depth([*in_a_row(5, ranges=4), *in_a_row(7, ranges=4, key_range=1)]) == 7
    assert depth([*in_a_row(5, ranges=4), *in_a_row(7, ranges=2), *in_a_row(1)]) == 13


def test_rows_too_large_for_the_memory_are_cut_into_ranges_first() -> None:
    extents = in_a_row(40, nbytes=100)
    groups = plan(extents, merge_bytes=1000)
    assert {group.ranges for group in groups} == {4}
    assert all(sum(extent.nbytes for extent in group.extents) <= 1000 for group in groups)
    assert sum(len(group.extents) for group in groups) == 40 - LEAVE


def test_rows_side_by_side_are_merged_or_cut_together() -> None:
    """A wide row, and after it two of half of its keys for each commit."""
    halves = [
        replace(half, start_offset=10 * i, end_offset=10 * i + 10)
        for key_range in (0, 1)
        for i, half in enumerate(
            in_a_row(ABOVE, ranges=2, key_range=key_range, first=1 + 100 * key_range), start=1
        )
    ]
    extents = [*in_a_row(1), *halves]
    old = {extent for extent in extents if extent.start_offset <= 10 * (ABOVE - LEAVE)}
    (group,) = plan(extents)
    assert (set(group.extents), group.ranges) == (old, 1)
    groups = plan(extents, merge_bytes=1000)
    assert {extent for group in groups for extent in group.extents} == old
    assert {group.ranges for group in groups} == {8}


@pytest.mark.parametrize("seed", range(3))
def test_groups_share_no_row_and_keep_the_order_and_the_limit(seed: int) -> None:
    rng = random.Random(seed)
    extents: list[DeltaMetadata] = []
    for i in range(120):
        ranges = rng.choice([1, 1, 2, 4, 8])
        for key_range in range(ranges):
            if rng.random() < 0.9:
                extents.append(
                    row(len(extents), key_range, ranges, 10 * i, 10 * i + 10, rng.randrange(500))
                )
    rng.shuffle(extents)
    groups = plan(extents, merge_bytes=3000)
    assert groups
    used = [extent for group in groups for extent in group.extents]
    assert len(set(used)) == len(used)
    for group in groups:
        starts = [extent.start_offset for extent in group.extents]
        assert starts == sorted(starts)
        assert len(group.extents) <= 2 or sum(extent.nbytes for extent in group.extents) <= 3000
        coarse = {(b.key_range, b.key_ranges) for b in group.extents if b.key_ranges < group.ranges}
        fine = {node(b, group.ranges) for b in group.extents if b.key_ranges >= group.ranges}
        assert len(coarse) + len(fine) == 1, "one node each"


def test_a_byte_is_written_a_few_times_however_long_it_goes_on() -> None:
    extents: list[DeltaMetadata] = []
    written = 0
    for i in range(400):
        extents.append(row(i, 0, 1, 10 * i, 10 * i + 10, 100))
        for group in plan(extents):
            size = sum(extent.nbytes for extent in group.extents)
            written += size
            extents = extents_after_merge(extents, group, 10_000 + i, size)
        assert depth(extents) <= ABOVE + 1
    assert written <= 8 * 400 * 100


def test_it_comes_to_an_end_where_nothing_can_be_merged_within_the_limit() -> None:
    extents = in_a_row(12, nbytes=900)
    for _ in range(100):
        groups = plan(extents, above=1, merge_bytes=1000)
        if not groups:
            break
        for group in groups:
            extents = extents_after_merge(extents, group, 10_000 + len(extents) * 100, 20)
    assert depth(extents) == 1


def test_no_group_lies_across_a_cut() -> None:
    extents = [row(i, 0, 1, 10 * i, 10 * i + 5, 100) for i in range(8)]
    groups = plan(extents, above=1, cuts=[35, 66])
    assert [[extent.id for extent in group.extents] for group in groups] == [
        [0, 1, 2, 3],
        [4, 5, 6],
    ]


def test_rows_of_times_before_1970_are_planned_like_those_of_later_ones() -> None:
    """Offsets of closed events are their times."""
    later = in_a_row(40)
    early = [row(i, 0, 1, 10 * i - 1000, 10 * i - 990, 100) for i in range(40)]
    shifted = [
        [group.extents for group in plan(extents, above=1, merge_bytes=1000, cuts=[start + 55])]
        for extents, start in ((later, 0), (early, -1000))
    ]
    ids = [[[extent.id for extent in group] for group in groups] for groups in shifted]
    assert ids[0] == ids[1]
    assert max(map(len, ids[1])) == 10


each_store = pytest.mark.usefixtures("each_store")


KEYS = 50


def counted(contents: Stored) -> object:
    """What a reader can see: all but the rows."""
    snapshot = contents.seen
    return (
        snapshot.generation,
        snapshot.heads,
        sums(contents),
        {size.pane for size in snapshot.panes},
    )


# How many rows a head may have, bytes of a group, and bytes of a row: each two values of two of
# them together; all three, where more is tried.
SETTINGS = [(8, 3000, 2000), (1, 20_000, 8 << 20), (1, 32 << 20, 2000), (8, 32 << 20, 8 << 20)]


FURTHER = [(1, 20_000, 2000), (8, 20_000, 8 << 20), (8, 32 << 20, 2000), (1, 32 << 20, 8 << 20)]


@each_store
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


@each_store
def test_only_heads_with_many_rows_are_merged_unasked(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    for head, commits in zip(heads, (ABOVE, ABOVE + 1, 3), strict=True):
        for _ in range(commits):
            head = committed(ledger, generation, head, 14, keys=KEYS)
    list(Compactor(ledger.store).steps())
    contents = stored(ledger)
    rows = Counter(row.head for row, _ in contents.rows)
    assert [rows[head.id] // len(PANES) for head in heads] == [ABOVE, 5, 3]
    require_true_rows(contents, KEYS)


@each_store
def test_rows_of_old_generations_and_closed_heads_are_merged_and_those_of_retries_are_not(
    ledger: Ledger,
) -> None:
    generation, heads = filled(ledger, 40)
    retried = sorted(row.id for row, _ in stored(ledger).rows)[::3]
    with ledger.store.engine.begin() as connection:
        retry_row = {"id": 1, "generation": generation.id, "created_ms": 5, "note": ""}
        connection.execute(insert(retry).values(retry_row))
        connection.execute(update(delta).where(delta.c.id.in_(retried)).values(retry=1))
    ledger.follow(generation, heads[0], heads[0].partition, 0)
    ledger.begin({"ctr": "other"}, {"ctr": {}}, new_generation=True)
    before = stored(ledger, generation.id)
    reports: list[Compacted] = []
    total = compact(ledger.store, reports.append)
    assert reports[-1] == total
    assert [report.rows_before for report in reports] == sorted(
        {report.rows_before for report in reports}
    )
    assert compact(ledger.store) == Compacted()
    after = stored(ledger, generation.id)
    assert counted(after) == counted(before)
    assert {pair for pair in before.rows if pair[0].id in retried} <= set(after.rows)
    log_rows = Counter((row.pane, row.head) for row, _ in after.rows if row.retry is None)
    assert list(log_rows.values()) == [1] * 9


@each_store
def test_what_there_is_to_merge_and_what_was_done_is_said(ledger: Ledger) -> None:
    generation, heads = begun(ledger)
    for head, commits in zip(heads, (2, 3, 1), strict=True):
        for _ in range(commits):
            head = committed(ledger, generation, head, 14, keys=KEYS, panes=PANES[:1])
    assert count_mergeable(ledger.store) == 5
    reports: list[Compacted] = []
    total = compact(ledger.store, reports.append)
    assert [(report.rows_before, report.rows_after) for report in reports] == [(2, 1), (5, 2)]
    assert reports[-1] == total
    assert count_mergeable(ledger.store) == 0


@each_store
def test_rows_that_are_not_as_they_were_read_are_not_merged(ledger: Ledger) -> None:
    compactor = Compactor(ledger.store, above=1)
    generation, heads = begun(ledger)
    heads.append(ledger.resolve(generation, replace(LOGS[0], number=3), 0))

    def given_again(head: Head, run: MergeRun, group: MergeGroup) -> None:
        """SQLite gives the ids of deleted rows to others."""
        compact(ledger.store)
        for _ in range(2):
            head = committed(ledger, generation, head, 14, keys=KEYS, panes=PANES[:1])
        if ledger.store.engine.dialect.name == "sqlite":
            ids = {row.id for row, _ in stored(ledger).rows}
            assert {extent.id for extent in group.extents} == ids

    def half_merged(head: Head, run: MergeRun, group: MergeGroup) -> None:
        half = replace(group, extents=group.extents[:2])
        assert Compactor(ledger.store, above=1).merge(run, half) is not None

    def flagged(head: Head, run: MergeRun, group: MergeGroup) -> None:
        statement = update(delta).where(delta.c.head == head.id)
        ledger.store.write(lambda c, _: c.execute(statement.values(for_coarser=True)))

    def of_another_log(head: Head, run: MergeRun, group: MergeGroup) -> None:
        statement = update(head_table).where(head_table.c.id == head.id)
        ledger.store.write(lambda c, _: c.execute(statement.values(partition=99)))

    for head, change in zip(
        heads, (given_again, half_merged, flagged, of_another_log), strict=True
    ):
        for _ in range(3):
            head = committed(ledger, generation, head, 14, keys=KEYS, panes=PANES[:1])
        (run,) = compactor.runs([head.id])
        (group,) = compactor.plan(run)
        read = ledger.store.read(lambda c, run=run, group=group: _states(c, run, group))
        assert read is not None
        merged_rows = compactor._fold(run.pane, group, read[1], ())
        change(head, run, group)
        before = stored(ledger)
        with pytest.raises(_NotAsRead):
            ledger.store.write(
                lambda c, _, run=run, group=group, log_head=read[0], rows=merged_rows: _exchange(
                    c, log_head, run, group, rows
                )
            )
        if change is not of_another_log:
            assert compactor.merge(run, group) is None, change.__name__
        assert stored(ledger) == before, change.__name__


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


@each_store
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


def test_it_ends_while_a_worker_commits_more_than_it_merges(tmp_path: Path) -> None:
    with closing(Ledger.open(str(tmp_path / "store.db"), create=True)) as ledger:
        generation, heads = filled(ledger, 20)
        counted = {head.id: head.next_offset for head in heads}
        merges = 0

        def commit_more(compacted: Compacted) -> None:
            nonlocal merges
            merges += 1
            assert merges < 50, "it merges what is counted while it runs"
            for _ in range(3):
                heads[0] = committed(ledger, generation, heads[0], 5, keys=50)

        compact(ledger.store, commit_more)
        rows = [row for row, _ in stored(ledger).rows if row.head == heads[0].id]
    new = [row for row in rows if row.start_offset >= counted[heads[0].id]]
    assert len({row.start_offset for row in new}) == 3 * merges
