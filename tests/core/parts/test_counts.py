"""Counts against a dictionary, over random operations and in every form that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TypeAlias

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts import counts as counts_module
from streammetrics.core.parts.counts import Counts, CountsColumn
from tests.toys import Tally

Model: TypeAlias = list[dict[int, int]]  # of each slot: cell -> count, none 0

SMALL, WIDE = 7, 301  # cells: always a table; sparse at first


def empty(cells: int, width: int = 1) -> CountsColumn:
    return Counts("size").empty(Tally(cells), width)


def encoded(column: CountsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def by_the_readme(model: Model, cells: int) -> bytes:
    """The bytes that `core/README.md` draws, written from the model by plain Python."""
    occupied = [(cell, n) for state in model for cell, n in sorted(state.items())]
    if 4 * len(occupied) > len(model) * cells:
        return b"\1" + ints([state.get(c, 0) for state in model for c in range(cells)])
    sizes = [len(state) for state in model]
    return b"\0" + ints(sizes) + ints([c for c, _ in occupied]) + ints([n for _, n in occupied])


def ints(values: list[int]) -> bytes:
    top = max(values, default=0)
    width = next(w for w in (0, 1, 2, 4, 8) if top < 256**w)
    return bytes((width,)) + b"".join(v.to_bytes(width, "little") for v in values if width)


def added(model: Model, slot: int, cell: int, n: int) -> None:
    total = model[slot].get(cell, 0) + n
    if total:
        model[slot][cell] = total


def check(column: CountsColumn, model: Model) -> None:
    """All that anyone can see of a column is what the model says."""
    cells = column.cells
    assert column.width == len(model)
    assert column.total_count == sum(sum(state.values()) for state in model)
    for slot, state in enumerate(model):
        dense = column.dense(slot)
        assert dense.tolist() == [state.get(c, 0) for c in range(cells)]
        at, n = column.occupied(slot)
        assert dict(zip(at.tolist(), n.tolist(), strict=True)) == state
        assert at.tolist() == sorted(at.tolist())
    data = encoded(column)
    assert data == by_the_readme(model, cells)
    reader = Reader(data)
    back = Counts("size").decode(Tally(cells), column.width, reader)
    assert reader.left == 0
    assert encoded(back) == data


def random_column(random: Random, cells: int, width: int) -> tuple[CountsColumn, Model]:
    """A column that was fed in a few batches, and its model."""
    column = empty(cells, width)
    model: Model = [{} for _ in range(width)]
    for _ in range(random.randint(0, 3)):
        feed(random, column, model)
    return column, model


def feed(random: Random, column: CountsColumn, model: Model) -> None:
    width, cells = column.width, column.cells
    if not width:
        return
    n = random.choice([0, 1, 3, 40])
    top = random.choice([1, min(5, cells), cells])
    at = [random.randrange(top) for _ in range(n)]
    slotted = width > 1 or random.random() < 0.5
    slots = [random.randrange(width) for _ in range(n)] if slotted else None
    weights = [random.choice([0, 1, 2, 300]) for _ in range(n)] if random.random() < 0.4 else None
    column.add(
        np.array(at, np.intp),
        None if slots is None else np.array(slots, np.intp),
        None if weights is None else np.array(weights, np.int64),
    )
    for i, cell in enumerate(at):
        added(model, slots[i] if slots else 0, cell, weights[i] if weights else 1)


def steps(random: Random, cells: int, count: int) -> Iterator[tuple[CountsColumn, Model]]:
    column, model = random_column(random, cells, random.choice([1, 1, 3]))
    for _ in range(count):
        match random.choice(["feed", "feed", "merge", "take", "widen"]):
            case "feed":
                feed(random, column, model)
            case "merge" if model:
                other, theirs = random_column(random, cells, random.choice([0, 1, 2, 4]))
                before = encoded(other)
                to = [random.randrange(len(model)) for _ in theirs]
                column.merge(other, np.array(to, np.intp))
                for slot, state in zip(to, theirs, strict=True):
                    for cell, count in state.items():
                        added(model, slot, cell, count)
                assert encoded(other) == before
            case "take":
                n = random.choice([0, 1, 3]) if model else 0
                slots = [random.randrange(len(model)) for _ in range(n)]
                old, kept = column, encoded(column)
                column = column.take(np.array(slots, np.intp))
                model = [dict(model[slot]) for slot in slots]
                feed(random, column, model)
                assert encoded(old) == kept
            case _:
                more = random.choice([0, 1, 5])
                column.widen(len(model) + more)
                model.extend({} for _ in range(more))
        yield column, model


@pytest.mark.parametrize("cells", [1, SMALL, WIDE])
@pytest.mark.parametrize("seed", range(4))
def test_random_operations_agree_with_a_dictionary(
    cells: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small thresholds, so that every form is entered and left again.
    monkeypatch.setattr(counts_module, "_FEW_PENDING", 10)
    for column, model in steps(Random(seed), cells, 25):
        check(column, model)


def test_a_sparse_and_a_dense_state_of_equal_counts_have_equal_bytes() -> None:
    cells = np.arange(WIDE // 2)
    dense, two = empty(WIDE), empty(WIDE, 2)
    dense.add(cells)
    for cell in cells:
        two.merge(one_cell(int(cell)), np.zeros(1, np.intp))
    sparse = two.take(np.zeros(1, np.intp))
    assert dense.table is not None
    assert sparse.table is None
    assert encoded(dense) == encoded(sparse)


def test_tables_that_were_read_add_up_past_every_width_of_their_cells() -> None:
    total, model = empty(WIDE), dict.fromkeys(range(WIDE), 0)
    for count in (200, 100, 60_000, 10_000, 1 << 31, 1 << 31, 1 << 40, 1):
        fed = empty(WIDE)
        fed.add(np.arange(WIDE), None, np.full(WIDE, count, np.int64))
        read = Counts("size").decode(Tally(WIDE), 1, Reader(encoded(fed)))
        assert read.bound >= read.total_count == fed.total_count
        total.merge(read, np.zeros(1, np.intp))
        for cell in range(WIDE):
            model[cell] += count
        assert encoded(read) == encoded(fed)
        assert total.bound >= total.total_count
        assert total.nbytes == WIDE * next(w for w in (1, 2, 4, 8) if model[0] < 256**w)
        check(total, [model])


def one_cell(cell: int) -> CountsColumn:
    column = empty(WIDE)
    column.add(np.array([cell]))
    return column


@pytest.mark.parametrize("settled", [False, True])
def test_a_table_is_added_to_a_state_that_is_still_sparse(settled: bool) -> None:
    full, sparse = empty(WIDE), one_cell(3)
    full.add(np.arange(WIDE))
    if settled:
        sparse.occupied()
    sparse.merge(full, np.zeros(1, np.intp))
    check(sparse, [{cell: 1 + (cell == 3) for cell in range(WIDE)}])


def test_an_empty_state_of_a_trillion_cells_takes_a_few_bytes() -> None:
    column = empty(1 << 40)
    column.add(np.array([(1 << 40) - 1]))
    assert len(encoded(column)) < 20
    assert column.nbytes < 100
    assert column.occupied()[0].tolist() == [(1 << 40) - 1]


def test_one_full_state_beside_many_empty_ones_is_kept_sparse() -> None:
    column = empty(10_000)
    column.add(np.arange(10_000))
    column.widen(5_000)
    assert column.nbytes < 1_000_000  # a table would take 400 MB
    column.add(np.array([3, 4]), np.array([4_999, 0]))
    assert column.dense(0)[4] == 2
    assert column.dense(4_999)[3] == 1


@pytest.mark.parametrize("occupied", [1, 76])  # of 301: sparse, and more than a quarter
def test_states_are_taken_with_what_was_just_added(occupied: int) -> None:
    column = empty(WIDE, 2)
    cells = np.arange(occupied)
    for slot, times in ((0, 1), (1, 2)):
        column.add(np.repeat(cells, times), np.full(times * occupied, slot, np.intp))
    taken = column.take(np.array([1, 0, 1]))
    check(taken, [dict.fromkeys(range(occupied), n) for n in (2, 1, 2)])
    assert (taken.table is not None) == (occupied > 1)
    check(column, [dict.fromkeys(range(occupied), n) for n in (1, 2)])


def test_the_mass_of_counts_beyond_int64_is_right() -> None:
    column = empty(SMALL, 3)
    column.add(np.array([0, 1, 2]), np.arange(3), np.full(3, 2**63 - 1))
    assert column.total_count == 3 * (2**63 - 1)


def test_it_says_how_many_bytes_it_holds_and_whether_it_can_be_stacked() -> None:
    table, sparse = empty(SMALL), empty(WIDE, 2)
    assert (table.nbytes, sparse.nbytes) == (8 * SMALL, 0)
    assert table.stacks and sparse.stacks
    sparse.add(np.array([1, 2, 2]), np.array([0, 1, 1]))
    assert sparse.nbytes == 16 * 2  # of what is not settled yet
    sparse.occupied()
    assert sparse.nbytes == 16 * 2
    assert not sparse.stacks


def test_axes_may_be_numbers_and_the_names_of_settings() -> None:
    column = Counts(2, "size", 3).empty(Tally(5), 1)
    assert column.shape == (2, 5, 3)
    column.add(np.array([29]))
    assert column.dense()[1, 4, 2] == 1


def refused(data: bytes, width: int = 1, cells: int = WIDE) -> str:
    with pytest.raises(StateError) as caught:
        reader = Reader(data)
        Counts("size").decode(Tally(cells), width, reader)
        reader.finish()
    return caught.value.got


@pytest.mark.parametrize("cells", [SMALL, WIDE])
def test_cells_out_of_order_out_of_range_or_empty_are_refused(cells: int) -> None:
    start = b"\0" + ints([1])
    assert refused(start + ints([cells]) + ints([1]), cells=cells)
    assert refused(start + ints([2**63 - 1]) + ints([1]), cells=cells)
    assert refused(start + ints([3]) + ints([0]), cells=cells)
    start = b"\0" + ints([2])
    assert refused(start + ints([4, 3]) + ints([1, 1]), cells=cells)
    assert refused(start + ints([3, 3]) + ints([1, 1]), cells=cells)


def test_the_other_form_of_the_same_state_is_refused() -> None:
    thin, full = WIDE // 4, WIDE // 4 + 1  # sparse; more than a quarter
    assert f"{thin} occupied" in refused(b"\1" + ints([int(c < thin) for c in range(WIDE)]))
    assert refused(b"\0" + ints([full]) + ints(list(range(full))) + ints([1] * full))


def test_sizes_that_the_bytes_cannot_hold_are_refused_before_memory_is_taken() -> None:
    assert "bytes" in refused(b"\1\0", width=2**40)
    assert "bytes" in refused(b"\0" + ints([2**62]) + b"\0\0")
    assert "bytes" in refused(b"\0" + ints([2**62, 2**62, 2**62]) + b"\0\0", width=3)
