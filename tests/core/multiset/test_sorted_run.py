"""Sorted runs, against Counter."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from streammetrics.core.multiset import sorted_run
from streammetrics.core.multiset import tiers as tiers_module
from streammetrics.core.multiset.sorted_run import Run, Words, combined, equal_cuts, merged
from streammetrics.core.multiset.tiers import Tiers

RNG = np.random.default_rng(2)
Key = tuple[int, int]


def contents(run: Run) -> Counter[Key]:
    """What a run holds."""
    high = [0] * len(run) if run.high is None else run.high.tolist()
    counts = [1] * len(run) if run.counts is None else run.counts.tolist()
    counter: Counter[Key] = Counter()
    for h, low, count in zip(high, run.low.tolist(), counts, strict=True):
        counter[h, low] += count
    return counter


def keys_of(run: Run) -> list[Key]:
    high = [0] * len(run) if run.high is None else run.high.tolist()
    return list(zip(high, run.low.tolist(), strict=True))


def words(n: int, values: int, kind: type[np.unsignedinteger] = np.uint64) -> Words:
    return RNG.integers(0, values, n).astype(kind) * kind(np.iinfo(kind).max // values)


def highs(n: int, values: int) -> Words:
    return RNG.integers(0, values, n).astype(np.uint64) * np.uint64(1 << 40)


def test_keys_are_sorted_and_counted() -> None:
    for values in (1, 3, 40, 10**6):
        for kind in (np.uint32, np.uint64):
            low = words(500, values, kind)
            run = combined([Run(low)])
            assert contents(run) == Counter((0, int(x)) for x in low)
            assert keys_of(run) == sorted(keys_of(run)) and run.low.dtype == kind
        for n_highs in (1, 2, 300):
            low, high = words(500, values), highs(500, n_highs)
            run = combined([Run(low, high)])
            assert contents(run) == Counter(zip(high.tolist(), low.tolist(), strict=True))
            assert keys_of(run) == sorted(keys_of(run))


def test_many_words_with_few_upper_halves_are_sorted_whatever_these_are() -> None:
    n = sorted_run._MANY
    for first, last in ((0, 0), (0, 1), (5, 7), (2**32 - 4, 2**32 - 1), (0, 4), (0, 2**32 - 1)):
        above = RNG.integers(first, last + 1, n).astype(np.uint64) << np.uint64(32)
        low = above | RNG.integers(0, 2**32, n).astype(np.uint64)
        expected = sorted(low.tolist())
        assert combined([Run(low)]).low.tolist() == expected


def test_keys_of_two_words_are_in_order_whatever_bits_differ() -> None:
    """The first bits that differ decide, and all others among ties of these."""
    for low_bits, high_bits, n in product((0, 2, 40, 64), (3, 20, 63, 64), (2, 300)):
        low = RNG.integers(0, 1 << 64, n, np.uint64) >> np.uint64(min(64 - low_bits, 63))
        high = RNG.integers(0, 1 << 64, n, np.uint64) >> np.uint64(64 - high_bits)
        for words in (low, RNG.choice(low[:2], n)):  # the same in many keys
            expected = sorted(zip(high.tolist(), words.tolist(), strict=True))
            run = combined([Run(words.copy(), high.copy())])
            assert keys_of(run.repeated()) == expected


def test_counts_add_up_however_large() -> None:
    for count, n_highs, top in product((1, 200, 2**33), (0, 1, 300), (2**20, 2**64 - 1)):
        low = np.array([0, 7, top, 7, top], np.uint64)
        high = highs(5, n_highs) if n_highs else None
        weighted_run = Run(low, high, np.array([1, 2, 3, 4, count], np.uint64))
        plain_run = Run(low, high)
        run = combined([weighted_run, plain_run, weighted_run])
        expected = contents(weighted_run) + contents(plain_run) + contents(weighted_run)
        assert contents(run) == expected and len(run) == len(expected)
        assert run.counts is not None
        assert run.counts.dtype == np.min_scalar_type(max(expected.values()))


def test_few_repetitions_are_kept_as_they_are() -> None:
    assert combined([Run(np.array([3, 1, 2, 3], np.uint64))]).counts is None
    assert combined([Run(np.array([3, 1, 3, 3], np.uint64))]).counts is not None


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_run, "_RANGE", 40)
    monkeypatch.setattr(sorted_run, "_CHUNK", 7)


@pytest.mark.usefixtures("small_ranges")
def test_merged_runs_hold_what_each_held() -> None:
    for values, n_highs in product((1, 3, 40, 300, 10**6), (0, 1, 3, 300)):
        runs = [
            combined([Run(words(n, values), highs(n, n_highs) if n_highs else None)])
            for n in (1, 300, 20, 500, 41)
        ]
        before = [(keys_of(run), contents(run)) for run in runs]
        run = merged(runs)
        assert contents(run) == sum((counter for _, counter in before), Counter[Key]())
        assert keys_of(run) == sorted(keys_of(run))
        assert [(keys_of(run), contents(run)) for run in runs] == before
        assert run.counts is not None or 2 * len(set(keys_of(run))) > len(run)
        if run.counts is not None:
            assert len(set(keys_of(run))) == len(run) and len(run.counts) == len(run)
        assert run.nbytes == sum(c.nbytes for c in (run.low, run.high, run.counts) if c is not None)
    assert merged([run]) is run


@pytest.mark.usefixtures("small_ranges")
def test_a_range_in_which_no_run_has_counts_beside_one_in_which_some_have() -> None:
    low = np.arange(300, dtype=np.uint64)
    counted = Run(low[200:], None, np.arange(1, 101, dtype=np.uint8))
    run = merged([Run(low), Run(low[:150]), counted])
    assert contents(run) == contents(Run(low)) + contents(Run(low[:150])) + contents(counted)
    assert run.low.tolist() == low.tolist()


def test_firsts_are_where_keys_differ() -> None:
    for ignored in (0, 1, 4):
        run = combined([Run(RNG.integers(0, 90, 100, np.uint64), highs(100, 2))])
        keys = [(high, low >> ignored) for high, low in keys_of(run)]
        expected = [i == 0 or keys[i] != keys[i - 1] for i in range(len(keys))]
        assert run.firsts(ignored).tolist() == expected
        assert Run(np.empty(0, np.uint64)).firsts(ignored).tolist() == []


@pytest.fixture
def small_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers_module, "BUFFERED", 20)
    monkeypatch.setattr(tiers_module, "FAN", 4)


@pytest.mark.usefixtures("small_tiers")
def test_tiers_hold_what_was_added_however_it_came() -> None:
    for values in (2, 10**6):
        tiers, expected = Tiers(np.uint64), Counter[Key]()
        for size in [1, 5, 19, 20, 21, 300] * 6:
            low = words(size, values)
            expected.update((0, int(x)) for x in low)
            tiers.add(Run(low))
            value_run = combined([Run(words(3, values))])
            tiers.add_sorted(value_run)
            expected += contents(value_run)
        run = tiers.settle()
        assert contents(run) == expected
        assert keys_of(run) == sorted(keys_of(run))
        assert tiers.settle() is run


@pytest.mark.usefixtures("small_tiers")
def test_runs_stay_few() -> None:
    tiers = Tiers(np.uint64)
    for _ in range(500):
        tiers.add(Run(words(20, 10**9)))
    # Never more than three runs in each of the tiers that 10,000 keys make.
    assert len(tiers.runs) <= 3 * 7 and len(tiers) == 10_000


@pytest.mark.usefixtures("small_tiers")
def test_many_different_keys_are_sorted_once_and_pending_ones_have_an_end() -> None:
    tiers, most = Tiers(np.uint64), 0
    for _ in range(60):
        tiers.add(Run(words(5, 10**9)))
        most = max(most, tiers.n_pending)
    assert most == 280 and len(tiers.runs) == 1  # after the first 20
    assert len(tiers.flush()) == 1 and len(tiers) == 300
    for _ in range(500):
        tiers.add(Run(words(5, 10**9)))
        assert tiers.n_pending < 16 * 20


@pytest.mark.usefixtures("small_tiers")
def test_few_keys_that_come_again_and_keys_of_two_words_are_not_pending_long() -> None:
    tiers, two_words = Tiers(np.uint64), Tiers(np.uint64, two_words=True)
    for _ in range(100):
        tiers.add(Run(words(5, 3)))
        two_words.add(Run(words(5, 10**9), words(5, 10**9)))
        assert tiers.n_pending < 20 and two_words.n_pending < 20
    assert (len(tiers.settle()), len(two_words.settle())) == (3, 500)
    for values in (10**9, 10):  # fewer are pending again when keys repeat
        for _ in range(100):
            tiers.add(Run(words(5, values)))
    assert tiers.enough == 20 and tiers.n_pending < 20


@pytest.mark.usefixtures("small_tiers")
def test_a_run_that_is_large_or_has_counts_is_not_sorted_again_with_pending_keys() -> None:
    for first, n in (Run(words(300, 10**9)), 20), (Run(words(400, 2)), 100):
        tiers = Tiers(np.uint64)
        tiers.add(first)
        (before,) = tiers.flush()
        tiers.add(Run(words(n, 10**9)))
        assert len(tiers.flush()) == 2 and tiers.runs[0] is before


def test_a_twin_goes_its_own_way() -> None:
    tiers = Tiers(np.uint64)
    tiers.add(Run(np.array([2, 1], np.uint64)))
    twin = tiers.twin()
    tiers.add(Run(np.array([9], np.uint64)))
    twin.add(Run(np.array([5], np.uint64)))
    assert twin.settle().low.tolist() == [1, 2, 5]
    assert tiers.settle().low.tolist() == [1, 2, 9]


def test_nothing_settles_to_nothing() -> None:
    assert len(Tiers(np.uint32).settle()) == 0
    two = Tiers(np.uint64, two_words=True).settle()
    assert two.high is not None and len(two.high) == 0


def test_bytes_held_are_counted() -> None:
    tiers = Tiers(np.uint64)
    tiers.add(Run(np.arange(10, dtype=np.uint64)))
    assert tiers.nbytes == 80
    tiers.settle()
    assert tiers.nbytes == 80


def test_ranges_follow_each_other_and_hold_all() -> None:
    for values, size in product((1, 5, 200, 10**6), (1, 10, 64, 10_000)):
        for lengths in ([0, 7], [1], [300, 0, 2, 90], [64] * 30):
            columns = [np.sort(RNG.integers(0, values, n).astype(np.uint32)) for n in lengths]
            cuts = equal_cuts(columns, size)
            assert cuts[0] == [0] * len(columns) and cuts[-1] == lengths
            largest = -1
            for starts, ends in pairwise(cuts):
                parts = [c[a:b] for c, a, b in zip(columns, starts, ends, strict=True)]
                range_values = np.concatenate(parts)
                assert all(a <= b for a, b in zip(starts, ends, strict=True))
                if len(range_values):
                    assert range_values.min() > largest, "equal values stand in one range"
                    largest = int(range_values.max())


def test_ranges_are_about_as_large_as_asked() -> None:
    columns = [np.sort(RNG.integers(0, 1 << 40, n).astype(np.uint64)) for n in (9_000, 50, 21_000)]
    sizes = [sum(b) - sum(a) for a, b in pairwise(equal_cuts(columns, 1_000))]
    assert max(sizes) <= 2_000 and len(sizes) < 45
