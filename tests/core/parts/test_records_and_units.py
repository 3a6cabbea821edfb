"""Sets of records and of units: their fields, damage to their bytes, and when they are sorted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import InputError, StateError
from streammetrics.core.ids.id_hashes import HashedIds, hash_ids
from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import (
    KeyTable,
    Table,
    checked,
    codes_of_kind,
    is_ascending,
    read_field,
    united,
    values_of,
    write_field,
)
from streammetrics.core.parts.score_bits import are_codes, codes_of, integers_of, scores_of
from streammetrics.core.parts.unit_set import FEW, UnitsColumn
from streammetrics.core.rows import DictionaryColumn

KINDS = ("float32", "key")
ASCENDING: dict[str, list[Any]] = {
    "float32": [-np.inf, -1.5, 0.0, 2.0**-30, np.inf],
    "float64": [-1e300, -1e-300, 0.1, 1e300],
    "int64": [-(1 << 63), -1, 0, (1 << 63) - 1],
    "bool": [False, True],
}


def filled(*records: tuple[int, int, float, str | None]) -> RecordSet:
    """A set of (id, time, value, key)."""
    record_set = RecordSet(KINDS)
    for id_, time, value, key in records:
        column = DictionaryColumn(np.zeros(1, np.intp), (key,))
        fields = np.array([value], np.float32), column
        record_set.add(np.array([id_], np.uint64), np.array([time]), fields)
    return record_set


def written(record_set: RecordSet) -> bytes:
    out = Writer()
    record_set.encode(out)
    return out.bytes_()


def test_records_of_one_time_take_eight_bytes_each_and_are_read() -> None:
    many = RecordSet(())
    many.add(np.arange(100, dtype=np.uint64), np.full(100, 5), ())
    data = written(many)
    assert len(data) < 9 * 100
    assert written(RecordSet.decode((), Reader(data))) == data


def test_codes_of_fields_order_as_values_do_and_lead_back() -> None:
    for kind, ascending in ASCENDING.items():
        values = checked(ascending, kind, "x")
        assert isinstance(values, np.ndarray)
        codes = codes_of_kind(values, kind)
        assert (np.diff(codes.astype(object)) > 0).all()
        assert np.array_equal(values_of(codes, kind, None), values)  # type: ignore[arg-type]
        out = Writer()
        write_field(codes, kind, None, out)
        copy, _ = read_field(len(codes), kind, Reader(out.bytes_()))
        assert np.array_equal(copy, codes)


def test_hashed_texts_come_back_as_hashes_that_say_so() -> None:
    column = checked(["ann", "bo"], "hashed", "user")
    assert isinstance(column, np.ndarray)
    hashes = values_of(codes_of_kind(column, "hashed"), "hashed", None)
    assert isinstance(hashes, HashedIds)
    assert hashes.tolist() == hash_ids(["ann", "bo"]).tolist()
    with pytest.raises(InputError, match="int64"):
        checked([1, 2], "hashed", "user")


def test_keys_are_numbered_anew_in_the_order_of_their_bytes() -> None:
    table = KeyTable()
    field = table.numbers(["b", None, 7, "a"])[[0, 3, 0, 1]]
    every, numbers = table.ordered_by_bytes()
    assert numbers is not None
    assert every.values == ["a", "b", 7, None]
    assert every.ordered_by_bytes() == (every, None)
    ordered, new_numbers = every.ordered_by(numbers[field])
    assert ordered.values == ["a", "b", None]
    assert new_numbers.tolist() == [1, 0, 1, 2]
    assert new_numbers.dtype == np.uint8
    assert ordered.ordered_by(new_numbers)[0] is ordered


def test_picked_records_forget_keys_that_they_have_not() -> None:
    selection = filled((1, 0, 0.0, "a"), (2, 0, 0.0, "b")).picked(np.array([1]))
    assert written(selection) == written(filled((2, 0, 0.0, "b")))


def test_keys_that_came_with_no_record_are_not_written() -> None:
    record_set, none = filled((1, 0, 0.0, "a")), RecordSet(KINDS)
    before = written(record_set)
    of_none = DictionaryColumn(np.zeros(0, np.intp), (None,))  # as of an update with outcomes alone
    none.add(np.zeros(0, np.uint64), np.zeros(0, np.int64), (np.zeros(0, np.float32), of_none))
    record_set.unite(none)
    assert written(record_set) == before


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
    union = united(tables)
    assert is_ascending(union)
    rows = {row for t in tables for row in zip(t.ids, t.times, t.fields[0], strict=True)}
    assert sorted(rows) == list(zip(union.ids, union.times, union.fields[0], strict=True))


def test_bytes_of_records_lead_back_and_damage_is_refused() -> None:
    data = written(filled((1, 5, 0.5, "a"), (3, 2, 0.25, "b")))
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


def test_hashes_wait_until_they_are_worth_a_sort_and_are_counted_in_memory() -> None:
    column = UnitsColumn((1 << 64) - 1, None, 1)
    column.add(np.arange(FEW, dtype=np.uint64))
    assert (len(column.hashes), column.n_pending) == (0, FEW)
    waiting = column.nbytes
    column.add(np.array([1 << 40], np.uint64))
    assert (len(column.hashes), column.n_pending) == (FEW + 1, 0)
    assert 16 * FEW <= waiting <= column.nbytes
    column.add(np.arange(FEW, dtype=np.uint64))
    assert column.n_pending == FEW, "as many as are settled may wait"
    units = column.units_of_slot()
    assert units is not None and units.tolist() == [*range(FEW), 1 << 40]


def test_a_set_past_its_limit_is_dropped_for_good() -> None:
    column = UnitsColumn((1 << 64) - 1, 2, 2)
    column.add(np.array([1, 2, 1, 2, 3], np.uint64), np.array([0, 0, 1, 1, 1]))
    column.settle()
    assert column.hashes.tolist() == [1, 2]
    column.add(np.array([7], np.uint64), np.array([1]))
    merged = UnitsColumn((1 << 64) - 1, 2, 2)
    merged.merge(column, np.array([1, 0]))
    assert column.units_of_slot(1) is merged.units_of_slot(0) is None


# -- codes of values -------------------------------------------------------------------------------


def ladder(kind: type[np.floating]) -> list[float]:
    """Floats of every kind, ascending."""
    info = np.finfo(kind)
    up = [0.0, info.smallest_subnormal, info.tiny, info.eps, 0.5, 1.0, info.max, np.inf]
    return [-float(x) for x in reversed(up[1:])] + [float(x) for x in up]


def test_codes_order_as_their_scores_do_and_lead_back() -> None:
    for kind in (np.float32, np.float64):
        scores = np.array(ladder(kind), kind)
        codes = codes_of(scores)
        assert all(a < b for a, b in pairwise(codes.tolist()))
        back = scores_of(codes)
        assert back.dtype == kind and back.tolist() == scores.tolist()
        zeros = np.array([-0.0, 0.0], kind)
        assert len(set(codes_of(zeros).tolist())) == 1
        assert not np.signbit(scores_of(codes_of(zeros))).any()
        assert np.signbit(zeros[0])  # the caller's array is as it was


def test_only_codes_of_numbers_are_codes() -> None:
    for kind in (np.float32, np.float64):
        name = np.dtype(kind).name
        good = codes_of(np.array(ladder(kind), kind)).astype(np.uint64)
        assert are_codes(good, name) and are_codes(good[:0], name)
        zero = codes_of(np.array([0.0], kind)).astype(np.uint64)[0]
        # Beside the infinities are NaNs, and below 0.0 is -0.0.
        for bad in (good[0] - np.uint64(1), good[-1] + np.uint64(1), zero - np.uint64(1)):
            assert not are_codes(np.append(good, bad), name)


def test_codes_of_integers_order_as_they_do_and_lead_back() -> None:
    ends = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]
    codes = codes_of(np.array(ends))
    assert all(a < b for a, b in pairwise(codes.tolist()))
    assert integers_of(codes).tolist() == ends
    assert codes.tolist()[0] == 0 and codes.tolist()[-1] == 2**64 - 1
    assert are_codes(codes, "int64")
