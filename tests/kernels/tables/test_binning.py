"""Grids: the order of the scores, the same bucket in both precisions, the stated widths."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.kernels.tables.binning import CHUNK, EdgeGrid, EqualGrid, Grid, RelativeGrid

DEFAULT = RelativeGrid(8, 2**-24, 2.0**24, mirrored=True)
REAL = RelativeGrid(8, 2**-24, 2.0**24, mirrored=False)
SMALL = RelativeGrid(2, 2**-4, 4.0, mirrored=True)
SMALL_REAL = RelativeGrid(2, 2**-4, 4.0, mirrored=False)
TINY = RelativeGrid(0, 2**-126, 2.0**127, mirrored=False)
EQUAL = EqualGrid(6)
EDGES = EdgeGrid((-1.5, 0.0, 0.1, 3e300))
UNIT_GRIDS = [DEFAULT, SMALL, EQUAL, EqualGrid(0), EqualGrid(20)]
REAL_GRIDS = [REAL, SMALL_REAL, TINY, EDGES]


def bucket(grid: Grid, score: float) -> int:
    return int(grid.buckets(np.array([score]))[0])


def neighbours(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores with those just below and above, in both precisions, ascending."""
    near = [scores]
    for real in (np.float32, np.float64):
        with np.errstate(over="ignore"):
            here = scores.astype(real)
        for to in (-np.inf, np.inf):
            near.append(np.nextafter(here, real(to)).astype(np.float64))
    return np.unique(np.concatenate(near))


def around(grid: Grid) -> NDArray[np.float64]:
    """The scores at and next to every edge, and others of every size, within the grid's range."""
    sizes = 2.0 ** np.arange(-1074, 1024, 7)
    least = grid.least
    found = neighbours(np.concatenate([least, sizes, -sizes, 1 - sizes[:150], [0.0, 0.5, 1.0]]))
    inside = (found >= 0) & (found <= 1) if grid in UNIT_GRIDS else found == found
    return found[inside]


@pytest.mark.slow
@pytest.mark.parametrize("grid", UNIT_GRIDS + REAL_GRIDS, ids=str)
def test_a_higher_score_is_never_in_a_lower_bucket(grid: Grid) -> None:
    buckets = grid.buckets(around(grid))
    assert (np.diff(buckets) >= 0).all()
    assert buckets[0] == 0
    assert buckets[-1] == grid.n_buckets - 1


@pytest.mark.parametrize("grid", UNIT_GRIDS + REAL_GRIDS, ids=str)
def test_both_precisions_of_a_score_share_a_bucket(grid: Grid) -> None:
    with np.errstate(over="ignore"):
        narrow = around(grid).astype(np.float32)
    assert np.array_equal(grid.buckets(narrow), grid.buckets(narrow.astype(np.float64)))


@pytest.mark.parametrize("grid", UNIT_GRIDS + REAL_GRIDS, ids=str)
def test_the_least_score_of_a_bucket_is_in_it_and_the_one_below_is_not(grid: Grid) -> None:
    every = np.arange(grid.n_buckets)
    assert np.array_equal(grid.buckets(grid.least), every)
    below = np.nextafter(grid.least[1:], -np.inf)
    assert np.array_equal(grid.buckets(below), every[:-1])


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("grid", [DEFAULT, SMALL])
def test_the_bucket_of_a_score_does_not_depend_on_those_beside_it(
    grid: Grid, real: type[np.floating]
) -> None:
    # Chunks without a score above 0.5 take a shorter way.
    scores = np.unique(neighbours(np.array([0.0, 2**-24, 0.25, 0.5, 0.6, 0.75])).clip(0, 1))
    scores = scores.astype(real)
    beside_one = grid.buckets(np.append(scores, real(1)))[:-1]
    alone = [int(grid.buckets(scores[i : i + 1])[0]) for i in range(len(scores))]
    assert alone == beside_one.tolist()


def test_buckets_of_the_relative_grid_have_the_stated_width() -> None:
    edges = [Fraction(x) for x in DEFAULT.least.tolist()]
    half = DEFAULT.n_buckets // 2  # the bucket of 0.5
    assert edges[half] == Fraction(1, 2)
    assert edges[:2] == [0, Fraction(1, 2**24)]
    for low, high in pairwise(edges[1 : half + 1]):
        assert high - low <= low / 2**8


def test_the_grid_of_probabilities_is_its_own_mirror_image() -> None:
    scores = np.arange(1 << 16) / (1 << 16)
    total = DEFAULT.buckets(scores) + DEFAULT.buckets(1 - scores)
    assert np.array_equal(total, np.full(len(total), DEFAULT.n_buckets - 1))


def test_the_grid_of_real_scores_is_its_own_mirror_image() -> None:
    scores = np.concatenate([2.0 ** np.arange(-60, 60), [np.inf, 0.0]])
    total = REAL.buckets(scores) + REAL.buckets(-scores)
    assert np.array_equal(total, np.full(len(total), REAL.n_buckets - 1))


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
    assert EDGES.buckets(np.array([-9.0, -1.5, -1.0, 0.0, 0.1, 3e300])).tolist() == [
        0,
        1,
        1,
        2,
        3,
        4,
    ]
    # 0.1 in float32 is above the edge 0.1, 0.3 of float32 is compared as it is.
    assert EDGES.buckets(np.array([0.1], np.float32)).tolist() == [3]


@pytest.mark.parametrize("grid", [DEFAULT, REAL, EQUAL, EDGES], ids=str)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_cells_are_labels_and_buckets_over_all_chunks(grid: Grid, real: type[np.floating]) -> None:
    rng = np.random.default_rng(2)
    n = CHUNK + 5
    scores, labels = rng.random(n).astype(real), rng.integers(0, 2, n).astype(np.uint8)
    before = scores.copy()
    found = np.full(n, -1)
    for piece, cells in grid.cells(labels, scores):
        found[piece] = cells
    alone = np.concatenate([grid.buckets(scores[:7]), grid.buckets(scores[7:])])
    assert np.array_equal(found, labels.astype(np.intp) * grid.n_buckets + alone)
    assert np.array_equal(scores, before)


def test_strided_scores_are_read_as_they_lie() -> None:
    scores = np.random.default_rng(2).random(64)
    assert np.array_equal(DEFAULT.buckets(scores[::-2]), DEFAULT.buckets(scores[::-2].copy()))


def test_no_scores_have_no_buckets() -> None:
    assert len(DEFAULT.buckets(np.empty(0))) == 0


def test_the_default_grid_has_the_size_that_the_state_is_said_to_have() -> None:
    assert DEFAULT.n_buckets == 2 * 23 * 256 + 3
