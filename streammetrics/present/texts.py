"""Names and numbers as text, the same in a `repr`, a notebook, a terminal and on a page.

Two notations that nobody can mix up: certain bounds are `[low, high]` under the words "exact
within", and a confidence interval is `lower to upper` under its level, "95 % CI". Certain bounds
are rounded outward: the printed ones still contain the exact value. Names may come from a stream
and hold anything, so a character that cannot be printed is shown by its code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Final

UNDEFINED: Final = "undefined"
EXACT_WITHIN: Final = "exact within"
_SCIENTIFIC: Final = 1e15  # from here on numbers have an exponent
_MOST: Final = 10  # decimals; numbers of which they show less than three digits have an exponent


def name_text(text: object, limit: int = 40) -> str:
    """A name without control characters, line ends or direction marks, cut to `limit`.

    >>> name_text("a\\x1b[31m\\n")
    'a\\\\x1b[31m\\\\n'
    """
    if text is None:
        return "null"
    whole = str(text)
    shown = whole[: limit + 1]
    if not shown.isprintable():
        shown = "".join(map(_printable, shown))
    if len(whole) <= limit and len(shown) <= 2 * limit:
        return shown or "''"
    return shown[: limit - 3] + "..."


def ci_title(level: float) -> str:
    """The words over a confidence interval.

    >>> ci_title(0.95), ci_title(0.995)
    ('95 % CI', '99.5 % CI')
    """
    return f"{100 * level:.10g} % CI"


def decimals_for(values: Iterable[float], widths: Iterable[float] = (), digits: int = 3) -> int:
    """The number of decimals that shows the first digits of the smallest of these values, but at
    most two more digits of the greatest, and two digits of the narrowest of these intervals; at
    most 10.

    Shares and areas (up to 1) have at least that many decimals; larger whole numbers without
    intervals have none.

    >>> decimals_for([0.7011, 0.0046]), decimals_for([1.0]), decimals_for([12_345.6, 3])
    (5, 3, 0)
    >>> decimals_for([0.7011], [0.00042]), decimals_for([3.0], [0.4])
    (5, 2)
    """
    sizes, spans = (
        [abs(value) for value in numbers if math.isfinite(value) and value != 0]
        for numbers in (values, widths)
    )
    least = digits if not sizes or max(sizes) <= 1 else 0
    decimals = 0
    if sizes and (spans or not all(size == int(size) for size in sizes)):
        decimals = min(digits - 1 - _exponent(min(sizes)), digits + 1 - _exponent(max(sizes)))
    return min(max(decimals, least, *(1 - _exponent(span) for span in spans)), _MOST)


def effect_decimals(effect: float, lower: float, upper: float) -> int:
    """The number of decimals of an effect and of its interval: three digits of the effect or, if
    that is smaller, of half the width of the interval.

    >>> effect_decimals(0.0595, 0.0356, 0.0834), effect_decimals(0.0001, -0.05, 0.05)
    (4, 4)
    """
    width = upper - lower
    size = max(filter(math.isfinite, (abs(effect), width / 2)), default=0.0)
    return decimals_for([size], [width])


def number(
    value: float, decimals: int, *, signed: bool = False, scientific: float = _SCIENTIFIC
) -> str:
    """A value, rounded to the nearest. signed: 0 has a plus, and a value that is rounded to 0 the
    sign of the value. scientific: from this size on it has an exponent, as a value has of which 10
    decimals show less than three digits.

    >>> number(0.00575, 6), number(float("nan"), 4), number(0.25, 2, signed=True)
    ('0.005750', 'undefined', '+0.25')
    >>> number(-0.0, 1, signed=True), number(-0.01, 1, signed=True), number(-0.01, 1)
    ('+0.0', '-0.0', '0.0')
    >>> number(1.25e-20, 10), number(1.25e-20, 3)
    ('1.250000e-20', '0.000')
    """
    return _rounded(value, decimals, ROUND_HALF_EVEN, _flag(signed, "number(signed)"), scientific)


def exact_within(low: float, high: float, decimals: int, *, scientific: float = _SCIENTIFIC) -> str:
    """Certain bounds, rounded outward.

    >>> exact_within(0.70074, 0.70151, 4), exact_within(2e15, 2e15 + 1e9, 4)
    ('[0.7007, 0.7016]', '[2.000000e+15, 2.000001e+15]')
    """
    below = _rounded(low, decimals, ROUND_FLOOR, False, scientific)
    return f"[{below}, {_rounded(high, decimals, ROUND_CEILING, False, scientific)}]"


def between(
    lower: float,
    upper: float,
    decimals: int,
    *,
    signed: bool = False,
    scientific: float = _SCIENTIFIC,
) -> str:
    """A confidence interval, rounded to the nearest.

    >>> between(-0.01, 0.025, 3, signed=True)
    '-0.010 to +0.025'
    """
    bounds = (lower, upper)
    return " to ".join(number(x, decimals, signed=signed, scientific=scientific) for x in bounds)


def _exponent(size: float) -> int:
    """The power of ten of the first digit of a positive number."""
    return math.floor(math.log10(size))


def _flag(value: object, where: str) -> bool:
    """`flag`, which is imported with numpy only for what is no bool of Python."""
    if isinstance(value, bool):
        return value
    from streammetrics.core.conversion import flag

    return flag(value, where)


def _no_number(value: object) -> Exception:
    from streammetrics.core.conversion import refused

    return refused("value", "a number", value, "pass a float")


def _rounded(value: float, decimals: int, mode: str, signed: bool, scientific: float) -> str:
    try:
        is_nan = math.isnan(value)
    except TypeError:  # a check of its own would cost more than all else here
        raise _no_number(value) from None
    if is_nan:
        return UNDEFINED
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if not value:
        value = 0.0  # -0.0 has no sign
    elif abs(value) >= scientific or (decimals == _MOST and abs(value) < 1e-8):
        exact = Context(prec=7, rounding=mode).create_decimal(Decimal(value))
        return f"{exact:{'+' if signed else ''}.6e}"
    if mode == ROUND_HALF_EVEN and type(value) is float and decimals >= 0:
        text = f"{value:+,.{decimals}f}" if signed else f"{value:,.{decimals}f}"  # the same, sooner
        return text if signed or float(text.replace(",", "")) else text.removeprefix("-")
    exact = Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=mode)
    return f"{exact:+,f}" if signed else f"{exact if exact else abs(exact):,f}"


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
