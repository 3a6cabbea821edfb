"""The states of groups lie side by side: group g of slot s in slot s k + g."""

from __future__ import annotations

import numpy as np

from streammetrics import HistogramAUC, Ratio, UserGroups
from streammetrics.combine.user_groups import GroupsColumn, GroupStates
from streammetrics.core.bytes.codec import Reader, Writer

K = 4
OWNER = UserGroups(Ratio(), buckets=K)
COARSE = UserGroups(HistogramAUC(), buckets=K)


def filled(*rows: tuple[int, int, float], width: int = 3) -> GroupsColumn:
    """Rows (slot, group, numerator)."""
    column = GroupStates().empty(OWNER, width)
    slots, groups, values = (np.array(column_) for column_ in zip(*rows, strict=True))
    column.child._feed(Ratio().check(values), column.locate(groups, slots))
    return column


def sums(column: GroupsColumn) -> list[list[float]]:
    """The numerators, [slots, k]."""
    return [
        [column.of_slot(slot)._take(np.array([group])).compute().numerator for group in range(K)]  # type: ignore[attr-defined]
        for slot in range(column.width)
    ]


ROWS = (0, 1, 1.0), (0, 3, 2.0), (2, 0, 4.0), (2, 1, 8.0)
TOTALS = [[0, 1, 0, 2], [0, 0, 0, 0], [4, 8, 0, 0]]


def test_a_row_goes_to_the_group_of_its_slot() -> None:
    assert sums(filled(*ROWS)) == TOTALS
    alone = GroupStates().empty(OWNER, 1)
    assert alone.locate(np.array([3, 1]), None).tolist() == [3, 1]


def test_slots_are_widened_taken_and_merged_with_all_their_groups() -> None:
    column = filled(*ROWS)
    taken = column.take(np.array([2, 0]))
    assert sums(taken) == [TOTALS[2], TOTALS[0]]
    column.widen(5)
    assert sums(column) == [*TOTALS, [0] * K, [0] * K]
    column.merge(taken, np.array([4, 4]))
    assert sums(column)[4] == [4, 9, 0, 2]
    assert sums(taken) == [TOTALS[2], TOTALS[0]], "what is merged does not change"


def test_a_slot_has_memory_of_its_own() -> None:
    column = filled(*ROWS)
    of_slot = column.of_slot(0)
    of_slot._feed(Ratio().check([9.0]), np.array([0]))
    assert sums(column) == TOTALS


def test_states_come_back_from_their_bytes() -> None:
    column, out = filled(*ROWS), Writer()
    column.encode(out)
    reader = Reader(out.bytes_())
    back = GroupStates().decode(OWNER, 3, reader)
    reader.finish()
    assert sums(back) == TOTALS
    assert back.nbytes > 0 and back.total_count >= column.child._exact_total_count()


def test_the_whole_is_kept_only_where_groups_do_not_add_up_to_it() -> None:
    assert OWNER.whole.by_name == {}
    assert list(COARSE.whole.by_name) == ["metric"]
    for state in (OWNER, COARSE):
        assert (
            UserGroups.from_bytes(state.to_bytes()).whole.by_name.keys()
            == state.whole.by_name.keys()
        )
