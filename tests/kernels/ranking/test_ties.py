from __future__ import annotations

import numpy as np

from streammetrics.kernels.ranking.ties import (
    IRRELEVANT,
    PADDING,
    UNJUDGED,
    TieGroups,
    first_of_run,
    settle_worst,
)

KEYS = np.array([[3, 7, 7, 7], [5, 5, 9, 9]], np.uint64)
GRADES = np.array([[1, 2, 0, 0], [3, 1, 1, 0]], np.uint8)
CODES = IRRELEVANT - GRADES


def groups(depth: int = 4) -> TieGroups:
    return TieGroups.of(np.array([4, 6]), KEYS, CODES, depth)


def test_groups_begin_and_end_where_scores_change() -> None:
    tied = groups()
    assert tied.lists.tolist() == [4, 4, 6, 6]
    assert tied.begins.tolist() == [0, 1, 0, 2]
    assert tied.sizes.tolist() == [1, 3, 2, 2]
    assert (IRRELEVANT - tied.codes).tolist() == [1, 2, 3, 1, 1]
    assert tied.ends.tolist() == [0, 1, 2, 4, 5]


def test_a_group_that_begins_above_the_depth_is_there_with_all_its_items() -> None:
    tied = groups(2)
    assert tied.begins.tolist() == [0, 1, 0]
    assert tied.sums(np.arange(16)).tolist() == [1, 2, 4]


def test_groups_with_nothing_relevant_are_left_out() -> None:
    codes = np.array([[IRRELEVANT, IRRELEVANT - 1, UNJUDGED, IRRELEVANT]], np.uint8)
    tied = TieGroups.of(np.array([0]), np.array([[1, 2, 3, 3]], np.uint64), codes, 4)
    assert tied.begins.tolist() == [1]


def test_relevant_items_are_those_of_a_grade_or_more() -> None:
    tied = groups()
    assert tied.relevant(1).tolist() == [1, 1, 2, 1]
    assert tied.relevant(2).tolist() == [0, 1, 1, 0]
    assert tied.relevant(15).tolist() == [0, 0, 0, 0]


def test_above_a_group_are_those_of_its_list_alone() -> None:
    tied = groups()
    assert tied.above(tied.relevant(1)).tolist() == [0, 1, 0, 2]


def test_items_that_nobody_judged_are_counted_above_a_group() -> None:
    codes = np.array([[IRRELEVANT - 1, UNJUDGED, IRRELEVANT - 1, UNJUDGED]], np.uint8)
    tied = TieGroups.of(np.array([0]), np.array([[1, 1, 2, 2]], np.uint64), codes, 4)
    assert tied.unjudged_above.tolist() == [0, 1]
    assert tied.relevant(1).tolist() == [1, 1]
    assert tied.judged().tolist() == [1, 1]
    assert groups().judged().tolist() == [1, 3, 2, 2]


def test_some_groups_and_several_joined_are_groups() -> None:
    tied = groups()
    some = tied.take(np.array([1, 3]))
    assert some.sums(np.arange(16)).tolist() == tied.sums(np.arange(16))[[1, 3]].tolist()
    again = TieGroups.join([some.moved(10), tied.take(np.array([0]))])
    assert again.lists.tolist() == [14, 16, 4]
    assert again.sums(np.arange(16)).tolist() == tied.sums(np.arange(16))[[1, 3, 0]].tolist()
    assert len(TieGroups.join([])) == len(TieGroups.none()) == 0
    assert TieGroups.none().relevant(1).tolist() == []


def test_the_worst_order_of_a_tie_has_the_lowest_grades_first() -> None:
    assert (IRRELEVANT - settle_worst(KEYS, CODES)).tolist() == [[1, 0, 0, 2], [1, 3, 0, 1]]


def test_padding_stays_behind_all_items_in_the_worst_order() -> None:
    keys = np.array([[1, 1, 2**64 - 1]], np.uint64)
    codes = np.array([[IRRELEVANT - 1, IRRELEVANT, PADDING]], np.uint8)
    assert settle_worst(keys, codes).tolist() == [[IRRELEVANT, IRRELEVANT - 1, PADDING]]


def test_the_first_of_a_run_is_where_neighbours_of_an_owner_begin() -> None:
    assert first_of_run(np.array([3, 3, 5, 8, 8, 8])).tolist() == [0, 0, 2, 3, 3, 3]
    assert first_of_run(np.empty(0, np.intp)).tolist() == []
