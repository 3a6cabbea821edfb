"""Ids that were seen, against the rule in plain words: one after the other, over all that came."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.counting.seen_ids import MAX_ROWS, SeenIds

RETENTION, PANE = 100, 10
Event = tuple[int, int]  # id, time


def plain(events: Sequence[Event], retention: int = RETENTION, pane: int = PANE) -> list[bool]:
    """The rule: a repeat is what comes while the first of its id is remembered."""
    seen: dict[int, int] = {}
    clock = None
    again = []
    for id_, time in events:
        start = time // pane * pane
        floor = (start if clock is None else clock) - retention - pane
        again.append(seen.get(id_, floor) > floor)
        if not again[-1]:
            seen[id_] = start
        clock = start if clock is None else max(clock, start)
    return again


def asked(seen: SeenIds, events: Sequence[Event]) -> list[bool]:
    ids = np.array([id_ for id_, _ in events], np.uint64)
    found = seen.repeats(ids, np.array([time for _, time in events], np.int64))
    return [bool(again) for again in found]


class Store:
    """Rows by pane, as a ledger keeps them."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, bytes]] = []

    def commit(self, seen: SeenIds) -> None:
        found = seen.take()
        self.rows = [
            row for row in self.rows if row[0] >= found.since_ms and row[0] not in found.anew
        ]
        self.rows += found.rows
        seen.committed(found)

    def load(self) -> SeenIds:
        return SeenIds(RETENTION, PANE, self.rows)


events_of = st.lists(st.tuples(st.integers(0, 8), st.integers(-300, 300)), max_size=40)


@given(events_of, st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_repeats_are_those_of_the_rule_however_events_are_cut_into_chunks_and_commits(
    events: list[Event], cuts: list[int], crashes: list[int]
) -> None:
    store, found = Store(), list[bool]()
    seen = store.load()
    edges = sorted({0, len(events), *(cut for cut in (*cuts, *crashes) if cut < len(events))})
    for start, end in pairwise(edges):
        found += asked(seen, events[start:end])
        if end in cuts:
            store.commit(seen)
        if end in crashes:
            store.commit(seen)
            seen = store.load()  # another worker goes on
    assert found == plain(events)


def test_what_was_not_committed_is_not_remembered_after_a_crash() -> None:
    store = Store()
    seen = store.load()
    assert asked(seen, []) == []
    asked(seen, [(1, 0)])
    store.commit(seen)
    assert asked(seen, [(2, 5), (1, 5)]) == [False, True]
    assert asked(store.load(), [(2, 5), (1, 5)]) == [False, True]


def test_ids_are_remembered_for_the_retention_and_forgotten_two_panes_later() -> None:
    for later in range(140):
        again = asked(SeenIds(RETENTION, PANE), [(1, 0), (2, later), (1, later)])
        if later <= RETENTION:
            assert again == [False, False, True]
        if later >= RETENTION + 2 * PANE:
            assert again == [False, False, False]


@pytest.mark.parametrize(
    ("events", "again"),
    [
        ([(1, 0), (2, 60), (1, 110), (3, 0), (2, 175), (3, 0)],
         [False, False, True, False, True, False]),
        # What is older than the retention is not remembered, and what comes again is no repeat.
        ([(1, 0), (1, 95), (2, -30), (2, -30)], [False, True, False, False]),
    ],
)  # fmt: skip
def test_the_clock_is_found_again_where_the_newest_pane_has_no_id_of_its_own(
    events: list[Event], again: list[bool]
) -> None:
    store, found = Store(), list[bool]()
    for event in events:
        seen = store.load()
        found += asked(seen, [event])
        store.commit(seen)
    assert found == plain(events) == again


@pytest.mark.slow
def test_the_store_holds_few_rows_of_a_pane_and_forgets_with_the_memory() -> None:
    store, rng = Store(), random.Random(1)
    seen = store.load()
    for time in range(1000):
        asked(seen, [(rng.getrandbits(64), time) for _ in range(5)])
        store.commit(seen)
        panes = [start for start, _ in store.rows]
        assert max(map(panes.count, panes)) <= MAX_ROWS + 1
        assert sum(len(ids) for _, ids in store.rows) == 8 * len(seen)
        assert len(seen) <= 5 * (RETENTION + 2 * PANE)


def test_rows_are_merged_once_there_are_many() -> None:
    store = Store()
    seen = store.load()
    for id_ in range(MAX_ROWS + 5):
        asked(seen, [(id_, 0)])
        store.commit(seen)
    assert len(store.rows) == 5
    assert asked(store.load(), [(id_, 1) for id_ in range(MAX_ROWS + 5)]) == [True] * (MAX_ROWS + 5)


def test_an_id_costs_sixteen_bytes_of_memory_and_eight_in_the_store() -> None:
    seen = SeenIds(10**6, 10**5)
    seen.repeats(np.arange(10_000, dtype=np.uint64), np.zeros(10_000, np.int64))
    found = seen.take()
    assert sum(len(ids) for _, ids in found.rows) == 80_000
    seen.committed(found)
    assert seen.nbytes == 160_000
