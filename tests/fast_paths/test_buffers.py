"""The buffer of small batches and its validators, against rows that go straight into the state."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from streammetrics import Accumulator, InputError
from streammetrics.core import buffer
from tests.fast_paths import drawn
from tests.fast_paths.drawn import GIVEN, STATES, Columns, forms, simple

METRICS = {**drawn.METRICS, **GIVEN}
every_metric = pytest.mark.parametrize("name", [*STATES, *GIVEN])


@every_metric
def test_small_batches_of_any_sizes_count_as_their_rows(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(1)
    for sizes in ([1] * 40, [127, 128, 129, 1, 130], [0, 3, 0, 2], [7] * 30 + [129] * 3):
        columns = draw(sum(sizes), rng)
        state = metric.empty()
        for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
            if size or name.startswith(("Ratio", "Regression")):
                state.update(**{key: column[end - size : end] for key, column in columns.items()})
        assert state.to_bytes() == simple(metric, columns, 50).to_bytes()


@every_metric
def test_batches_around_the_sizes_that_wait_count_as_their_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(2)
    for module_name, size in (
        ("SMALL", 64),
        ("NARROW", 128),
        ("BUFFER_ROWS", 200),
        ("BUFFER_LISTS", 150),
        ("BUFFER_BATCHES", 9),
    ):
        monkeypatch.setattr(buffer, module_name, size)
    sizes = [63, 64, 65, 127, 128, 129, 10, 199, 1, 200, 201, 149, 1, 150, *[1] * 12, 199, 1, 1]
    columns = draw(sum(sizes), rng)
    state = metric.empty()
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        state.update(**{key: column[end - size : end] for key, column in columns.items()})
    assert state.to_bytes() == simple(metric, columns, 33).to_bytes()


@pytest.mark.parametrize(
    "name", [name for name in (*STATES, *GIVEN) if name != "Windows"]
)  # times are not floats
def test_columns_of_any_memory_and_type_count_alike(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(3)
    state = metric.empty()
    parts: list[Columns] = []
    for n in (1, 130, 64):
        columns = draw(n, rng)
        versions_by_key = {key: forms(column, rng) for key, column in columns.items()}
        for i in range(max(map(len, versions_by_key.values()))):
            batch = {key: versions[i % len(versions)] for key, versions in versions_by_key.items()}
            if any(isinstance(column, list) for column in batch.values()) and i % 2:
                state.compute()
            state.update(**batch)
            state.update(**batch)
            state.update(**{key: apart(column) for key, column in batch.items()})
            parts += [columns] * 3
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    assert state.to_bytes() == simple(metric, joined, 50).to_bytes()


def apart(column: object) -> object:
    """The column with its rows apart in memory, if it is an array."""
    return np.repeat(column, 2, axis=0)[::2] if isinstance(column, np.ndarray) else column


BAD_NUMBERS = [
    np.nan,
    np.inf,
    -np.inf,
    -0.0,
    -1.0,
    2.0,
    0.5,
    1e300,
    -5e-324,
    1 + 2**-52,
    1 + 2**-23,
]


def hostile(column: np.ndarray, rng: np.random.Generator) -> list[object]:
    """Columns that a validator might take for good: one value or the shape or type is another."""
    bad_columns: list[object] = []
    for value in BAD_NUMBERS:
        for kind in (np.float64, np.float32):
            with np.errstate(all="ignore"):
                bad_column = column.astype(kind)
                bad_column.reshape(-1)[rng.integers(bad_column.size)] = value
            bad_columns.append(bad_column)
    for integer in (2, -1, 255, 2**62):
        bad_column = np.zeros(column.shape, np.int64)
        bad_column.reshape(-1)[rng.integers(bad_column.size)] = integer
        bad_columns += [
            bad_column,
            bad_column.astype(np.uint8),
            bad_column.astype(np.int8),
            bad_column.astype(np.uint64),
        ]
    return [
        *bad_columns,
        *[array.tolist() for array in bad_columns],
        column[:-1],
        np.concatenate([column, column[:1]]),
        column[:0],
        column[..., None],
        np.array(column.reshape(-1)[0]),
        column.astype(str),
        column.astype(complex),
        column.astype("M8[ms]") if column.dtype.kind == "i" else column.astype(np.longdouble),
        np.ma.masked_array(column, np.arange(column.size).reshape(column.shape) == 0),
        None,
        "1",
        [*column.tolist(), "x"],
        tuple(column.tolist()),
        [*column.tolist(), [1, 2]],
        [*column.tolist()[:-1], 2**53 + 1],
        [*column.tolist()[:-1], np.float64(2**60)],
    ]


@every_metric
def test_what_is_refused_is_refused_alike_while_rows_wait(name: str) -> None:
    metric, draw = METRICS[name]
    rng = np.random.default_rng(4)
    wide = draw(6, rng)
    # The types of which two columns are validated in one go.
    narrow = {
        key: values.astype({"i": "u1", "f": "f4"}[values.dtype.kind])
        for key, values in wide.items()
    }
    for good in (wide,) if name.startswith("Grouped") else (wide, narrow):  # ids have 64 bits
        thrice = reduce(add, [simple(metric, good, 6)] * 3)
        for key, column in good.items():
            # Each metric has a third of the bad columns, and the next one another third.
            for bad in hostile(column, rng)[list(METRICS).index(name) % 3 :: 3]:
                refused_alike(metric, good, key, bad, thrice)


def refused_alike(
    metric: Accumulator, good: Columns, key: str, bad: object, thrice: Accumulator
) -> None:
    batch = {**good, key: bad}
    direct, waits = metric.empty(), metric.empty()
    for _ in range(2):  # the fast path begins with the second batch
        waits.update(**good)
    waits.update(**{name: apart(column) for name, column in good.items()})
    assert waits._buffer.n or waits.to_bytes() == thrice.to_bytes()
    expected = outcome(direct, batch)
    result = outcome(waits, batch, waiting=True)
    if isinstance(expected, str):
        assert result == expected, f"{key}={bad!r}"
        assert waits.to_bytes() == thrice.to_bytes()
    else:
        assert result == (thrice + direct).to_bytes(), f"{key}={bad!r}"


def outcome(state: Accumulator, columns: dict[str, Any], waiting: bool = False) -> bytes | str:
    """The bytes after an update by the buffer or without it, or what is said against it."""
    try:
        if waiting:
            state.update(**columns)
        else:
            state._feed(state.check(**columns), None)
    except (InputError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return state.to_bytes()
