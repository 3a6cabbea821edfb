"""Names and numbers as text, the same on every surface.

Names come from the stream and may hold anything, so a character that cannot be printed is shown by
its code; `page/printed.js` has the same rule for names. Certain bounds are rounded outward: the
printed ones still contain the exact value.
"""

from __future__ import annotations

import math
from decimal import Decimal

from streammetrics.present import UNDEFINED, between, decimals_for, exact_within, number
from streammetrics.present import name_text as name

__all__ = [
    "UNDEFINED",
    "between",
    "chance",
    "count",
    "decimals_for",
    "duration",
    "evidence",
    "exact_within",
    "level",
    "name",
    "number",
    "percent",
    "plain",
]


def count(n: int) -> str:
    """A whole number with thousands separators.

    >>> count(20000)
    '20,000'
    """
    return f"{n:,}"


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
