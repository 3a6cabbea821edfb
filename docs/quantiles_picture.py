"""Draw `docs/quantiles.svg`, of docs/how_to/quantiles.md: `python docs/quantiles_picture.py`.

Waiting times of 2,000 requests, made up: the share of rows up to each time with its band, and the
three intervals of some quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from streammetrics import ConfidenceSequence, ExactQuantiles, Interval
from streammetrics.experiments import Anytime, Horizon
from streammetrics.present import Spec, svg, theme

ROWS: Final = 2_000
MEDIAN: Final = 120.0  # ms
SPREAD: Final = 0.7
SHOWN: Final = (20.0, 900.0)  # ms
POINTS: Final = 160
BAND: Final = "of all quantiles, at all looks (band)"
ALWAYS: Final = "of this quantile, at all looks"
ONCE: Final = "of this quantile, at one look"
COLOURS: Final = {BAND: "#9db4c0", ALWAYS: "#e08d3c", ONCE: "#a3260c"}
NAMES: Final = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
Data: TypeAlias = list[Mapping[str, object]]


def counted() -> ExactQuantiles:
    """The waiting times."""
    metric = ExactQuantiles()
    metric.update(MEDIAN * np.random.default_rng(7).lognormal(0, SPREAD, ROWS))
    return metric


def shares() -> Data:
    """The share of rows up to each time, its band, and the truth."""
    result = counted().compute()
    times = [SHOWN[0] * (SHOWN[1] / SHOWN[0]) ** (i / POINTS) for i in range(POINTS + 1)]
    points: Data = []
    for time in times:
        band = result.interval(f"share_up_to({time!r})", method="band")
        true = 0.5 * (1 + math.erf(math.log(time / MEDIAN) / (SPREAD * math.sqrt(2))))
        share = {"share": band.estimate, "low": band.lower, "high": band.upper, "true": true}
        points.append({"time": time, **share})
    return points


def intervals() -> Data:
    """The three intervals of each quantile, the widest one first; cut at the end of the picture."""
    metric = counted()
    result, always = metric.compute(), ConfidenceSequence(horizon=Horizon(units=2 * ROWS))
    rows: Data = []
    for name, p in NAMES.items():
        pairs: tuple[tuple[str, Interval | Anytime], ...] = (
            (BAND, result.interval(name, method="band")),
            (ALWAYS, always.of(metric, name)),
            (ONCE, result.interval(name)),
        )
        for kind, interval in pairs:
            ends = {"low": max(interval.lower, SHOWN[0]), "high": min(interval.upper, SHOWN[1])}
            rows.append({"name": name, "p": p, "kind": kind, "value": result.quantile(p), **ends})
    return rows


def picture() -> Spec:
    """The picture."""
    time = {
        "field": "time", "type": "quantitative",
        "scale": {"type": "log", "domain": list(SHOWN), "nice": False},
        "axis": {"title": "waiting time, ms", "grid": False,
                 "values": [20, 50, 100, 200, 500]},
    }  # fmt: skip
    share = {
        "field": "share", "type": "quantitative",
        "scale": {"domain": [0, 1]}, "axis": {"title": "share of rows up to it"},
    }  # fmt: skip
    kinds = {
        "field": "kind", "type": "nominal",
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
        "legend": {"title": "95 % interval", "orient": "bottom", "columns": 1, "labelLimit": 400},
    }  # fmt: skip
    rows = {"field": "name", "type": "nominal", "sort": list(NAMES), "axis": {"title": None}}
    low, high = {**time, "field": "low"}, {"field": "high"}
    bars = [
        {"transform": [{"filter": f"datum.kind === '{kind}'"}],
         "mark": {"type": "bar", "height": height},
         "encoding": {"x": low, "x2": high, "y": rows, "color": kinds}}
        for kind, height in ((BAND, 18), (ALWAYS, 11), (ONCE, 4))
    ]  # fmt: skip
    return {
        "vconcat": [
            {
                "width": 560,
                "height": 240,
                "data": {"values": shares()},
                "layer": [
                    {"mark": {"type": "area", "color": COLOURS[BAND], "opacity": 0.6},
                     "encoding": {"x": time, "y": {**share, "field": "low"},
                                  "y2": {"field": "high"}}},
                    {"mark": {"type": "line", "color": "#222222", "strokeDash": [2, 3],
                              "strokeWidth": 1},
                     "encoding": {"x": time, "y": {**share, "field": "true"}}},
                    {"mark": {"type": "line", "color": "#1f5f8b"},
                     "encoding": {"x": time, "y": share}},
                ],
            },
            {
                "width": 560,
                "height": 120,
                "data": {"values": intervals()},
                "layer": [
                    *bars,
                    {"mark": {"type": "tick", "color": "#222222", "thickness": 2, "height": 22},
                     "encoding": {"x": {**time, "field": "value"}, "y": rows}},
                ],
            },
        ],
    }  # fmt: skip


def main() -> None:
    """Draw the picture."""
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": theme("light"),
        "background": "white",
        "spacing": 30,
        **picture(),
    }
    Path(__file__).with_name("quantiles.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
