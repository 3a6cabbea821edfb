"""Values side by side: each with its certain bounds and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streammetrics.core.conversion import flag
from streammetrics.present.spec import (
    NAMES,
    figure,
    level,
    number,
    quantity,
    series_colors,
    some,
    tooltip,
)
from streammetrics.present.texts import EXACT_WITHIN, between, decimals_for, exact_within
from streammetrics.present.texts import number as text
from streammetrics.present.themes import Spec

MOST: Final = 200  # values of a figure


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value of one series. low, high: its certain bounds; lower, upper: its interval; equal to
    the value, nan or infinite if there is none."""

    name: str
    series: str
    value: float
    low: float = math.nan
    high: float = math.nan
    lower: float = math.nan
    upper: float = math.nan


def values(
    named_values: Sequence[NamedValue],
    *,
    title: str = "",
    x: str = "value",
    zero: bool = False,
    interval: str = "CI",
    reason: str = "",
    theme: str = "light",
    kind: str = "values",
) -> Spec:
    """A line for each name, with a point for each series.

    x: the quantity and its unit. zero: whether a line marks 0, as for effects. interval: the words
    for the intervals, such as "95 % CI". The subtitle has the value if there is only one, and else
    the meaning of the lines. Only the first 200 values are drawn; the subtitle reports the others.

    >>> values([NamedValue("ctr", "bts", 0.5)], x="ratio")["data"]["values"][0]["value"]
    0.5
    """
    drawn = [value for value in named_values if math.isfinite(value.value)][:MOST]
    left = sum(math.isfinite(value.value) for value in named_values) - len(drawn)
    series = list(dict.fromkeys(value.series for value in drawn)) or [""]
    names = list(dict.fromkeys(value.name for value in drawn))
    is_single = len(names) == 1 and series != [""]
    field, lines = ("series", series) if is_single else ("name", names)
    y: Spec = {"field": field, "type": "nominal", "title": None, "sort": None, "axis": NAMES}
    y["scale"] = {"domain": lines}
    place: Spec = {"y": y}
    if not is_single and len(series) > 1:
        place["yOffset"] = {"field": "series", "sort": None, "scale": {"domain": series}}
    axis = quantity("value", x, scale={"zero": flag(zero, "values(zero)")})
    colours = series_colors(series, strokes=False, legend=not is_single)
    points = series_colors(series, "shape", strokes=False, legend=not is_single)
    rows = [_row(value) for value in drawn]
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": width, "opacity": opacity},
            "encoding": {
                "x": {**axis, "field": start},
                "x2": {"field": end},
                **place,
                **colours,
            },
            "transform": [{"filter": {"field": start, "valid": True}}],
        }
        for start, end, width, opacity in (("lower", "upper", 1.5, 1), ("low", "high", 7, 0.35))
        if some(rows, start)
    ]
    fields = (
        *(("name", "name"), ("series", "series"), ("value", x), ("low", "low, certain")),
        *(("high", "high, certain"), ("lower", "lower"), ("upper", "upper")),
    )
    tooltips = tooltip(*(pair for pair in fields if pair[0] != "series" or series != [""]))
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"x": axis, **place, **points, "tooltip": tooltips},
        }
    )
    if zero:
        layers.insert(0, level("x", 0))
    if not drawn and not reason:
        reason = "no value is defined"
    shown = series if is_single else names
    ending = [f"and {len(shown) - 5} more"] if len(shown) > 5 else []
    note = _value(drawn[0], interval) if len(drawn) == 1 else _lines(rows, interval)
    subject = f"{x} of {', '.join([*shown[:5], *ending])}"
    return figure(
        kind,
        title=title or x,
        description=f"{subject}; thin lines are intervals, thick ones certain bounds.",
        rows=rows,
        layers=layers,
        series=[*lines, *series],
        subtitle="; ".join(filter(None, (note, f"{left} more are not drawn" if left else ""))),
        reason=reason,
        theme=theme,
        size=(440, max(60, 18 * len(lines) * (1 if is_single else max(len(series), 1)) + 24)),
    )


def _value(value: NamedValue, interval: str) -> str:
    """The value in words, with its bounds and its interval."""
    low, high, lower, upper = value.low, value.high, value.lower, value.upper
    numbers = [x for x in (value.value, low, high, lower, upper) if math.isfinite(x)]
    decimals = decimals_for(numbers)
    parts = [text(value.value, decimals)]
    if low < high:
        parts.append(f"{EXACT_WITHIN} {exact_within(low, high, decimals)}")
    if lower < upper and math.isfinite(upper - lower):
        parts.append(f"{interval} {between(lower, upper, decimals)}")
    return ", ".join(parts)


def _lines(rows: Sequence[dict[str, object]], interval: str) -> str:
    """The meaning of the lines."""
    certain = f"thick lines: {EXACT_WITHIN}" if some(rows, "low") else ""
    return ", ".join(filter(None, (certain, f"thin lines: {interval}" * some(rows, "lower"))))


def _row(value: NamedValue) -> dict[str, object]:
    row: dict[str, object] = {"name": value.name, "series": value.series, "value": value.value}
    bounds = (("low", "high", value.low, value.high), ("lower", "upper", value.lower, value.upper))
    for start, end, low, high in bounds:
        if math.isfinite(low) and math.isfinite(high):
            row |= {start: number(low), end: number(high)}
    return row
