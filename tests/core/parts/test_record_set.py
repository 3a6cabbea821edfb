"""Sets of records: fields of every kind, in one order, each record once."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import Table, is_ascending, united
from streammetrics.core.rows import DictionaryColumn

KINDS = ("float32", "key")


def words(*values: int) -> np.typing.NDArray[np.uint64]:
    return np.array(values, np.uint64)


def filled(*records: tuple[int, int, float, str | None]) -> RecordSet:
    """A set of (id, time, value, key)."""
    made = RecordSet(KINDS)
    for id_, time, value, key in records:
        column = DictionaryColumn(np.zeros(1, np.intp), (key,))
        made.add(words(id_), np.array([time]), (np.array([value], np.float32), column))
    return made


def written(one: RecordSet) -> bytes:
    out = Writer()
    one.encode(out)
    return out.bytes_()


def test_records_stand_by_id_then_time_then_fields_whatever_came_first() -> None:
    records = [(2, 0, 0.5, "b"), (1, 9, -1.0, "b"), (1, 9, -1.0, "a"), (1, -9, 7.0, None)]
    one, other = filled(*records, records[0]), filled(*records[::-1])
    assert one.settled().ids.tolist() == [1, 1, 1, 2]
    assert one.settled().times.tolist() == [-9, 9, 9, 0]
    keys = one.column(1, slice(None))
    assert isinstance(keys, DictionaryColumn)
    assert [keys.values[i] for i in keys.codes.tolist()] == [None, "a", "b", "b"]
    assert written(one) == written(other)
    one.unite(other)
    assert written(one) == written(other)


def test_both_zeros_are_one_value() -> None:
    assert len(filled((1, 1, 0.0, "a"), (1, 1, -0.0, "a")).settled()) == 1


def test_what_is_picked_forgets_keys_that_it_has_not() -> None:
    some = filled((1, 0, 0.0, "a"), (2, 0, 0.0, "b")).picked(np.array([1]))
    assert written(some) == written(filled((2, 0, 0.0, "b")))


def test_keys_that_came_with_no_record_are_not_written() -> None:
    one, none = filled((1, 0, 0.0, "a")), RecordSet(KINDS)
    before = written(one)
    of_none = DictionaryColumn(np.zeros(0, np.intp), (None,))  # as of an update with outcomes alone
    none.add(words(), np.zeros(0, np.int64), (np.zeros(0, np.float32), of_none))
    one.unite(none)
    assert written(one) == before
    assert written(RecordSet.decode(KINDS, Reader(before))) == before


def test_a_twin_goes_its_own_way() -> None:
    one = filled((1, 0, 0.0, "a"))
    twin = one.twin()
    twin.unite(filled((2, 0, 0.0, "new")))
    assert (len(one.settled()), len(twin.settled())) == (1, 2)
    assert written(one) == written(filled((1, 0, 0.0, "a")))


def test_a_union_of_tables_has_each_record_once_in_order() -> None:
    random = np.random.default_rng(5)
    tables = [
        Table(
            random.integers(0, 50, n).astype(np.uint64),
            random.integers(0, 3, n),
            (random.integers(0, 2, n).astype(np.uint8),),
        )
        for n in (400, 1, 0, 90)
    ]
    found = united(tables)
    assert is_ascending(found)
    rows = {row for t in tables for row in zip(t.ids, t.times, t.fields[0], strict=True)}
    assert sorted(rows) == list(zip(found.ids, found.times, found.fields[0], strict=True))


def test_bytes_lead_back_and_damage_is_refused() -> None:
    one = filled((1, 5, 0.5, "a"), (3, 2, 0.25, "b"))
    data = written(one)
    assert written(RecordSet.decode(KINDS, Reader(data))) == data
    ids, least = data[1:17], data[17:25]
    for bad in (
        data[:1] + ids[8:] + ids[:8] + data[17:],  # out of order
        b"\x7f" + data[1:],  # more records than bytes
        data[:17] + (1 << 62).to_bytes(8, "little") + data[25:],  # times past their end
        data.replace(least, (1).to_bytes(8, "little")).replace(b"\x01\x03\x00", b"\x01\x04\x01"),
        data.replace(b'"b"', b'"a"'),  # a key twice
        data.replace(b"\x02\x03", b"\x01\x03"),  # a key less
    ):
        assert bad != data
        with pytest.raises(StateError):
            RecordSet.decode(KINDS, Reader(bad))
