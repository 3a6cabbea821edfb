"""Names and numbers as text, the same on every surface.

Names come from the stream and may hold anything, so a character that cannot be printed is shown by
its code; `page/printed.js` has the same rule for names. Certain bounds are rounded outward: the
printed ones still contain the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Final

UNDEFINED: Final = "undefined"


def name(text: object, limit: int = 40) -> str:
    """A name without control characters, line ends or direction marks, cut to `limit`.

    >>> name("a\\x1b[31m\\n")
    'a\\\\x1b[31m\\\\n'
    """
    if text is None:
        return "null"
    whole = str(text)
    shown = "".join(map(_printable, whole[: limit + 1]))
    if len(whole) <= limit and len(shown) <= 2 * limit:
        return shown or "''"
    return shown[: limit - 3] + "..."


def count(n: int) -> str:
    """A whole number with thousands separators.

    >>> count(20000)
    '20,000'
    """
    return f"{n:,}"


def decimals_for(values: Iterable[float]) -> int:
    """The number of decimals that shows four digits of the smallest of these values, at most 10.

    Shares and areas (up to 1) have at least four; larger whole numbers have none.

    >>> decimals_for([0.7011, 0.0046]), decimals_for([1.0]), decimals_for([12_345.6, 3])
    (6, 4, 3)
    """
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    if not sizes or max(sizes) <= 1:
        least = 4
    elif all(size == int(size) for size in sizes):
        return 0
    else:
        least = 0
    return min(max(3 - math.floor(math.log10(min(sizes, default=1))), least), 10)


def number(value: float, decimals: int, *, signed: bool = False) -> str:
    """A value, rounded to the nearest.

    >>> number(0.00575, 6), number(float("nan"), 4), number(0.25, 2, signed=True)
    ('0.005750', 'undefined', '+0.25')
    """
    return _rounded(value, decimals, ROUND_HALF_EVEN, signed)


def plain(value: float) -> str:
    """A finite number of a config, with all of its digits and without an exponent.

    >>> plain(0.00001), plain(1209600.0), plain(0.1)
    ('0.00001', '1,209,600', '0.1')
    """
    text = f"{Decimal(repr(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share, to a tenth of a percent; a share above 0 is never shown as 0.

    >>> percent(0.0261), percent(0.00004), percent(0.0), percent(float("nan"))
    ('2.6 %', '<0.1 %', '0.0 %', 'undefined')
    """
    if 0 < share < 0.001:
        return "<0.1 %"
    return UNDEFINED if math.isnan(share) else f"{number(100 * share, 1)} %"


def level(share: float) -> str:
    """A confidence level.

    >>> level(0.95), level(0.995)
    ('95 %', '99.5 %')
    """
    return f"{100 * share:g} %"


def chance(value: float) -> str:
    """A p-value. It is never shown as 0: a float of 0 stands for a value below the float range.

    >>> chance(0.00001), chance(0.8052), chance(0.0)
    ('<0.0001', '0.8052', '<0.0001')
    """
    return "<0.0001" if value < 0.0001 else number(value, 4)


def evidence(value: float) -> str:
    """An e-value, to four digits.

    >>> evidence(1234.56), evidence(0.03741), evidence(2e9), evidence(1e-9)
    ('1,235', '0.03741', 'above 1,000,000', '<0.0001')
    """
    if value > 1e6:
        return "above 1,000,000"
    return "<0.0001" if value < 0.0001 else number(value, decimals_for([value]))


def interval(low: float, high: float, decimals: int) -> str:
    """Certain bounds, rounded outward.

    >>> interval(0.70074, 0.70151, 4)
    '[0.7007, 0.7016]'
    """
    below = _rounded(low, decimals, ROUND_FLOOR, False)
    return f"[{below}, {_rounded(high, decimals, ROUND_CEILING, False)}]"


def between(lower: float, upper: float, decimals: int, *, signed: bool = False) -> str:
    """A statistical interval, rounded to the nearest.

    >>> between(-0.01, 0.025, 3, signed=True)
    '-0.010 to +0.025'
    """
    return " to ".join(number(bound, decimals, signed=signed) for bound in (lower, upper))


def duration(seconds: float) -> str:
    """A time to wait.

    >>> duration(3), duration(200), duration(7300)
    ('3 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _rounded(value: float, decimals: int, mode: str, signed: bool) -> str:
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) >= 1e15:
        return f"{value:.6e}"
    exact = Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=mode)
    return f"{exact:+,f}" if signed else f"{exact if exact else abs(exact):,f}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
