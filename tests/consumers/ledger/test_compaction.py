"""Which rows are merged: neighbours, of a bounded size, and each byte only a few times."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from streammetrics_consumers.ledger.compact import ABOVE, LEAVE, Group, depth, node, plan
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.model.generation import Pane

PANE = Pane("auc", 0, None, None)


def row(id_: int, at: int, ranges: int, start: int, end: int, nbytes: int) -> DeltaMetadata:
    return DeltaMetadata(id_, PANE, at, ranges, 1, start, end, nbytes, None)


def in_a_row(
    n: int, nbytes: int = 100, ranges: int = 1, at: int = 0, first: int = 0
) -> list[DeltaMetadata]:
    return [
        row(first + i, at, ranges, 10 * (first + i), 10 * (first + i) + 10, nbytes)
        for i in range(n)
    ]


def done(
    extents: Sequence[DeltaMetadata], group: Group, next_id: int, size: int
) -> list[DeltaMetadata]:
    """What stands after a group was merged, where its rows add up to `size` bytes a range."""
    left = [extent for extent in extents if extent not in group.extents]
    start = min(extent.start_offset for extent in group.extents)
    end = max(extent.end_offset for extent in group.extents)
    coarsest = min(group.extents, key=lambda extent: extent.key_ranges)
    ranges = max(coarsest.key_ranges, group.ranges)
    each = ranges // coarsest.key_ranges
    nodes = range(coarsest.key_range * each, coarsest.key_range * each + each)
    if coarsest.key_ranges >= group.ranges:
        ranges, one = group.ranges, node(coarsest, group.ranges)
        nodes = range(one, one + 1)
    return left + [row(next_id + i, at, ranges, start, end, size) for i, at in enumerate(nodes)]


def test_more_rows_than_the_limit_are_merged_and_the_newest_stay_for_those_who_follow() -> None:
    extents = in_a_row(ABOVE + 1)
    assert plan(extents[:-1]) == []
    assert plan(extents) == [Group(tuple(extents[:-LEAVE]), 1)]
    assert plan(extents[:3], above=1) == [Group(tuple(extents[:3]), 1)]
    assert plan(extents[:1], above=1) == []


def test_an_old_large_row_waits_until_those_after_it_are_half_as_large() -> None:
    old = row(1000, 0, 1, 0, 10, 10_000)
    (group,) = plan([old, *in_a_row(ABOVE + 1, first=1)])
    assert old not in group.extents
    (group,) = plan([old, *in_a_row(ABOVE + 1, nbytes=200, first=1)])
    assert old in group.extents


def test_ranges_of_keys_that_share_none_are_merged_apart() -> None:
    extents = [*in_a_row(40, ranges=2), *in_a_row(40, ranges=2, at=1, first=100)]
    groups = plan(extents)
    assert [{extent.key_range for extent in group.extents} for group in groups] == [{0}, {1}]
    assert [group.ranges for group in groups] == [2, 2]


def test_depth_counts_the_rows_over_one_key() -> None:
    assert depth([]) == 0
    assert depth(in_a_row(5)) == 5
    assert depth([*in_a_row(5, ranges=4), *in_a_row(7, ranges=4, at=1)]) == 7
    assert depth([*in_a_row(5, ranges=4), *in_a_row(7, ranges=2), *in_a_row(1)]) == 13


def test_rows_too_large_for_the_memory_are_cut_into_ranges_first() -> None:
    extents = in_a_row(40, nbytes=100)
    groups = plan(extents, merge_bytes=1000)
    assert {group.ranges for group in groups} == {4}
    assert all(sum(extent.nbytes for extent in group.extents) <= 1000 for group in groups)
    assert sum(len(group.extents) for group in groups) == 40 - LEAVE


@pytest.mark.parametrize("seed", range(3))
def test_groups_share_no_row_and_keep_the_order_and_the_limit(seed: int) -> None:
    rng = random.Random(seed)
    extents: list[DeltaMetadata] = []
    for i in range(120):
        ranges = rng.choice([1, 1, 2, 4, 8])
        for at in range(ranges):
            if rng.random() < 0.9:
                extents.append(
                    row(len(extents), at, ranges, 10 * i, 10 * i + 10, rng.randrange(500))
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
            extents = done(extents, group, 10_000 + i, size)
        assert depth(extents) <= ABOVE + 1
    assert written <= 8 * 400 * 100


def test_it_comes_to_an_end_where_nothing_can_be_merged_within_the_limit() -> None:
    extents = in_a_row(40, nbytes=900)
    for _ in range(100):
        groups = plan(extents, above=1, merge_bytes=1000)
        if not groups:
            break
        for group in groups:
            extents = done(extents, group, 10_000 + len(extents) * 100, 20)
    assert depth(extents) == 1


def test_no_group_lies_across_a_cut() -> None:
    extents = [row(i, 0, 1, 10 * i, 10 * i + 5, 100) for i in range(8)]
    groups = plan(extents, above=1, cuts=[35, 66])
    assert [[extent.id for extent in group.extents] for group in groups] == [
        [0, 1, 2, 3],
        [4, 5, 6],
    ]
