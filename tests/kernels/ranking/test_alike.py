from __future__ import annotations

import numpy as np
import pytest

from streammetrics.kernels.ranking.positions import deduplicate


@pytest.mark.parametrize("n", [0, 1, 2, 7, 300, 5000])
@pytest.mark.parametrize("values", [1, 3, 1000])
def test_each_row_has_an_equal_one_that_stands_for_it(n: int, values: int) -> None:
    rng = np.random.default_rng(n)
    columns = [rng.integers(0, values, n) for _ in range(3)]
    firsts, which = deduplicate(*columns)
    assert which.shape == (n,)
    assert (np.diff(firsts) > 0).all()
    for column in columns:
        assert (column[firsts][which] == column).all()
    assert np.unique(which).tolist() == list(range(len(firsts)))


def test_what_is_often_the_same_is_seldom_repeated() -> None:
    columns = [np.random.default_rng(1).integers(0, 10, 20_000) for _ in range(3)]
    firsts, _ = deduplicate(*columns)
    assert len(firsts) < 2_000  # of 1,000 different rows
