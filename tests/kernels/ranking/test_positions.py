"""Where something is, how often up to a place, and rows that stand for equal ones."""

from __future__ import annotations

from itertools import product

import numpy as np

from streammetrics.kernels.ranking.positions import deduplicate, nonzero


def test_places_are_those_that_flatnonzero_finds() -> None:
    for n, share in product((0, 1, 7, 8, 63, 64, 65, 1000), (0.0, 0.1, 1.0)):
        values = (np.random.default_rng(n).random(n) < share).astype(np.uint8) * np.uint8(3)
        ends = np.arange(n + 1)[::-1]
        places, below = nonzero(values, ends)
        assert np.array_equal(places, np.flatnonzero(values))
        assert np.array_equal(below, np.concatenate([[0], np.cumsum(values != 0)])[::-1])
        assert np.array_equal(nonzero(values != 0)[0], places)


def test_each_row_has_an_equal_one_that_stands_for_it() -> None:
    for n, values in product((0, 1, 2, 300), (1, 3, 1000)):
        rng = np.random.default_rng(n)
        columns = [rng.integers(0, values, n) for _ in range(3)]
        firsts, inverse = deduplicate(*columns)
        assert inverse.shape == (n,)
        assert (np.diff(firsts) > 0).all()
        for column in columns:
            assert (column[firsts][inverse] == column).all()
        assert np.unique(inverse).tolist() == list(range(len(firsts)))


def test_what_is_often_the_same_is_seldom_repeated() -> None:
    columns = [np.random.default_rng(1).integers(0, 10, 20_000) for _ in range(3)]
    firsts, _ = deduplicate(*columns)
    assert len(firsts) < 2_000  # of 1,000 different rows
