"""Expressions have the values of plain Python row by row, whatever the rows hold and however they
are cut into batches."""

from __future__ import annotations

import math
import struct
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import Expression, InputError
from streammetrics.core.rows import DictionaryColumn
from tests.core.expressions.drawn import (
    FLAGS,
    FLOATS,
    INTEGERS,
    NAMED_TEXTS,
    NUMBERS,
    TEXTS,
    Value,
    condition,
    number,
    row_value,
)

ROWS = 40


def columns_of(random: Random, nulls: float) -> dict[str, list[Value]]:
    """Hostile values of each field, of which some are null."""

    def column(values: tuple[Any, ...]) -> list[Value]:
        return [None if random.random() < nulls else random.choice(values) for _ in range(ROWS)]

    columns = {
        "clicks": column(INTEGERS),
        "views": column(INTEGERS),
        "reward": column(FLOATS),
        "user.age": column((*INTEGERS, *FLOATS)),  # either, as in events
    }
    columns |= {name: column((True, False)) for name in FLAGS}
    return columns | {name: column(TEXTS) for name in NAMED_TEXTS}


def random_forms(columns: dict[str, list[Value]], random: Random) -> dict[str, object]:
    """The columns in one of the forms in which tables have them."""
    forms: dict[str, object] = dict(columns)
    for name, values in columns.items():
        if None in values or random.random() < 0.5:
            continue
        if name in NAMED_TEXTS:
            texts = tuple(dict.fromkeys(map(str, values)))
            forms[name] = DictionaryColumn(np.array([texts.index(v) for v in values]), texts)
        elif name != "user.age":
            forms[name] = np.array(values)
    return forms


def values_of(expression: Expression, columns: dict[str, object]) -> list[Value]:
    """The values, None where they are unknown."""
    evaluated = expression.evaluate(columns)
    values = evaluated.values
    if isinstance(values, DictionaryColumn):
        array: list[Any] = [values.values[code] for code in values.codes]
    else:
        array = values.tolist()
    mask = evaluated.codes == 0
    return [value if is_known else None for value, is_known in zip(array, mask, strict=True)]


def bits(value: Value) -> object:
    """A value with its type and all of its bits; every nan alike."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return type(value), value


@pytest.mark.parametrize("seed", range(300))
def test_values_are_those_of_plain_python_row_by_row(seed: int) -> None:
    random = Random(seed)
    draw = number if seed % 2 else condition
    text = draw(random, 1 + seed % 4)
    if not any(name in text for name in (*NUMBERS, *FLAGS, *NAMED_TEXTS)):
        text = f"({text}) + clicks"
    columns = columns_of(random, random.choice((0, 0.2)))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    expression = Expression(text)
    values = values_of(expression, random_forms(columns, random))
    assert list(map(bits, values)) == [bits(row_value(text, row)) for row in rows], text
    copy = Expression(expression.text)
    assert copy.text == expression.text
    halves = [{name: column[part] for name, column in columns.items()} for part in HALVES]
    cut = [value for half in halves for value in values_of(copy, dict(half))]
    assert list(map(bits, cut)) == list(map(bits, values)), text


HALVES = (slice(0, 1), slice(1, 17), slice(17, ROWS))


def test_whole_numbers_stay_exact_and_floats_are_rounded_once() -> None:
    columns = {"a": [2**53 + 1], "b": [2], "f": [0.1]}
    assert values_of(Expression("a - b"), dict(columns)) == [2**53 - 1]
    assert values_of(Expression("a * b"), dict(columns)) == [2**54 + 2]
    assert values_of(Expression("a == 9007199254740992.0"), dict(columns)) == [False]
    assert values_of(Expression("f + f + f"), dict(columns)) == [0.1 + 0.1 + 0.1]
    assert values_of(Expression("a / 3"), dict(columns)) == [(2**53 + 1) / 3]


def test_a_condition_that_one_side_decides_needs_no_other_value() -> None:
    columns: dict[str, object] = {"surface": ["home", "search", None], "dwell_s": [None, None, 1]}
    text = "surface == 'search' and dwell_s >= 30"
    assert values_of(Expression(text), columns) == [False, None, False]
    assert values_of(Expression(f"not ({text})"), columns) == [True, None, True]
    assert values_of(Expression("surface != 'search' or dwell_s < 30"), columns) == [
        *(True, None, True)
    ]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a * b", {"a": ["x"], "b": [1]}, "column 'a', read by gain, column 1: expected numbers"),
        ("a * b", {"a": [1], "b": [True]}, "gain, column 5: expected numbers, got True and False"),
        ("not a", {"a": [0, 1]}, "expected True or False, got numbers; compare it with a number"),
        ("a == 'x'", {"a": [1]}, "expected texts, got numbers"),
        ("a == b", {"a": [1], "b": ["x"]}, "column 1: expected two values of one kind"),
        ("a == b", {"a": [1, 2], "b": [1]}, "column 6: expected 2 values, one for each row of a"),
        ("a > 1", {"a": [1, "x"]}, r"a[1], read by gain, column 1: expected numbers alone"),
        ("a > 1", {"a": np.array(["2026-01-01"], "M8[D]")}, "of datetime64[D]"),
        ("a > 1", {"a": [1 + 1j]}, "got (1+1j) of complex"),
        ("a > 1", {"a": [b"x"]}, "got b'x' of bytes"),
        ("a > 1", {"a": [[1], [2, 3]]}, "got [1] of list"),
        ("a > 1", {"a": np.ones((2, 2))}, "expected a one-dimensional array"),
    ],
)
def test_a_column_of_another_kind_is_refused_at_its_place(
    text: str, columns: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        Expression(text, where="gain").evaluate(columns)
    assert message in str(refused.value)
    assert str(refused.value).endswith("^")


def test_columns_that_are_not_read_may_hold_anything() -> None:
    columns: dict[str, object] = {"a": [1, 2], "b": object()}
    assert values_of(Expression("a + 1"), columns) == [2, 3]


def test_the_error_of_unknown_values_names_the_field_or_the_operation() -> None:
    expression = Expression("views * 2 + clicks", where="gain")
    evaluated = expression.evaluate({"views": [1, 2**62, 3], "clicks": [1, 2, None]})
    assert evaluated.reason(0) is None
    error = expression.refused(evaluated)
    assert error.where == "gain, column 7, row 1" and error.rows.tolist() == [1, 2]
    single_row = expression.evaluate({"views": [3], "clicks": [None]})
    error = expression.refused(single_row)
    assert (error.where, error.expected, error.got) == (
        "clicks[0], read by gain, column 13",
        "a value",
        "None",
    )


def test_all_rows_may_be_missing_or_none_at_all() -> None:
    assert values_of(Expression("a > 1 or b == 'x'"), {"a": [None], "b": [None]}) == [None]
    empty: list[Any] = [[], np.zeros(0), np.zeros(0, np.int64), np.zeros(0, "U1")]
    for kind in empty:
        assert values_of(Expression("a > 1"), {"a": kind}) == []
        assert values_of(Expression("a == 'x'"), {"a": kind}) == []


def test_unsigned_numbers_beyond_int64_have_no_value() -> None:
    column = np.array([1, 2**63, 2**64 - 1], np.uint64)
    assert values_of(Expression("a - 1"), {"a": column}) == [0, None, None]


def test_a_name_alone_is_the_column() -> None:
    assert Expression("a.b").column == "a.b" and Expression("a + 1").column is None
    assert values_of(Expression("a"), {"a": ["x", None]}) == ["x", None]
