"""Labels as bits: positives, their indices and ties, against each key in turn."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from streammetrics.kernels.curves import label_ranks
from streammetrics.kernels.curves.label_ranks import LabelRanks

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 200])
def test_positives_and_their_indices_are_those_before_each_key(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_ranks, "_CHUNK", 64)
    for share in (0.0, 0.3, 1.0):
        labels = (RNG.random(n) < share).astype(int)
        ranks = LabelRanks(np.arange(n, dtype=np.uint64) << np.uint64(1) | labels.astype(np.uint64))
        indexes = np.arange(n + 1)
        positives, sums = ranks.index_sums(indexes)
        assert positives.tolist() == [int(labels[:i].sum()) for i in indexes]
        assert sums.tolist() == [int((labels * indexes[:-1])[:i].sum()) for i in indexes]
        assert ranks.positives(indexes).tolist() == positives.tolist()
        assert (ranks.total, ranks.index_sum()) == (positives[-1], sums[-1])


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_ties_of_every_size_are_counted(
    kind: type[np.unsignedinteger], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_ranks, "_CHUNK", 64)
    sizes = list(product(range(13), repeat=2))  # negatives and positives of each score
    far = [(1, 0)] * 130 + [(9, 9)] + [(0, 1)] * 200 + [(5, 40), (1, 0)]  # words without a tie
    for order in (sizes, sizes[::-1], [(0, 70), (70, 1), (1, 0), (9, 200), (1, 1)], far):
        keys = [key for i, (n, p) in enumerate(order) for key in [2 * i] * n + [2 * i + 1] * p]
        words, start = np.array(keys, kind), 0
        for i, (n, p) in enumerate(order):  # so that ties lie across words and chunks in all ways
            assert LabelRanks(words[start:]).ties(words[start:]) == sum(a * b for a, b in order[i:])
            start += n + p
