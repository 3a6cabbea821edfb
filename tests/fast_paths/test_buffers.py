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
        made = {key: forms(column, rng) for key, column in columns.items()}
        for i in range(max(map(len, made.values()))):
            given = {key: some[i % len(some)] for key, some in made.items()}
            if any(isinstance(one, list) for one in given.values()) and i % 2:
                state.compute()
            state.update(**given)
            state.update(**given)
            state.update(**{key: apart(column) for key, column in given.items()})
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
    found: list[object] = []
    for value in BAD_NUMBERS:
        for kind in (np.float64, np.float32):
            with np.errstate(all="ignore"):
                some = column.astype(kind)
                some.reshape(-1)[rng.integers(some.size)] = value
            found.append(some)
    for integer in (2, -1, 255, 2**62):
        some = np.zeros(column.shape, np.int64)
        some.reshape(-1)[rng.integers(some.size)] = integer
        found += [some, some.astype(np.uint8), some.astype(np.int8), some.astype(np.uint64)]
    return [
        *found,
        *[some.tolist() for some in found],
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
        key: some.astype({"i": "u1", "f": "f4"}[some.dtype.kind]) for key, some in wide.items()
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
    given = {**good, key: bad}
    direct, waits = metric.empty(), metric.empty()
    for _ in range(2):  # the fast path begins with the second batch
        waits.update(**good)
    waits.update(**{name: apart(one) for name, one in good.items()})
    assert waits._buffer.n or waits.to_bytes() == thrice.to_bytes()
    expected = outcome(direct, given)
    found = outcome(waits, given, waiting=True)
    if isinstance(expected, str):
        assert found == expected, f"{key}={bad!r}"
        assert waits.to_bytes() == thrice.to_bytes()
    else:
        assert found == (thrice + direct).to_bytes(), f"{key}={bad!r}"


def outcome(state: Accumulator, given: dict[str, Any], waiting: bool = False) -> bytes | str:
    """The bytes after an update by the buffer or without it, or what is said against it."""
    try:
        if waiting:
            state.update(**given)
        else:
            state._feed(state.check(**given), None)
    except (InputError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return state.to_bytes()
