"""Grids: buckets in the order of the scores, their exact edges, and edges that are searched for."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.kernels.tables.grids import (
    CHUNK,
    EdgeGrid,
    EqualGrid,
    Grid,
    RelativeGrid,
)

DEFAULT = RelativeGrid(8, 2**-24, 2.0**24, mirrored=True)
REAL = RelativeGrid(8, 2**-24, 2.0**24, mirrored=False)
SMALL = RelativeGrid(2, 2**-4, 4.0, mirrored=True)
SMALL_REAL = RelativeGrid(2, 2**-4, 4.0, mirrored=False)
TINY = RelativeGrid(0, 2**-126, 2.0**127, mirrored=False)
EQUAL = EqualGrid(6)
EDGES = EdgeGrid((-1.5, 0.0, 0.1, 3e300))
UNIT_GRIDS = [DEFAULT, SMALL, EQUAL, EqualGrid(0), EqualGrid(12)]
REAL_GRIDS = [REAL, SMALL_REAL, TINY, EDGES]


def bucket(grid: Grid, score: float) -> int:
    return int(grid.buckets(np.array([score]))[0])


def neighbours(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores with those just below and above, in both precisions, ascending."""
    near = [scores]
    for real in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            values = scores.astype(real)
        for to in (-np.inf, np.inf):
            near.append(np.nextafter(values, real(to)).astype(np.float64))
    return np.unique(np.concatenate(near))


def around(grid: Grid) -> NDArray[np.float64]:
    """The scores at and next to every edge, and others of every size, within the grid's range."""
    sizes = 2.0 ** np.arange(-1074, 1024, 7)
    least = grid.least
    points = neighbours(np.concatenate([least, sizes, -sizes, 1 - sizes[:150], [0.0, 0.5, 1.0]]))
    inside = (points >= 0) & (points <= 1) if grid in UNIT_GRIDS else points == points
    return points[inside]


@pytest.mark.parametrize("grid", UNIT_GRIDS + REAL_GRIDS, ids=str)
def test_buckets_rise_with_scores_in_either_precision_from_their_least_ones_on(grid: Grid) -> None:
    scores = around(grid)
    buckets = grid.buckets(scores)
    assert (np.diff(buckets) >= 0).all()
    assert (buckets[0], buckets[-1]) == (0, grid.n_buckets - 1)
    with np.errstate(over="ignore"):
        narrow = scores.astype(np.float32)
    assert np.array_equal(grid.buckets(narrow), grid.buckets(narrow.astype(np.float64)))
    every = np.arange(grid.n_buckets)
    assert np.array_equal(grid.buckets(grid.least), every)
    below = np.nextafter(grid.least[1:], -np.inf)
    assert np.array_equal(grid.buckets(below), every[:-1])


def test_the_bucket_of_a_score_does_not_depend_on_those_beside_it() -> None:
    # Chunks without a score above 0.5 take a shorter way.
    every = np.unique(neighbours(np.array([0.0, 2**-24, 0.25, 0.5, 0.6, 0.75])).clip(0, 1))
    for grid, real in product((DEFAULT, SMALL), (np.float32, np.float64)):
        scores = every.astype(real)
        beside_one = grid.buckets(np.append(scores, real(1)))[:-1]
        buckets = [int(grid.buckets(scores[i : i + 1])[0]) for i in range(len(scores))]
        assert buckets == beside_one.tolist(), (grid, real)


def test_buckets_of_the_relative_grid_have_the_stated_width() -> None:
    edges = [Fraction(x) for x in DEFAULT.least.tolist()]
    half = DEFAULT.n_buckets // 2  # the bucket of 0.5
    assert edges[half] == Fraction(1, 2)
    assert edges[:2] == [0, Fraction(1, 2**24)]
    for low, high in pairwise(edges[1 : half + 1]):
        assert high - low <= low / 2**8


def test_relative_grids_are_their_own_mirror_images() -> None:
    scores = np.arange(1 << 12) / (1 << 12)
    total = DEFAULT.buckets(scores) + DEFAULT.buckets(1 - scores)
    assert np.array_equal(total, np.full(len(total), DEFAULT.n_buckets - 1))
    scores = np.concatenate([2.0 ** np.arange(-60, 60), [np.inf, 0.0]])
    total = REAL.buckets(scores) + REAL.buckets(-scores)
    assert np.array_equal(total, np.full(len(total), REAL.n_buckets - 1))
    assert len(DEFAULT.buckets(np.empty(0))) == 0


