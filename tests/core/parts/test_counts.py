"""The forms of Counts: tables, sparse cells, narrow integers; and the bytes of an extreme."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.parts.counts import Counts, CountsColumn
from streammetrics.core.parts.part import Extreme
from tests.toys import Reach, Tally

SMALL, WIDE = 7, 301  # cells: always a table; sparse at first


def empty(cells: int, width: int = 1) -> CountsColumn:
    return Counts("size").empty(Tally(cells), width)


def encoded(column: CountsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def test_a_sparse_and_a_dense_state_of_equal_counts_have_equal_bytes() -> None:
    cells = np.arange(WIDE // 2)
    dense, pair = empty(WIDE), empty(WIDE, 2)
    dense.add(cells)
    for cell in cells:
        pair.merge(one_cell(int(cell)), np.zeros(1, np.intp))
    sparse = pair.take(np.zeros(1, np.intp))
    assert dense.table is not None
    assert sparse.table is None
    assert encoded(dense) == encoded(sparse)


@pytest.mark.parametrize("factor", [1, 1 << 20, 1 << 50])
def test_sparse_cells_are_sorted_with_their_counts_however_large_both_are(factor: int) -> None:
    """Cells and counts are sorted as one integer of 32 or of 64 bits, or apart."""
    rng = np.random.default_rng(3)
    width, size = 9, WIDE * 40
    for most in (1, 3, 1 << 10):
        column, model = empty(size, width), dict[int, int]()
        for _ in range(4):
            slots, cells = rng.integers(0, width, 300), rng.integers(0, size, 300)
            counts = rng.integers(0, most + 1, 300) * factor
            column.add(cells, slots, counts)
            for code, n in zip((slots * size + cells).tolist(), counts.tolist(), strict=True):
                model[code] = model.get(code, 0) + n
        expected = {code: n for code, n in sorted(model.items()) if n}
        taken = column.take(np.arange(width))  # shares its arrays, which no later row may change
        for state in (column, taken):
            codes, amounts = state._sparse()
            assert (codes.dtype, amounts.dtype) == (np.int64, np.int64)
            assert dict(zip(codes.tolist(), amounts.tolist(), strict=True)) == expected
            assert codes.tolist() == list(expected)
        before = encoded(taken)
        column.add(np.arange(WIDE), np.zeros(WIDE, np.intp))
        assert encoded(taken) == before != encoded(column)


@pytest.mark.parametrize("cells", [4 * WIDE, 1 << 31], ids=["narrow codes", "codes that widen"])
@pytest.mark.parametrize("span", [7, WIDE], ids=["many rows a cell", "few rows a cell"])
def test_rows_are_counted_however_often_cells_are_read_in_between(cells: int, span: int) -> None:
    """Settled cells are sorted again as rows where they have few, and merged where they have many.
    Rows that were added while codes were narrow are counted with cells whose codes are not."""
    rng = np.random.default_rng(5)
    column, model = empty(cells), dict[int, int]()
    for width, weighted, read in ((1, 0, 1), (2, 0, 0), (9, 1, 1), (9, 1, 0), (9, 0, 1)):
        column.widen(width)
        slots, positions = rng.integers(0, width, 200), rng.integers(0, span, 200)
        positions[:100] += cells - span
        counts = rng.integers(1, 3, 200) if weighted else np.ones(200, np.int64)
        column.add(positions, slots, counts if weighted else None)
        for code, n in zip((slots * cells + positions).tolist(), counts.tolist(), strict=True):
            model[code] = model.get(code, 0) + n
        if read:
            codes, amounts = column.cells_of(np.arange(width))
            assert list(zip(codes.tolist(), amounts.tolist(), strict=True)) == sorted(model.items())


def test_tables_that_were_read_add_up_past_every_width_of_their_cells() -> None:
    total, whole = empty(WIDE), 0
    for count in (200, 56, 65_280, 1 << 31, (1 << 31) - 65_536, 1 << 40, 1):
        fed = empty(WIDE)
        fed.add(np.arange(WIDE), None, np.full(WIDE, count, np.int64))
        read = Counts("size").decode(Tally(WIDE), 1, Reader(encoded(fed)))
        assert read.bound >= read.total_count == fed.total_count
        total.merge(read, np.zeros(1, np.intp))
        whole += count
        assert encoded(read) == encoded(fed)
        assert total.bound >= total.total_count == WIDE * whole
        assert total.nbytes == WIDE * next(w for w in (1, 2, 4, 8) if whole < 256**w)
        assert total.dense().tolist() == [whole] * WIDE


def one_cell(cell: int) -> CountsColumn:
    column = empty(WIDE)
    column.add(np.array([cell]))
    return column


def test_a_table_is_added_to_a_state_that_is_still_sparse() -> None:
    full, pending, settled = empty(WIDE), one_cell(3), one_cell(3)
    full.add(np.arange(WIDE))
    settled.occupied()
    for sparse in (pending, settled):
        sparse.merge(full, np.zeros(1, np.intp))
        assert sparse.dense().tolist() == [1 + (cell == 3) for cell in range(WIDE)]


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


def test_states_that_are_taken_are_tables_where_they_are_full() -> None:
    for occupied in (1, 76):  # of 301: sparse, and more than a quarter
        column = empty(WIDE, 2)
        cells = np.arange(occupied)
        for slot, times in ((0, 1), (1, 2)):
            column.add(np.repeat(cells, times), np.full(times * occupied, slot, np.intp))
        taken = column.take(np.array([1, 0, 1]))
        assert (taken.table is not None) == (occupied > 1)
        assert [taken.dense(slot).sum() for slot in range(3)] == [n * occupied for n in (2, 1, 2)]


def test_the_sum_of_counts_beyond_int64_is_right() -> None:
    column = empty(SMALL, 3)
    column.add(np.array([0, 1, 2]), np.arange(3), np.full(3, 2**63 - 1))
    assert column.total_count == 3 * (2**63 - 1)


def test_it_says_how_many_bytes_it_holds_and_whether_it_can_be_stacked() -> None:
    table, sparse = empty(SMALL), empty(WIDE, 2)
    assert (table.nbytes, sparse.nbytes) == (8 * SMALL, 0)
    assert table.stacks and sparse.stacks
    sparse.add(np.array([1, 2, 2]), np.array([0, 1, 1]))
    assert sparse.nbytes == 4 * 3  # of rows that are not settled yet
    sparse.occupied()
    assert sparse.nbytes == 16 * 2
    assert not sparse.stacks


def test_axes_may_be_numbers_and_the_names_of_settings() -> None:
    column = Counts(2, "size", 3).empty(Tally(5), 1)
    assert column.shape == (2, 5, 3)
    column.add(np.array([29]))
    assert column.dense()[1, 4, 2] == 1


def test_an_extreme_takes_a_bit_and_eight_bytes_where_there_is_a_value() -> None:
    column, out = Extreme("max").empty(Reach(), 9), Writer()
    column.add(np.array([5]), np.array([8]))
    column.encode(out)
    assert out.bytes_() == b"\x00\x80" + (5).to_bytes(8, "little")
