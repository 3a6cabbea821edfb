"""Rows: copied, taken and joined whatever their columns; and the stage where they wait."""

from __future__ import annotations

from random import Random
from sys import getsizeof
from typing import Any

import numpy as np
import pytest

from streammetrics.core import stage as stage_module
from streammetrics.core.rows import Coded, Ragged, Rows
from streammetrics.core.stage import Stage

NAMES = ("a", "b", None, 7, ("x", 1))


def random_rows(
    random: Random, kind: int, n: int | None = None
) -> tuple[Rows, list[tuple[Any, ...]]]:
    """Rows of one of several kinds, and what stands in each."""
    n = random.choice([0, 1, 2, 5]) if n is None else n
    numbers = np.array([random.randrange(9) for _ in range(n)], [np.int64, np.uint8][kind == 1])
    pairs = np.array([[random.random(), 1.0] for _ in range(n)]).reshape(n, 2)
    values = tuple(random.sample(NAMES, 3))
    keys = Coded(np.array([random.randrange(3) for _ in range(n)], np.intp), values)
    ends = np.cumsum([0, *(random.randrange(4) for _ in range(n))])
    lists = Ragged(np.array([random.randrange(9) for _ in range(ends[-1])], np.int64), ends)
    columns: tuple[Any, ...] = {
        0: (numbers, pairs),
        1: (numbers, pairs),
        2: (numbers, None),
        3: (keys, numbers),
        4: (keys, Rows(n, (numbers, None, Rows(n, (pairs, keys))))),
        5: (lists, numbers),
    }[kind]
    return (rows := Rows(n, columns, 3 * n)), content(rows)


def content(rows: Rows) -> list[tuple[Any, ...]]:
    columns = []
    for column in rows.columns:
        match column:
            case None:
                columns.append([None] * rows.n)
            case Rows():
                assert column.n == rows.n
                columns.append(content(column))
            case Coded():
                columns.append([column.values[code] for code in column.codes])
            case Ragged():
                assert (column.offsets[0], column.offsets[-1]) == (0, len(column.values))
                parts = np.split(column.values, column.offsets[1:-1]) if rows.n else []
                assert [len(part) for part in parts] == column.sizes.tolist()
                columns.append([part.tolist() for part in parts])
            case _:
                columns.append(column.tolist())
    return [tuple(map(repr, row)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("kind", range(6))
def test_rows_of_any_columns_are_joined_in_order(kind: int) -> None:
    random = Random(kind)
    batches = [random_rows(random, kind) for _ in range(6)]
    joined = Rows.join([rows for rows, _ in batches])
    assert content(joined) == [row for _, some in batches for row in some]
    assert joined.n == sum(rows.n for rows, _ in batches)
    assert joined.mass == 3 * joined.n


@pytest.mark.parametrize("kind", range(6))
def test_a_copy_shares_no_memory(kind: int) -> None:
    rows, before = random_rows(Random(3), kind, 4)
    twin = rows.copy()
    assert content(twin) == before
    spoil(rows)
    assert content(twin) == before
    assert content(rows) != before


def spoil(rows: Rows) -> None:
    for column in rows.columns:
        match column:
            case Rows():
                spoil(column)
            case Coded():
                column.codes[...] = (column.codes + 1) % 3
            case Ragged():
                column.values[...] = 77
                column.offsets[1:-1] = column.offsets[-1]
            case np.ndarray():
                column[...] = 77


@pytest.mark.parametrize("kind", range(6))
def test_some_rows_are_taken_in_the_order_asked_for(kind: int) -> None:
    rows, before = random_rows(Random(3), kind, 4)
    at = [2, 0, 2]
    assert content(rows.take(np.array(at))) == [before[i] for i in at]


def test_the_mass_is_the_number_of_rows_where_no_weights_say_otherwise() -> None:
    assert Rows(3, (np.ones(3),)).mass == 3
    assert Rows(3, (np.ones(3),), 0).mass == 0


def test_the_memory_of_nested_columns_is_counted() -> None:
    values = ("a", "bc")
    inner = Rows(4, (np.zeros(4), None, Coded(np.zeros(4, np.intp), values)))
    keys = getsizeof(values) + getsizeof("a") + getsizeof("bc")
    assert Rows(4, (np.zeros(4, np.uint8), inner)).nbytes == 4 + 32 + 32 + keys
    assert Rows(2, (Ragged(np.zeros(7, np.int64), np.array([0, 3, 7])),)).nbytes == 56 + 24


@pytest.mark.parametrize("seed", range(5))
def test_a_stage_gives_back_what_it_took_in_whatever_order_kinds_come(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_module, "STAGE_ROWS", 12)
    monkeypatch.setattr(stage_module, "STAGE_BATCHES", 5)
    random, stage = Random(seed), Stage()
    given: list[tuple[Any, ...]] = []
    back: list[tuple[Any, ...]] = []
    for _ in range(60):
        rows, some = random_rows(random, random.randrange(6))
        given += some
        if not rows.n:
            continue
        if not stage.take(rows):
            assert stage.mass == 3 * stage.n
            assert stage.nbytes > 0
            back += content(stage.empty())
            assert (stage.n, stage.mass, stage.nbytes) == (0, 0, 0)
            assert stage.take(rows)
        spoil(rows)
        assert stage.n <= 12
        assert stage.batches <= 5
    if stage.n:
        back += content(stage.empty())
    assert back == given


def test_a_stage_takes_columns_of_any_stride() -> None:
    table = np.arange(24).reshape(6, 4)
    stage = Stage()
    stage.take(Rows(6, (table[:, 1], table[:, ::2])))
    stage.take(Rows(3, (table[::-2, 3], table[::2, 2:])))
    first, second = stage.empty().columns
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    assert first.tolist() == [*table[:, 1], *table[::-2, 3]]
    assert second.tolist() == [*table[:, ::2].tolist(), *table[::2, 2:].tolist()]
