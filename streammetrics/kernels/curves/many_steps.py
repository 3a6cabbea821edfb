"""ManySteps: the steps of many small curves, one curve after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.steps import Ints, Steps

Floats = NDArray[np.float64]

_SMALL: Final = 2.0**52  # rows of a curve, below which its counts are floats


class FigureColumns(NamedTuple):
    """The figures of many curves, as columns [k]; nan where a curve has none."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ManySteps:
    """The `Steps` of many curves, each of fewer than 2**52 rows; from high to low scores.

    p, n: int64 [s], the positives and the negatives of each step, of which it has one. tp, fp:
    int64 [s], those at or above it. edges: intp [k + 1], where the steps of each curve begin.
    positives, negatives: int64 [k], of each curve.
    """

    p: Ints
    n: Ints
    tp: Ints
    fp: Ints
    edges: NDArray[np.intp]
    positives: Ints
    negatives: Ints

    def __len__(self) -> int:
        return len(self.positives)

    def steps(self, i: int) -> Steps:
        """Those of one curve."""
        rows = slice(self.edges[i], self.edges[i + 1])
        tp, fp = (np.concatenate([[0], column[rows]]) for column in (self.tp, self.fp))
        return Steps(tp, fp, np.arange(len(tp) - 2, -1, -1))

    def sums(self, values: Ints) -> Ints:
        """The sum within each curve of a value [s] of each step; what wraps around cancels."""
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return np.diff(running[self.edges])

    def greatest(self, merits: Ints, curves: NDArray[np.intp]) -> Ints:
        """The greatest of the merits [s] of the steps of each of these curves [c], ascending, all
        of which have steps."""
        sizes = np.diff(self.edges)[curves]
        starts = np.cumsum(sizes) - sizes
        rows = np.repeat(self.edges[curves] - starts, sizes) + np.arange(sizes.sum())
        most: Ints = np.maximum.reduceat(merits[rows], starts) if len(curves) else starts
        return most


def is_small(negatives: Ints, positives: Ints, edges: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which curves, each given by its counts between two edges, have fewer than 2**52 rows."""
    running = np.concatenate([[0.0], np.cumsum(negatives.astype(np.float64) + positives)])
    if running[-1] < _SMALL:
        return np.ones(len(edges) - 1, np.bool_)
    pieces = [slice(*pair) for pair in pairwise(edges.tolist())]
    sums = [float(negatives[x].astype(float).sum() + positives[x].sum()) for x in pieces]
    return np.array(sums) < _SMALL


def many_steps(negatives: Ints, positives: Ints, edges: NDArray[np.intp]) -> ManySteps:
    """Steps from counts [b], of each curve in ascending order of score; scores without a row are
    omitted. edges: intp [k + 1], where the scores of each curve begin.

    >>> counts = np.array([1, 1, 0, 3]), np.array([0, 1, 1, 0])
    >>> many = many_steps(*counts, np.array([0, 3, 4]))
    >>> many.tp.tolist(), many.fp.tolist(), many.positives.tolist()
    ([1, 2, 2, 0], [0, 1, 2, 3], [2, 0])
    """
    occupied = np.flatnonzero(negatives | positives)
    edges = np.searchsorted(occupied, edges)
    sizes = np.diff(edges)
    # From low to high scores within each curve to the reverse.
    order = occupied[np.repeat(edges[1:] + edges[:-1] - 1, sizes) - np.arange(len(occupied))]
    p, n = positives[order], negatives[order]
    (tp, all_p), (fp, all_n) = (_running(counts, edges, sizes) for counts in (p, n))
    return ManySteps(p, n, tp, fp, edges, all_p, all_n)


def _running(counts: Ints, edges: NDArray[np.intp], sizes: NDArray[np.intp]) -> tuple[Ints, Ints]:
    """The running sums within each curve, and the sum of each. What wraps around cancels."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    before = sums[edges]
    return sums[1:] - np.repeat(before[:-1], sizes), np.diff(before)


def counts_of_cells(
    tables: Sequence[tuple[Ints, int]],
) -> tuple[Ints, Ints, NDArray[np.intp]]:
    """The counts of many curves, as `many_steps` takes them, from the occupied cells of a table
    [label, bucket] each. Neighbouring buckets without positives are one, with the same figures.

    tables: of each curve int64 [2, c], its cells, ascending, and their counts; and the number of
    its buckets.

    >>> cells = np.array([[0, 1, 2, 6], [5, 1, 1, 2]])
    >>> counts_of_cells([(cells, 4)])[:2]
    (array([6, 1, 0]), array([0, 2, 0]))
    """
    sizes = np.array([cells.shape[1] for cells, _ in tables], np.intp)
    buckets = np.array([n_buckets for _, n_buckets in tables], np.int64)
    none = np.zeros((2, 0), np.int64)
    cells, counts = np.concatenate([none, *(table for table, _ in tables)], axis=1)
    bounds = np.concatenate([[0], np.cumsum(buckets)])
    every, firsts = np.repeat(buckets, sizes), np.repeat(bounds[:-1], sizes)
    wide, negative_cells = np.flatnonzero(cells >= every), np.flatnonzero(cells < every)
    below, key = (
        cells[negative_cells] + firsts[negative_cells],
        (cells - every)[wide] + firsts[wide],
    )
    edges, starts = key.searchsorted(bounds), below.searchsorted(bounds)
    # Each positive bucket has the negatives that it holds, and before it those since the last one.
    ranks = below.searchsorted(key)
    tied = np.append(below, -1)[ranks] == key
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[negative_cells])])
    ends = running[ranks + tied]
    filled = np.flatnonzero(np.diff(edges))  # the curves with a positive
    previous = np.concatenate([np.zeros(1, np.int64), ends])
    previous[edges[filled]] = running[starts[filled]]
    last = running[starts[:-1]]
    last[filled] = ends[edges[filled + 1] - 1]
    places = 2 * np.arange(len(key)) + np.repeat(np.arange(len(tables)), np.diff(edges))
    edges = 2 * edges + np.arange(len(tables) + 1)
    negatives, positives = np.zeros((2, edges[-1]), np.int64)
    negatives[places] = running[ranks] - previous[:-1]
    negatives[places + 1], positives[places + 1] = ends - running[ranks], counts[wide]
    negatives[edges[1:] - 1] = running[starts[1:]] - last
    return negatives, positives, edges
