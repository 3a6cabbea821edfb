"""The steps of many curves side by side are those of each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.kernels.curves.key_placements import placements_of_many
from streammetrics.kernels.curves.many_steps import counts_of_cells, is_small, many_steps
from streammetrics.kernels.curves.steps import steps
from streammetrics.kernels.inference.area_interval import placements

Ints = NDArray[np.int64]

count = st.just(0) | st.integers(0, 3) | st.integers((1 << 50) - 2, 1 << 50)
buckets = st.lists(st.tuples(count, count), max_size=6)


def table_of(rows: list[tuple[int, int]]) -> Ints:
    return np.array(rows, np.int64).reshape(-1, 2).T


@given(st.lists(buckets, min_size=1, max_size=8))
def test_steps_of_many_curves_are_those_of_each(curves: list[list[tuple[int, int]]]) -> None:
    tables = [table_of(rows) for rows in curves]
    tables = [table for table in tables if table.sum() < 1 << 52]
    edges = np.cumsum([0, *(table.shape[1] for table in tables)])
    joined = np.concatenate([np.zeros((2, 0), np.int64), *tables], axis=1)
    assert is_small(*joined, edges).all()
    many = many_steps(*joined, edges)
    assert len(many) == len(tables)
    for i, table in enumerate(tables):
        single, of_many = steps(*table), many.steps(i)
        assert of_many.tp.tolist() == single.tp.tolist()
        assert of_many.fp.tolist() == single.fp.tolist()
        assert (many.positives[i], many.negatives[i]) == (single.positives, single.negatives)


def test_a_curve_is_small_by_its_own_rows_alone() -> None:
    sizes = [[1 << 51, 1 << 50], [1 << 52], [], [1, 2], [1 << 62, 1 << 62]]
    negatives = np.array([x for curve in sizes for x in curve])
    edges = np.cumsum([0, *map(len, sizes)])
    assert is_small(negatives, 0 * negatives, edges).tolist() == [True, False, True, True, False]


@given(st.lists(st.tuples(buckets, st.integers(0, 9)), max_size=8))
def test_counts_of_many_tables_have_what_is_between_positives_as_one_bucket(
    curves: list[tuple[list[tuple[int, int]], int]],
) -> None:
    tables = [np.pad(table_of(rows), ((0, 0), (0, extra))) for rows, extra in curves]
    cells = [np.flatnonzero(table.ravel()) for table in tables]
    occupied = [
        (np.array([indexes, table.ravel()[indexes]]), table.shape[1])
        for indexes, table in zip(cells, tables, strict=True)
    ]
    negatives, positives, edges = counts_of_cells(occupied)
    assert len(edges) == len(tables) + 1
    for table, start, end in zip(tables, edges[:-1], edges[1:], strict=True):
        ranks = np.cumsum(table[1] > 0)
        joined = np.zeros((2, 2 * int((table[1] > 0).sum()) + 1), np.int64)
        for place, (n, p) in zip((2 * ranks).tolist(), table.T.tolist(), strict=True):
            joined[:, place - (p > 0)] += n, p
        assert [negatives[start:end].tolist(), positives[start:end].tolist()] == joined.tolist()


def test_placements_of_many_curves_are_those_of_each_and_large_ones_are_left_out() -> None:
    rng = np.random.default_rng(4)
    curves = [rng.integers(0, 9, (2, n)) for n in (0, 1, 2, 40, 300)] * 2
    curves += [np.full((2, 9), 1 << 17), np.array([[1 << 20], [0]]), np.zeros((2, 3), np.int64)]
    curves += [np.array([[(1 << 19), 1], [3, (1 << 19) - 5]])]
    edges = np.cumsum([0, *(curve.shape[1] for curve in curves)])
    together = placements_of_many(many_steps(*np.concatenate(curves, axis=1), edges))
    assert [placed is None for placed in together[-4:]] == [True, True, False, False]
    for (negatives, positives), placed in zip(curves, together, strict=True):
        assert placed is None or placed == placements(negatives, positives)
