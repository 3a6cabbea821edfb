"""Sorted runs, against Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streammetrics.core.multiset import sorted_run
from streammetrics.core.multiset.sorted_run import Run, Words, combined, merged

RNG = np.random.default_rng(2)
Key = tuple[int, int]


def held(run: Run) -> Counter[Key]:
    """What a run holds."""
    high = [0] * len(run) if run.high is None else run.high.tolist()
    counts = [1] * len(run) if run.counts is None else run.counts.tolist()
    found: Counter[Key] = Counter()
    for h, low, count in zip(high, run.low.tolist(), counts, strict=True):
        found[h, low] += count
    return found


def keys_of(run: Run) -> list[Key]:
    high = [0] * len(run) if run.high is None else run.high.tolist()
    return list(zip(high, run.low.tolist(), strict=True))


def words(n: int, values: int, kind: type[np.unsignedinteger] = np.uint64) -> Words:
    return RNG.integers(0, values, n).astype(kind) * kind(np.iinfo(kind).max // values)


def highs(n: int, values: int) -> Words:
    return RNG.integers(0, values, n).astype(np.uint64) * np.uint64(1 << 40)


@pytest.mark.parametrize("values", [1, 3, 40, 10**6])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_one_word_keys_are_sorted_and_counted(values: int, kind: type[np.unsignedinteger]) -> None:
    low = words(500, values, kind)
    run = combined([Run(low)])
    assert held(run) == Counter((0, int(x)) for x in low)
    assert keys_of(run) == sorted(keys_of(run)) and run.low.dtype == kind


@pytest.mark.parametrize("values", [1, 3, 40, 10**6])
@pytest.mark.parametrize("n_highs", [1, 2, 300])
def test_two_word_keys_are_sorted_and_counted(values: int, n_highs: int) -> None:
    low, high = words(500, values), highs(500, n_highs)
    run = combined([Run(low, high)])
    assert held(run) == Counter(zip(high.tolist(), low.tolist(), strict=True))
    assert keys_of(run) == sorted(keys_of(run))


def test_two_word_keys_are_sorted_by_their_last_bits() -> None:
    # Equal in the first 64 bits that differ, so that only the lowest bits tell them apart.
    high = np.repeat(np.array([0, 1 << 50], np.uint64), 64)
    low = np.tile(np.arange(64, dtype=np.uint64)[::-1], 2)
    order = RNG.permutation(128)
    run = combined([Run(low[order], high[order])])
    assert keys_of(run) == sorted(zip(high.tolist(), low.tolist(), strict=True))


def test_highs_of_64_bits_are_sorted() -> None:
    high = np.array([2**64 - 1, 0, 5, 2**64 - 1], np.uint64)
    low = np.array([3, 9, 1, 2], np.uint64)
    assert keys_of(combined([Run(low, high)])) == sorted(
        zip(high.tolist(), low.tolist(), strict=True)
    )


@pytest.mark.parametrize("count", [1, 200, 2**33])
@pytest.mark.parametrize("n_highs", [0, 1, 300])
@pytest.mark.parametrize("top", [2**20, 2**64 - 1])
def test_counts_add_up_however_large(count: int, n_highs: int, top: int) -> None:
    low = np.array([0, 7, top, 7, top], np.uint64)
    high = highs(5, n_highs) if n_highs else None
    some = Run(low, high, np.array([1, 2, 3, 4, count], np.uint64))
    more = Run(low, high)
    run = combined([some, more, some])
    expected = held(some) + held(more) + held(some)
    assert held(run) == expected and len(run) == len(expected)
    assert run.counts is not None
    assert run.counts.dtype == np.min_scalar_type(max(expected.values()))


def test_few_repetitions_are_kept_as_they_are() -> None:
    assert combined([Run(np.array([3, 1, 2, 3], np.uint64))]).counts is None
    assert combined([Run(np.array([3, 1, 3, 3], np.uint64))]).counts is not None


def test_sorting_leaves_what_is_shared_as_it_was() -> None:
    low = np.array([3, 1, 2], np.uint64)
    combined([Run(low)])
    assert low.tolist() == [3, 1, 2]


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_run, "_RANGE", 40)
    monkeypatch.setattr(sorted_run, "_CHUNK", 7)


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("values", [1, 3, 40, 300, 10**6])
@pytest.mark.parametrize("n_highs", [0, 1, 3, 300])
def test_merged_runs_hold_what_each_held(values: int, n_highs: int) -> None:
    runs = [
        combined([Run(words(n, values), highs(n, n_highs) if n_highs else None)])
        for n in (1, 300, 20, 500, 41)
    ]
    before = [(keys_of(run), held(run)) for run in runs]
    run = merged(runs)
    assert held(run) == sum((counter for _, counter in before), Counter[Key]())
    assert keys_of(run) == sorted(keys_of(run))
    assert [(keys_of(run), held(run)) for run in runs] == before
    assert run.counts is not None or 2 * len(set(keys_of(run))) > len(run)
    if run.counts is not None:
        assert len(set(keys_of(run))) == len(run) and len(run.counts) == len(run)
    assert run.nbytes == sum(c.nbytes for c in (run.low, run.high, run.counts) if c is not None)


@pytest.mark.usefixtures("small_ranges")
@pytest.mark.parametrize("n_highs", [0, 2])
@pytest.mark.parametrize(("repeats", "counted"), [(90, False), (900, True)])
def test_repetitions_in_one_range_alone(n_highs: int, repeats: int, counted: bool) -> None:
    # None of the runs has counts, since in each most keys differ, but low keys come in all runs.
    once = [np.arange(200 * (i + 1), 200 * (i + 2), dtype=np.uint64) for i in range(3)]
    again = np.arange(repeats // 9, dtype=np.uint64)
    lows = [*once, *[again] * 9]
    runs = [Run(low, low >> np.uint64(6) if n_highs else None) for low in lows]
    run = merged(runs)
    assert (run.counts is not None) == counted
    assert held(run) == sum(map(held, runs), Counter[Key]())
    assert keys_of(run) == sorted(keys_of(run))


@pytest.mark.usefixtures("small_ranges")
def test_a_range_in_which_no_run_has_counts_beside_one_in_which_some_have() -> None:
    low = np.arange(300, dtype=np.uint64)
    counted = Run(low[200:], None, np.arange(1, 101, dtype=np.uint8))
    run = merged([Run(low), Run(low[:150]), counted])
    assert held(run) == held(Run(low)) + held(Run(low[:150])) + held(counted)
    assert run.low.tolist() == low.tolist()


def test_a_single_run_is_already_merged() -> None:
    run = Run(np.array([1, 2], np.uint64))
    assert merged([run]) is run


@pytest.mark.parametrize("ignored", [0, 1, 4])
def test_firsts_are_where_keys_differ(ignored: int) -> None:
    run = combined([Run(RNG.integers(0, 90, 100, np.uint64), highs(100, 2))])
    keys = [(high, low >> ignored) for high, low in keys_of(run)]
    expected = [i == 0 or keys[i] != keys[i - 1] for i in range(len(keys))]
    assert run.firsts(ignored).tolist() == expected
    assert Run(np.empty(0, np.uint64)).firsts(ignored).tolist() == []
