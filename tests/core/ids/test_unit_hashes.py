"""Hashes of units: splitmix64 of the id's 64 bits and those of a salt, for ever the same."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics import InputError
from streammetrics.core.ids.unit_hashes import mixed, salt_word, unit_hashes, unit_words
from streammetrics.core.rows import DictionaryColumn
from tests.oracles.users import hash_of, splitmix64


def test_the_mixer_is_splitmix64_as_vigna_prints_it() -> None:
    # The first three outputs of his splitmix64.c from the seed 1234567.
    gamma, seed = 0x9E3779B97F4A7C15, 1234567
    words = np.array([(seed + i * gamma) % (1 << 64) for i in range(3)], np.uint64)
    found = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mixed(words, np.uint64(0)).tolist() == found
    assert [splitmix64(word) for word in words.tolist()] == found


def test_columns_longer_than_a_piece_are_hashed_as_their_rows() -> None:
    ids = np.arange(-50_000, 50_000)
    found = unit_hashes(ids, salt_word("s"), "users")
    at = [0, 32_767, 32_768, 65_536, 99_999]
    assert [found[i] for i in at] == [hash_of(int(ids[i]), "s") for i in at]
    assert len(np.unique(found)) == len(ids)


def test_words_of_integers_are_their_bits_whatever_holds_them() -> None:
    ids = [5, -1, 5, 2**62]
    bits = [5, 2**64 - 1, 5, 2**62]
    coded = DictionaryColumn(np.array([0, 1, 0, 2]), (5, -1, 2**62))
    of_more = DictionaryColumn(np.array([0, 1, 0, 2]), (5, -1, 2**62, 7, 8, 9))
    for given in (ids, np.array(ids), np.array(ids, object), coded, of_more):
        assert unit_words(given, "users").tolist() == bits
    assert unit_words(np.array(ids)[::2], "users").tolist() == bits[::2]
    found = unit_hashes(np.array(ids)[::2], salt_word("s"), "users")
    assert found.tolist() == [hash_of(5, "s")] * 2
    with pytest.raises(InputError, match="users: expected a one-dimensional array"):
        unit_words(np.zeros((2, 2), np.int64), "users")


def test_a_hash_is_the_same_for_ever() -> None:
    assert int(salt_word("streammetrics")) == SALT
    assert unit_hashes([0, -1], salt_word("streammetrics"), "users").tolist() == OF_INTEGERS
    assert unit_hashes(["ann"], salt_word("streammetrics"), "users").tolist() == OF_ANN


SALT = 6937057331888317977
OF_INTEGERS = [10899158921702159361, 18116763700595266320]
OF_ANN = [6080133636761408930]
