"""Names and numbers as text, the same on every surface.

Names come from the stream and may hold anything, so a character that cannot be printed is shown by
its code; `page/printed.js` has the same rule for names. Certain bounds are rounded outward: the
printed ones still contain the exact value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

from streammetrics.present import (
    UNDEFINED,
    between,
    decimals_for,
    effect_decimals,
    exact_within,
    number,
)
from streammetrics.present import name_text as name

__all__ = [
    "DASH",
    "UNDEFINED",
    "axis",
    "between",
    "chance",
    "count",
    "decimals_for",
    "duration",
    "effect_decimals",
    "evidence",
    "exact_within",
    "iso_utc",
    "label",
    "least_days",
    "level",
    "lift",
    "name",
    "number",
    "percent",
    "plain",
    "span_text",
]

DASH: Final = "—"  # in place of a number, beside the reason in words


RATIO: Final = "ratio"  # a view that says no more than its metric


def label(metric: str, view: str, *, only_view: bool = True, most: int) -> str:
    """The name of a value: the metric and the view, which is left out where it adds nothing. most:
    characters of the metric; a view may have twice as many.

    >>> label("latency", "p90", most=12), label("ctr", "ratio", most=12)
    ('latency (p90)', 'ctr')
    >>> label("latency", "p90", only_view=False, most=12)
    'latency p90'
    """
    metric_text = name(metric, most)
    if view == metric or (only_view and (view in metric or view == RATIO)):
        return metric_text
    view_text = name(view, 2 * most)
    return f"{metric_text} ({view_text})" if only_view else f"{metric_text} {view_text}"


def count(n: int) -> str:
    """A whole number with thousands separators.

    >>> count(20000)
    '20,000'
    """
    return f"{n:,}"


def least_days(days: float | None) -> str:
    """Days, rounded down to a tenth; "" if they are unknown or fewer.

    >>> least_days(7.97), least_days(0.04)
    ('7.9', '')
    """
    tenths = 0 if days is None else math.floor(10 * days)
    return number(tenths / 10, 1) if tenths else ""


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


def lift(share: float) -> str:
    """A relative difference in per cent, to three digits; "" if it is undefined, or beyond the
    float range.

    >>> lift(0.0456), lift(-0.4), lift(12.5), lift(0.000012), lift(float("nan"))
    ('+4.56 %', '-40.0 %', '+1,250 %', '+0.0012 %', '')
    """
    difference = 100 * share
    if not math.isfinite(difference):
        return ""
    decimals = min(max(2 - _exponent(abs(difference)), 0), 4) if difference else 0
    return f"{number(difference, decimals, signed=True)} %"


def level(share: float) -> str:
    """A confidence level.

    >>> level(0.95), level(0.995)
    ('95 %', '99.5 %')
    """
    return f"{100 * share:g} %"


def axis(numbers: Iterable[float], *, signed: bool = False) -> tuple[tuple[float, str], ...]:
    """Two or three labelled marks at round numbers, from the least of these numbers to the
    greatest; () without finite numbers. Where 0 is among them it is marked.

    >>> axis([-0.0012, 0.0061, 0.0], signed=True)
    ((0.0, '0'), (0.005, '+0.005'))
    >>> axis([0.21, 0.291]), axis([1.5e-70, 3e-70])
    (((0.22, '0.22'), (0.26, '0.26')), ((2e-70, '2e-70'), (3e-70, '3e-70')))
    """
    finite = [value for value in numbers if math.isfinite(value)]
    if not finite:
        return ()
    low, high = Fraction(min(finite)), Fraction(max(finite))
    if low == high:
        value = finite[0] or 0.0  # not -0.0
        return ((value, number(value, decimals_for([value]), signed=signed) if value else "0"),)
    width = high - low
    power = (Decimal(width.numerator) / width.denominator).adjusted()
    sizes = [(size, power - i) for i in range(2) for size in (5, 2, 1)]
    marks, power = next(
        (multiples, exponent)
        for size, exponent in sizes
        if len(multiples := _multiples(low, high, size, exponent)) > 1  # a scale needs two
    )
    if len(marks) > 3:
        origin, double = 0 if 0 in marks else marks[0], 2 * (marks[1] - marks[0])
        marks = [i for i in marks if (i - origin) % double == 0]
    return tuple((float(f"{i}e{power}"), _mark(i, power, signed)) for i in marks)


def _multiples(low: Fraction, high: Fraction, size: int, power: int) -> list[int]:
    """The multiples of size * 10**power in [low, high], in units of 10**power."""
    step = size * Fraction(10) ** power
    return [i * size for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _mark(i: int, power: int, signed: bool) -> str:
    """The text of i * 10**power, with an exponent where it would be long."""
    if not i:
        return "0"
    text = f"{Decimal(i).scaleb(power):{'+' if signed else ''},f}"
    if len(text) <= 12:
        return text
    return f"{Decimal(i).scaleb(power):{'+' if signed else ''}.{len(str(abs(i))) - 1}e}"


def chance(value: float) -> str:
    """A p-value, to three digits. It is never shown as 0: a float of 0 stands for a value below the
    float range.

    >>> chance(0.00001), chance(0.8052), chance(0.00314), chance(1.0)
    ('<0.0001', '0.805', '0.00314', '1.00')
    """
    if value < 0.0001:
        return "<0.0001"
    return number(value, 0 if math.isnan(value) else 2 - _exponent(value))


def evidence(value: float) -> str:
    """An e-value, to three digits.

    >>> evidence(1234.56), evidence(0.03741), evidence(2e9), evidence(1e-9)
    ('1,235', '0.0374', 'above 1,000,000', '<0.0001')
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


def span_text(ms: int) -> str:
    """A span of time of a config, in its largest whole unit.

    >>> span_text(1_209_600_000), span_text(86_400_000), span_text(5_400_000)
    ('14 days', '1 day', '5,400 s')
    """
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000)):
        if ms % size == 0:
            n = ms // size
            return f"{count(n)} {unit}{'' if n == 1 else 's'}"
    return f"{plain(ms / 1000)} s"


def iso_utc(ms: int) -> str:
    """A time in ISO UTC, with milliseconds only if they are not 0; one beyond the calendar in ms.

    >>> iso_utc(86_400_000), iso_utc(1574553663979), iso_utc(10**18)
    ('1970-01-02T00:00:00Z', '2019-11-24T00:01:03.979Z', '1000000000000000000 ms')
    """
    seconds, milliseconds = divmod(ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
    text = moment.isoformat(timespec="seconds").removesuffix("+00:00")
    return text + (f".{milliseconds:03d}Z" if milliseconds else "Z")


def _exponent(size: float) -> int:
    """The power of ten of the first digit of a positive number."""
    return math.floor(math.log10(size))
