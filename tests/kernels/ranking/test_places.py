"""Places and counts, against numpy's own functions."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.ranking.positions import nonzero


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 63, 64, 65, 1000, 4096])
def test_places_are_those_that_flatnonzero_finds(n: int, share: float) -> None:
    values = (np.random.default_rng(n).random(n) < share).astype(np.uint8) * np.uint8(3)
    ends = np.arange(n + 1)
    at, below = nonzero(values, ends)
    assert np.array_equal(at, np.flatnonzero(values))
    assert np.array_equal(below, np.concatenate([[0], np.cumsum(values != 0)]))


def test_booleans_have_places_too() -> None:
    at, below = nonzero(np.array([False, True, True]))
    assert at.tolist() == [1, 2]
    assert not len(below)


def test_what_is_counted_may_be_asked_for_twice_and_in_any_order() -> None:
    values = np.ones(200, np.uint8)
    assert nonzero(values, np.array([200, 0, 64, 64, 130]))[1].tolist() == [200, 0, 64, 64, 130]
