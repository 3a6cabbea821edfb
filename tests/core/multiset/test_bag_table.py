"""Bytes that are not those of a bag."""

from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Rule
from streammetrics.core.multiset.bag_table import read_table
from tests.bags import data, feed, fitted, names


def good(rule: Rule) -> bytes:
    column = BagColumn(rule, 1)
    known = names(rule)
    four = ((0, 0.5, 0), (0, 2.0, 1), (1, 0.5, 1), (1, 0.5, 1))
    rows = fitted(rule, [(0, known[i], s, y) for i, s, y in four])
    feed(column, rows, plain=True)
    return data(column)


def written(*fields: object) -> bytes:
    out = Writer()
    for field in fields:
        if isinstance(field, int):
            out.uint(field)
        elif isinstance(field, bytes):
            out.raw(field)
        else:
            out.ints(np.array(field, np.int64))
    return out.bytes_()


HALF, ONE = 0x3F000000 + 2**31, 0x3F800000 + 2**31


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("entries in", ([1], [2**62])),
        ("out of order", ([2], [2], [ONE, HALF], [1, 1], [0, 0])),
        ("out of order", ([2], [2], [ONE, ONE], [1, 1], [0, 0])),
        ("not a number", ([1], [1], [2**32 - 1], [1], [0])),
        ("not a number", ([1], [1], [0x7FFFFFFF], [1], [0])),  # -0.0
        ("without rows", ([1], [2], [HALF, ONE], [1, 0], [0, 0])),
        ("totals", ([3], [1], [HALF], [1], [1])),
        ("2\\*\\*63", ([1], [1], [HALF], [2**63 - 1], [1])),
    ],
)
def test_scores_that_no_bag_writes_are_refused(what: str, fields: tuple[object, ...]) -> None:
    with pytest.raises(StateError, match=what):
        read_table(Rule("float32", 2, None, None), 1, Reader(written(*fields)))


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("above its limit", ([1], 2**40)),
        ("claim", ([1], 3, 0, b"\1\1")),
        ("entries in", ([1], 1, 0, [7], [2**40])),
        ("no known id", ([1], 1, 0, [7], [1], [1], [1], [HALF], [1], [0])),
        ("no known id", ([2], 1, 0, [7], [2], [0, 0], [1, 1], [HALF, ONE], [1, 1], [0, 0])),
        ("without a group", ([1], 2, 0, [7, 1], [1], [0], [1], [HALF], [1], [0])),
        ("without values", ([1], 2, 0, [7, 1], [2], [0, 0], [0, 1], [HALF], [1], [0])),
        ("out of order", ([1], 2, 0, [7, 0], [2], [0, 0], [1, 1], [HALF, ONE], [1, 1], [0, 0])),
    ],
)
def test_groups_that_no_bag_writes_are_refused(what: str, fields: tuple[object, ...]) -> None:
    with pytest.raises(StateError, match=what):
        read_table(Rule("float32", 2, "integer", None), 1, Reader(written(*fields)))


def test_integers_have_any_code_and_one_label() -> None:
    rule = Rule("int64", 1, None, None)
    codes = np.array([0, (1 << 63) - 1, (1 << 64) - 1], np.uint64)  # no floats
    table = read_table(rule, 1, Reader(written([3], [3], codes.tobytes(), [1, 1, 1])))
    assert table.codes.tolist() == codes.tolist() and len(table.counts) == 1


def test_labels_that_a_rule_does_not_have_are_refused() -> None:
    column = BagColumn(Rule("float32", 32, "integer", None), 1)
    column.add(np.array([0.5]), np.array([17], np.uint8), None, np.array([3]))
    reader = Reader(data(column))
    with pytest.raises(StateError):
        read_table(Rule("float32", 17, "integer", None), 1, reader)
        reader.finish()
