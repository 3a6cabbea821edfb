"""Which points of a curve are kept, and the boxes between them."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.figures.thinning import envelope, kept


@pytest.mark.parametrize("most", [4, 5, 50, 500])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 49, 501, 3000])
def test_at_most_so_many_places_are_kept_with_both_ends(count: int, most: int) -> None:
    position = np.sort(np.random.default_rng(count).random(count))
    found = kept(position, most)
    assert len(found) <= most
    assert list(found) == sorted(set(found.tolist()))
    if count:
        assert (found[0], found[-1]) == (0, count - 1)


def test_what_is_left_out_between_two_places_is_short() -> None:
    position = np.cumsum(np.random.default_rng(1).random(10_000))
    found = kept(position, 100)
    gaps = np.diff(found) > 1
    lengths = np.diff(position[found])[gaps]
    assert lengths.max() < position[-1] * 2.1 / 98


def test_a_doubt_about_places_widens_the_band_to_its_neighbours() -> None:
    x, low, high = np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5]), np.array([0.5, 1.0])
    assert [one.tolist() for one in envelope(x, low, high)] == [[0.0, 0.5], [0.5, 1.0]]
    assert [one.tolist() for one in envelope(x, low, high, 0.1)] == [[0.0, 0.0], [1.0, 1.0]]
