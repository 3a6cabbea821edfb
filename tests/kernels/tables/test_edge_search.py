"""Looking up the first bits of a score finds what a search among the edges finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.combine.user_groups import coarse_form
from streammetrics.kernels.tables.binning import CHUNK, EdgeGrid, EdgeSearch

Floats = NDArray[np.float64]
finite = st.floats(allow_nan=False, allow_infinity=False)
many = st.lists(finite, min_size=1, max_size=40, unique_by=lambda x: x + 0.0).map(sorted)


def coarse_edges() -> tuple[float, ...]:
    coarse = coarse_form(ExactAUC())
    assert isinstance(coarse, HistogramAUC)
    return coarse.edges


def around(edges: tuple[float, ...]) -> Floats:
    """The edges, the floats beside them, and others of every size."""
    at = np.array(edges)
    sizes = 2.0 ** np.arange(-1074, 1024, 3)
    beside = np.nextafter(at, -np.inf), at, np.nextafter(at, np.inf)
    rest = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0]
    return np.concatenate([*beside, sizes, -sizes, 1 - sizes, rest])


@pytest.mark.slow
@pytest.mark.parametrize(
    "edges",
    [
        (0.0,),
        (-1.5, 0.0, 0.1, 3e300),
        (-5e-324, 5e-324),
        tuple(i / 10 for i in range(11)),
        tuple(np.linspace(-3, 3, 1001).tolist()),
        coarse_edges(),
    ],
    ids=len,
)
def test_a_place_is_how_many_edges_lie_at_or_below(edges: tuple[float, ...]) -> None:
    scores = around(edges)
    # A search takes -0.0 for 0.0, as `<=` does.
    expected = [sum(edge <= score for edge in edges) for score in scores.tolist()]
    assert EdgeSearch(edges).positions(scores).tolist() == expected


@pytest.mark.slow
@given(many, st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_any_edges_and_any_scores(edges: list[float], scores: list[float]) -> None:
    values = np.array([*scores, *edges])
    found = EdgeSearch(tuple(edges)).positions(values)
    assert found.tolist() == np.searchsorted(edges, values, "right").tolist()
    assert found.dtype == np.intp


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_long_batches_fall_into_the_buckets_of_short_ones(real: type[np.floating]) -> None:
    grid = EdgeGrid(coarse_edges())
    scores = np.random.default_rng(2).normal(size=CHUNK + 9000).astype(real)
    short = np.concatenate([grid.buckets(some) for some in np.array_split(scores, 50)])
    assert np.array_equal(grid.buckets(scores), short)
    assert np.array_equal(grid.buckets(scores[::-2]), short[::-2])


def test_few_of_all_probabilities_are_searched_for_among_the_edges_of_groups() -> None:
    search = EdgeSearch(coarse_edges())
    scores = np.random.default_rng(1).random(10_000)
    first = (scores.view(np.uint64) >> np.uint64(47)).view(np.intp)
    assert (search._table[first] < 0).mean() < 0.05
    assert search._table.itemsize == 1 and len(search._table) == 1 << 17
