"""Keys of many rows are found together, and a row may have several keys: against one key at a time,
with keys that a table of keys could take for one another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    DictionaryColumn,
    HistogramAUC,
    InputError,
    Panel,
    PerKey,
    Ratio,
    UserGroups,
    Windows,
)
from streammetrics.core.parts.counts import CountsColumn
from tests.fast_paths.drawn import METRICS, each

_PRIME = sys.hash_info.modulus  # n and n + _PRIME have one hash, and so do -1 and -2
KEYS: list[Any] = [
    *(0, 1, -1, -2, _PRIME, _PRIME + 1, 2 * _PRIME + 1, -_PRIME),
    *(1 << 63, -(1 << 63), (1 << 63) - 1, 10**30),
    *("0", "1", "-1", "None", "null", "", " ", "a", "A", "ä", "a\u0308", "\ufb01", "fi", "\x00"),
    *("\ud800", "\U0001f600", "[1]", "(1,)", None),
    *((), (1,), ("1",), (None,), ("",), (1, 2), (12,), ("1", 2), (1, "2"), ("a", "b"), ("ab",)),
    *((0,), (_PRIME,), (-1,), (-2,), ("ä", None), ("a\u0308", None)),
]  # fmt: skip


def as_list(keys: Sequence[Any], codes: np.ndarray) -> object:
    return [keys[code] for code in codes.tolist()]


def as_codes(keys: Sequence[Any], codes: np.ndarray) -> object:
    return DictionaryColumn(codes, tuple(keys))


def as_codes_twice(keys: Sequence[Any], codes: np.ndarray) -> object:
    """Each key has two codes."""
    twice = np.where(np.arange(len(codes)) % 2, codes, codes + len(keys))
    return DictionaryColumn(twice, (*keys, *keys))


@pytest.mark.parametrize("form", [as_list, as_codes, as_codes_twice])
@pytest.mark.parametrize("n", [1, 50, 9_000])
def test_rows_are_counted_by_a_dict_of_their_keys(form: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    some = [KEYS[i] for i in rng.permutation(len(KEYS))]
    state, expected = PerKey(Ratio()), dict[Any, int]()
    for pool in (some[:7], some[5:30], some):
        codes = rng.integers(0, len(pool), n)
        values = rng.integers(0, 9, n)
        state.update(form(pool, codes), numerators=values)
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            expected[pool[code]] = expected.get(pool[code], 0) + value
    found = {key: one.numerator for key, one in state.compute().items()}
    assert found == expected
    assert {key: type(key) for key in found} == {key: type(key) for key in expected}


@pytest.mark.parametrize("form", [as_list, as_codes])
@pytest.mark.parametrize(
    "bad", [True, 1.0, float("nan"), b"1", (True,), (1.0,), ((1,),), "x" * 5_000], ids=repr
)
def test_what_equals_a_key_without_being_one_is_refused(form: Any, bad: object) -> None:
    state = PerKey(Ratio())
    state.update([1, "a", (1,)], numerators=[1, 1, 1])
    before = state.to_bytes()
    for keys in ([1, bad], [bad, 1], [(1,), "a", bad]):
        with pytest.raises(InputError):
            state.update(form(keys, np.arange(len(keys))), numerators=np.ones(len(keys)))
    assert state.to_bytes() == before


@pytest.mark.parametrize("bad", [{}, {1: ["a"]}, {"x": ["a", "b"]}, {"x" * 5_000: ["a"]}])
def test_names_of_several_keys_are_strings_of_columns_as_long_as_the_rows(bad: Any) -> None:
    state = PerKey(Ratio())
    with pytest.raises(InputError, match="keys"):
        state.update(bad, numerators=[1])
    assert state == state.empty()


@each(METRICS)
def test_several_keys_of_a_row_count_as_one_after_another(name: str) -> None:
    metric, draw = METRICS[name]
    for n in (1, 40, 9_000):
        rng = np.random.default_rng(n)
        columns = draw(n, rng)
        pools: dict[str, list[Any]] = {
            "few": ["a", "b"],
            "many": [*range(n // 5 + 1)],
            "hostile": KEYS,
        }
        codes = {column: rng.integers(0, len(pool), n) for column, pool in pools.items()}
        together, apart = PerKey(metric), PerKey(metric)
        together.update({c: as_codes(pool, codes[c]) for c, pool in pools.items()}, **columns)
        for column, pool in pools.items():
            named = [(column, *key) if isinstance(key, tuple) else (column, key) for key in pool]
            apart.update(as_list(named, codes[column]), **columns)
        assert together.to_bytes() == apart.to_bytes(), n


@pytest.mark.parametrize("buckets", [2, 64])
def test_several_keys_of_users_in_windows_count_as_one_after_another(buckets: int) -> None:
    panel = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
    metric = Windows(PerKey(UserGroups(panel, buckets), max_keys=3), 1)
    together, apart = metric.empty(), metric.empty()
    rng = np.random.default_rng(4)
    for n in (3, 40_000, 100):
        users, times = rng.integers(0, n, n), rng.integers(0, 3_000, n)
        arms = {f"{i}": rng.choice(["a", "b"], n).tolist() for i in range(3)}
        rows = {"labels": rng.integers(0, 2, n), "scores": rng.random(n), "groups": users}
        together.update(times, keys=arms, **rows)
        for name, arm in arms.items():
            apart.update(times, keys=[(name, one) for one in arm], **rows)
    assert together.to_bytes() == apart.to_bytes()


def test_a_row_that_has_one_key_twice_counts_twice() -> None:
    by_key: Accumulator = PerKey(Ratio(), max_keys=1)
    by_key.update({"x": ["a", "b"], "y": ["a", "a"]}, numerators=[1, 1])
    assert sum(one.rows for one in by_key.compute().values()) + by_key.compute().overflow.rows == 4


@pytest.mark.parametrize("cells", [100, 1 << 34])
@pytest.mark.parametrize("most", [3, 1 << 40])
def test_sparse_cells_hold_what_a_dict_of_cells_holds(cells: int, most: int) -> None:
    rng = np.random.default_rng(most)
    column, expected = CountsColumn((cells,), 50), dict[tuple[int, int], int]()
    for n in (1, 30_000, 0, 300_000, 5, 20_000):
        slots = rng.integers(0, 50, n)
        at = rng.choice([0, 1, cells - 1, *rng.integers(0, cells, 300)], n)
        weights = None if n % 7 else rng.integers(0, most, n)
        column.add(at, slots, weights)
        ones = [1] * n if weights is None else weights.tolist()
        for slot, cell, one in zip(slots.tolist(), at.tolist(), ones, strict=True):
            expected[slot, cell] = expected.get((slot, cell), 0) + one
        if n == 5:
            column._settle()
    found = {}
    for slot in range(50):
        for cell, count in zip(*map(np.ndarray.tolist, column.occupied(slot)), strict=True):
            found[slot, cell] = count
    assert found == {at: count for at, count in expected.items() if count}
