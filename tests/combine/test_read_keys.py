"""States that were read share their keys, and none of them sees what becomes of another."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

import numpy as np
import pytest

from streammetrics import Accumulator, Panel, PerKey, Ratio, Windows
from streammetrics.core.rows import DictionaryColumn
from tests.oracles.maps import rank
from tests.toys import Tally

Row: TypeAlias = tuple[str, int]  # a key and its window
DAY_MS = 86_400_000
METRICS: dict[str, Accumulator] = {
    "one slot": PerKey(Ratio(), 30),
    "many slots": Windows(PerKey(Ratio(), 30), 86_400),
}


def counted(metric: Accumulator, rows: list[Row]) -> Accumulator:
    state = metric.empty()
    update(state, rows)
    return state


def update(state: Accumulator, rows: list[Row]) -> None:
    keys, numerators = [key for key, _ in rows], [len(key) for key, _ in rows]
    if isinstance(state, Windows):
        state.update([day * DAY_MS for _, day in rows], keys=keys, numerators=numerators)
    else:
        state.update(keys, numerators=numerators)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(12))
def test_states_of_the_same_bytes_go_their_own_ways(name: str, seed: int) -> None:
    """Compared with states that were never read, also past `max_keys`."""
    drawn, metric = Random(seed), METRICS[name]

    def some_rows(n: int) -> list[Row]:
        return [(f"key {drawn.randrange(60)}", drawn.randrange(3)) for _ in range(n)]

    first = [(f"key {i}", i % 2) for i in range(drawn.choice((20, 50, 90)))]
    data = counted(metric, first).to_bytes()
    states = [metric.from_bytes(data) for _ in range(3)]
    rows = [[*first] for _ in states]
    for _ in range(25):
        i, j = drawn.sample(range(3), 2)
        step = drawn.choice(("update", "merge", "merge", "copy", "read", "keys"))
        if step == "update":
            new = some_rows(drawn.randrange(1, 9))
            update(states[i], new)
            rows[i] += new
        elif step == "merge":
            states[i].merge(states[j])
            rows[i] += rows[j]
        elif step == "copy":
            states[i], rows[i] = states[j].copy(), [*rows[j]]
        elif step == "read":
            states[i] = metric.from_bytes(states[i].to_bytes())
        else:
            states[i].compute()
        if len(rows[i]) > 5_000:
            break
        for state, state_rows in zip(states, rows, strict=True):
            assert state.to_bytes() == counted(metric, state_rows).to_bytes()


def test_keys_of_states_that_were_read_are_held_once_as_long_as_they_are_equal() -> None:
    state = PerKey(Ratio())
    state.update([f"key {i}" for i in range(20)], numerators=[1] * 20)
    first, second = (PerKey.from_bytes(state.to_bytes()) for _ in range(2))
    assert first.states.index[0] is second.states.index[0]
    first.update(["key 7"], numerators=[1])
    assert len(first.keys()) == 20
    assert first.states.index[0] is second.states.index[0]
    first.update(["key 20"], numerators=[1])
    assert (len(first.keys()), len(second.keys())) == (21, 20)
    assert first.states.index[0] is not second.states.index[0]


def test_rows_that_an_equal_state_checked_do_not_say_where_the_other_has_its_keys() -> None:
    n, values = 9_000, tuple(f"key {i}" for i in range(60_000))
    ones = np.ones(n)
    old, new = (DictionaryColumn(np.arange(start, start + n), values) for start in (0, n))
    state = PerKey(Ratio(), 1_000_000)
    state.update(old, numerators=ones)
    first, second = (PerKey.from_bytes(state.to_bytes()) for _ in range(2))
    rows = first.check(old, numerators=ones)
    for each in (first, second):
        each.update_checked(rows)
    first.update(new, numerators=ones)
    second.update([f"other {i}" for i in range(n)], numerators=ones)
    copy = second.copy()
    for each in (second, copy):
        each.update(new, numerators=ones)
    assert second == copy
    assert len(second.keys()) == 3 * n


@pytest.mark.parametrize("limit", [2, 3, 10])
def test_what_a_state_under_another_limit_takes_is_a_function_of_its_bytes(limit: int) -> None:
    keys = sorted("abcdefgh", key=rank)
    state = PerKey(Panel({"t": Tally(64)}), 2)
    state.update(keys[:4], cells=range(4))
    for limited in (state.project("t", limit), state.project("t").limited(limit)):
        states = [limited, PerKey.from_bytes(limited.to_bytes()), limited.empty() + limited]
        assert states[1] == limited == states[2]
        for equal in states:
            equal.update([keys[6]], cells=[6])
            assert {*equal.keys()} == {*keys[:2], *([keys[6]] if limit > 2 else [])}
        assert states[1] == limited == states[2]
