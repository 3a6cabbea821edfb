"""A figure as a Vega-Lite specification, a JSON-compatible dict, and its SVG by vl-convert.

The only data set is at the top level, is named `rows` and holds values; there are layers but no
facets, so a page may set the width of a figure, and may replace its data without a new view.
`usermeta` has the kind, the shape (specifications with equal shapes differ in data only) and, if
there is nothing to draw, the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from textwrap import wrap
from typing import Final, NamedTuple, cast

from streammetrics.core.errors import SettingsError
from streammetrics.present.themes import DASHES, LABEL, SHAPES, Spec
from streammetrics.present.themes import theme as theme_config

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CLIPS: Final = re.compile(r'(?<= )(id="|clip-path="url\(#)clip(\d+)')
CURVE: Final = 500  # the most points of a curve
_NARROW: Final = 260  # width of a legend on a phone, in pixels
FIGURE: Final = 2000  # the most points of all curves of a figure
# The axis of names: long ones lose their middle, so that names with equal beginnings differ.
_MIDDLE: Final = "slice(datum.label, 0, 12) + '...' + slice(datum.label, -9)"
NAMES: Final[Spec] = {"labelExpr": f"length(datum.label) > 24 ? {_MIDDLE} : datum.label"}
_HEAD: Final = 4  # lines of a title, and of a subtitle
VEGA_LITE: Final = "6.4"
_EXPORTS: Final = "export {vegaEmbed, vega, vegaLite};"
_MARKS: Final[Mapping[str, Sequence[object]]] = {"strokeDash": DASHES, "shape": SHAPES}
Row = Mapping[str, object]


def each(series: int) -> int:
    """The most points of each curve, by the number of curves: at least 20.

    >>> each(2), each(10)
    (500, 200)
    """
    return max(20, min(CURVE, FIGURE // max(series, 1)))


def number(value: object) -> float | int | None:
    """A number for JSON; None if it is nan or infinite.

    >>> number(0.5), number(math.nan), number(3)
    (0.5, None, 3)
    """
    if isinstance(value, int):
        return value
    double = float(value)  # type: ignore[arg-type]
    return double if math.isfinite(double) else None


def quantity(field: str, title: str, **properties: object) -> Spec:
    """The channel of a number.

    >>> quantity("x", "rows", scale={"zero": False})["type"]
    'quantitative'
    """
    return {"field": field, "type": "quantitative", "title": title, **properties}


def tooltip(*fields: tuple[str, str]) -> list[Spec]:
    """The tooltip channel: fields with their titles; numbers have six digits."""
    texts = ("series", "when", "name", "truth", "prediction", "class")
    return [
        {"field": name, "type": "nominal", "title": title}
        if name in texts
        else {"field": name, "type": "quantitative", "title": title, "format": ".6~g"}
        for name, title in fields
    ]


def series_colors(
    names: Sequence[str], *marks: str, strokes: bool = True, legend: bool = True
) -> Spec:
    """Channels that distinguish series: colour, and "dash" or "shape"; {} for one unnamed series.

    strokes: whether the legend shows lines, else points; all layers of a figure must agree.

    >>> list(series_colors(["a", "b"], "dash"))
    ['color', 'strokeDash']
    >>> series_colors([""])
    {}
    """
    if list(names) == [""]:
        return {}
    plain: Spec = {"title": None, "columns": legend_columns(names)}
    # Without these a legend shows the faint band of a figure instead of its line.
    stroke: Spec = {**plain, "symbolType": "stroke", "symbolOpacity": 1}
    shown: object = (stroke if strokes else plain) if legend else None
    domain = list(names)
    base: Spec = {"field": "series", "type": "nominal", "legend": shown, "sort": None}
    channels: Spec = {"color": {**base, "scale": {"domain": domain}}}
    for mark in marks:
        kinds: Sequence[object] = DASHES if mark == "dash" else SHAPES
        ranged = [kinds[i % len(kinds)] for i in range(len(domain))]
        channel = "strokeDash" if mark == "dash" else mark
        channels[channel] = {**base, "scale": {"domain": domain, "range": ranged}}
    return channels


def legend_columns(names: Sequence[str]) -> int:
    """The number of legend columns that fit into the narrowest figure.

    >>> legend_columns(["random", "bts"]), legend_columns(["a name of some length"])
    (3, 1)
    """
    longest = max(map(len, names), default=0)
    return max(1, int(_NARROW // (min(6.5 * longest, LABEL) + 35)))


def faded(opacity: float = 1) -> Spec:
    """The channel that fades rows that are `thin`: of few observations."""
    return {"condition": {"test": "datum.thin", "value": 0.3 * opacity}, "value": opacity}


def not_thin(field: str) -> Spec:
    """The transform that makes `line` of a field, which breaks where rows are `thin`.

    >>> not_thin("y")["calculate"]
    'datum.thin ? null : datum.y'
    """
    return {"calculate": f"datum.thin ? null : datum.{field}", "as": "line"}


def some(rows: Sequence[Row], field: str) -> bool:
    """Whether any row has the field: Vega warns of the infinite extent of an empty layer."""
    return any(row.get(field) is not None for row in rows)


def straight(start: tuple[float, float], end: tuple[float, float]) -> Spec:
    """A thin line from one point (x, y) to another, such as chance or perfect calibration."""
    return _thin_line(dict(zip(("x", "y", "x2", "y2"), (*start, *end), strict=True)))


def level(channel: str, value: float) -> Spec:
    """A thin line across the figure, at a value of "x" or "y".

    >>> level("y", 0)["encoding"]
    {'y': {'datum': 0}}
    """
    return _thin_line({channel: value})


def _thin_line(ends: Mapping[str, float]) -> Spec:
    return {
        "data": {"values": [{}]},  # one mark, not one for each row
        "mark": {"type": "rule", "strokeDash": [2, 3]},
        "encoding": {channel: {"datum": value} for channel, value in ends.items()},
    }


def layer_between(
    mark: Spec, x: Spec, y: Spec, ends: tuple[str, str], names: Sequence[str], *, gaps: bool = True
) -> Spec:
    """A layer between two fields of the y axis; gaps: whether some rows lack them."""
    low, high = ends
    encoding = {"x": x, "y": {**y, "field": low}, "y2": {"field": high}, **series_colors(names)}
    layer: Spec = {"mark": mark, "encoding": encoding}
    return {**layer, "transform": [{"filter": {"field": low, "valid": True}}]} if gaps else layer


def head(title: str, subtitle: str, width: object = 440) -> Spec:
    """The title and the subtitle, in lines that fit: a longer one would leave the figure no room.

    >>> head("AUC", "")
    {'text': 'AUC'}
    >>> head("AUC", "thick lines: exact within, thin lines: 95 % CI", 220)["subtitle"]
    ['thick lines: exact within, thin', 'lines: 95 % CI']
    """
    room = width if isinstance(width, int) else 440
    heading: Spec = {"text": _lines(title, room // 8)}
    return {**heading, "subtitle": _lines(subtitle, room // 6)} if subtitle else heading


def _lines(text: str, most: int) -> str | list[str]:
    lines = wrap(text, most, max_lines=_HEAD, placeholder=" ...") if len(text) > most else [text]
    parts = [line.replace("\xa0", " ") for line in lines]  # it has kept words together
    return parts if len(parts) > 1 else parts[0]


def figure(
    kind: str,
    *,
    title: str,
    description: str,
    rows: Sequence[Row],
    layers: Sequence[Spec],
    series: Sequence[str] = (),
    subtitle: str = "",
    reason: str = "",
    theme: str = "light",
    size: tuple[object, object] = (440, 300),
) -> Spec:
    """The specification.

    title: of the figure, shown as it is. description: one sentence for screen readers. reason: why
    there is nothing to draw, or "". theme: "light" or "dark". size: width and height.
    """
    if not rows and not reason:
        reason = "there are no rows"
    layered = list(layers)
    if reason:
        mark: Spec = {"type": "text", "text": reason, "limit": size[0]}
        layered, size = [{"data": {"values": [{}]}, "mark": mark, "encoding": {}}], (size[0], 60)
    shape = json.dumps([kind, list(series), title, subtitle, layered], sort_keys=True)
    spec: Spec = {
        "$schema": SCHEMA,
        "usermeta": {"kind": kind, "shape": _short(shape), "reason": reason},
        "description": description if not reason else f"{description} Nothing is drawn: {reason}.",
        "title": head(title, "" if reason else subtitle, size[0]),
        "data": {"name": "rows", "values": [dict(row) for row in rows] if not reason else []},
        "width": size[0],
        "height": size[1],
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": layered,
        "config": theme_config(theme),
    }
    return cast("Spec", all_drawable(spec))


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    """A text with the characters that XML cannot represent escaped: one such character in the name
    of a variant ends the process in which vl-convert makes an SVG.

    >>> drawable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    return _NO_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def all_drawable(value: object) -> object:
    """A specification, or a part of it, with all its texts `drawable`."""
    if isinstance(value, str):
        return drawable(value)
    if isinstance(value, dict):
        return {key: all_drawable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [all_drawable(part) for part in value]
    return value


def _short(text: str) -> str:
    """FNV-1a of 64 bits, as hex."""
    digest = 0xCBF29CE484222325
    for byte in text.encode():
        digest = (digest ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{digest:016x}"


class Place(NamedTuple):
    """The index of a series' colour, and that of its dash or shape."""

    colour: int
    mark: int


def placed(spec: Spec, places: Mapping[str, Place]) -> Spec:
    """The same figure with these colours and marks, so that a variant has the same colour in all
    figures and in the tables beside them.

    Series of equal colour need different marks: a figure without dashes or shapes for them is
    returned unchanged.

    >>> scale = {"domain": ["bts"]}
    >>> spec = {"encoding": {"color": {"field": "series", "scale": scale}}}
    >>> spec |= {"config": {"range": {"category": ["blue", "orange"]}}}
    >>> placed(spec, {"bts": Place(1, 1)})["encoding"]
    {'color': {'field': 'series', 'scale': {'domain': ['bts'], 'range': ['orange']}}}
    """
    distinct = len({place.colour for place in places.values()}) == len(places)
    if not places or not (distinct or _has_marks(spec)):
        return spec
    at_place = {drawable(name): place for name, place in places.items()}
    config = cast("Mapping[str, Mapping[str, list[str]]]", spec["config"])
    category: Sequence[object] = config["range"]["category"]

    def channel_of(channel: str, encoding: Spec) -> Spec:
        kinds, index = (category, 0) if channel == "color" else (_MARKS[channel], 1)
        scale = cast("Spec", encoding["scale"])
        names = cast("list[str]", scale["domain"])
        places = [at_place.get(name, Place(i, i))[index] for i, name in enumerate(names)]
        return {**encoding, "scale": {**scale, "range": [kinds[i % len(kinds)] for i in places]}}

    def walk(part: object) -> object:
        if isinstance(part, list):
            return [walk(child) for child in part]
        if not isinstance(part, dict):
            return part
        return {
            name: channel_of(name, child)
            if (name == "color" or name in _MARKS) and _is_of_series(child)
            else walk(child)
            for name, child in part.items()
        }

    parts: Spec = {name: walk(spec[name]) for name in ("encoding", "layer") if name in spec}
    return {**spec, **parts}


def _is_of_series(channel: object) -> bool:
    if not isinstance(channel, dict) or channel.get("field") != "series":
        return False
    return "domain" in channel.get("scale", {})


def _has_marks(part: object) -> bool:
    """Whether dashes or shapes distinguish its series."""
    if isinstance(part, list):
        return any(map(_has_marks, part))
    if not isinstance(part, dict):
        return False
    if any(_is_of_series(part.get(name)) for name in _MARKS):
        return True
    return any(_has_marks(part.get(name)) for name in ("encoding", "layer"))


def svg(spec: Spec) -> str:
    """The figure as SVG; SettingsError if vl-convert-python is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise not_installed("vl-convert-python", "figures", error) from None
    drawn = cast("Spec", all_drawable(spec))
    image: str = vl_convert.vegalite_to_svg(drawn, vl_version=VEGA_LITE, allowed_base_urls=[])
    # Vega numbers the ids of clipped layers through the life of a process.
    numbers = dict.fromkeys(clip[2] for clip in _CLIPS.finditer(image))
    order = {number: i for i, number in enumerate(numbers)}
    return _CLIPS.sub(lambda clip: f"{clip[1]}clip{order[clip[2]]}", image)


@cache
def charts_javascript() -> str:
    """An ES module that exports vegaEmbed, vega and vegaLite, from the installed package.

    It is made once, in about three seconds. Under a strict content security policy embed with the
    options `ast: true` (no code from text), `defaultStyle: false` and
    `tooltip: {disableDefaultStyle: true}`.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise not_installed("vl-convert-python", "figures", error) from None
    return vl_convert.javascript_bundle(_EXPORTS, vl_version=VEGA_LITE)


def not_installed(package: str, where: str, error: ImportError) -> SettingsError:
    """The error for a missing package that draws figures."""
    return SettingsError(
        expected=f"{package}, which draws figures",
        got=str(error),
        where=where,
        hint="install it with: pip install '.[plot]' in a clone of streammetrics",
    )
