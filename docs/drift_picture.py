"""Draw `docs/drift.svg`, the picture of docs/how_to/drift.md: `python docs/drift_picture.py`.

Thirty days of scores against a reference. From day 15 on they move, a little more each day. Above:
KS with its certain bounds, and the band above which drift is certain. Below: PSI, coloured
by its p-value, and the conventional limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from streammetrics import Quantiles, drift
from streammetrics.present import Spec, svg, theme
from streammetrics.results import Bounded

DAYS: Final = 30
FIRST: Final = 15  # day on which scores begin to move
ROWS: Final = 4_000  # of a day
REFERENCE: Final = 20_000
WIDTH: Final = 620
BLUE: Final = "#30638e"
RED: Final = "#a3260c"
GREY: Final = "#555555"


def rows() -> list[Mapping[str, object]]:
    """Each day against the reference."""
    random = np.random.default_rng(5)
    reference = Quantiles(range="probability")
    reference.update(random.beta(2, 6, REFERENCE))
    points: list[Mapping[str, object]] = []
    for day in range(1, DAYS + 1):
        scores = Quantiles(range="probability")
        scores.update(random.beta(2 + 0.04 * max(0, day - FIRST + 1), 6, ROWS))
        result = drift(reference, scores)
        ks = result.ks
        assert isinstance(ks, Bounded)
        certain = "certain" if result.certain() else "not certain"
        points.append(
            {"day": day, "ks": ks.value, "low": ks.low, "high": ks.high, "band": result.ks_band,
             "psi": result.psi, "drift": certain,
             "chance": "p < 0.001" if result.psi_pvalue < 0.001 else "p of 0.001 or more"}
        )  # fmt: skip
    return points


def upper(x: Spec) -> Spec:
    """KS and the band."""
    y = {"type": "quantitative", "axis": {"title": "KS", "grid": False}}
    colour = {
        "field": "drift", "type": "nominal",
        "scale": {"domain": ["not certain", "certain"], "range": [BLUE, RED]},
        "legend": {"title": "drift", "orient": "top-left", "columnPadding": 24},
    }  # fmt: skip
    band = [{"at": 1, "text": "the sum of both bands"}]
    return {
        "width": WIDTH,
        "height": 170,
        "layer": [
            {"mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
             "encoding": {"x": x, "y": {"field": "band", **y}}},
            {"mark": {"type": "rule", "strokeWidth": 2},
             "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"},
                          "color": colour}},
            {"mark": {"type": "point", "filled": True, "size": 40},
             "encoding": {"x": x, "y": {"field": "ks", **y}, "color": colour}},
            {"data": {"values": band},
             "mark": {"type": "text", "align": "left", "baseline": "bottom", "color": GREY,
                      "dy": -3},
             "encoding": {"x": {**x, "field": "at"}, "y": {"datum": rows()[-1]["band"], **y},
                          "text": {"field": "text"}}},
        ],
    }  # fmt: skip


def lower(x: Spec) -> Spec:
    """PSI and its limits."""
    y = {"type": "quantitative", "axis": {"title": "PSI", "grid": False}}
    colour = {
        "field": "chance", "type": "nominal",
        "scale": {"domain": ["p of 0.001 or more", "p < 0.001"], "range": [BLUE, RED]},
        "legend": {"title": "chi-square", "orient": "top-left", "columnPadding": 24},
    }  # fmt: skip
    limits = [{"limit": limit, "text": str(limit), "at": 1} for limit in (0.1, 0.25)]
    return {
        "width": WIDTH,
        "height": 170,
        "layer": [
            {"data": {"values": limits},
             "mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY},
             "encoding": {"y": {"field": "limit", **y}}},
            {"data": {"values": limits},
             "mark": {"type": "text", "align": "left", "baseline": "bottom", "color": GREY,
                      "dy": -2},
             "encoding": {"x": {**x, "field": "at"}, "y": {"field": "limit", **y},
                          "text": {"field": "text"}}},
            {"mark": {"type": "point", "filled": True, "size": 40},
             "encoding": {"x": x, "y": {"field": "psi", **y}, "color": colour}},
        ],
    }  # fmt: skip


def main() -> None:
    """Draw and write."""
    x: Spec = {
        "field": "day", "type": "quantitative",
        "scale": {"domain": [0, DAYS + 1], "nice": False},
        "axis": {"title": "day; scores move from day 15 on", "grid": False, "tickMinStep": 1},
    }  # fmt: skip
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": theme("light"),
        "background": "white",
        "data": {"values": rows()},
        "vconcat": [upper(x), lower(x)],
        "spacing": 30,
        "resolve": {"scale": {"color": "independent"}},
    }
    Path(__file__).with_name("drift.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
