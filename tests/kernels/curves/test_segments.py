"""Areas of sorted keys, of one group and of many, against every pair."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from streammetrics.kernels.curves import segments
from streammetrics.kernels.curves.area import Pairs
from streammetrics.kernels.curves.segments import group_pairs, sorted_pairs
from streammetrics.kernels.exact.rounding import exact_dot, exact_sum
from tests.oracles import binary

RNG = np.random.default_rng(4)
KINDS = pytest.mark.parametrize("kind", [np.uint32, np.uint64])


def words_of(rows: list[binary.Row], kind: type[np.unsignedinteger]) -> np.ndarray:
    return np.sort(np.array([int(s) << 1 | y for y, s in rows], kind))


def counted(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(words, return_counts=True)


@KINDS
def test_every_small_sample_has_its_pairs(kind: type[np.unsignedinteger]) -> None:
    for rows in binary.small_samples((0, 1, 2), 6):
        wins, ties, every = binary.pair_counts(rows)
        words = words_of(rows, kind)
        keys, counts = counted(words)
        for pairs in (sorted_pairs(words), sorted_pairs(keys, counts.astype(np.uint8))):
            assert (pairs.wins, pairs.ties, pairs.all) == (wins, ties, every)


@KINDS
def test_chunks_do_not_show(
    kind: type[np.unsignedinteger], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = np.sort(RNG.integers(0, 40, 300).astype(kind))
    keys, counts = counted(words)
    whole = sorted_pairs(words)
    for chunk in range(1, 12):
        monkeypatch.setattr(segments, "_CHUNK", chunk)
        assert sorted_pairs(keys, counts.astype(np.uint16)) == whole


def test_pairs_of_huge_counts_are_exact() -> None:
    keys = np.array([0, 1, 2, 3], np.uint64)  # scores 0 and 1, both labels
    a, b, c, d = 2**40 + 1, 2**41 + 3, 2**42 + 5, 2**43 + 7
    pairs = sorted_pairs(keys, np.array([a, b, c, d], np.uint64))
    assert pairs == Pairs(wins=a * d, ties=a * b + c * d, positives=b + d, negatives=a + c)


def test_sums_and_products_are_exact_however_large() -> None:
    top = 2**62 + 2**32 - 1
    large = np.full(9, top, np.int64)
    assert exact_sum(large) == 9 * top
    assert exact_dot(large, large) == 9 * top**2
    assert exact_dot(large[:0], large[:0]) == 0


def keyed(rows: list[tuple[int, int, int]], split: int | None) -> tuple[np.ndarray, ...]:
    """(group, score, label) as sorted keys; split: in two words, `split` bits of score above."""
    rows = sorted(rows)
    if split is None:
        return np.array([g << 8 | s << 1 | y for g, s, y in rows], np.uint64), None, 8
    high = np.array([g << split | s >> (7 - split) for g, s, _ in rows], np.uint64)
    low = np.array([s % (1 << 7 - split) << 1 | y for _, s, y in rows], np.uint64)
    return low, high, split


@pytest.mark.parametrize("split", [None, 0, 3])
@pytest.mark.parametrize("chunk", [1, 7])
def test_each_group_has_its_own_area(
    split: int | None, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_CHUNK", chunk)
    for n, groups, scores in product((1, 30, 200), (1, 50), (3, 100)):
        table = RNG.integers(0, (groups, scores, 2), (n, 3)).tolist()
        rows = [(g, s, y) for g, s, y in table]
        expected = []
        for g in sorted({g for g, _, _ in rows}):
            group_rows = [(y, s) for group, s, y in rows if group == g]
            wins, ties, _ = binary.pair_counts(group_rows)
            p = sum(y for y, _ in group_rows)
            expected.append((wins + ties, ties, p, len(group_rows) - p))
        low, high, shift = keyed(rows, split)
        times = Counter(rows)
        unique_low, unique_high, _ = keyed(list(times), split)
        counts = np.array([times[row] for row in sorted(times)], np.uint8)
        for pairs in (
            group_pairs(low, shift, high),
            group_pairs(unique_low, shift, unique_high, counts),
        ):
            columns = (pairs.not_lost, pairs.ties, pairs.positives, pairs.negatives)
            assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected
            assert pairs.large == {}


@pytest.mark.parametrize("high", [None, np.array([0, 0, 2, 3, 3, 4], np.uint64)])
def test_groups_of_huge_counts_are_exact_beside_small_ones(high: np.ndarray | None) -> None:
    # Groups 0 (two small counts), 1 (both signs of score where there is a high), and 2.
    low = np.array([0, 1, 256, 258, 259, 512], np.uint64)
    counts = np.array([3, 2, 2**40, 2**41, 2**42 + 1, 5], np.uint64)
    pairs = group_pairs(low, 8 if high is None else 1, high, counts)
    wins, ties = 2**40 * (2**42 + 1), 2**41 * (2**42 + 1)
    assert pairs.large == {1: Pairs(wins, ties, 2**42 + 1, 2**40 + 2**41)}
    assert (pairs.not_lost.tolist(), pairs.ties.tolist()) == ([6, 0, 0], [6, 0, 0])
    assert pairs.positives.tolist() == [2, 2**42 + 1, 0]
    assert pairs.negatives.tolist() == [3, 2**40 + 2**41, 5]


def test_no_keys_have_no_groups() -> None:
    pairs = group_pairs(np.empty(0, np.uint64), 33)
    assert (
        len(pairs.not_lost) == len(pairs.ties) == len(pairs.positives) == len(pairs.negatives) == 0
    )
    assert len(group_pairs(np.empty(0, np.uint64), 1, np.empty(0, np.uint64)).not_lost) == 0
    none = np.empty(0, np.uint8)
    assert len(group_pairs(np.empty(0, np.uint64), 33, None, none).not_lost) == 0
