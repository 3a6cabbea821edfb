"""The reliability diagram: what share of the rows is positive, of those with about that score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streammetrics.present.spec import by_series, figure, number, quantity, some, straight, tooltip
from streammetrics.present.theme import Spec


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows of a bin. lower, upper: the interval of the positive share; nan where there is
    none."""

    mean_score: float
    positive_share: float
    units: int
    lower: float = math.nan
    upper: float = math.nan


def reliability(
    found: Mapping[str, Sequence[Bin]], *, title: str = "Reliability", theme: str = "light"
) -> Spec:
    """The share of positives over the mean score of each bin that has rows, by series.

    Of a calibrated model the points lie on the thin line.

    >>> reliability({"": [Bin(0.25, 0.5, 8)]})["data"]["values"][0]["y"]
    0.5
    """
    rows: list[dict[str, object]] = []
    for name, bins in found.items():
        for one in bins:
            if one.units and math.isfinite(one.mean_score) and math.isfinite(one.positive_share):
                row = {"series": name, "x": one.mean_score, "y": one.positive_share}
                row["units"] = one.units
                if math.isfinite(one.lower) and math.isfinite(one.upper):
                    row |= {"lower": number(one.lower), "upper": number(one.upper)}
                rows.append(row)
    names = list(dict.fromkeys(str(row["series"]) for row in rows)) or [""]
    far, top, cut = _bounds([one for bins in found.values() for one in bins])
    x = quantity("x", "mean score of the bin", scale={"domain": [0, far]})
    said = "share of positives (the axis is cut)" if cut else "share of positives"
    y = quantity("y", said, scale={"domain": [0, top]})
    fields = (
        *(("series", "series"), ("x", "mean score"), ("y", "share of positives")),
        *(("units", "rows (units of weight)"), ("lower", "lower"), ("upper", "upper")),
    )
    corner = min(far, top)
    layers = [straight((0, 0), (corner, corner))]
    if some(rows, "lower"):
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.5, "clip": True},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "lower"},
                    "y2": {"field": "upper"},
                    **by_series(names),
                },
                "transform": [{"filter": {"field": "lower", "valid": True}}],
            }
        )
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.5, "point": {"size": 45}, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            **by_series(names, "dash"),
            "tooltip": tooltip(*fields[names == [""] :]),
        },
    }
    return figure(
        "reliability",
        title=title,
        description="Share of positives over mean score, by bin; calibrated scores lie on the "
        "diagonal.",
        rows=rows,
        layers=[*layers, line],
        series=names,
        theme=theme,
        size=(360, 320),
    )


def _bounds(bins: Sequence[Bin]) -> tuple[float, float, bool]:
    """Where the axes of scores and of shares end, and whether a share is past that: bins with less
    than a hundredth of the rows do not decide it."""
    seen = [one for one in bins if one.units and math.isfinite(one.mean_score)]
    rows = sum(one.units for one in seen)
    far = max((one.mean_score for one in seen), default=0.0)
    heavy = [one.positive_share for one in seen if 100 * one.units >= rows]
    top = max([far, *(share for share in heavy if math.isfinite(share))])
    far, top = (min(1.0, 1.05 * end) if end > 0 else 1.0 for end in (far, top))
    return far, top, any(one.positive_share > top for one in seen)
