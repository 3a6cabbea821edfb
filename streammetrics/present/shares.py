"""Gain and lift: what acting on the highest scores alone would find."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from streammetrics.present.spec import by_series, figure, level, quantity, straight, tooltip
from streammetrics.present.theme import Spec

PARTS: Final = 20  # equal parts of the rows
Bounds = tuple[float, float, float]  # a value, and its certain ends


def gain(
    found: Mapping[str, Sequence[Bounds]], *, title: str = "Gain", theme: str = "light"
) -> Spec:
    """The share of the positives among the highest i/k of the scores, i = 1 to k, by series.

    >>> spec = gain({"": [(0.5, 0.5, 0.5), (1.0, 1.0, 1.0)]})
    >>> [row["y"] for row in spec["data"]["values"]]
    [0.0, 0.5, 1.0]
    """
    with_start = {name: [(0.0, 0.0, 0.0), *bounds] for name, bounds in found.items()}
    x = quantity("x", "share of the rows, highest scores first", scale={"domain": [0, 1]})
    y = quantity("y", "share of the positives found", scale={"domain": [0, 1]})
    described = "Share of the positives over the share of the rows with the highest scores."
    chance = straight((0, 0), (1, 1))
    return _shares("gain", with_start, 0, chance, (x, y), title, described, theme)


def lift(
    found: Mapping[str, Sequence[Bounds]], *, title: str = "Lift", theme: str = "light"
) -> Spec:
    """The rate of positives in the highest i/k of the scores over that of all rows, by series."""
    x = quantity("x", "share of the rows, highest scores first", scale={"domain": [0, 1]})
    y = quantity("y", "rate of positives over that of all rows", scale={"zero": True})
    described = "Rate of positives in the rows with the highest scores over that of all rows."
    return _shares("lift", found, 1, level("y", 1), (x, y), title, described, theme)


def _shares(
    kind: str,
    found: Mapping[str, Sequence[Bounds]],
    first: int,
    chance: Spec,
    axes: tuple[Spec, Spec],
    title: str,
    described: str,
    theme: str,
) -> Spec:
    x, y = axes
    rows: list[dict[str, object]] = []
    for name, bounds in found.items():
        parts = len(bounds) - 1 + first
        for i, (value, low, high) in enumerate(bounds):
            if math.isfinite(value) and math.isfinite(low) and math.isfinite(high):
                place = {"series": name, "x": (i + first) / parts}
                rows.append({**place, "y": value, "low": low, "high": high})
    names = list(dict.fromkeys(str(row["series"]) for row in rows)) or [""]
    seen = tooltip(("series", "series"), ("x", str(x["title"])), ("y", str(y["title"])))
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.75, "point": {"size": 20}},
        "encoding": {"x": x, "y": y, **by_series(names, "dash"), "tooltip": seen[names == [""] :]},
    }
    band: Spec = {
        "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35},
        "encoding": {
            "x": x,
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            **by_series(names),
        },
    }
    return figure(
        kind,
        title=title,
        description=f"{described} Thick lines are certain to hold the exact value.",
        rows=rows,
        layers=[chance, band, line],
        series=names,
        reason="" if rows else "there are no positives",
        theme=theme,
        size=(360, 320),
    )
