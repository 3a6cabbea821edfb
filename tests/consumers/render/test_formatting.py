"""Names and numbers as they are formatting."""

from __future__ import annotations

import ast
import math
import re
import sys
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from streammetrics_consumers import render
from streammetrics_consumers.model import formatting


def test_no_renderer_formats_a_number_by_itself() -> None:
    for path in Path(render.__file__).parent.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        violations = [node.lineno for node in nodes if isinstance(node, ast.FormattedValue)
                 and node.format_spec is not None]  # fmt: skip
        assert not violations, (path.name, violations)
    page = files("streammetrics_consumers.server") / "page"
    for file in page.iterdir():
        violations = re.findall(r"toFixed|toExponential|BigInt", file.read_text(encoding="utf-8"))
        assert not violations, (file.name, violations)


def test_what_cannot_be_printed_is_shown_by_its_code() -> None:
    for text, shown in (
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
        ("x" * 41, "x" * 37 + "..."),
    ):
        assert formatting.name(text) == shown
    assert all(formatting.name(chr(code)).isprintable() for code in range(0x10000))


@given(st.floats(-1e12, 1e12), st.integers(0, 10), st.booleans())
@example(-0.0, 2, True)
@example(-0.0004, 3, False)
@example(-0.0004, 3, True)
@example(0.125, 2, False)
@example(0.375, 2, False)
@example(999_999.5, 0, False)
def test_a_float_is_rounded_as_its_exact_decimal_is(
    value: float, decimals: int, signed: bool
) -> None:
    exact = Decimal(value + 0.0).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
    if decimals == 10 and 0 < abs(value) < 1e-8:
        return  # it has an exponent
    expected = f"{exact:+,f}" if signed else f"{exact if exact else abs(exact):,f}"
    assert formatting.number(value, decimals, signed=signed) == expected


@given(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12),
    st.floats(min_value=0, max_value=1e6),
    st.integers(min_value=0, max_value=10),
)
def test_printed_bounds_hold_what_the_bounds_hold(low: float, width: float, decimals: int) -> None:
    high = low + width
    below, above = formatting.exact_within(low, high, decimals).strip("[]").split(", ")
    assert Fraction(below.replace(",", "")) <= Fraction(low)
    assert Fraction(above.replace(",", "")) >= Fraction(high)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
@example([0.0, 5e-324])
@example([-sys.float_info.max, sys.float_info.max])
@example([1.0, 1.0 + 2.3e-16])
def test_an_axis_has_two_or_three_marks_within_it_each_with_its_own_short_text(
    ends: list[float],
) -> None:
    low, high = sorted(ends)
    marks = formatting.axis([*ends, math.nan])
    assert all(low <= position <= high for position, _ in marks)
    if low < high:
        assert [float(text.replace(",", "")) for _, text in marks] == [
            position for position, _ in marks
        ]
        assert 2 <= len(marks) <= 3
        assert len({text for _, text in marks}) == len(marks)
    assert max(len(text) for _, text in marks) <= 24
    assert (0.0, "0") in formatting.axis([*ends, -1.0, 1.0])


def test_without_finite_numbers_an_axis_has_no_marks() -> None:
    assert formatting.axis([math.nan, math.inf]) == ()


def test_numbers_that_are_none_huge_or_nearly_nothing_are_words_or_short() -> None:
    assert formatting.number(math.nan, 4) == "undefined"
    assert formatting.number(-math.inf, 4) == "-inf"
    assert formatting.decimals_for([math.nan, math.inf, 0.0]) == 3
    assert formatting.number(-1e-9, 4) == "0.0000"
    assert formatting.number(1.5e200, 2) == "1.500000e+200"


def test_a_lift_beyond_the_floats_is_not_shown() -> None:
    assert formatting.lift(1e307) == formatting.lift(-1e307) == ""
    assert formatting.lift(1e306).startswith("+1.0")
