"""Names and numbers as they are formatting."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.model import formatting


def test_no_renderer_formats_a_number_by_itself() -> None:
    for path in Path(formatting.__file__).parent.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        found = [one.lineno for one in nodes if isinstance(one, ast.FormattedValue)
                 and one.format_spec is not None]  # fmt: skip
        assert path.stem == "formatting" or not found, (path.name, found)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("甲", "甲"),
        ("a\nb", "a\\nb"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202etxt", "\\u202etxt"),
        ("\x9b2J", "\\x9b2J"),
        ("[bold]x[/]", "[bold]x[/]"),
        ("\ud800", "\\ud800"),
        ("", "''"),
        (None, "null"),
        (7, "7"),
    ],
)
def test_what_cannot_be_printed_is_shown_by_its_code(text: object, shown: str) -> None:
    assert formatting.name(text) == shown


def test_a_long_name_is_cut_and_says_so() -> None:
    assert formatting.name("x" * 41) == "x" * 37 + "..."


@given(st.text(max_size=100))
def test_no_name_can_move_the_cursor_or_begin_a_line(text: str) -> None:
    assert formatting.name(text).isprintable()


@given(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12),
    st.floats(min_value=0, max_value=1e6),
    st.integers(min_value=0, max_value=10),
)
def test_printed_bounds_hold_what_the_bounds_hold(low: float, width: float, decimals: int) -> None:
    high = low + width
    below, above = formatting.interval(low, high, decimals).strip("[]").split(", ")
    assert Fraction(below.replace(",", "")) <= Fraction(low)
    assert Fraction(above.replace(",", "")) >= Fraction(high)


def test_undefined_and_infinite_values_are_words() -> None:
    assert formatting.number(math.nan, 4) == "undefined"
    assert formatting.number(-math.inf, 4) == "-inf"
    assert formatting.decimals_for([math.nan, math.inf, 0.0]) == 4


def test_a_value_that_rounds_to_nothing_has_no_sign() -> None:
    assert formatting.number(-1e-9, 4) == "0.0000"


def test_a_huge_value_has_an_exponent() -> None:
    assert formatting.number(1.5e200, 2) == "1.500000e+200"
