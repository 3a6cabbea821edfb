"""Indices of strings."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.ids.group_ids import IntegerIds, StringIds
from streammetrics.core.rows import DictionaryColumn


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


def test_each_string_has_one_index() -> None:
    found = StringIds()
    first = found.index(DictionaryColumn(np.array([0, 1, 0]), ("u", "é")))
    again = found.index(DictionaryColumn(np.array([1, 1, 0]), ("", "é")))
    assert first.tolist() == [0, 1, 0] and again.tolist() == [1, 1, 2]
    assert found.names == ["u", "é", ""] and found.n == 3


def test_strings_that_no_row_has_get_no_index_when_there_are_many() -> None:
    found = StringIds()
    found.index(DictionaryColumn(np.array([3]), tuple("abcdef")))
    assert found.names == ["d"]


def test_strings_are_written_in_the_order_of_their_bytes() -> None:
    names = ["b", "", "é", "\U0001f600", "\uffff", "a\0b", "\ud800"]
    found = StringIds(names)
    data, back = through_bytes(found, np.arange(7, dtype=np.uint32))
    assert back == sorted(names, key=lambda s: s.encode("utf-8", "surrogatepass"))
    assert through_bytes(StringIds(names[::-1]), np.arange(7, dtype=np.uint32))[0] == data


@pytest.mark.parametrize("data", [b"\1\1\1bb", b"\1\1\1ba", b"\1\1\1a\xff", b"\1\1\xffaa"])
def test_strings_out_of_order_or_form_are_refused(data: bytes) -> None:
    with pytest.raises(StateError):
        StringIds.decode(2, Reader(data))


def test_memory_of_strings_is_near_what_they_take() -> None:
    names = [f"u{i:010d}" for i in range(10_000)]
    found = StringIds(names)
    assert 100 * len(names) < found.nbytes < 250 * len(names)
