"""Units that count in many slots: their sets are those of one grouping after another."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.codec import Writer
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts import shared_units, unit_set
from streammetrics.core.parts.many_slots import NO_SLOT, Grouping, ManySlots
from streammetrics.core.parts.unit_set import UnitsColumn

ALL = (1 << 64) - 1


def encoded(column: UnitsColumn) -> bytes:
    column.encode(out := Writer())
    return out.bytes_()


def add_one_by_one(column: UnitsColumn, hashes: Words, slots: ManySlots) -> None:
    for rows, row_slots in slots.each():
        column.add(hashes if rows is None else hashes[rows], row_slots)


@pytest.mark.parametrize("last", [ALL, ALL // 3])
@pytest.mark.parametrize("limit", [None, 1, 40])
@pytest.mark.parametrize("slots_each", [2, 20, 70])
def test_units_of_many_slots_are_those_of_one_grouping_after_another(
    monkeypatch: pytest.MonkeyPatch, last: int, limit: int | None, slots_each: int
) -> None:
    monkeypatch.setattr(unit_set, "FEW", 8)
    monkeypatch.setattr(shared_units, "FEW", 8)
    rng = np.random.default_rng(slots_each)
    drawn = rng.integers(0, ALL, 60, np.uint64, endpoint=True)
    ids = np.concatenate([np.array([0, ALL], np.uint64), drawn])
    at_once, singly = UnitsColumn(last, limit, 0), UnitsColumn(last, limit, 0)
    for step, n in enumerate((0, 1, 30, 200, 3, 90, 200)):
        groupings = [
            Grouping(
                np.append(rng.permutation(np.arange(first, first + slots_each)), NO_SLOT),
                rng.integers(0, slots_each + 1, n),
            )
            for first in range(0, (step // 2 + 1) * slots_each, slots_each)
        ]
        hashes = rng.choice(ids, n)
        for column in (at_once, singly):
            column.widen((step // 2 + 1) * slots_each)
        at_once.add(hashes, ManySlots(groupings))
        add_one_by_one(singly, hashes, ManySlots(groupings))
        if step == 3:
            for column in (at_once, singly):
                column.add(hashes[:5], np.zeros(5, np.intp))
                column.merge(column.take(np.arange(2)), np.array([1, 0]))
        if step == 4:
            assert encoded(at_once) == encoded(singly)
    assert encoded(at_once) == encoded(singly)
    assert encoded(at_once.take(np.array([1]))) == encoded(singly.take(np.array([1])))


def test_units_of_many_slots_take_the_memory_of_one_and_none_past_the_limit() -> None:
    rng, n = np.random.default_rng(1), 2 * shared_units.FEW
    groupings = [Grouping(np.array([2 * i, 2 * i + 1]), rng.integers(0, 2, n)) for i in range(20)]
    free, limited = UnitsColumn(ALL, None, 40), UnitsColumn(ALL, 1, 40)
    for step in range(4):
        hashes = (np.arange(n) + step * n).astype(np.uint64)
        free.add(hashes, ManySlots(groupings))
        assert 16 * n * (step + 1) <= free.nbytes <= 17 * n * (step + 1)
        limited.add(hashes, ManySlots(groupings))
        assert limited.nbytes < n
