"""Differences from a baseline: those of each query, and their mean with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.present.spec import (
    NAMES,
    each,
    figure,
    level,
    number,
    quantity,
    series_colors,
    some,
    tooltip,
)
from streammetrics.present.texts import ci_title
from streammetrics.present.themes import Spec

MOST: Final = 60  # lines of a figure: measures times runs
_QUERIES, _MEAN = "queries", "mean"  # the two parts of a line
_TICKS: Final = 0.4  # the opacity of a tick, so that equal differences are darker


@dataclass(frozen=True, eq=False)
class Differences:
    """One measure of a run less that of the baseline: of each query [n] by name, and the mean with
    its interval, which is nan or infinite if there is none."""

    measure: str
    run: str
    by_query: NDArray[np.float64]
    queries: Sequence[str]
    mean: float
    lower: float
    upper: float


def differences(
    entries: Sequence[Differences],
    *,
    baseline: str,
    level_of_intervals: float,
    title: str = "",
    theme: str = "light",
    kind: str = "differences",
) -> Spec:
    """A line for each measure and run: a tick for each query, a point for the mean, and a rule for
    its interval. Of many queries only some ticks are drawn, evenly by rank; the subtitle says so.

    >>> one = Differences("MRR", "ours", np.array([0.5, 0.0]), ["a", "b"], 0.25, -1.0, 1.5)
    >>> spec = differences([one], baseline="bm25", level_of_intervals=0.95)
    >>> [row.get("query") for row in spec["data"]["values"]]
    ['b', 'a', None]
    """
    defined = [entry for entry in entries if math.isfinite(entry.mean)]
    drawn = defined[:MOST]
    runs = list(dict.fromkeys(entry.run for entry in drawn)) or [""]
    measures = list(dict.fromkeys(entry.measure for entry in drawn))
    is_single = len(measures) == 1
    field, lines = ("series", runs) if is_single else ("name", measures)
    y: Spec = {"field": field, "type": "nominal", "title": None, "sort": None, "axis": NAMES}
    y["scale"] = {"domain": lines}
    # The ticks of a run are above its mean.
    prefixes = [""] if is_single else [str(i) for i in range(len(runs))]
    places = [f"{i}{part}" for i in prefixes for part in (_QUERIES, _MEAN)]
    place: Spec = {"y": y}
    place["yOffset"] = {"field": "place", "sort": None, "scale": {"domain": places}}
    several = not is_single and len(runs) > 1
    colours = series_colors(runs, strokes=False, legend=several)
    points = series_colors(runs, "shape", strokes=False, legend=several)
    most = each(len(drawn))
    run_prefixes = dict.fromkeys(runs, "") if is_single else dict(zip(runs, prefixes, strict=True))
    rows = [row for entry in drawn for row in _rows(entry, run_prefixes[entry.run], most)]
    axis = quantity("difference", f"difference from {baseline}", scale={"zero": True})
    names = (("name", "measure"), ("series", "run"))
    of_query = [{"field": "query", "type": "nominal", "title": "query"}]
    of_mean = (("mean", "mean difference"), ("lower", "lower"), ("upper", "upper"))
    layers: list[Spec] = [
        level("x", 0),
        {
            "mark": {"type": "tick", "thickness": 1.5, "size": 12},
            "encoding": {
                "x": axis,
                "opacity": {"value": _TICKS},
                **place,
                **colours,
                "tooltip": [*tooltip(*names), *of_query, *tooltip(("difference", "difference"))],
            },
            "transform": [{"filter": {"field": "difference", "valid": True}}],
        },
    ]
    if some(rows, "lower"):
        ends = {"x": {**axis, "field": "lower"}, "x2": {"field": "upper"}}
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 2.5},
                "encoding": {**ends, **place, **colours},
                "transform": [{"filter": {"field": "lower", "valid": True}}],
            }
        )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {
                "x": {**axis, "field": "mean"},
                "opacity": {"value": 1},
                **place,
                **points,
                "tooltip": tooltip(*names, *of_mean),
            },
            "transform": [{"filter": {"field": "mean", "valid": True}}],
        }
    )
    fewer = any(len(entry.by_query) > most for entry in drawn)
    left = len(defined) - len(drawn)
    notes = (
        f"ticks: {'queries, some of them' if fewer else 'queries'}",
        f"points: mean{f', lines: its {ci_title(level_of_intervals)}' * some(rows, 'lower')}",
        f"{left} more are not drawn" * (left > 0),
    )
    subject = f"{measures[0]}" if is_single and measures else "Measures"
    who = f"{runs[0]} less {baseline}" if len(runs) == 1 else f"differences from {baseline}"
    return figure(
        kind,
        title=title or f"{subject}: {who}",
        description=f"Differences from {baseline} of each query, and their means with intervals.",
        rows=rows,
        layers=layers,
        series=[*lines, *runs],
        subtitle="; ".join(filter(None, notes)),
        reason="" if drawn else "no difference is defined",
        theme=theme,
        size=(440, max(60, 30 * len(lines) * (len(runs) if several else 1) + 24)),
    )


def _rows(entry: Differences, prefix: str, most: int) -> list[dict[str, object]]:
    """The rows of the ticks in ascending order, at most `most`, and that of the mean. prefix: the
    place of the run within a line."""
    names: dict[str, object] = {"name": entry.measure, "series": entry.run}
    order = np.argsort(entry.by_query, kind="stable")
    if len(order) > most:  # with the least and the greatest difference
        order = order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)]
    ticks = {**names, "place": f"{prefix}{_QUERIES}"}
    rows = [
        {**ticks, "query": entry.queries[i], "difference": number(entry.by_query[i])}
        for i in order.tolist()
    ]
    mean = {**names, "place": f"{prefix}{_MEAN}", "mean": number(entry.mean)}
    if math.isfinite(entry.lower) and math.isfinite(entry.upper):
        mean |= {"lower": number(entry.lower), "upper": number(entry.upper)}
    return [*rows, mean]
