"""Hashes of string ids and of units, for ever the same."""

from __future__ import annotations

import gc
import random
from hashlib import blake2b

import numpy as np
import pytest

from streammetrics import GroupedAUC, InputError, hash_ids, hash_texts
from streammetrics.core.ids import id_hashes
from streammetrics.core.ids.id_hashes import KEY, LONGEST, hashed_ids, hashes_of
from streammetrics.core.ids.keys import group_ids
from streammetrics.core.ids.unit_hashes import mixed, salt_word, unit_hashes, unit_words
from streammetrics.core.rows import DictionaryColumn
from tests.oracles.users import hash_of, splitmix64

# Of the empty text, a short one, and one that is hashed as its digest.
KNOWN = {
    "": 3371312792178218600,
    "u9e45ef6776": -586625375338990297,
    "b" * 300: 6472103036253140261,
}
MASK = (1 << 64) - 1


def siphash(data: bytes, key: bytes, rounds: int, last: int) -> int:
    """SipHash as its paper has it, a text at a time."""
    k0, k1 = (int.from_bytes(half, "little") for half in (key[:8], key[8:]))
    begin = b"somepseu", b"dorandom", b"lygenera", b"tedbytes"
    v = [int.from_bytes(word, "big") ^ k for word, k in zip(begin, (k0, k1) * 2, strict=True)]

    def left(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    def half(a: int, b: int, turn_b: int, *, swap: bool) -> None:
        v[a] = (v[a] + v[b]) & MASK
        v[b] = left(v[b], turn_b) ^ v[a]
        if swap:
            v[a] = left(v[a], 32)

    def mix(times: int) -> None:
        for _ in range(times):
            half(0, 1, 13, swap=True)
            half(2, 3, 16, swap=False)
            half(0, 3, 21, swap=False)
            half(2, 1, 17, swap=True)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        mix(rounds)
        v[0] ^= word
    v[2] ^= 255
    mix(last)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def expected(name: str) -> int:
    data = name.encode("utf-8", "surrogatepass")
    if len(data) > LONGEST:
        data = blake2b(data, digest_size=32).digest()
    word = siphash(data, KEY, 1, 3)
    return word - (1 << 64) if word >> 63 else word


def test_the_oracle_gives_the_value_of_the_paper() -> None:
    # Aumasson & Bernstein 2012, appendix A, of SipHash-2-4.
    assert siphash(bytes(range(15)), bytes(range(16)), 2, 4) == 0xA129CA6149BE45E5


def test_hashes_are_the_same_for_ever() -> None:
    assert hashed_ids(list(KNOWN)).tolist() == list(KNOWN.values())
    assert len(set(hashed_ids([str(i) for i in range(1_000)]).tolist())) == 1_000


def test_a_hash_is_that_of_the_bytes_whatever_stands_beside() -> None:
    draw = random.Random(1)
    lengths = [*range(20), 63, 64, 127, 128, 129, 300]
    for alphabet in ("ab", "aé", "a\ud800é"):
        names = ["".join(draw.choices(alphabet, k=k)) for k in lengths * 3]
        draw.shuffle(names)
        hashes = hashed_ids(names)
        assert hashes.tolist() == [expected(name) for name in names]
        assert hashes.dtype == np.int64
    assert hashed_ids([]).tolist() == []


def test_a_pair_of_surrogates_is_hashed_as_the_character() -> None:
    pair = "\ud83d" + "\ude00"
    assert hash_ids([pair, "a"]).tolist() == hash_ids(["😀", "a"]).tolist()
    halves = hash_ids(["\ud83d", "\ude00"])  # of two names
    assert halves.tolist() == [expected("\ud83d"), expected("\ude00")]


def test_texts_that_lie_end_to_end_need_no_strings() -> None:
    data = np.frombuffer("xannébo".encode(), np.uint8)
    hashes = hash_texts(data, np.array([1, 4, 6, 8]))
    assert hashes.tolist() == hashed_ids(["ann", "é", "bo"]).tolist()


def test_hashes_are_no_ids_of_another_kind() -> None:
    for ids in ("integer", "exact"):
        metric = GroupedAUC(ids=ids)
        with pytest.raises(InputError, match="hashes of strings"):
            metric.update([1], [0.5], groups=hash_ids(["ann"]))
        assert metric == metric.empty()


def test_a_column_is_hashed_once_for_all_metrics_that_are_fed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[str] = []

    def counted(names: list[str]) -> np.ndarray:
        hashed.extend(names)
        return hashed_ids(names)

    monkeypatch.setattr(id_hashes, "hashed_ids", counted)
    column, codes = DictionaryColumn(np.array([0, 1, 0]), ("ann", "bo")), [0, 1, 0]
    expected = hashed_ids(["ann", "bo"])[codes].tolist()
    for _ in range(3):
        hashes = group_ids(column, "hashed")
        assert isinstance(hashes, np.ndarray) and hashes.tolist() == expected
    assert hashed == ["ann", "bo"]
    column.codes[:] = 1  # the rows are read each time
    hashes = group_ids(column, "hashed")
    assert isinstance(hashes, np.ndarray) and set(hashes.tolist()) == {expected[1]}


def test_what_is_known_of_a_column_goes_with_it() -> None:
    gc.collect()
    before = len(id_hashes._KNOWN)
    columns = [DictionaryColumn(np.array([0]), (f"u{i}",)) for i in range(10)]
    for column in columns:
        hashes_of(column)
    assert len(id_hashes._KNOWN) == before + 10
    del columns, column
    gc.collect()
    assert len(id_hashes._KNOWN) == before


def test_nobody_can_change_hashes_that_others_read() -> None:
    with pytest.raises(ValueError, match="read-only"):
        hashes_of(DictionaryColumn(np.array([0]), ("ann",)))[0] = 1


def test_ids_that_are_no_strings_are_refused_with_their_row() -> None:
    with pytest.raises(InputError, match=r"names\[1\]: expected strings, got 7; pass") as caught:
        hash_ids(["a", 7])  # type: ignore[list-item]
    assert caught.value.rows.tolist() == [1]


# -- units: splitmix64 of the bits of an id and those of a salt ------------------------------------


def test_the_mixer_is_splitmix64_as_vigna_prints_it() -> None:
    # The first three outputs of his splitmix64.c from the seed 1234567.
    gamma, seed = 0x9E3779B97F4A7C15, 1234567
    words = np.array([(seed + i * gamma) % (1 << 64) for i in range(3)], np.uint64)
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mixed(words, np.uint64(0)).tolist() == outputs
    assert [splitmix64(word) for word in words.tolist()] == outputs


def test_columns_longer_than_a_piece_are_hashed_as_their_rows() -> None:
    ids = np.arange(-50_000, 50_000)
    hashes = unit_hashes(ids, salt_word("s"), "users")
    rows = [0, 32_767, 32_768, 65_536, 99_999]
    assert [hashes[i] for i in rows] == [hash_of(int(ids[i]), "s") for i in rows]
    assert len(np.unique(hashes)) == len(ids)


def test_words_of_integers_are_their_bits_whatever_holds_them() -> None:
    ids = [5, -1, 5, 2**62]
    bits = [5, 2**64 - 1, 5, 2**62]
    coded = DictionaryColumn(np.array([0, 1, 0, 2]), (5, -1, 2**62))
    of_more = DictionaryColumn(np.array([0, 1, 0, 2]), (5, -1, 2**62, 7, 8, 9))
    for column in (ids, np.array(ids), np.array(ids, object), coded, of_more):
        assert unit_words(column, "users").tolist() == bits
    assert unit_words(np.array(ids)[::2], "users").tolist() == bits[::2]
    hashes = unit_hashes(np.array(ids)[::2], salt_word("s"), "users")
    assert hashes.tolist() == [hash_of(5, "s")] * 2
    with pytest.raises(InputError, match="users: expected a one-dimensional array"):
        unit_words(np.zeros((2, 2), np.int64), "users")


def test_words_are_those_of_the_values_that_rows_have() -> None:
    long = "x" * 5000
    for values in ((5, None), (5, "a"), (5, long), (5, 2**63), (5, True), ("a", None), ("a", long)):
        for column in (
            DictionaryColumn(np.array([0, 0, 0]), values),
            DictionaryColumn(np.array([1, 1, 1]), values[::-1]),
            DictionaryColumn(np.array([0]), values),
        ):
            expected_word = unit_words([values[0]], "users")[0]
            assert set(unit_words(column, "users").tolist()) == {int(expected_word)}, column
        with pytest.raises(InputError, match=r"users\[2\]"):
            unit_words(DictionaryColumn(np.array([0, 0, 1]), values), "users")


def test_a_hash_is_the_same_for_ever() -> None:
    assert int(salt_word("streammetrics")) == SALT
    assert unit_hashes([0, -1], salt_word("streammetrics"), "users").tolist() == OF_INTEGERS
    assert unit_hashes(["ann"], salt_word("streammetrics"), "users").tolist() == OF_ANN


SALT = 6937057331888317977
OF_INTEGERS = [10899158921702159361, 18116763700595266320]
OF_ANN = [6080133636761408930]
