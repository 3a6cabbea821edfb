"""Indices of integer ids."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from streammetrics.core import integer_ids as module
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.ids import StringIds
from streammetrics.core.integer_ids import IntegerIds

RNG = np.random.default_rng(3)


def one_index_each(found: IntegerIds, ids: np.ndarray) -> None:
    indices = found.index(ids)
    assert np.array_equal(found.ids[indices], ids)
    pairs = set(zip(ids.tolist(), indices.tolist(), strict=True))
    assert len(pairs) == len({i for i, _ in pairs}) == len({x for _, x in pairs})


@pytest.mark.parametrize(
    "make",
    [
        lambda: RNG.integers(-(2**63), 2**63 - 1, 5_000),
        lambda: RNG.integers(-3, 3, 5_000),
        lambda: np.arange(5_000) << 40,
        lambda: np.arange(5_000)[::-1].copy(),
        lambda: np.zeros(100, np.int64),
        lambda: np.array([-(2**63), 2**63 - 1, 0, -1]),
        lambda: np.empty(0, np.int64),
    ],
)
def test_each_integer_has_one_index(make: object) -> None:
    found = IntegerIds()
    for _ in range(3):
        one_index_each(found, make())  # type: ignore[operator]


def test_an_index_stays_while_others_come() -> None:
    found = IntegerIds()
    first = found.index(np.array([5, 0, 7]))
    found.index(RNG.integers(0, 2**62, 100_000))
    assert np.array_equal(found.index(np.array([5, 0, 7])), first)


def of_words(words: Iterable[int]) -> np.ndarray:
    """The ids of such words."""
    inverse = pow(module._GOLDEN, -1, 2**64)
    products = [word * inverse % 2**64 for word in words]
    return np.array([word ^ word >> 32 for word in products], np.uint64).view(np.int64)


def test_ids_that_defeat_a_multiplier_are_spread_by_another() -> None:
    # All of these have the same top bits of their product, so the same first place and step.
    crowd = of_words(range(1, 800))
    found = IntegerIds()
    for _ in range(2):
        one_index_each(found, crowd)
        assert int(found.multiplier) != module._GOLDEN and found.n == 800
    one_index_each(found, np.concatenate([crowd, RNG.integers(0, 2**62, 1_000)]))
    assert found.n == 1_800


@pytest.mark.parametrize("grown", [False, True])
def test_an_id_in_the_place_of_another_is_not_taken_for_it(grown: bool) -> None:
    # In a table of 64 places, or of 128 to which it grows: one of the first two finds its place
    # taken and goes on to that of another, which differs from it in nothing but the place.
    bits = 7 if grown else 6
    place, rest = 9 << (64 - bits), 5 << (64 - 2 * bits) | 1
    words = [place, place | rest, place + (1 << 64 - bits), place + (5 << 64 - bits) | rest]
    found = IntegerIds()
    first = [int(found.index(of_words([word]))[0]) for word in words[:2]]
    if grown:
        found._rehash(40)
    assert len(found.table) == 1 << bits
    others = found.index(of_words(words[2:])).tolist()
    assert found.ids[[*first, *others]].tolist() == of_words(words).tolist()


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.parametrize("rest", [0, 1])
def test_an_id_in_its_third_place_is_not_taken_for_one_in_its_second(
    grown: bool, rest: int
) -> None:
    # Steps are 1. The third finds two places taken, and stands in the second of the fourth, whose
    # word is that of the third but for the place, or nothing but a place.
    bits = 7 if grown else 6
    words = [8 << (64 - bits) | 2, 9 << (64 - bits) | 4, 8 << (64 - bits) | 1]
    found = IntegerIds()
    for word in words:
        found.index(of_words([word]))
    if grown:
        found._rehash(40)
    assert len(found.table) == 1 << bits and found.table[10] >= found._away
    words.append(9 << (64 - bits) | rest)
    for _ in range(2):
        one_index_each(found, of_words(words))
    assert found.n == 5


def test_an_id_that_is_nothing_but_a_place_is_not_found_in_an_empty_one() -> None:
    found = IntegerIds()
    found.index(of_words([9 << 58 | 4]))
    one_index_each(found, np.concatenate([of_words([9 << 58]), [0]]))
    assert found.n == 3


@pytest.mark.parametrize("ids", [RNG.integers(0, 2**62, 5_000), of_words(range(1, 800))])
def test_most_ids_are_found_at_one_look_and_most_others_at_two(ids: np.ndarray) -> None:
    found = IntegerIds()
    found.index(ids)
    out = np.empty(len(ids), np.uint32)
    misses = found._look(ids, out)
    assert len(misses) < len(ids) // 3
    assert len(found._look_on(ids, out, misses)) < len(ids) // 12


def test_blocks_and_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 16)
    monkeypatch.setattr(module, "_CHUNK", 4)
    one_index_each(IntegerIds(), RNG.integers(-50, 50, 500))


def test_a_twin_goes_its_own_way() -> None:
    found = IntegerIds()
    before = found.index(np.arange(20))
    twin = found.twin()
    mine, theirs = found.index(np.array([100, 200])), twin.index(np.array([300]))
    assert np.array_equal(twin.index(np.arange(20)), before)
    assert np.array_equal(found.index(np.array([100, 200])), mine)
    assert np.array_equal(twin.index(np.array([300])), theirs)
    assert found.n == 22 and twin.n == 21


def test_a_subset_keeps_the_order_of_indices() -> None:
    for ids in ([4, 0, -9, 7], [4, -9, 7]):
        found = IntegerIds()
        used = np.sort(found.index(np.array(ids)))
        some, indices = found.subset(used[1:])
        assert (np.diff(indices.astype(int)) > 0).all()
        assert np.array_equal(some.ids[indices], found.ids[used[1:]])


def through_bytes(found: IntegerIds | StringIds, used: np.ndarray) -> tuple[bytes, list[object]]:
    ranks = found.ranks(used)
    in_order = np.empty(len(used), np.uint32)
    in_order[ranks] = used
    out = Writer()
    found.encode(in_order, out)
    reader = Reader(out.bytes_())
    back, indices = type(found).decode(len(used), reader)
    reader.finish()
    known: list[object] = back.names if isinstance(back, StringIds) else back.ids.tolist()
    return out.bytes_(), [known[i] for i in indices.tolist()]


@pytest.mark.parametrize("ids", [[3, 1, 2], [0], [], [-5, 0, 5], [2**63 - 1, -(2**63)], [7, 0]])
def test_integers_are_written_in_their_order(ids: list[int]) -> None:
    found = IntegerIds()
    used = np.sort(found.index(np.array(ids, np.int64)))
    data, back = through_bytes(found, used)
    assert back == sorted(ids)
    other = IntegerIds()
    assert through_bytes(other, np.sort(other.index(np.array(ids[::-1], np.int64))))[0] == data


def test_dense_integers_take_a_byte_each() -> None:
    found = IntegerIds()
    used = np.sort(found.index(np.arange(1_000_000, 1_001_000)))
    assert len(through_bytes(found, used)[0]) < 4_100  # the first of them sets the width


@pytest.mark.parametrize(
    "data",
    [b"\0\1\5\0", b"\1" + bytes(16), b"\1" + np.array([-1, -2]).tobytes(), b"\0\1\5", b"\2\1\1\1"],
)
def test_integers_out_of_order_or_form_are_refused(data: bytes) -> None:
    with pytest.raises(StateError):
        IntegerIds.decode(2, Reader(data))


def test_many_rows_of_few_ids_have_a_small_table() -> None:
    found = IntegerIds()
    found.index(np.arange(1, 301).repeat(1_000))
    assert found.n == 301 and found.nbytes < 64 * 301
