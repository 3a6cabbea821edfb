"""A figure as a Vega-Lite specification: a plain dict that is JSON, with one data set.

The data set is at the top, is named `rows` and holds values; there are layers but no facets, so
whoever shows a figure may set its width, and may change its data without drawing it anew.
`usermeta` has the kind, the shape (equal shapes differ in data only) and, where there is nothing
to draw, the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

from streammetrics.present.theme import DASHES, LABEL, SHAPES, Spec
from streammetrics.present.theme import theme as look_of

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
CURVE: Final = 500  # points of a curve, at most
_NARROW: Final = 260  # pixels that a legend has on a phone
FIGURE: Final = 2000  # and of all curves of a figure
Row = Mapping[str, object]


def each(series: int) -> int:
    """How many points each of so many curves may have: at least 20.

    >>> each(2), each(10)
    (500, 200)
    """
    return max(20, min(CURVE, FIGURE // max(series, 1)))


def number(value: object) -> float | int | None:
    """A number as JSON has it; None where it is nan or infinite.

    >>> number(0.5), number(math.nan), number(3)
    (0.5, None, 3)
    """
    if isinstance(value, int):
        return value
    found = float(value)  # type: ignore[arg-type]
    return found if math.isfinite(found) else None


def quantity(field: str, title: str, **more: object) -> Spec:
    """The channel of a number.

    >>> quantity("x", "rows", scale={"zero": False})["type"]
    'quantitative'
    """
    return {"field": field, "type": "quantitative", "title": title, **more}


def tooltip(*fields: tuple[str, str]) -> list[Spec]:
    """What a pointer sees: fields with their titles; numbers have six digits."""
    texts = ("series", "when", "name", "truth", "prediction", "class")
    return [
        {"field": name, "type": "nominal", "title": title}
        if name in texts
        else {"field": name, "type": "quantitative", "title": title, "format": ".6~g"}
        for name, title in fields
    ]


def by_series(names: Sequence[str], *marks: str, strokes: bool = True, legend: bool = True) -> Spec:
    """Channels that tell series apart: colour, and "dash" or "shape" beside it; {} of one unnamed.

    strokes: whether the legend shows lines, otherwise points. Layers of one figure agree in it.

    >>> list(by_series(["a", "b"], "dash"))
    ['color', 'strokeDash']
    >>> by_series([""])
    {}
    """
    if list(names) == [""]:
        return {}
    plain: Spec = {"title": None, "columns": _columns(names)}
    # Without these a legend shows the faint band of a figure, and not its line.
    stroke: Spec = {**plain, "symbolType": "stroke", "symbolOpacity": 1}
    shown: object = (stroke if strokes else plain) if legend else None
    domain = list(names)
    base: Spec = {"field": "series", "type": "nominal", "legend": shown, "sort": None}
    found: Spec = {"color": {**base, "scale": {"domain": domain}}}
    for mark in marks:
        kinds: Sequence[object] = DASHES if mark == "dash" else SHAPES
        ranged = [kinds[i % len(kinds)] for i in range(len(domain))]
        channel = "strokeDash" if mark == "dash" else mark
        found[channel] = {**base, "scale": {"domain": domain, "range": ranged}}
    return found


def _columns(names: Sequence[str]) -> int:
    """How many names of a legend stand beside each other, in the narrowest of figures.

    >>> _columns(["random", "bts"]), _columns(["some length"]), _columns(["a name of some length"])
    (3, 2, 1)
    """
    longest = max(map(len, names), default=0)
    return max(1, int(_NARROW // (min(6.5 * longest, LABEL) + 35)))


def some(rows: Sequence[Row], field: str) -> bool:
    """Whether any row has it: a layer of nothing makes its axis infinite, which Vega warns of."""
    return any(row.get(field) is not None for row in rows)


def straight(start: tuple[float, float], end: tuple[float, float]) -> Spec:
    """A thin line from one point (x, y) to another, such as chance or perfect calibration."""
    ends = zip(("x", "y", "x2", "y2"), (*start, *end), strict=True)
    return {
        "data": {"values": [{}]},  # one mark, not one for each row
        "mark": {"type": "rule", "strokeDash": [2, 3]},
        "encoding": {channel: {"datum": value} for channel, value in ends},
    }


def level(channel: str, at: float) -> Spec:
    """A thin line across the figure, at a value of "x" or "y".

    >>> level("y", 0)["encoding"]
    {'y': {'datum': 0}}
    """
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeDash": [2, 3]},
        "encoding": {channel: {"datum": at}},
    }


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

    title: of the figure, shown as it is. description: one sentence for those who do not see it.
    reason: why there is nothing to draw. theme: "light" or "dark". size: width and height.
    """
    if not rows and not reason:
        reason = "there are no rows"
    head: Spec = {"text": title}
    if subtitle and not reason:
        head["subtitle"] = subtitle
    layered = list(layers)
    if reason:
        said: Spec = {"type": "text", "text": reason, "limit": size[0]}
        layered, size = [{"data": {"values": [{}]}, "mark": said, "encoding": {}}], (size[0], 60)
    shape = json.dumps([kind, list(series), title, subtitle, layered], sort_keys=True)
    spec: Spec = {
        "$schema": SCHEMA,
        "usermeta": {"kind": kind, "shape": _short(shape), "reason": reason},
        "description": description if not reason else f"{description} Nothing is drawn: {reason}.",
        "title": head,
        "data": {"name": "rows", "values": [dict(row) for row in rows] if not reason else []},
        "width": size[0],
        "height": size[1],
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": layered,
        "config": look_of(theme),
    }
    return cast("Spec", all_drawable(spec))


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    """A text without what XML has no letters for, which is shown by its code: one such letter in
    the name of a variant ends the process in which vl-convert makes an SVG of it.

    >>> drawable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def all_drawable(value: object) -> object:
    """A specification, or a part of it, of drawable texts."""
    if isinstance(value, str):
        return drawable(value)
    if isinstance(value, dict):
        return {key: all_drawable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [all_drawable(one) for one in value]
    return value


def _short(text: str) -> str:
    """FNV-1a of 64 bits, as hex."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{found:016x}"
