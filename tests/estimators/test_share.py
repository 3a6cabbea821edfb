"""Shares of rows, one by one and of many results at once."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.bounded import Bounded
from streammetrics.estimators.many import ManyRequest, ViewCells, wilson_columns
from streammetrics.estimators.share import Share
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.inference.t_interval import critical

LARGE = 1 << 53  # from here on, counts are no floats
SHARE: Share[tuple[int, int]] = Share(lambda counts: counts)


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-12])
def test_bounds_of_many_shares_are_those_of_each(level: float) -> None:
    rng, q = np.random.default_rng(5), critical(level)
    sizes = [1, 2, 3, 10, 1000, 10**9, LARGE - 1]
    pairs = [(k, n) for n in sizes for k in (0, 1, n // 2, n - 1, n)]
    pairs += [(int(rng.integers(0, n + 1)), n) for n in sizes for _ in range(20)]
    successes, n = np.array([*pairs, (0, 0)]).T
    columns = wilson_columns(successes, n, q)
    pair_bounds = [wilson_bounds(*pair, q) for pair in pairs]
    bounds = list(zip(columns.lower.tolist(), columns.upper.tolist(), strict=True))
    assert bounds == [*pair_bounds, (-np.inf, np.inf)]


@pytest.mark.parametrize("most", [LARGE - 1, LARGE, LARGE + 1])
@pytest.mark.parametrize("bounded", [False, True])
def test_intervals_of_many_results_are_those_of_each(most: int, bounded: bool) -> None:
    counts = [(3, 10), (0, 4), (4, 4), (0, 0), (most // 3, most)]
    values = [SHARE.estimate(pair) for pair in counts]
    cells = [Bounded(x, x - 0.25, x + 0.25) if bounded else x for x in values]
    request = ManyRequest("share", (), ViewCells.from_values(cells), 0.9)
    columns = SHARE.intervals(counts, request)
    for i, (pair, single) in enumerate(zip(counts, request.each(), strict=True)):
        interval = SHARE.interval(pair, single)
        assert interval is not None
        assert (columns.lower[i], columns.upper[i]) == (interval.lower, interval.upper)
        assert columns.n[i] == interval.n
        assert not interval.defined or columns.methods[i] == interval.method
