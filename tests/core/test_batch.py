"""Batches: copied, taken and joined whatever their columns; and the buffer that holds them."""

from __future__ import annotations

from random import Random
from sys import getsizeof
from typing import Any

import numpy as np
import pytest

from streammetrics.core import buffer as buffer_module
from streammetrics.core.batch import Batch, Column
from streammetrics.core.buffer import Buffer, Placed
from streammetrics.core.rows import DictionaryColumn, Ragged

NAMES = ("a", "b", None, 7, ("x", 1))


def random_rows(
    random: Random, kind: int, n: int | None = None
) -> tuple[Batch, list[tuple[Any, ...]]]:
    """Batch of one of several kinds, and what stands in each."""
    n = random.choice([0, 1, 2, 5]) if n is None else n
    numbers = np.array([random.randrange(9) for _ in range(n)], [np.int64, np.uint8][kind == 1])
    pairs = np.array([[random.random(), 1.0] for _ in range(n)]).reshape(n, 2)
    values = tuple(random.sample(NAMES, 3))
    keys = DictionaryColumn(np.array([random.randrange(3) for _ in range(n)], np.intp), values)
    ends = np.cumsum([0, *(random.randrange(4) for _ in range(n))])
    lists = Ragged(np.array([random.randrange(9) for _ in range(ends[-1])], np.int64), ends)
    columns: dict[str, Column] = {
        0: {"a": numbers, "b": pairs},
        1: {"a": numbers, "b": pairs},
        2: {"a": numbers},
        3: {"a": keys, "b": numbers},
        4: {"a": keys, "b": Batch(n, {"c": numbers, "d": Batch(n, {"e": pairs, "f": keys})})},
        5: {"a": lists, "b": numbers},
    }[kind]
    return (batch := Batch(n, columns, 3 * n)), content(batch)


def content(rows: Batch) -> list[tuple[Any, ...]]:
    columns = []
    for column in rows.columns.values():
        match column:
            case Batch():
                assert column.n == rows.n
                columns.append(content(column))
            case DictionaryColumn():
                columns.append([column.values[code] for code in column.codes])
            case Ragged():
                assert (column.offsets[0], column.offsets[-1]) == (0, len(column.values))
                parts = np.split(column.values, column.offsets[1:-1]) if rows.n else []
                assert [len(part) for part in parts] == column.sizes.tolist()
                columns.append([part.tolist() for part in parts])
            case _:
                columns.append(column.tolist())
    return [tuple(map(repr, row)) for row in zip(*columns, strict=True)]


def spoil(rows: Batch) -> None:
    for column in rows.columns.values():
        match column:
            case Batch():
                spoil(column)
            case DictionaryColumn():
                column.codes[...] = (column.codes + 1) % 3
            case Ragged():
                column.values[...] = 77
                column.offsets[1:-1] = column.offsets[-1]
            case np.ndarray():
                column[...] = 77


def test_some_rows_are_taken_in_the_order_asked_for() -> None:
    for kind in range(6):
        rows, before = random_rows(Random(3), kind, 4)
        indices = [2, 0, 2]
        assert content(rows.take(np.array(indices))) == [before[i] for i in indices]


def test_the_total_is_the_number_of_rows_where_no_weights_say_otherwise() -> None:
    assert Batch(3, {"a": np.ones(3)}).total == 3
    assert Batch(3, {"a": np.ones(3)}, 0).total == 0


def test_the_memory_of_nested_columns_is_counted() -> None:
    values = ("a", "bc")
    inner = Batch(4, {"a": np.zeros(4), "b": DictionaryColumn(np.zeros(4, np.intp), values)})
    keys = getsizeof(values) + getsizeof("a") + getsizeof("bc")
    assert Batch(4, {"a": np.zeros(4, np.uint8), "b": inner}).nbytes == 4 + 32 + 32 + keys
    lists = Ragged(np.zeros(7, np.int64), np.array([0, 3, 7]))
    assert Batch(2, {"a": lists}).nbytes == 56 + 24


def test_a_column_is_an_attribute_and_one_that_is_not_there_is_named() -> None:
    batch = Batch(2, {"scores": np.ones(2)})
    assert batch.scores is batch.optional("scores")
    assert batch.optional("labels") is None
    assert batch.quanta is None
    with pytest.raises(AttributeError, match="no column 'labels' among scores"):
        _ = batch.labels


