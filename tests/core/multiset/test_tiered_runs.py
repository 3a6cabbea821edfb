"""Tiers of sorted runs, against Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streammetrics.core.multiset import tiered_runs
from streammetrics.core.multiset.sorted_run import Run, Words, combined
from streammetrics.core.multiset.tiered_runs import Tiers

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


@pytest.fixture
def small_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered_runs, "BUFFERED", 20)
    monkeypatch.setattr(tiered_runs, "FAN", 4)


@pytest.mark.usefixtures("small_tiers")
@pytest.mark.parametrize("values", [2, 10**6])
def test_tiers_hold_what_was_added_however_it_came(values: int) -> None:
    tiers, expected = Tiers(np.uint64), Counter[Key]()
    for size in [1, 5, 19, 20, 21, 300] * 20:
        low = words(size, values)
        expected.update((0, int(x)) for x in low)
        tiers.add(Run(low))
        some = combined([Run(words(3, values))])
        tiers.add_sorted(some)
        expected += held(some)
    run = tiers.settle()
    assert held(run) == expected
    assert keys_of(run) == sorted(keys_of(run))
    assert tiers.settle() is run


@pytest.mark.usefixtures("small_tiers")
def test_runs_stay_few() -> None:
    tiers = Tiers(np.uint64)
    for _ in range(2_000):
        tiers.add(Run(words(20, 10**9)))
    # Never more than three runs in each of the tiers that 40,000 keys make.
    assert len(tiers.runs) <= 3 * 8 and len(tiers) == 40_000


@pytest.mark.usefixtures("small_tiers")
def test_many_different_keys_are_sorted_once() -> None:
    tiers, most = Tiers(np.uint64), 0
    for _ in range(60):
        tiers.add(Run(words(5, 10**9)))
        most = max(most, tiers.n_pending)
    assert most == 280 and len(tiers.runs) == 1  # after a first stage of 20
    assert len(tiers.flush()) == 1 and len(tiers) == 300


@pytest.mark.usefixtures("small_tiers")
def test_a_grown_stage_has_an_end() -> None:
    tiers = Tiers(np.uint64)
    for _ in range(2_000):
        tiers.add(Run(words(5, 10**9)))
        assert tiers.n_pending < 16 * 20
    assert len(tiers) == 10_000


@pytest.mark.usefixtures("small_tiers")
def test_few_keys_that_come_again_do_not_wait_long() -> None:
    tiers = Tiers(np.uint64)
    for _ in range(200):
        tiers.add(Run(words(5, 3)))
        assert tiers.n_pending < 20
    assert len(tiers.settle()) == 3
    for values in (10**9, 10):  # a stage that has grown shrinks when keys repeat
        for _ in range(100):
            tiers.add(Run(words(5, values)))
    assert tiers.enough == 20 and tiers.n_pending < 20


@pytest.mark.usefixtures("small_tiers")
def test_a_run_that_is_large_or_has_counts_is_not_sorted_again_with_what_waited() -> None:
    for first, n in (Run(words(300, 10**9)), 20), (Run(words(400, 2)), 100):
        tiers = Tiers(np.uint64)
        tiers.add(first)
        (before,) = tiers.flush()
        tiers.add(Run(words(n, 10**9)))
        assert len(tiers.flush()) == 2 and tiers.runs[0] is before


@pytest.mark.usefixtures("small_tiers")
@pytest.mark.parametrize(("waiting", "runs"), [(39, 2), (40, 1)])
def test_a_run_is_sorted_again_with_twice_as_many_keys(waiting: int, runs: int) -> None:
    tiers = Tiers(np.uint64)
    tiers.add(Run(words(20, 10**9)))
    tiers.flush()
    tiers.add(Run(words(waiting, 10**9)))
    assert len(tiers.flush()) == runs


@pytest.mark.usefixtures("small_tiers")
def test_keys_of_two_words_do_not_wait_long() -> None:
    tiers = Tiers(np.uint64, two_words=True)
    for _ in range(50):
        tiers.add(Run(words(5, 10**9), words(5, 10**9)))
        assert tiers.n_pending < 20
    assert len(tiers.settle()) == 250


@pytest.mark.usefixtures("small_tiers")
def test_a_short_look_at_a_few_keys_does_not_grow_the_stage() -> None:
    tiers = Tiers(np.uint64)
    tiers.add(Run(np.array([7], np.uint64)))
    tiers.flush()
    for _ in range(50):
        tiers.add(Run(np.array([7], np.uint64)))
        assert tiers.n_pending < 20


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
