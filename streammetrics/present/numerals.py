"""Numbers in sentences, without scientific notation unless they are too large or small to read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from typing import Final

_LEAST: Final = 1e-9  # below it, and from 1e15, numbers are in scientific notation


def plain(
    value: float, digits: int = 3, *, signed: bool = False, rounding: str = ROUND_HALF_EVEN
) -> str:
    """A number with `digits` significant digits; whole ones keep all of theirs.

    >>> plain(0.0057512), plain(-12345.678), plain(0.25, signed=True), plain(0.0)
    ('0.00575', '-12,346', '+0.25', '0')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else f"{value:+}".removeprefix("" if signed else "+")
    return _text(Decimal(repr(value + 0.0)), digits, signed, rounding)


def _text(exact: Decimal, digits: int, signed: bool, rounding: str) -> str:
    """The text of a number as it is written: 0.06 is not rounded down to 0.059."""
    scientific = exact != 0 and not _LEAST <= abs(exact) < 1e15
    places = digits - 1 - exact.adjusted() if exact else 0
    places = places if scientific else max(0, places)
    number = exact.quantize(Decimal(1).scaleb(-places), rounding, Context(prec=60))
    if scientific:
        return f"{number:{'+' if signed else ''}.{digits - 1}e}"
    text = f"{number:+,f}" if signed else f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def declared(value: float) -> str:
    """A number that somebody chose, with its digits.

    >>> declared(0.0125), declared(99.95)
    ('0.0125', '99.95')
    """
    return plain(value, 6)


def least(value: float) -> str:
    """A number for "at least": rounded towards 0.

    >>> least(0.0579), least(6.899), least(0.06), least(5.79e-12)
    ('0.0579', '6.89', '0.06', '5.79e-12')
    """
    return plain(value, rounding=ROUND_DOWN)


def most(value: float) -> str:
    """A number for "at most": rounded up.

    >>> most(0.05712), most(1234.5)
    ('0.0572', '1,235')
    """
    return plain(value, rounding=ROUND_CEILING)


def percent(share: float) -> str:
    """A finite share in percent for "at least": rounded down, to three digits.

    >>> percent(0.0579), percent(6.899), percent(23.456), percent(0.29)
    ('5.79 %', '689 %', '2,340 %', '29 %')
    """
    size = Decimal(repr(share)).scaleb(2)
    if 100 <= size < 1e15:
        size = size.quantize(Decimal(1).scaleb(size.adjusted() - 2), ROUND_DOWN)
    return f"{_text(size, 3, False, ROUND_DOWN)} %"


def p_value(value: float) -> str:
    """A p-value, which is never 0.

    >>> p_value(0.0314), p_value(0.0), p_value(1.0)
    ('p 0.0314', 'p below 0.0001', 'p 1')
    """
    return "p below 0.0001" if value < 0.0001 else f"p {plain(value)}"


def rounded_text(count: float) -> str:
    """An estimated number of units, to two digits and rounded up.

    >>> rounded_text(12_345.6), rounded_text(3.2)
    ('13,000', '4')
    """
    if count < 10:
        return f"{math.ceil(count)}"
    unit = 10 ** (math.floor(math.log10(count)) - 1)
    return plain(float(math.ceil(count / unit) * unit))


def least_count(count: float) -> str:
    """A number of units for "at least", as a whole one: its first two digits, rounded down.

    >>> least_count(12_345.6), least_count(3.2), least_count(129.9)
    ('12,000', '4', '130')
    """
    whole = math.ceil(round(count, 6))
    unit = 10 ** max(len(str(whole)) - 2, 0)
    return plain(float(whole // unit * unit))


def tenths(value: float) -> float:
    """A number rounded down to tenths; one from 2**53 on has none.

    >>> tenths(2.57), tenths(1e308)
    (2.5, 1e+308)
    """
    return value if abs(value) >= 2**53 else math.floor(10 * value) / 10


def joined(parts: Iterable[str]) -> str:
    """The parts as a list in a sentence: a, b and c."""
    words = [part for part in parts if part]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
