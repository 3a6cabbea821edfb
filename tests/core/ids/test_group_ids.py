"""Indices of group ids: strings, and integers in a table that is read by another program."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.ids import group_ids as module
from streammetrics.core.ids.group_ids import IntegerIds, StringIds
from streammetrics.core.rows import DictionaryColumn
from tests.id_pools import POOLS


def through_bytes(registry: IntegerIds | StringIds, used: np.ndarray) -> tuple[bytes, list[object]]:
    ranks = registry.ranks(used)
    in_order = np.empty(len(used), np.uint32)
    in_order[ranks] = used
    out = Writer()
    registry.encode(in_order, out)
    reader = Reader(out.bytes_())
    back, indices = type(registry).decode(len(used), reader)
    reader.finish()
    id_list: list[object] = back.names if isinstance(back, StringIds) else back.ids.tolist()
    return out.bytes_(), [id_list[i] for i in indices.tolist()]


def test_each_string_has_one_index() -> None:
    registry = StringIds()
    first = registry.index(DictionaryColumn(np.array([0, 1, 0]), ("u", "é")))
    second = registry.index(DictionaryColumn(np.array([1, 1, 0]), ("", "é")))
    assert first.tolist() == [0, 1, 0] and second.tolist() == [1, 1, 2]
    assert registry.names == ["u", "é", ""] and registry.n == 3


def test_strings_that_no_row_has_get_no_index_when_there_are_many() -> None:
    registry = StringIds()
    registry.index(DictionaryColumn(np.array([3]), tuple("abcdef")))
    assert registry.names == ["d"]


def test_strings_are_written_in_the_order_of_their_bytes() -> None:
    names = ["b", "", "é", "\U0001f600", "\uffff", "a\0b", "\ud800"]
    registry = StringIds(names)
    data, back = through_bytes(registry, np.arange(7, dtype=np.uint32))
    assert back == sorted(names, key=lambda s: s.encode("utf-8", "surrogatepass"))
    assert through_bytes(StringIds(names[::-1]), np.arange(7, dtype=np.uint32))[0] == data


def test_memory_of_strings_is_near_what_they_take() -> None:
    names = [f"u{i:010d}" for i in range(10_000)]
    registry = StringIds(names)
    assert 60 * len(names) < registry.nbytes < 100 * len(names)
    registry.index(DictionaryColumn(np.array([0]), (names[0],)))  # which makes the dict
    assert 100 * len(names) < registry.nbytes < 250 * len(names)


def test_copies_of_strings_get_indices_of_their_own() -> None:
    registry = StringIds(["a", "b"])
    for copied in (registry.twin(), registry.subset(np.array([0, 1], np.uint32))[0]):
        column = DictionaryColumn(np.array([0, 1, 2]), ("c", "b", "d"))
        assert copied.index(column).tolist() == [2, 1, 3]
        assert copied.nbytes > registry.nbytes and copied.twin().names == ["a", "b", "c", "d"]
    assert registry.names == ["a", "b"]
    assert registry.index(DictionaryColumn(np.array([0]), ("x",))).tolist() == [2]


# -- integers --------------------------------------------------------------------------------------
RNG = np.random.default_rng(3)


def one_index_each(registry: IntegerIds, ids: np.ndarray) -> None:
    indices = registry.index(ids)
    assert np.array_equal(registry.ids[indices], ids)
    pairs = set(zip(ids.tolist(), indices.tolist(), strict=True))
    assert len(pairs) == len({i for i, _ in pairs}) == len({x for _, x in pairs})
    assert_whole(registry)


def assert_whole(registry: IntegerIds) -> None:
    """The two facts of the class's docstring, read off the table by another program."""
    size, id_list = len(registry.table), registry.ids[: registry.n].tolist()
    indices = registry.table[registry.table != module._EMPTY].tolist()
    assert sorted(indices) == list(range(registry.n)) and len(set(id_list)) == registry.n
    bits = size.bit_length() - 1
    place_of = {index: place for place, index in enumerate(registry.table.tolist())}
    assert size == 1 << bits and size >= 3 * registry.n
    for index, x in enumerate(id_list):
        word = ((x % 2**64) ^ (x % 2**64 >> 32)) * int(registry.multiplier) % 2**64
        place, step = word >> (64 - bits), (word << bits) % 2**64 >> (64 - bits) | 1
        path = [(place + i * step) % size for i in range(module._PATH)]
        before = path[: path.index(place_of[index])]
        assert all(registry.table[p] != module._EMPTY for p in before)


