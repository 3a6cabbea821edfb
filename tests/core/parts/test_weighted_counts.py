"""Counts of units that know their rows, in every form that a table takes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.weighted_counts import WeightedCounts, WeightedCountsColumn
from tests.toys import Tally

Row = tuple[int, int, int]  # slot, cell, units


def empty(cells: int, width: int) -> WeightedCountsColumn:
    return WeightedCounts("size").empty(Tally(cells), width)


def encoded(column: WeightedCountsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def feed(column: WeightedCountsColumn, rows: list[Row]) -> None:
    slots, cells, units = np.array(rows, np.int64).reshape(-1, 3).T
    if column.width == 1 and not slots.any():
        column.add_rows(cells, None, units)
    else:
        column.add_rows(cells, slots, units)


def some_rows(random: Random, cells: int, width: int) -> list[Row]:
    n = random.randint(0, 40)
    one = random.random() < 0.3
    return [
        (random.randrange(width), random.randrange(cells), 1 if one else random.randint(1, 9))
        for _ in range(n)
    ]


@pytest.mark.parametrize("cells", [7, 301])
@pytest.mark.parametrize("width", [1, 4])
def test_units_and_rows_are_those_that_came_however_they_came(cells: int, width: int) -> None:
    random = Random(cells + width)
    for _ in range(60):
        batches = [some_rows(random, cells, width) for _ in range(3)]
        rows = [row for batch in batches for row in batch]
        whole, streamed, merged = empty(cells, width), empty(cells, 1), empty(cells, width)
        feed(whole, rows)
        streamed.widen(width)
        for batch in batches:
            feed(streamed, batch)
            other = empty(cells, width)
            feed(other, batch)
            merged.merge(other, np.arange(width))
        assert encoded(whole) == encoded(streamed) == encoded(merged)
        for slot in range(width):
            mine = [row for row in rows if row[0] == slot]
            taken = whole.take(np.array([slot]))
            assert taken.total_count - int(taken.surplus[0]) == len(mine)
            assert taken.total_count == sum(units for *_, units in mine)
        back = empty(cells, width)
        reader = Reader(encoded(whole))
        back.read(reader)
        assert reader.left == 0 and encoded(back) == encoded(whole)


@pytest.mark.parametrize(("surplus", "good"), [(1, True), (3, True), (4, False), (9, False)])
def test_fewer_rows_than_occupied_cells_are_refused(surplus: int, good: bool) -> None:
    data = b"\1\1" + bytes([0, 3, 2, 0, 0, 0, 0]) + bytes([1, surplus])
    if good:
        empty(7, 1).read(Reader(data))
        return
    with pytest.raises(StateError, match="fewer rows"):
        empty(7, 1).read(Reader(data))


def test_hostile_sums_past_an_int64_do_not_wrap_around() -> None:
    most = (2**63 - 1).to_bytes(8, "little")
    data = b"\1\x08" + 7 * most + b"\x08" + most
    column = empty(7, 1)
    column.read(Reader(data))  # the accumulator refuses it: it is more than one state may hold
    assert column.total_count == 7 * (2**63 - 1)
