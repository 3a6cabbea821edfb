"""Figures over time: a value by window of event time, and an effect by rows read or time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, Literal, TypeVar, cast

from streammetrics.present.spec import (
    each,
    faded,
    figure,
    layer_between,
    level,
    not_thin,
    number,
    quantity,
    series_colors,
    some,
    tooltip,
)
from streammetrics.present.themes import Spec

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1 to 9999, the range of `datetime`.
_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999
_FEW: Final = 30  # looks per series, up to which rules are drawn
_INTERVALS: Final = 5  # the most series with drawn intervals; those of more would overlap
_BANDS: Final = (("low", "certain bounds"), ("lower", "intervals"))
_ALONE_MS: Final = 3_600_000  # on both sides of a single look
_HANDFUL: Final = 30  # rows, below which a window may be faded
_USUAL: Final = 4  # a faded window has at most a fourth of the rows of the middle one
_DAY_MS: Final = 86_400_000
_DAY_AND_TIME: Final = "%b %d, %H:%M"
_TICKS_MOST: Final = 8
# The format of a tick, by its finest unit; 24 hours, as in tooltips and tables.
_TICKS: Final[Mapping[str, str]] = {
    "year": "%Y",
    **dict.fromkeys(("quarter", "month"), "%b %Y"),
    **dict.fromkeys(("week", "date"), "%b %d"),
    **dict.fromkeys(("hours", "minutes"), "%H:%M"),
    "seconds": "%H:%M:%S",
    "milliseconds": "%H:%M:%S.%L",
}
T = TypeVar("T", "WindowValue", "EffectValue")


@dataclass(frozen=True, slots=True)
class WindowValue:
    """A value of the rows of [start_ms, end_ms), with certain bounds (low, high) and an interval
    (lower, upper); nan if there is none. rows: their number, None if it is not known."""

    start_ms: int
    end_ms: int
    series: str
    value: float
    low: float = math.nan
    high: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class EffectValue:
    """An effect at one look. at: rows read, or milliseconds since the epoch. lower, upper: the
    always-valid interval, infinite if there is none. gated: before the burn-in."""

    at: int
    series: str
    effect: float
    lower: float
    upper: float
    gated: bool = False


def over_time(
    windows: Sequence[WindowValue],
    *,
    title: str = "",
    y: str = "value",
    reason: str = "",
    theme: str = "light",
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Spec:
    """A point at the start of each window, and a line through those of a series, which breaks where
    windows are missing.

    Windows outside of the years 1 to 9999 have no date, and are left out. y: the quantity and its
    unit. Only the latest windows of long series are drawn. The bounds and intervals of more than
    five series would overlap, so only the tooltips have them. A window with a handful of rows,
    fewer than 30 and at most a fourth of the usual number, is faded and has no interval. limits: of
    the values; what is beyond them is not drawn.

    >>> day = WindowValue(0, 86_400_000, "bts", 0.5)
    >>> over_time([day], y="CTR")["data"]["values"][0]["when"]
    '1970-01-01 00:00 to 1970-01-02 00:00'
    """
    datable = (
        window for window in windows if window.start_ms >= _FIRST_MS and window.end_ms <= _LAST_MS
    )
    drawn, series, note = _latest(list(datable), lambda window: window.start_ms, "windows")
    if windows and not drawn:
        reason = reason or "every window is before the year 1 or after the year 9999"
    rows, thin = [], _thin(drawn)
    for window in drawn:
        when = f"{_time(window.start_ms)} to {_time(window.end_ms)}"
        row = {
            "series": window.series,
            "at": window.start_ms,
            "when": when,
            "value": number(window.value),
        }
        if window.rows is not None:
            row["rows"] = window.rows
        if window in thin:
            row["thin"] = True
        for start, end, low, high in (
            ("low", "high", window.low, window.high),
            ("lower", "upper", window.lower, window.upper),
        ):
            if (
                math.isfinite(low)
                and math.isfinite(high)
                and (start == "low" or window not in thin)
            ):
                row |= {start: low, end: high}
        rows.append(row)
    rows += _gaps(drawn)
    if len({(window.start_ms, window.end_ms) for window in drawn}) == 1:
        only_window = drawn[0]
        rows += _windows_around(
            only_window.start_ms, (only_window.end_ms - only_window.start_ms) // 2, series
        )
    axis = quantity("value", y, scale={"zero": False, **_scale(rows, limits)})
    x = _utc("start of the window (UTC)", _windows_axis(drawn))
    fields = (
        *(("series", "series"), ("when", "window (UTC)"), ("value", y), ("low", "low, certain")),
        *(("high", "high, certain"), ("lower", "lower"), ("upper", "upper"), ("rows", "rows")),
    )
    layers = [
        *(
            _rules(x, axis, series, start, end, width)
            for start, end, width in (("lower", "upper", 1), ("low", "high", 5))
            if some(rows, start) and len(series) <= _INTERVALS
        ),
        _line(x, axis, series),
        _points(x, axis, series, fields),
    ]
    bands = [name for start, name in _BANDS if some(rows, start)]
    hides = bands and len(series) > _INTERVALS
    hidden = f"the {' and '.join(bands)} of {len(series)} series are not drawn" if hides else ""
    with_bands = f", with {' and '.join(bands)}" if bands and not hides else ""
    outside = " or lie outside" if "domain" in cast("Spec", axis["scale"]) else ""
    few = f"windows of a handful of rows are faded{outside}" if thin else ""
    if not any(row["value"] is not None for row in rows) and not reason:
        reason = "no window has a value" if rows else "there are no windows yet"
    return figure(
        "windows",
        title=title or y,
        description=f"{y} by window of event time{with_bands}.",
        rows=rows,
        layers=layers,
        series=series,
        subtitle="; ".join(filter(None, (note, hidden, few))),
        reason=reason,
        theme=theme,
    )


def effect_over_time(
    looks: Sequence[EffectValue],
    *,
    title: str = "",
    y: str = "effect",
    x: Literal["rows read", "time"] = "rows read",
    reason: str = "",
    theme: str = "light",
) -> Spec:
    """The effect at each look with its always-valid interval, against no effect.

    An interval that excludes 0 shows an effect, regardless of the number of looks.

    >>> effect_over_time([EffectValue(100, "bts", 0.1, -0.2, 0.4)])["data"]["values"][0]["lower"]
    -0.2
    """
    drawn, series, note = _latest(looks, lambda look: look.at, "looks")
    rows = []
    for look in drawn:
        row: dict[str, object] = {
            "series": look.series,
            "at": look.at,
            "value": number(look.effect),
        }
        if x == "time":
            row["when"] = _time(look.at)
        row["seen"] = "before the burn-in" if look.gated else "counts"
        if math.isfinite(look.lower) and math.isfinite(look.upper) and not look.gated:
            row |= {"lower": look.lower, "upper": look.upper}
        rows.append(row)
    if x == "time" and len(times := {look.at for look in drawn}) == 1:
        rows += _windows_around(min(times), _ALONE_MS, series)
    axis = quantity("value", y, scale={"zero": True})
    across = (
        _utc("time (UTC)", _looks_axis(drawn))
        if x == "time"
        else quantity("at", "rows read", scale={"zero": False})
    )
    place = ("when", "time (UTC)") if x == "time" else ("at", "rows read")
    fields = (
        *(("series", "treatment"), place, ("value", y)),
        *(("lower", "lower, always valid"), ("upper", "upper, always valid")),
    )
    layers = [level("y", 0)]
    if some(rows, "lower"):
        band: Spec = {"type": "area", "opacity": 0.2}
        layers.insert(0, layer_between(band, across, axis, ("lower", "upper"), series))
        # The band of one look has no width; the rules of many looks would hide the band.
        if len(rows) <= _FEW * len(series):
            layers.append(_rules(across, axis, series, "lower", "upper", 1))
    layers += [
        _line(across, axis, series),
        _points(across, axis, series, fields),
    ]
    return figure(
        "effects",
        title=title or y,
        description=f"{y} at each look, with its always-valid interval, against no effect at 0.",
        rows=rows,
        layers=layers,
        series=series,
        subtitle=note,
        reason=reason or ("" if rows else "there are no looks yet"),
        theme=theme,
    )


def _latest(
    points: Sequence[T], when: Callable[[T], float], noun: str
) -> tuple[list[T], list[str], str]:
    """The latest points of each series, up to the figure's limit, the series in their given order,
    and a note if points were omitted."""
    series = list(dict.fromkeys(point.series for point in points)) or [""]
    ordered = sorted(points, key=when)
    most, drawn = each(len(series)), []
    for name in series:
        drawn += [point for point in ordered if point.series == name][-most:]
    return drawn, series, f"the latest {most} {noun}" if len(drawn) < len(points) else ""


def _thin(windows: Sequence[WindowValue]) -> set[WindowValue]:
    """The windows with a handful of rows, compared with the others of their series."""
    row_counts: dict[str, list[int]] = {}
    for window in windows:
        if window.rows is not None:
            row_counts.setdefault(window.series, []).append(window.rows)
    usual = {name: sorted(rows)[len(rows) // 2] for name, rows in row_counts.items()}
    return {
        window
        for window in windows
        if window.rows is not None
        and window.rows < _HANDFUL
        and _USUAL * window.rows <= usual[window.series]
    }


def _gaps(windows: Sequence[WindowValue]) -> list[dict[str, object]]:
    """A row without a value where a series lacks windows, at which its line breaks."""
    starts = sorted({window.start_ms for window in windows})
    step = min((after - before for before, after in pairwise(starts)), default=0)
    rows: list[dict[str, object]] = []
    for name in dict.fromkeys(window.series for window in windows):
        series_starts = sorted(window.start_ms for window in windows if window.series == name)
        rows += (
            {"series": name, "at": before + step, "value": None}
            for before, after in pairwise(series_starts)
            if after - before > step
        )
    return rows


def _windows_around(middle: int, distance: int, series: Sequence[str]) -> list[dict[str, object]]:
    """Rows without a value on both sides of a single time, which is then in the middle: the ends of
    a scale of time would be expressions, which a page does not evaluate."""
    ends = (middle - distance, middle + distance)
    return [{"series": series[0], "at": end, "value": None} for end in ends]


def _scale(rows: Sequence[Mapping[str, object]], limits: tuple[float, float]) -> Spec:
    """The ends of a scale where it does not fit the data: it ends at the limits, and faded windows
    do not stretch it."""
    names = ("value", "lower", "upper", "low", "high")
    thin, usual = (
        [cast("float", row[name]) for row in rows for name in names
         if row.get(name) is not None and bool(row.get("thin")) is is_thin]
        for is_thin in (True, False)
    )  # fmt: skip
    if not usual:
        return {}
    low, high = max(min(usual), limits[0]), min(max(usual), limits[1])
    if thin and low < high and (min(thin) < low or max(thin) > high):
        return {"domain": [low, high], "nice": True}
    scale: Spec = {"domainMin": low} if min(usual) < low else {}
    return scale | ({"domainMax": high} if max(usual) > high else {})


def _rules(x: Spec, axis: Spec, series: list[str], low: str, high: str, width: int) -> Spec:
    mark: Spec = {"type": "rule", "strokeWidth": width, "opacity": 0.5 if width == 1 else 0.3}
    mark["clip"] = True
    return layer_between(mark, x, axis, (low, high), series)


def _line(x: Spec, axis: Spec, series: list[str]) -> Spec:
    encoding = {"x": x, "y": {**axis, "field": "line"}, **series_colors(series, "dash")}
    mark: Spec = {"type": "line", "strokeWidth": 1.5}
    return {"mark": mark, "encoding": encoding, "transform": [not_thin("value")]}


def _points(x: Spec, axis: Spec, series: list[str], fields: tuple[tuple[str, str], ...]) -> Spec:
    tooltips = tooltip(*(field for field in fields if field[0] != "series" or series != [""]))
    encoding = {"x": x, "y": axis, **series_colors(series), "opacity": faded(), "tooltip": tooltips}
    mark: Spec = {"type": "point", "filled": True, "size": 25, "clip": True}
    return {"mark": mark, "encoding": encoding}


def _utc(title: str, extra: Spec) -> Spec:
    scale, axis = ({**defaults, **cast("Spec", extra.get(name, {}))} for name, defaults in (
        ("scale", {"type": "utc"}), ("axis", {"format": _TICKS})))  # fmt: skip
    return {"field": "at", "type": "temporal", "scale": scale, "axis": axis, "title": title}


def _windows_axis(windows: Sequence[WindowValue]) -> Spec:
    """Ticks at starts of windows, where the points are; a single window is in the middle."""
    if not windows:
        return {}
    spans = {(window.start_ms, window.end_ms) for window in windows}
    if len(spans) == 1:
        start = windows[0].start_ms
        return {
            "axis": {
                "values": _time_ticks([start]),
                **({"format": _DAY_AND_TIME} if start % _DAY_MS else {}),
            }
        }
    # With room for the intervals of the first and the last window.
    padded: Spec = {"scale": {"padding": 6}}
    starts = sorted({start for start, _ in spans})
    step = min(after - before for before, after in pairwise(starts))
    if _DAY_MS % step:  # weeks and 7 hours do not start where the axis would have its ticks
        every = math.ceil(((starts[-1] - starts[0]) // step + 1) / _TICKS_MOST) * step
        return {"axis": {"values": _time_ticks(range(starts[0], starts[-1] + 1, every))}, **padded}
    return {"axis": {"tickMinStep": step}, **padded}


def _looks_axis(looks: Sequence[EffectValue]) -> Spec:
    """A single look is in the middle, because an axis of zero length has ticks of milliseconds."""
    times = {look.at for look in looks}
    if len(times) != 1:
        return {}
    return {"axis": {"values": _time_ticks(times), "format": _DAY_AND_TIME}}


def _time_ticks(times: Iterable[int]) -> Spec:
    """Ticks at these times. Vega-Lite would call `datetime` with each number, which gives no date
    where expressions are not compiled, as on the page."""
    return {"expr": f"[{', '.join(map(str, times))}]"}


def _time(at_ms: int) -> str:
    return f"{_EPOCH + timedelta(milliseconds=at_ms):%Y-%m-%d %H:%M}"
