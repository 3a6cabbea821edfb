"""A column of sets of hashes: settled or waiting, whole or sampled, it is the sets of Python."""

from __future__ import annotations

import numpy as np

from streammetrics.core.bytes.codec import Writer
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.unit_set import _FEW, UnitsColumn

ALL = (1 << 64) - 1
HALF = (1 << 63) - 1


def words(*values: int) -> Words:
    return np.array(values, np.uint64)


def filled(
    rows: list[tuple[int, int]], last: int = ALL, limit: int | None = None, width: int = 3
) -> UnitsColumn:
    """Rows (slot, hash)."""
    column = UnitsColumn(last, limit, width)
    slots = np.array([slot for slot, _ in rows], np.intp)
    column.add(words(*(word for _, word in rows)), slots)
    return column


def sets(column: UnitsColumn) -> list[list[int] | None]:
    found = (column.of_slot(slot) for slot in range(column.width))
    return [None if one is None else one.tolist() for one in found]


def expected(
    rows: list[tuple[int, int]], last: int = ALL, limit: int | None = None, width: int = 3
) -> list[list[int] | None]:
    every = [sorted({w for s, w in rows if s == slot and w <= last}) for slot in range(width)]
    return [None if limit is not None and len(one) > limit else one for one in every]


def encoded(column: UnitsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def test_the_hash_at_the_threshold_is_kept_and_the_next_one_is_not() -> None:
    column = UnitsColumn(HALF, None, 1)
    column.add(words(HALF, HALF + 1))
    assert sets(column) == [[HALF]]


def test_a_set_at_its_limit_is_kept_and_one_past_it_is_dropped_for_good() -> None:
    rows = [(0, 1), (0, 2), (0, 2), (1, 1), (1, 2), (1, 3)]
    column = filled(rows, limit=2)
    assert sets(column) == [[1, 2], None, []]
    assert column.hashes.tolist() == [1, 2]
    column.add(words(7), np.array([1]))
    assert sets(column)[1] is None


def test_states_are_taken_in_any_order_and_widened() -> None:
    column = filled([(0, 5), (2, 7), (2, 9), (1, 1), (1, 2), (1, 3)], limit=2)
    taken = column.take(np.array([2, 1, 0, 2]))
    assert sets(taken) == [[7, 9], None, [5], [7, 9]]
    column.widen(4)
    column.add(words(8), np.array([3]))
    assert sets(column) == [[5], None, [7, 9], [8]]
    assert sets(taken)[0] == [7, 9]
    merged = UnitsColumn(ALL, 2, 2)
    merged.merge(column, np.array([0, 1, 1, 0]))
    assert sets(merged) == [[5, 8], None]


def test_hashes_wait_until_they_are_worth_a_sort_and_are_counted_in_memory() -> None:
    column = UnitsColumn(ALL, None, 1)
    column.add(np.arange(_FEW, dtype=np.uint64))
    assert (len(column.hashes), column.n_pending) == (0, _FEW)
    waiting = column.nbytes
    column.add(words(1 << 40))
    assert (len(column.hashes), column.n_pending) == (_FEW + 1, 0)
    assert 16 * _FEW <= waiting <= column.nbytes
    column.add(np.arange(_FEW, dtype=np.uint64))
    assert column.n_pending == _FEW, "as many as are settled may wait"
    assert sets(column) == [[*range(_FEW), 1 << 40]]


def test_sets_have_no_mass() -> None:
    assert filled([(0, 5)]).total_count == 0