def test_pieces_are_the_rows_in_order_with_their_slots() -> None:
    n = 100_000
    batch, slots = Batch(n, {"a": np.arange(n), "b": np.arange(n) % 7}), np.arange(n) % 3
    pieces = list(batch.pieces(slots))
    assert len(pieces) > 2
    assert sum(piece.n for piece, _ in pieces) == n
    assert np.concatenate([piece.a for piece, _ in pieces]).tolist() == list(range(n))
    assert all(
        (piece_slots == piece.a % 3).all()
        for piece, piece_slots in pieces
        if piece_slots is not None
    )
    assert [piece_slots for _, piece_slots in batch.pieces(None)] == [None] * len(pieces)


def test_a_buffer_gives_back_what_it_took_in_whatever_order_kinds_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffer_module, "BUFFER_ROWS", 12)
    monkeypatch.setattr(buffer_module, "BUFFER_BATCHES", 5)
    random, buffer = Random(0), Buffer()
    expected: list[tuple[Any, ...]] = []
    back: list[tuple[Any, ...]] = []
    for _ in range(250):
        rows, tuples = random_rows(random, random.randrange(6))
        expected += tuples
        if not rows.n:
            continue
        placed = buffer.put(rows, {})
        if placed is Placed.FULL:
            assert buffer.total == 3 * buffer.n
            assert buffer.nbytes > 0
            back += content(buffer.take_all())
            assert (buffer.n, buffer.total, buffer.nbytes) == (0, 0, 0)
            placed = buffer.put(rows, {})
        if placed is Placed.TOO_LARGE:
            back += content(buffer.take_all()) if buffer.n else []
            back += content(rows)
        spoil(rows)
        assert buffer.n <= 12
        assert len(buffer._pieces.arrays[0]) <= 5
    if buffer.n:
        back += content(buffer.take_all())
    assert back == expected


def test_a_column_that_several_metrics_read_is_buffered_once() -> None:
    buffer = Buffer()
    for start in (0, 3):
        shared, matrix = np.arange(start, start + 3), np.ones((3, 2))
        keys = DictionaryColumn(np.array([0, 1, 0]), ("a", f"{start}"))
        inner = {name: Batch(3, {"x": shared, "keys": keys, "own": matrix}) for name in ("b", "c")}
        assert buffer.put(Batch(3, {"a": shared, **inner}), {}) is Placed.PENDING
    assert len(buffer._pieces.arrays) == 3
    batch = buffer.take_all()
    for name in ("b", "c"):
        columns = batch.as_batch(name).columns
        assert columns["x"] is batch.a
        assert columns["keys"] is batch.as_batch("b").columns["keys"]
    assert batch.a.tolist() == [0, 1, 2, 3, 4, 5]
    keys = batch.as_batch("c").as_keys("keys")
    assert [keys.values[code] for code in keys.codes] == ["a", "0", "a", "a", "3", "a"]


def test_lists_of_several_batches_are_buffered_end_to_end() -> None:
    buffer = Buffer()
    for sizes in ([2, 0], [0], [0, 3, 1]):
        ends = np.cumsum([0, *sizes])
        batch = Batch(len(sizes), {"lists": Ragged(np.arange(ends[-1]), ends)})
        assert buffer.put(batch, {}) is Placed.PENDING
    lists = buffer.take_all().as_lists("lists")
    assert lists.sizes.tolist() == [2, 0, 0, 0, 3, 1]
    assert lists.values.tolist() == [0, 1, 0, 1, 2, 3]


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8])
def test_pieces_have_the_rows_in_order_and_none_of_them_is_empty(n: int) -> None:
    slots = np.arange(n)[::-1]
    pieces = list(Batch(n, {"a": np.arange(n)}).pieces(slots, 4))
    assert all(0 < piece.n <= 4 and len(part) == piece.n for piece, part in pieces)
    rows = [i for piece, _ in pieces for i in np.asarray(piece.columns["a"]).tolist()]
    assert rows == [*range(n)]
    assert [i for _, part in pieces for i in part.tolist()] == slots.tolist()
