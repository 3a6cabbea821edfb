"""The picture: the cost of a row by the number of rows, both on logarithmic scales."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streammetrics.present import Spec, svg, theme

Point = Mapping[str, Any]
_NAME: Final = 1.5  # the least ratio of nanoseconds between the middles of two names


def points(path: Path) -> list[Point]:
    """The points of the question `growth`."""
    record = json.loads(path.read_text(encoding="utf-8"))
    return [
        point
        for entry in record["answers"]
        if entry["key"] == "growth"
        for point in entry["points"]
    ]


def drawn(curve_points: Sequence[Point]) -> str:
    """The SVG."""
    last = {point["series"]: max(p["rows"] for p in curve_points if p["series"] == point["series"])
            for point in curve_points}  # fmt: skip
    places = _apart({p["series"]: p for p in curve_points if p["rows"] == last[p["series"]]})
    rows = [
        {
            "series": point["series"],
            "whose": "a peer" if point["peer"] else "streammetrics",
            "rows": point["rows"],
            "ns": round(point["ns"], 3),
            "end": point["rows"] == last[point["series"]],
            "name_at": round(places[point["series"]], 3),
        }
        for point in curve_points
    ]
    return svg(_spec(rows))


def _apart(ends: Mapping[str, Point]) -> dict[str, float]:
    """The position of each series' name: at its last point, above the name below it, and above that
    point if other series continue to its right."""
    places: dict[str, float] = {}
    most = max(end["rows"] for end in ends.values())
    above: dict[int, float] = {}
    for name in sorted(ends, key=lambda name: float(ends[name]["ns"])):
        rows, ns = ends[name]["rows"], float(ends[name]["ns"])
        least = ns if rows == most else _NAME * ns
        places[name] = above[rows] = max(least, _NAME * above.get(rows, 0.0))
    return places


def _spec(rows: Sequence[Mapping[str, object]]) -> Spec:
    sizes = sorted({int(str(row["rows"])) for row in rows})
    x = {
        "field": "rows",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [sizes[0] * 0.8, sizes[-1] * 30], "nice": False},
        "axis": {"title": "rows", "values": sizes, "format": ",", "grid": False},
    }
    y = {
        "field": "ns",
        "type": "quantitative",
        "scale": {"type": "log", "nice": True},
        "axis": {"title": "ns a row, update", "values": [10**i for i in range(7)], "format": ","},
    }
    plain: Spec = {"x": x, "y": y, "detail": {"field": "series", "type": "nominal"}}
    color = {
        "field": "whose",
        "type": "nominal",
        "scale": {"domain": ["streammetrics", "a peer"]},
        "legend": {"title": None, "orient": "top"},
    }
    dash = {
        "field": "whose",
        "type": "nominal",
        "scale": {"domain": ["streammetrics", "a peer"], "range": [[1, 0], [5, 4]]},
        "legend": None,
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 620,
        "height": 380,
        "config": theme("light"),
        "background": "white",
        "data": {"values": list(rows)},
        "layer": [
            {
                "mark": {"type": "line", "point": {"size": 45}},
                "encoding": {**plain, "color": color, "strokeDash": dash},
            },
            {
                "transform": [{"filter": "datum.end"}],
                "mark": {"type": "text", "align": "left", "dx": 9},
                "encoding": {
                    **plain,
                    "y": {**y, "field": "name_at"},
                    "color": color,
                    "text": {"field": "series", "type": "nominal"},
                },
            },
        ],
    }
