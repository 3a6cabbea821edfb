"""Collapsed counts: a state is a function of its rows, and has the least shift that they allow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.collapsed_counts import CollapsedColumn
from streammetrics.core.parts.collapsed_keys import MOST, Ints
from streammetrics.core.parts.score_bits import score_keys

CELLS = 6
Rows = Sequence[tuple[int, int, int, int]]  # slot, key, cell, weight


def scores(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "log odds": lambda: rng.normal(size=n),
        "Elo": lambda: 1500 + 30 * rng.normal(size=n),
        "near 1": lambda: 1 - np.exp(-3 * rng.normal(size=n) - 15),
        "ties": lambda: rng.integers(0, 200, n) / 7,
        "more ties": lambda: rng.integers(0, 400, n) / 7,
        "outliers": lambda: np.where(rng.random(n) < 0.01, rng.choice([np.inf, -1e30, -np.inf], n),
                                     rng.random(n)),
    }[kind]()  # fmt: skip


KINDS = ("near 1", "outliers", "log odds", "Elo", "ties", "more ties")


def empty(width: int = 1, possible: int | None = None) -> CollapsedColumn:
    return CollapsedColumn(CELLS, possible, width)


def fed(column: CollapsedColumn, rows: Rows, *, one_slot: bool = False) -> CollapsedColumn:
    slots, keys, cells, weights = np.array(rows, np.int64).reshape(-1, 4).T
    plain = bool((weights == 1).all())
    column.add(keys, cells, None if one_slot else slots, None if plain else weights)
    return column


def encoded(column: CollapsedColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def read(data: bytes, width: int = 1, possible: int | None = None) -> CollapsedColumn:
    column = empty(width, possible)
    reader = Reader(data)
    column.read(reader)
    reader.finish()
    return column


def expected(rows: Rows, slot: int) -> tuple[int, dict[tuple[int, int], int]]:
    """The shift of a slot and its counts by key, shifted, and cell: by trying all shifts."""
    slot_rows = [row for row in rows if row[0] == slot]
    shift = next(s for s in range(64) if len({key >> s for _, key, _, _ in slot_rows}) <= MOST)
    counts: Counter[tuple[int, int]] = Counter()
    for _, key, cell, weight in slot_rows:
        counts[key >> shift, cell] += weight
    return shift, dict(counts)


def state(column: CollapsedColumn, slot: int) -> tuple[int, dict[tuple[int, int], int]]:
    shift, keys, (codes, counts) = column.state(slot)
    pairs = zip(codes.tolist(), counts.tolist(), strict=True)
    return shift, {(int(keys[c // CELLS]) >> shift, c % CELLS): n for c, n in pairs}


def rows_of(
    kind: str, n: int, width: int, seed: int, weighted: bool = False
) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    keys = score_keys(scores(kind, n, seed))
    weights = rng.integers(1, 4, n) if weighted else np.ones(n, np.int64)
    columns = rng.integers(0, width, n), keys, rng.integers(0, CELLS, n), weights
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "width"), [(40, 1), (3000, 1), (3000, 3)])
def test_a_state_has_the_least_shift_and_the_counts_of_its_rows(
    kind: str, n: int, width: int
) -> None:
    for weighted in (False, True):
        rows = rows_of(kind, n, width, 7, weighted)
        column = fed(empty(width), rows)
        for slot in range(width):
            assert state(column, slot) == expected(rows, slot)
        assert column.total_count == sum(row[3] for row in rows)


@pytest.mark.parametrize("kind", [*KINDS])
def test_any_split_order_and_tree_of_merges_gives_equal_bytes(kind: str) -> None:
    width = 3
    rows = rows_of(kind, 2500, width, 3)
    whole = encoded(fed(empty(width), rows))
    same = np.arange(width)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(rows))
        states = []
        for batch in np.array_split(order, rng.integers(1, 8)):
            part = empty(width)
            for few in np.array_split(batch, rng.integers(1, 4)):
                fed(part, [rows[i] for i in few])
                if rng.random() < 0.3:
                    part.settle()
            states.append(part)
        while len(states) > 1:
            a, b = (states.pop(rng.integers(len(states))) for _ in range(2))
            a.merge(b, same)
            states.append(a)
        assert encoded(states[0]) == whole, seed


def test_many_rows_of_one_slot_and_of_several_have_the_states_of_few_at_a_time() -> None:
    for kind in KINDS:
        for width in (1, 9, 300):
            rows = rows_of(kind, 40_000, width, 5)
            large, small = empty(width), empty(width)
            fed(large, rows, one_slot=width == 1)
            for i in range(0, len(rows), 9000):
                fed(small, rows[i : i + 9000])
                small.settle()
            assert encoded(large) == encoded(small), (kind, width)


@pytest.mark.parametrize("width", [3, 1])
@pytest.mark.parametrize("n", [40_000, 1 << 15, (1 << 15) - 1])
def test_many_rows_of_known_and_of_new_keys_have_the_state_of_few_at_a_time(
    n: int, width: int
) -> None:
    """Rows whose keys the table has are added to it at once; the others must not be lost."""
    for most, weighted in ((200, False), (200, True), (600, False)):
        rng = np.random.default_rng(n + most)
        weights = rng.integers(1, 4, 2 * n) if weighted else np.ones(2 * n, np.int64)
        keys = np.r_[rng.integers(-50, 100, n), rng.integers(-60, most - 60, n)]  # some are new
        columns = rng.integers(0, width, 2 * n), keys, rng.integers(0, CELLS, 2 * n), weights
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        large, small = empty(width), empty(width)
        fed(large, rows[:n], one_slot=width == 1)
        large.settle()
        assert large.counted.table is not None
        fed(large, rows[n:], one_slot=width == 1)
        for i in range(0, len(rows), 9000):
            fed(small, rows[i : i + 9000])
        assert encoded(large) == encoded(small), (most, weighted)


def test_slots_are_taken_widened_and_merged_as_they_are() -> None:
    rows = rows_of("Elo", 3000, 4, 9)
    column = fed(empty(4), rows)
    taken = column.take(np.array([3, 1, 3], np.intp))
    assert [state(taken, i) for i in range(3)] == [state(column, slot) for slot in (3, 1, 3)]
    union = empty(1)
    union.merge(column.take(np.array([0, 2], np.intp)), np.zeros(2, np.intp))
    together = [(0, *row[1:]) for row in rows if row[0] in (0, 2)]
    assert state(union, 0) == expected(together, 0)
    union.widen(3)
    assert state(union, 2) == (0, {}) and state(union, 0) == expected(together, 0)
    slot_state = state(column, 1)
    fed(column, [(1, 10**9, 0, 1)])
    assert slot_state != state(column, 1) and state(taken, 1) == slot_state, (
        "copies are in separate memory"
    )


def test_rows_are_copied_when_they_are_added() -> None:
    keys, cells = np.arange(50), np.zeros(50, np.intp)
    column = empty()
    column.add(keys, cells)
    keys[:], cells[:] = 7, 1
    assert state(column, 0)[1] == {(i, 0): 1 for i in range(50)}


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_are_read_again_and_damaged_ones_are_refused(kind: str) -> None:
    for n, width in ((0, 1), (30, 2), (4000, 2)):
        data = encoded(fed(empty(width), rows_of(kind, n, width, 2)))
        assert encoded(read(data, width)) == data
        for cut in (0, 1, len(data) // 2, len(data) - 1):
            with pytest.raises(StateError):
                read(data[:cut], width)


def bytes_of(shift: int, keys: Ints, counts: list[int], possible: int | None = None) -> bytes:
    """The bytes of a state whose keys have these counts in cell 0."""
    out = Writer()
    out.raw(bytes([shift]))
    out.ints(np.array([len(keys)]))
    if possible is None:
        out.words(keys.view(np.uint64) ^ np.uint64(1 << 63))
    else:
        out.ints(keys)
    out.uint(0)
    out.ints(np.ones(len(keys), np.int64))
    out.ints(np.zeros(len(keys), np.int64))
    out.ints(np.array(counts, np.int64))
    return out.bytes_()


def test_a_shift_that_no_rows_need_is_refused() -> None:
    few, many = np.arange(128) << 3, np.arange(129) << 3
    assert len(read(bytes_of(0, few, [1] * 128)).state(0)[1]) == 128
    assert len(read(bytes_of(3, many, [2] * 129)).state(0)[1]) == 129
    for shift, keys, counts in (
        (3, few, [2] * 128),  # with one bit less there are at most 256 keys
        (3, many, [2] * 127 + [1] * 2),  # 129 keys of 256 rows
        (3, many + 1, [2] * 129),  # a bit that is shifted out
        (63, many, [2] * 129),
        (0, few[::-1].copy(), [1] * 128),
        (0, np.repeat(few[:4], 2), [1] * 8),
        (0, np.arange(257), [1] * 257),
        (0, np.array([(1 << 63) - 1]), [1]),  # beyond the key of infinity
    ):
        with pytest.raises(StateError):
            read(bytes_of(shift, keys, counts))
    assert read(bytes_of(0, np.array([9]), [1], 10), possible=10).state(0)[1].tolist() == [9]
    with pytest.raises(StateError):
        read(bytes_of(0, np.array([10]), [1], 10), possible=10)


# -- the keys of scores ----------------------------------------------------------------------------


def test_keys_are_in_the_order_of_the_scores_and_equal_for_equal_ones() -> None:
    rng = np.random.default_rng(1)
    score_array = np.concatenate(
        [
            *(rng.normal(size=2000) * 10.0**power for power in (-300, -20, -3, 0, 3, 300)),
            *(rng.random(2000), 1 - 10.0 ** -rng.uniform(0, 16, 2000)),
            np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, 0.5, 1.0, np.nextafter(1, 2), np.inf]),
        ]
    )
    ordered = np.sort(score_array)
    keys = score_keys(ordered)
    assert (np.diff(keys) >= 0).all()
    apart = np.flatnonzero(np.diff(ordered.view(np.int64) >> 1) != 0)
    assert (np.diff(keys)[apart[ordered[apart] > 0]] > 0).mean() > 0.999
    assert score_keys(np.array([-0.0, 0.0])).tolist() == [0, 0]
    narrow = score_array[np.abs(score_array) < 1e30].astype(np.float32)
    assert (score_keys(narrow) == score_keys(narrow.astype(np.float64))).all()


def test_keys_are_as_fine_toward_1_as_toward_0() -> None:
    for size in (0.3, 1e-3, 1e-9, 1e-14):
        away = np.array([size, size * 1.25])
        down, up = np.diff(score_keys(away)), np.diff(score_keys(1 - away[::-1]))
        assert math.isclose(float(down[0]), float(up[0]), rel_tol=0.05)
