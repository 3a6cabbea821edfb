"""Keys of many rows are found together, and a row may have several keys: against one key at a time,
with keys that a table of keys could take for one another."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
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
    MulticlassAUC,
    Panel,
    PerKey,
    Ratio,
    UserGroups,
    Windows,
)
from streammetrics.core.parts.counts import CountsColumn
from tests.fast_paths.drawn import METRICS

_PRIME = sys.hash_info.modulus  # n and n + _PRIME have one hash, and so do -1 and -2
KEYS: list[Any] = [
    *(0, 1, -1, -2, _PRIME, _PRIME + 1, 2 * _PRIME + 1, -_PRIME),
    *(1 << 63, -(1 << 63), (1 << 63) - 1, 10**30),
    *("0", "1", "-1", "None", "null", "", " ", "a", "A", "ä", "a\u0308", "\ufb01", "fi", "\x00"),
    *("a\x00", "a\x00\x00", "\x00a", "x" * 4_000, "x" * 3_999 + "y", "ä" * 600, "b" * 250),
    *("\ud800", "\udc00", "\U0001f600", "\ud83d\ude00", "\ude00\ud83d", "[1]", "(1,)", None),
    *(("\ud83d", "\ude00"), ("\ud83d\ude00",), ("a\x00",), ("x" * 2_000, "y" * 2_000), 10**1_000),
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


def as_codes_of_many(keys: Sequence[Any], codes: np.ndarray) -> object:
    """Most values of the dictionary are in no row."""
    return DictionaryColumn(codes + 30_000, (*range(30_000), *keys, *KEYS))


def as_codes_of_one(keys: Sequence[Any], codes: np.ndarray) -> object:
    """Columns of the same keys share one dictionary, most of whose values are in no row."""
    values = (*range(30_000), *keys, *KEYS)
    return DictionaryColumn(codes + 30_000, _DICTIONARIES.setdefault(repr(keys), values))


_SURROGATE = re.compile("[\ud800-\udfff]")
_DICTIONARIES: dict[str, tuple[Any, ...]] = {}


def as_numpy_scalars(keys: Sequence[Any], codes: np.ndarray) -> object:
    """Texts and integers of numpy's types, each tuple as a list."""

    def as_numpy(key: Any) -> Any:
        if isinstance(key, tuple):
            return [*map(as_numpy, key)]
        if isinstance(key, str):
            return np.str_(key)
        return np.int64(key) if isinstance(key, int) and abs(key) < 1 << 63 else key

    return [as_numpy(keys[code]) for code in codes.tolist()]


def as_array(keys: Sequence[Any], codes: np.ndarray) -> object:
    """An array of texts or of integers, if it holds all of the keys unchanged; else of objects."""
    column = as_list(keys, codes)
    for kind in ("U", "U300", "<i8", ">i8", "u8", "i2"):
        plain = {str} if kind[0] == "U" else {int}
        if set(map(type, column)) == plain:  # type: ignore[call-overload]
            with suppress(OverflowError, UnicodeEncodeError):
                array = np.array(column, kind)
                if array.tolist() == column:
                    return array
    objects = np.empty(len(codes), object)
    objects[:] = column
    return objects


FORMS = [as_list, as_codes, as_codes_twice, as_codes_of_many, as_numpy_scalars, as_array]
TWICE = [as_list, as_codes, as_array, as_codes_of_one]
Totals = Counter[tuple[str, Any]]  # sum and rows of each key


def as_in_bytes(key: Any) -> Any:
    """The key as JSON reads it, in which a pair of surrogates is one character."""
    read = json.loads(json.dumps(key))
    return tuple(read) if isinstance(read, list) else read


def rank(key: Any) -> tuple[bytes, bytes]:
    encoded = json.dumps(key, separators=(",", ":")).encode()
    return blake2b(encoded, digest_size=8, key=b"streammetrics-key/1").digest(), encoded


def require_totals(state: PerKey, rows: Totals, sums: Totals, most: int) -> None:
    """The keys with the smallest hashes have what a dict of all keys has, and the overflow the
    rest."""
    top_keys = sorted(rows, key=rank)[:most]
    result = state.compute()
    assert {key: (type(key), ratio.numerator, ratio.rows) for key, ratio in result.items()} == {
        key: (type(key), sums[key], rows[key]) for key in top_keys
    }
    rest_rows = rows.total() - sum(rows[key] for key in top_keys)
    assert (result.overflow.rows if result.overflow else 0) == rest_rows


