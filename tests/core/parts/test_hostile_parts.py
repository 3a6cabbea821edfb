"""Bytes that no part writes: each is refused, in words that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.ids.group_ids import IntegerIds, MemberIds, StringIds
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Rule
from streammetrics.core.multiset.bag_table import read_table
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.parts.exact_sums import NamedSums
from streammetrics.core.parts.extremes import Extremes
from streammetrics.core.parts.part import Extreme, Part
from streammetrics.core.parts.record_table import read_field
from streammetrics.core.parts.weighted_counts import WeightedCounts
from tests.core.multiset.bags import data
from tests.toys import Tally

HALF, ONE = 0x3F000000 + 2**31, 0x3F800000 + 2**31  # codes of float32
FULL = 301 // 4 + 1  # cells from which a table of 301 is written whole
LEAST_1 = b"\x80" + (-(1023 << 52)).to_bytes(8, "little", signed=True)  # a least value of 1.0
Fields = tuple[object, ...]


def written(*fields: object) -> bytes:
    """An integer is written with as many bytes as it needs, a list as integers of one width."""
    out = Writer()
    for field in fields:
        if isinstance(field, int):
            out.uint(field)
        elif isinstance(field, bytes):
            out.raw(field)
        else:
            out.ints(np.array(field, np.int64))
    return out.bytes_()


def part(spec: Part[Any], width: int = 1) -> Callable[[Reader], object]:
    return partial(spec.decode, Tally(), width)


def field(kind: str) -> Callable[[Reader], object]:
    return partial(read_field, 1, kind)


def rows(ids: str | None = None, weighted: bool = False) -> Callable[[Reader], object]:
    return partial(read_table, Rule("float32", 2, ids, None, weighted=weighted), 1)


REFUSED: list[tuple[Callable[[Reader], object], Fields, str]] = [
    *(
        (
            part(Counts(cells)),
            (0, [len(places)], places, n),
            "cells out of order, out of range or empty",
        )
        for cells in (7, 301)
        for places, n in (([cells], [1]), ([2**63 - 1], [1]), ([3], [0]))
    ),
    (part(Counts(301)), (0, [2], [4, 3], [1, 1]), "cells out of order"),
    (part(Counts(301)), (0, [2], [3, 3], [1, 1]), "cells out of order"),
    (part(Counts(301)), (1, [1] * 75 + [0] * 226), "301 cells with 75 occupied"),
    (part(Counts(301)), (0, [FULL], list(range(FULL)), [1] * FULL), "76 of 301 cells in"),
    (part(Counts(301), 2**40), (1, b"\0"), "cells in 1 bytes"),
    (part(Counts(301)), (0, [2**62], b"\0\0"), "cells in 2 bytes"),
    (part(Counts(301), 3), (0, [2**62] * 3, b"\0\0"), "cells in 2 bytes"),
    *(
        (part(WeightedCounts(7)), (1, [0, 3, 2, 0, 0, 0, 0], [n]), "fewer rows than occupied")
        for n in (4, 9)
    ),
    (part(Extreme()), (b"\x01",), "flags of states that do not exist"),
    (part(Extreme()), (b"\x81" + bytes(8),), "flags of states that do not exist"),
    (part(Extreme()), (b"\x80" + bytes(7),), "8 bytes with 7 left"),
    (part(Extreme()), (), "1 bytes with 0 left"),
    (part(Extreme()), (b"\x80" + bytes(7) + b"\x80",), r"an extreme of -2\*\*63"),
    (part(Extremes()), (LEAST_1, b"\0"), "without a greatest, or above it"),
    (part(Extremes()), (LEAST_1, b"\x80" + bytes(8)), "without a greatest, or above it"),
    (part(Extremes()), (LEAST_1, b"\x80" + b"\xff" * 7 + b"\x7f"), "that are no floats"),
    (part(Extremes()), (LEAST_1, b"\x80" + b"\xff" * 8), "that are no floats"),  # -0.0
    *(
        (part(ExactSum()), ([length], [low], [0], [0, 0], b"\1"), "an exact sum that is out of")
        for length, low in ((10**15, 0), (1, 10**15), (2**62, 2**62), (1, 272))
    ),
    (part(NamedSums("x")), ([0], [0], [0], [1, 0], b""), "an infinite sum of finite numbers"),
    (field("bool"), (b"\2",), "a bool above 1"),
    (field("float32"), (b"\xff" * 4,), "codes that represent no number"),
    (field("float64"), (b"\xff" * 8,), "codes that represent no number"),
    (field("key"), (b'\1\3"a"', [1]), "keys without a record"),
    (field("key"), (b"\1\1!", [0]), "a key that is not JSON"),
    (field("key"), (b"\x02\x011\x012", [0]), "above its limit of 1"),
    (partial(StringIds.decode, 2), (b"\1\1\1bb",), "group ids out of order"),
    (partial(StringIds.decode, 2), (b"\1\1\1ba",), "group ids out of order"),
    (partial(StringIds.decode, 2), (b"\1\1\1a\xff",), "not UTF-8"),
    (partial(StringIds.decode, 2), (b"\1\1\xffaa",), "ids of 256 bytes in 2"),
    *(
        (partial(MemberIds.decode, 1), ([len(text)], text), "another form than written")
        for text in (
            b"7",
            b"[]",
            b"[7]",
            b'[7,"b","a"]',
            b'[7,"a",3]',
            b"[7,3,3]",
            b"[7, 3]",
            b"[7,1.0]",
            b"[7,true]",
            b"[7,null]",
            b"[7,[3]]",
            b"[1.5,3]",
            b'[7,"\xc3\xa9"]',
            b"[7",
            b"{}",
            b"[9223372036854775808,3]",
            b"[7,-9223372036854775809]",
            b"[" * 10_000,
        )
    ),
    (partial(IntegerIds.decode, 2), (b"\0\1\5\0",), "group ids out of order"),
    (partial(IntegerIds.decode, 2), (b"\1" + bytes(16),), "wider form than necessary"),
    (partial(IntegerIds.decode, 2), (b"\0\1\5",), "length of 2 bytes with 1"),
    (partial(IntegerIds.decode, 2), (b"\2\1\1\1",), "above its limit of 1"),
    (partial(IntegerIds.decode, 2), (b"\1" + b"\xff" * 8 + b"\xfe" + b"\xff" * 7,), "of order"),
    (rows(), ([1], [2**62]), "entries in"),
    (rows(), ([2], [2], [ONE, HALF], [1, 1], [0, 0]), "out of order"),
    (rows(), ([2], [2], [ONE, ONE], [1, 1], [0, 0]), "out of order"),
    (rows(), ([1], [1], [2**32 - 1], [1], [0]), "not a number"),
    (rows(), ([1], [1], [0x7FFFFFFF], [1], [0]), "not a number"),  # -0.0
    (rows(), ([1], [2], [HALF, ONE], [1, 0], [0, 0]), "without rows"),
    (rows(), ([3], [1], [HALF], [1], [1]), "totals"),
    (rows(), ([1], [1], [HALF], [2**63 - 1], [1]), r"2\*\*63"),
    *(
        (rows(weighted=True), ([n], [1], [HALF], [1], [4]), "totals that do not match")
        for n in (1, 6)
    ),
    (rows(), ([2], [1], [HALF], [1], [4]), "totals that do not match"),
    (rows("integer"), ([1], 2**40), "above its limit"),
    (rows("integer"), ([1], 3, 0, b"\1\1"), "a length of"),
    (rows("integer"), ([1], 1, 0, [7], [2**40]), "entries in"),
    (rows("integer"), ([1], 1, 0, [7], [1], [1], [1], [HALF], [1], [0]), "unknown id"),
    (
        rows("integer"),
        ([2], 1, 0, [7], [2], [0, 0], [1, 1], [HALF, ONE], [1, 1], [0, 0]),
        "unknown id",
    ),
    (rows("integer"), ([1], 2, 0, [7, 1], [1], [0], [1], [HALF], [1], [0]), "without a group"),
    (rows("integer"), ([1], 2, 0, [7, 1], [2], [0, 0], [0, 1], [HALF], [1], [0]), "without values"),
    (
        rows("integer"),
        ([1], 2, 0, [7, 0], [2], [0, 0], [1, 1], [HALF, ONE], [1, 1], [0, 0]),
        "out of order",
    ),
]


def test_bytes_that_no_part_writes_are_refused() -> None:
    for read, fields, message in REFUSED:
        with pytest.raises(StateError, match=message):
            reader = Reader(written(*fields))
            read(reader)
            reader.finish()


def test_bytes_beside_those_that_are_refused_are_read() -> None:
    for n in (2, 5):
        reader = Reader(written([n], [1], [HALF], [1], [4]))
        table = rows(weighted=True)(reader)
        assert table.totals.tolist() == [n]  # type: ignore[attr-defined]
    for n in (1, 3):
        part(WeightedCounts(7))(Reader(written(1, [0, 3, 2, 0, 0, 0, 0], [n])))
    codes = np.array([0, (1 << 63) - 1, (1 << 64) - 1], np.uint64)  # no floats
    reader = Reader(written([3], [3], codes.tobytes(), [1, 1, 1]))
    table = read_table(Rule("int64", 1, None, None), 1, reader)
    assert table.codes.tolist() == codes.tolist() and len(table.counts) == 1


def test_hostile_sums_past_an_int64_do_not_wrap_around() -> None:
    most = (2**63 - 1).to_bytes(8, "little")
    data = Reader(b"\1\x08" + 7 * most + b"\x08" + most)
    column = WeightedCounts(7).decode(Tally(), 1, data)
    # The accumulator refuses it: it is more than one state may hold.
    assert column.total_count == 7 * (2**63 - 1)


def test_labels_that_a_rule_does_not_have_are_refused() -> None:
    column = BagColumn(Rule("float32", 32, "integer", None), 1)
    column.add(np.array([0.5]), np.array([17], np.uint8), None, np.array([3]))
    reader = Reader(data(column))
    with pytest.raises(StateError):
        read_table(Rule("float32", 17, "integer", None), 1, reader)
        reader.finish()
