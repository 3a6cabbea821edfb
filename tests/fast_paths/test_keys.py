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
    Calibration,
    DictionaryColumn,
    ExactAUC,
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
            **{f"arms {i}": ["a", "b"] for i in range(6)},  # few combinations: one block
            "half": ["a", "b", None, None],
            "none": [None],
            "few": ["a", "b", "c"],
            "many": [*range(n)],
            "hostile": KEYS,
        }
        codes = {column: rng.integers(0, len(pool), n) for column, pool in pools.items()}
        together, apart = PerKey(metric), PerKey(metric)
        together.update({c: as_codes(pool, codes[c]) for c, pool in pools.items()}, **columns)
        for column, pool in pools.items():
            keys, some = with_a_key(column, pool, codes[column])
            apart.update(keys, **{name: values[some] for name, values in columns.items()})
        assert together.to_bytes() == apart.to_bytes(), n


def with_a_key(name: str, pool: list[Any], codes: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The keys of the rows that count under this name, and these rows."""
    given = [pool[code] for code in codes.tolist()]
    some = np.array([key is not None for key in given])
    named = [(name, *key) if isinstance(key, tuple) else (name, key) for key in given]
    return [key for key, there in zip(named, some.tolist(), strict=True) if there], some


@pytest.mark.parametrize("buckets", [2, 64])
def test_several_keys_of_users_in_windows_count_as_one_after_another(buckets: int) -> None:
    metrics = {"auc": HistogramAUC(), "fit": Calibration(), "ctr": Ratio(), "exact": ExactAUC()}
    panel = Panel(metrics, inputs={"ctr": {"numerators": "labels"}})
    metric = Windows(PerKey(UserGroups(panel, buckets), max_keys=3), 1)
    together, apart, buffered = metric.empty(), metric.empty(), metric.empty()
    rng = np.random.default_rng(4)
    for n in (3, 40_000, 100):
        users, times = rng.integers(0, n, n), rng.integers(0, 3_000, n)
        arms = {f"{i}": rng.choice(["a", "b", None], n).tolist() for i in range(5)}
        rows = {"labels": rng.integers(0, 2, n), "scores": rng.random(n), "groups": users}
        together.update(times, keys=arms, **rows)
        for i in range(0, n, 700):
            at = slice(i, i + 700)
            some = {name: column[at] for name, column in rows.items()}
            buffered.update(times[at], keys={k: v[at] for k, v in arms.items()}, **some)
        for name, arm in arms.items():
            here = np.array([one is not None for one in arm])
            keys = [(name, one) for one in arm if one is not None]
            apart.update(times[here], keys=keys, **{k: v[here] for k, v in rows.items()})
    assert together.to_bytes() == apart.to_bytes() == buffered.to_bytes()


def test_experiments_are_independent_of_the_rows_that_are_in_none_of_them() -> None:
    """A row that is left out of an experiment leaves no trace in it, whatever its values are."""
    rng = np.random.default_rng(8)
    scores = rng.random(20_000)
    for odd in (1e300, np.inf, -1e-300, 2.0**70):
        numbers = np.concatenate([scores, [odd]])
        state, expected = PerKey(Ratio()), PerKey(Ratio())
        arms = np.append(rng.integers(0, 2, 20_000), 2)
        one = DictionaryColumn(arms, ("a", "b", None))
        other = DictionaryColumn(arms % 2, ("a", "b"))
        state.update({"one": one, "other": other}, numerators=numbers)
        expected.update([("one", "ab"[arm]) for arm in arms[:-1]], numerators=scores)
        expected.update([("other", "ab"[arm % 2]) for arm in arms], numerators=numbers)
        assert state.to_bytes() == expected.to_bytes(), odd
    state.update({"one": [None]}, numerators=[np.inf])
    assert state.to_bytes() == expected.to_bytes()


def test_the_keys_past_the_limit_hold_the_sums_of_many_columns_of_keys() -> None:
    """All of these columns add to one state, whose sums exceed what a float64 holds."""
    numbers = 1 - np.random.default_rng(3).random(1 << 15) / 16
    for columns, n in ((6, 1 << 15), (1_100, 3)):
        together, apart = PerKey(Ratio(), max_keys=1), PerKey(Ratio(), max_keys=1)
        one = DictionaryColumn(np.zeros(n, np.intp), ("a",))
        every = tuple((f"{i}", "a") for i in range(columns))
        for _ in range(2):  # by the second batch, it is known that nearly all keys are past it
            together.update({name: one for name, _ in every}, numerators=numbers[:n])
            codes = np.arange(columns).repeat(n)
            apart.update(DictionaryColumn(codes, every), numerators=np.tile(numbers[:n], columns))
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