@pytest.mark.parametrize("most", [9, 2, 10_000])
@pytest.mark.parametrize("seed", [*range(3)])
def test_rows_are_counted_by_a_dict_of_their_keys(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [key for key in KEYS if isinstance(key, str)]
    numbers = [key for key in KEYS if isinstance(key, int)]
    pools = [KEYS, texts, numbers, [key for key in numbers if abs(key) < 1 << 63]]
    empty = PerKey(Ratio(), max_keys=most)
    states = [(empty.empty(), Totals(), Totals()) for _ in range(3)]
    for step in range(25):
        index = int(rng.integers(3))
        state, rows, sums = states[index]
        pool = [key for key in pools[rng.integers(len(pools))] if rng.random() < 0.5] or [None]
        n = 9_000 if step in (7, 10, 14, 20) else int(rng.choice([1, 3, 60, 300]))
        codes, values = rng.integers(0, len(pool), n), rng.integers(0, 9, n)
        form = FORMS[rng.integers(len(FORMS))]
        if step % 3:
            state.update(form(pool, codes), numerators=values)
        else:
            state.update({"x": form(pool, codes), "y": ["z"] * n}, numerators=values)
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            key = as_in_bytes(pool[code])
            row_keys = [key]
            if step % 3 == 0:
                column_key = ("x", *key) if isinstance(key, tuple) else ("x", key)
                row_keys = [("y", "z"), *([column_key] if key is not None else [])]
            rows.update(row_keys)
            sums.update(dict.fromkeys(row_keys, value))
        match int(rng.integers(7)):
            case 0:
                require_totals(state, rows, sums, most)
            case 1:
                state = PerKey.from_bytes(state.to_bytes())
            case 2:
                state = state.copy()
            case 3:  # evicted keys may arrive again, in this or in the other state
                neighbour, extra_rows, of_more = states[index - 1]
                state.merge(neighbour)
                rows, sums = rows + extra_rows, sums + of_more
            case 4:
                total = empty.empty()
                total.merge(state.split(3))
                state = total
            case 5:
                state = state.rekeyed(lambda key: key)
        states[index] = state, rows, Totals({key: sums[key] for key in rows})
    for state, rows, sums in states:
        require_totals(state, rows, sums, most)
        loaded = PerKey.from_bytes(state.to_bytes())
        assert loaded.to_bytes() == state.to_bytes()
        require_totals(loaded, rows, sums, most)


def test_keys_of_windows_are_counted_by_a_dict_of_both() -> None:
    """Windows have other keys than one another, and few of a column's keys each."""
    rng = np.random.default_rng(6)
    state, expected = Windows(PerKey(Ratio()), 1), Totals()
    for n in (*(1, 2, 3, 4, 5) * 3, 60, 9_000):
        order = rng.permutation(5 if n < 10 else len(KEYS))  # few, so that most are known
        pool = [KEYS[i] for i in order[: min(n, 40)]]
        codes, seconds = rng.integers(0, len(pool), n), rng.integers(0, 3, n)
        state.update(seconds * 1_000, keys=as_codes(pool, codes), numerators=np.ones(n))
        for code, second in zip(codes.tolist(), seconds.tolist(), strict=True):
            expected[f"{second}", as_in_bytes(pool[code])] += 1
        windows = state.compute()
        assert expected == {
            (f"{start // 1_000}", key): ratio.rows
            for (start, _), result in windows.items()
            for key, ratio in result.items()
        }


@pytest.mark.parametrize("form", [*TWICE])
@pytest.mark.parametrize(
    ("like", "key"), [(True, "True"), (1.0, 1), ((True,), ("True",)), ((1.0,), (1,))], ids=repr
)
def test_what_equals_a_key_is_counted_as_the_key_that_it_is(
    form: Any, like: object, key: object
) -> None:
    """True equals 1 in a map, and is another key; 1.0 is the same one."""
    state, expected = PerKey(Ratio()), PerKey(Ratio())
    for keys in ([1, "a", (1,)], [1, like], [like, 1], [(1,), "a", like], [(1,), like]):
        for n in (len(keys), 9_000):
            codes = np.maximum(np.arange(n) - n + len(keys), 0)
            state.update(form(keys, codes), numerators=np.ones(n))
            plain = [key if value is like else value for value in keys]
            expected.update([plain[code] for code in codes.tolist()], numerators=np.ones(n))
    assert state.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("form", [*TWICE])
@pytest.mark.parametrize("bad", [1.5, float("nan"), b"1", (1.5,), ((1,),), "x" * 5_000], ids=repr)
def test_what_is_no_key_is_refused_beside_known_ones(form: Any, bad: object) -> None:
    state = PerKey(Ratio())
    state.update([1, "a", (1,)], numerators=[1, 1, 1])
    before = state.to_bytes()
    for keys in ([1, bad], [bad, 1], [(1,), "a", bad], [(1,), bad]):
        for n in (len(keys), 9_000):
            codes = np.maximum(np.arange(n) - n + len(keys), 0)
            with pytest.raises(InputError):
                state.update(form(keys, codes), numerators=np.ones(n))
    for bad_codes in (np.arange(1 - 9_000, 1), np.arange(9_000) + 30_000):
        with pytest.raises(InputError, match="codes from 0"):
            state.update(as_codes([*range(30_001)], bad_codes), numerators=np.ones(9_000))
    assert state.to_bytes() == before


@pytest.mark.parametrize("most", [2, 30, 10_000])
def test_batches_that_share_a_large_dictionary_are_counted_by_a_dict_of_their_keys(
    most: int,
) -> None:
    """While keys are evicted, come again, and are merged and read; of tuples, of other keys, and of
    all, some of which are read another way."""
    rng = np.random.default_rng(most)
    short = [key for key in KEYS if len(f"{key}") < 50 and not _SURROGATE.search(f"{key}")]
    tuples = [key for key in short if isinstance(key, tuple)]
    scalars = [*range(5_000, 5_400), *(key for key in short if key not in tuples)]
    pool = [*scalars, *tuples, *(key for key in KEYS if key not in short)]
    ends = 0, len(scalars), len(scalars) + len(tuples), len(pool)
    state, rows = PerKey(Ratio(), max_keys=most), Totals()
    for step in range(24):
        first, last = [(0, 1), (0, 1), (1, 2), (0, 1), (0, 3)][step % 5]
        step_codes = rng.integers(ends[first], ends[last], 7 + 9 * step)  # of these alone
        codes = rng.choice(step_codes, 9_000)
        keys = as_codes_of_one(pool, codes)
        if step % 4 == 1:  # another dictionary of as many values
            keys = as_codes_of_one(pool[::-1], len(pool) - 1 - codes)
        state.update(keys, numerators=np.ones(9_000))
        rows.update(as_in_bytes(pool[code]) for code in codes.tolist())
        if step % 4 == 3:
            state.update([*range(5_000, 5_040)], numerators=np.ones(40))
            rows.update(range(5_000, 5_040))
        if step % 6 == 4:
            state.keys()
        if step % 8 == 6:
            duplicate = state.copy()
            state.merge(duplicate)
            rows += rows
    require_totals(state, rows, rows, most)


def test_keys_that_were_looked_up_before_some_were_evicted_are_looked_up_again() -> None:
    names, extra_names = [f"{i % 7}" for i in range(20_000)], [f"other {i}" for i in range(40)]
    ones = np.ones(20_000)
    state, expected = PerKey(Ratio(), max_keys=7), PerKey(Ratio(), max_keys=7)
    state.update(names, numerators=ones)
    checked = state.check(names, numerators=ones)
    state.update(extra_names, numerators=ones[:40])
    assert not {*names} <= {*state.keys()}
    state._update(checked)
    every = [*names, *extra_names, *names]
    for i in range(0, len(every), 1_000):
        batch = every[i : i + 1_000]
        expected.update(batch, numerators=ones[: len(batch)])
    assert state.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("bad", [{}, {1: ["a"]}, {"x": ["a", "b"]}, {"x" * 5_000: ["a"]}])
def test_names_of_several_keys_are_strings_of_columns_as_long_as_the_rows(bad: Any) -> None:
    state = PerKey(Ratio())
    with pytest.raises(InputError, match="keys"):
        state.update(bad, numerators=[1])
    assert state == state.empty()


# Parts that add up rows with several keys, one of each; `make check` has these.
SEVERAL = ["Ratio", "BinaryConfusion weighted", "ExactAUC", "GroupedScores"]
OTHERS = [name for name in METRICS if name not in SEVERAL]


@pytest.mark.parametrize("name", [*SEVERAL, *OTHERS])
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
            "many": [*range(n // 5 + 1)],
            "hostile": KEYS,
        }
        codes = {column: rng.integers(0, len(pool), n) for column, pool in pools.items()}
        together, apart = PerKey(metric), PerKey(metric)
        together.update({c: as_codes(pool, codes[c]) for c, pool in pools.items()}, **columns)
        for column, pool in pools.items():
            keys, mask = with_a_key(column, pool, codes[column])
            apart.update(keys, **{name: values[mask] for name, values in columns.items()})
        assert together.to_bytes() == apart.to_bytes(), n


OF_USERS = {
    "weights": HistogramAUC(weight_unit="1/4"),
    "classes": MulticlassAUC(3, resolution=4),
    "exact": ExactAUC(),
}


@pytest.mark.parametrize("name", OF_USERS)
def test_scores_of_users_with_several_keys_count_as_one_after_another(name: str) -> None:
    metric = UserGroups(OF_USERS[name], 4)
    rng = np.random.default_rng(12)
    together, apart = PerKey(metric), PerKey(metric)
    for n in (1, 50, 17_000):
        scores = rng.choice(np.arange(9) / 8, (n, 3) if name == "classes" else n)
        rows = {"labels": rng.integers(0, 2, n), "scores": scores, "groups": rng.integers(0, 9, n)}
        if name == "weights":
            rows["weights"] = rng.choice([0, 0.25, 1, 3.5], n)
        pools: dict[str, list[Any]] = {"all": ["a", "b"], "half": ["a", None], "none": [None]}
        codes = {column: rng.integers(0, len(pool), n) for column, pool in pools.items()}
        together.update({c: as_codes(pool, codes[c]) for c, pool in pools.items()}, **rows)
        for column, pool in pools.items():
            keys, mask = with_a_key(column, pool, codes[column])
            apart.update(keys, **{field: values[mask] for field, values in rows.items()})
    assert together.to_bytes() == apart.to_bytes()


def with_a_key(name: str, pool: list[Any], codes: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The keys of the rows that count under this name, and these rows."""
    row_keys = [pool[code] for code in codes.tolist()]
    mask = np.array([key is not None for key in row_keys])
    column_keys = [(name, *key) if isinstance(key, tuple) else (name, key) for key in row_keys]
    return [key for key, present in zip(column_keys, mask.tolist(), strict=True) if present], mask


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
            span = slice(i, i + 700)
            batch = {name: column[span] for name, column in rows.items()}
            buffered.update(times[span], keys={k: v[span] for k, v in arms.items()}, **batch)
        for name, arm in arms.items():
            mask = np.array([key is not None for key in arm])
            keys = [(name, key) for key in arm if key is not None]
            apart.update(times[mask], keys=keys, **{k: v[mask] for k, v in rows.items()})
    assert together.to_bytes() == apart.to_bytes() == buffered.to_bytes()


def test_experiments_are_independent_of_the_rows_that_are_in_none_of_them() -> None:
    """A row that is left out of an experiment leaves no trace in it, whatever its values are."""
    rng = np.random.default_rng(8)
    scores = rng.random(20_000)
    for odd in (1e300, np.inf, -1e-300, 2.0**70):
        numbers = np.concatenate([scores, [odd]])
        state, expected = PerKey(Ratio()), PerKey(Ratio())
        arms = np.append(rng.integers(0, 2, 20_000), 2)
        partial = DictionaryColumn(arms, ("a", "b", None))
        full = DictionaryColumn(arms % 2, ("a", "b"))
        state.update({"one": partial, "other": full}, numerators=numbers)
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
        column = DictionaryColumn(np.zeros(n, np.intp), ("a",))
        every = tuple((f"{i}", "a") for i in range(columns))
        for _ in range(2):  # by the second batch, it is known that nearly all keys are past it
            together.update({name: column for name, _ in every}, numerators=numbers[:n])
            codes = np.arange(columns).repeat(n)
            apart.update(DictionaryColumn(codes, every), numerators=np.tile(numbers[:n], columns))
            assert together.to_bytes() == apart.to_bytes()


def test_a_row_that_has_one_key_twice_counts_twice() -> None:
    by_key: Accumulator = PerKey(Ratio(), max_keys=1)
    by_key.update({"x": ["a", "b"], "y": ["a", "a"]}, numerators=[1, 1])
    assert (
        sum(ratio.rows for ratio in by_key.compute().values()) + by_key.compute().overflow.rows == 4
    )


@pytest.mark.parametrize("cells", [1 << 34, 100])
@pytest.mark.parametrize("most", [1 << 40, 3])
def test_sparse_cells_hold_what_a_dict_of_cells_holds(cells: int, most: int) -> None:
    rng = np.random.default_rng(most)
    column, expected = CountsColumn((cells,), 50), dict[tuple[int, int], int]()
    for n in (1, 30_000, 0, 300_000, 5, 20_000):
        slots = rng.integers(0, 50, n)
        indexes = rng.choice([0, 1, cells - 1, *rng.integers(0, cells, 300)], n)
        weights = None if n % 7 else rng.integers(0, most, n)
        column.add(indexes, slots, weights)
        ones = [1] * n if weights is None else weights.tolist()
        for slot, cell, weight in zip(slots.tolist(), indexes.tolist(), ones, strict=True):
            expected[slot, cell] = expected.get((slot, cell), 0) + weight
        if n == 5:
            column._settle()
    counts = {}
    for slot in range(50):
        for cell, count in zip(*map(np.ndarray.tolist, column.occupied(slot)), strict=True):
            counts[slot, cell] = count
    assert counts == {key: count for key, count in expected.items() if count}
