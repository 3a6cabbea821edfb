"""The greedy order of many lists at a time, beside each list by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from streammetrics.core.rows import offsets_of
from streammetrics.kernels.exact.double_double import Pair
from streammetrics.kernels.ranking.rank_tables import fading
from streammetrics.kernels.ranking.topic_masks import MOST, greedy


def greedy_sum(words: Sequence[int], depth: int, gains: Sequence[int], alpha: float) -> float:
    """The sum of one list, whose rank i has the weight 1/(i + 1)."""
    left, above, total = [*words], [0] * 64, 0.0
    for rank in range(min(depth, len(left))):
        worth = [sum(gains[above[t]] for t in range(64) if word >> t & 1) for word in left]
        word = left.pop(worth.index(max(worth)))
        for topic in range(64):
            if word >> topic & 1:
                total += (1 - alpha) ** above[topic] / (rank + 1)
                above[topic] += 1
    return total


@pytest.mark.parametrize("alpha", [0.5, 0.3])
@pytest.mark.parametrize("n_topics", [6, 20, 63])
def test_the_greedy_order_of_many_lists_is_that_of_each(n_topics: int, alpha: float) -> None:
    rng = np.random.default_rng(n_topics)
    sizes = rng.geometric(0.3, 500)  # few lists have many items
    topics = rng.random((int(sizes.sum()), n_topics)) < 3 / n_topics
    topics[:, 0] |= ~topics.any(axis=1)
    weights = np.left_shift(np.uint64(1), np.arange(n_topics, dtype=np.uint64))
    words = (topics * weights).sum(axis=1, dtype=np.uint64)
    words = words.astype(np.min_scalar_type(words.max()))
    ends = offsets_of(sizes)
    gains = np.rint(fading(alpha)(MOST + 2).high[: MOST + 2] * 2**52).astype(np.int64)
    sums = greedy(
        *(ends[:-1], sizes, words, 10, alpha),
        lambda ranks: Pair(1 / (ranks + 1.0), np.zeros(len(ranks))),
        gains,
    )
    lists = np.split(words, ends[1:-1])
    expected = [greedy_sum(words.tolist(), 10, gains.tolist(), alpha) for words in lists]
    np.testing.assert_allclose(sums.high, expected, rtol=1e-14)
