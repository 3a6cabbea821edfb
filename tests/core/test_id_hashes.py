"""Hashes of string ids."""

from __future__ import annotations

import gc
from hashlib import blake2b

import numpy as np
import pytest

from streammetrics.core import id_hashes
from streammetrics.core.bag_checks import group_ids
from streammetrics.core.id_hashes import hashed_ids, hashes_of
from streammetrics.core.rows import Coded

# BLAKE2b with 8 bytes of digest and the key "streammetrics-id/1", little-endian and signed.
HASH_OF_NOTHING = 5907535402848239713
HASH_OF_A_USER = -1535498474331891658


def test_hashes_are_the_same_for_ever() -> None:
    assert hashed_ids(["", "u9e45ef6776"]).tolist() == [HASH_OF_NOTHING, HASH_OF_A_USER]
    assert len(set(hashed_ids([str(i) for i in range(1_000)]).tolist())) == 1_000


@pytest.mark.parametrize("names", [["a", "é", "b" * 300], ["a", "\ud800", "é"], []])
def test_a_hash_is_that_of_the_bytes_whatever_stands_beside(names: list[str]) -> None:
    expected = [
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=b"streammetrics-id/1")
        for name in names
    ]
    found = hashed_ids(names)
    assert found.tolist() == [int.from_bytes(h.digest(), "little", signed=True) for h in expected]
    assert found.dtype == np.int64


def test_a_column_is_hashed_once_for_all_metrics_that_are_fed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[str] = []

    def counted(names: list[str]) -> np.ndarray:
        hashed.extend(names)
        return hashed_ids(names)

    monkeypatch.setattr(id_hashes, "hashed_ids", counted)
    column, codes = Coded(np.array([0, 1, 0]), ("ann", "bo")), [0, 1, 0]
    expected = hashed_ids(["ann", "bo"])[codes].tolist()
    for _ in range(3):
        found = group_ids(column, "hashed")
        assert isinstance(found, np.ndarray) and found.tolist() == expected
    assert hashed == ["ann", "bo"]
    column.codes[:] = 1  # the rows are read each time
    found = group_ids(column, "hashed")
    assert isinstance(found, np.ndarray) and set(found.tolist()) == {expected[1]}


def test_what_is_known_of_a_column_goes_with_it() -> None:
    gc.collect()
    before = len(id_hashes._KNOWN)
    columns = [Coded(np.array([0]), (f"u{i}",)) for i in range(10)]
    for column in columns:
        hashes_of(column)
    assert len(id_hashes._KNOWN) == before + 10
    del columns, column
    gc.collect()
    assert len(id_hashes._KNOWN) == before


def test_nobody_can_change_hashes_that_others_read() -> None:
    with pytest.raises(ValueError, match="read-only"):
        hashes_of(Coded(np.array([0]), ("ann",)))[0] = 1