@pytest.mark.parametrize("pool", POOLS)
def test_each_integer_has_one_index(pool: str) -> None:
    rng = np.random.default_rng(4)
    registry, index_by_id = IntegerIds(), dict[int, int]()
    for size in (0, 1, 2, 3, 40, 5, 600, 1):
        ids = rng.choice(POOLS[pool], size)
        for x, index in zip(ids.tolist(), registry.index(ids).tolist(), strict=True):
            assert index_by_id.setdefault(x, index) == index
        if size == 40:  # the indices are those of the same table after it went through a copy
            registry = registry.twin()
    assert sorted(index_by_id.values()) == list(range(registry.n))
    assert all(registry.ids[index] == x for x, index in index_by_id.items())
    assert_whole(registry)


def of_words(words: Iterable[int]) -> np.ndarray:
    """The ids of such words."""
    inverse = pow(module._GOLDEN, -1, 2**64)
    products = [word * inverse % 2**64 for word in words]
    return np.array([word ^ word >> 32 for word in products], np.uint64).view(np.int64)


def test_ids_that_defeat_a_multiplier_are_spread_by_another() -> None:
    # All of these have the same top bits of their product, so the same first place and step.
    crowd = of_words(range(1, 800))
    registry = IntegerIds()
    for _ in range(2):
        one_index_each(registry, crowd)
        assert int(registry.multiplier) != module._GOLDEN and registry.n == 799
    one_index_each(registry, np.concatenate([crowd, RNG.integers(0, 2**62, 1_000)]))
    assert registry.n == 1_799


def test_a_path_that_is_full_to_its_end_says_that_an_id_is_new() -> None:
    crowd = of_words(range(1, module._PATH + 1))
    registry = IntegerIds()
    one_index_each(registry, crowd)
    assert int(registry.multiplier) == module._GOLDEN  # as many as a path is long
    one_index_each(registry, of_words([module._PATH + 1]))
    assert int(registry.multiplier) != module._GOLDEN and registry.n == module._PATH + 1


def test_a_twin_goes_its_own_way() -> None:
    registry = IntegerIds()
    before = registry.index(np.arange(20))
    twin = registry.twin()
    indices, twin_indices = registry.index(np.array([100, 200])), twin.index(np.array([300]))
    assert np.array_equal(twin.index(np.arange(20)), before)
    assert np.array_equal(registry.index(np.array([100, 200])), indices)
    assert np.array_equal(twin.index(np.array([300])), twin_indices)
    assert registry.n == 22 and twin.n == 21


def test_a_subset_keeps_the_order_of_indices() -> None:
    for ids in ([4, 0, -9, 7], [4, -9, 7]):
        registry = IntegerIds()
        used = np.sort(registry.index(np.array(ids)))
        subset, indices = registry.subset(used[1:])
        assert (np.diff(indices.astype(int)) > 0).all()
        assert np.array_equal(subset.ids[indices], registry.ids[used[1:]])


def test_reading_what_is_known_does_not_part_a_twin() -> None:
    registry = IntegerIds()
    registry.index(np.arange(20))
    assert registry.twin().table is registry.table
    twin = registry.twin()
    twin.index(np.arange(20))
    assert twin.table is registry.table and twin.ids is registry.ids


def test_integers_are_written_in_their_order() -> None:
    for ids in ([3, 1, 2], [0], [], [-5, 0, 5], [2**63 - 1, -(2**63)], [7, 0]):
        registry, reverse = IntegerIds(), IntegerIds()
        data, back = through_bytes(registry, np.sort(registry.index(np.array(ids, np.int64))))
        assert back == sorted(ids)
        used = np.sort(reverse.index(np.array(ids[::-1], np.int64)))
        assert through_bytes(reverse, used)[0] == data