def test_end_buckets_take_all_beyond_floor_and_ceiling() -> None:
    assert bucket(DEFAULT, 0.0) == bucket(DEFAULT, 2**-25) == 0
    assert bucket(DEFAULT, 2**-24) == 1
    assert bucket(DEFAULT, 1.0) == bucket(DEFAULT, 1 - 2**-25) == DEFAULT.n_buckets - 1
    assert bucket(DEFAULT, 1 - 2**-24) == DEFAULT.n_buckets - 2
    assert bucket(REAL, 2.0**24) == bucket(REAL, math.inf) == REAL.n_buckets - 1
    assert bucket(REAL, -math.inf) == bucket(REAL, -(2.0**24)) == 0
    assert bucket(REAL, 1e-30) == bucket(REAL, -1e-30)
    assert bucket(REAL, 2**-24) == bucket(REAL, 0.0) + 1


def test_minus_zero_is_zero() -> None:
    for grid in UNIT_GRIDS + REAL_GRIDS:
        for real in (np.float32, np.float64):
            minus, plus = grid.buckets(np.array([-0.0, 0.0], real))
            assert minus == plus


@given(st.floats(0, 1))
def test_equal_buckets_are_the_floor_of_the_exact_product(score: float) -> None:
    assert bucket(EQUAL, score) == min(63, math.floor(Fraction(score) * 64))


def test_a_score_at_an_edge_is_above_it() -> None:
    scores = np.array([-9.0, -1.5, -1.0, 0.0, 0.1, 3e300])
    assert "".join(map(str, EDGES.buckets(scores).tolist())) == "011234"
    # 0.1 in float32 is above the edge 0.1, 0.3 of float32 is compared as it is.
    assert EDGES.buckets(np.array([0.1], np.float32)).tolist() == [3]


@pytest.mark.parametrize(
    ("grid", "real"),
    [(DEFAULT, np.float32), (REAL, np.float64), (EQUAL, np.float32), (EDGES, np.float64)],
    ids=str,
)
def test_cells_are_labels_and_buckets_over_all_chunks(grid: Grid, real: type[np.floating]) -> None:
    rng = np.random.default_rng(2)
    n = CHUNK + 5
    scores, labels = rng.random(n).astype(real), rng.integers(0, 2, n).astype(np.uint8)
    before = scores.copy()
    codes = np.full(n, -1)
    for piece, cells in grid.cells(labels, scores):
        codes[piece] = cells
    buckets = np.concatenate([grid.buckets(scores[:7]), grid.buckets(scores[7:])])
    assert np.array_equal(codes, labels.astype(np.intp) * grid.n_buckets + buckets)
    assert np.array_equal(scores, before)


Floats = NDArray[np.float64]
finite = st.floats(allow_nan=False, allow_infinity=False)
many = st.lists(finite, min_size=1, max_size=40, unique_by=lambda x: x + 0.0).map(sorted)


def coarse_edges() -> tuple[float, ...]:
    """Edges that tell log odds apart, and probabilities also near 0 and near 1."""
    near_0 = [m * 2.0**-n for n in range(12, 1, -1) for m in (1.0, 1.5)]
    above = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0]
    below = [-x for x in (0.5, *above)]
    return tuple(sorted({*below, *near_0, 0.5, *(1 - x for x in near_0), *above}))


def nearby_floats(edges: tuple[float, ...]) -> Floats:
    """The edges, the floats beside them, and others of every size."""
    points = np.array(edges)
    sizes = 2.0 ** np.arange(-1074, 1024, 40)
    near = np.nextafter(points, -np.inf), points, np.nextafter(points, np.inf)
    rest = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0]
    return np.concatenate([*near, sizes, -sizes, 1 - sizes, rest])


@pytest.mark.parametrize(
    "edges",
    [
        (-1.5, 0.0, 0.1, 3e300),
        (-5e-324, 5e-324),
        tuple(np.linspace(-3, 3, 101).tolist()),
        coarse_edges(),
    ],
    ids=len,
)
def test_a_place_is_how_many_edges_lie_at_or_below(edges: tuple[float, ...]) -> None:
    scores = nearby_floats(edges)
    # A search takes -0.0 for 0.0, as `<=` does.
    expected = [sum(edge <= score for edge in edges) for score in scores.tolist()]
    assert EdgeGrid(edges).positions(scores).tolist() == expected


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_long_batches_fall_into_the_buckets_of_short_ones(real: type[np.floating]) -> None:
    grid = EdgeGrid(coarse_edges())
    scores = np.random.default_rng(2).normal(size=CHUNK + 9000).astype(real)
    short = np.concatenate([grid.buckets(part) for part in np.array_split(scores, 50)])
    assert np.array_equal(grid.buckets(scores), short)
    assert np.array_equal(grid.buckets(scores[::-2]), short[::-2])


def test_few_of_all_probabilities_are_searched_for_among_some_edges() -> None:
    search = EdgeGrid(coarse_edges())
    scores = np.random.default_rng(1).random(10_000)
    first = (scores.view(np.uint64) >> np.uint64(47)).view(np.intp)
    assert (search._table[first] < 0).mean() < 0.05
    assert search._table.itemsize == 1 and len(search._table) == 1 << 17
