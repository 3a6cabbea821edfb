"""Fields of records: values of each kind, their codes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import InputError, StateError
from streammetrics.core.ids.id_hashes import HashedIds, hash_ids
from streammetrics.core.parts.record_table import (
    KeyTable,
    checked,
    codes_of_kind,
    read_field,
    values_of,
    write_field,
)

ASCENDING: dict[str, list[Any]] = {
    "float32": [-np.inf, -1.5, 0.0, 2.0**-30, np.inf],
    "float64": [-1e300, -1e-300, 0.1, 1e300],
    "int64": [-(1 << 63), -1, 0, (1 << 63) - 1],
    "bool": [False, True],
}


@pytest.mark.parametrize("kind", ASCENDING)
def test_codes_order_as_values_do_and_lead_back(kind: str) -> None:
    values = checked(ASCENDING[kind], kind, "x")
    assert isinstance(values, np.ndarray)
    codes = codes_of_kind(values, kind)
    assert (np.diff(codes.astype(object)) > 0).all()
    assert np.array_equal(values_of(codes, kind, None), values)  # type: ignore[arg-type]
    out = Writer()
    write_field(codes, kind, None, out)
    again, _ = read_field(len(codes), kind, Reader(out.bytes_()))
    assert np.array_equal(again, codes)


def test_hashed_texts_come_back_as_hashes_that_say_so() -> None:
    column = checked(["ann", "bo"], "hashed", "user")
    assert isinstance(column, np.ndarray)
    found = values_of(codes_of_kind(column, "hashed"), "hashed", None)
    assert isinstance(found, HashedIds)
    assert found.tolist() == hash_ids(["ann", "bo"]).tolist()


def test_numbers_where_texts_are_declared_are_refused_with_the_kind_to_declare() -> None:
    with pytest.raises(InputError, match="int64"):
        checked([1, 2], "hashed", "user")


def test_keys_are_numbered_anew_in_the_order_of_their_bytes() -> None:
    table = KeyTable()
    field = table.numbers(["b", None, 7, "a"])[[0, 3, 0, 1]]
    ordered, again = table.in_order(field)
    assert ordered.values == ["a", "b", None]
    assert again.tolist() == [1, 0, 1, 2]
    assert again.dtype == np.uint8
    assert ordered.in_order(again)[0] is ordered


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("bool", b"\x02"),
        ("float32", b"\xff\xff\xff\xff"),
        ("float64", b"\xff" * 8),
        ("key", b'\x01\x03"a"\x01\x01'),
        ("key", b"\x01\x01!\x00"),
        ("key", b"\x02\x011\x012\x00"),
    ],
)
def test_bytes_of_no_field_are_refused(kind: str, data: bytes) -> None:
    with pytest.raises(StateError):
        read_field(1, kind, Reader(data))
