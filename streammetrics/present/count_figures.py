"""Figures of counts: the distribution of scores, their reliability, and the confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import sorted_distinct
from streammetrics.present.spec import (
    NAMES,
    faded,
    figure,
    layer_between,
    legend_columns,
    not_thin,
    number,
    quantity,
    series_colors,
    some,
    straight,
    tooltip,
)
from streammetrics.present.themes import DASHES, Spec

BINS: Final = 40
_WIDE: Final = 50.0  # ratio of the greatest to the middle score above which the axis is logarithmic
_HALF: Final = 2.0**1022
CLASSES: Final = ("positives", "negatives")
MOST_CLASSES: Final = 15  # of a confusion matrix
REST: Final = "(rest)"
_THIN: Final = 0.01  # of the rows, below which a bin is faded
_LETTER: Final = 6.5  # pixels
_LABEL: Final = 160  # the most pixels of a true class, with its series before it
_CELL: Final = 44  # the least width of a cell, in pixels


@dataclass(frozen=True, eq=False)
class Scores:
    """Counts by score. scores: [k], ascending; counts: int64 [2, k], negatives and positives at
    each score. reason: why they are unknown, or "". classes: other names of the two rows, the
    second one first."""

    scores: NDArray[np.floating]
    counts: NDArray[np.int64]
    reason: str = ""
    classes: tuple[str, str] = CLASSES


def distribution(
    samples: Mapping[str, Scores],
    *,
    title: str = "Scores",
    theme: str = "light",
    kind: str = "scores",
    x: str = "score",
) -> Spec:
    """The share of each class in each bin, as steps.

    Bins are about equally wide; each begins at an observed score, so that no bucket is divided.

    >>> spec = distribution({"": Scores(np.array([0.25, 0.5]), np.array([[1, 1], [0, 2]]))})
    >>> [row["y"] for row in spec["data"]["values"] if row["class"] == "negatives"]
    [0.5, 0.5, 0.5]
    """
    drawn = {
        name: sample for name, sample in samples.items() if not sample.reason and len(sample.scores)
    }
    log = bool(drawn) and all(map(_skewed, drawn.values()))
    rows = [row for name, sample in drawn.items() for row in _binned(name, sample, log)]
    names = list(drawn) or [""]
    several = names != [""]
    classes = next((sample.classes for sample in samples.values()), CLASSES)
    horizontal = quantity("x", x, scale={"type": "log"} if log else {"zero": False})
    axis_title = (
        "share of the class in a bin" if classes == CLASSES else "share of the rows in a bin"
    )
    y = quantity("y", axis_title, axis={"format": "~%"})
    legend = {"title": None, "columns": legend_columns(names)}
    below = {"title": None, "orient": "bottom"}  # there is no room beside the other legend
    of_class: Spec = {"field": "class", "type": "nominal", "sort": None, "legend": below}
    of_class["scale"] = {"domain": list(classes), "range": list(DASHES[:2])}
    colour: Spec = {"field": "series", "type": "nominal", "sort": None, "legend": legend}
    colour["scale"] = {"domain": names}
    if not several:
        colour = {**of_class, "scale": {"domain": list(classes)}}
    tooltips = tooltip(("series", "series"), ("class", "class"), ("x", f"from {x}"), ("y", "share"))
    line: Spec = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
        "encoding": {
            "x": horizontal,
            "y": y,
            "color": colour,
            "strokeDash": of_class,
            "detail": {"field": "series"},
            "tooltip": tooltips[not several :],
        },
    }
    reason = next((sample.reason for sample in samples.values() if sample.reason), "")
    if len({row["x"] for row in rows}) == 1:
        rows, reason = [], f"all {x}s are {rows[0]['x']:.4g}"
    return figure(
        kind,
        title=title,
        description=f"Share of the {classes[0]} and of the {classes[1]} in each bin of {x}s.",
        rows=rows,
        layers=[line],
        series=names,
        reason="" if rows else reason,
        theme=theme,
    )


def _skewed(sample: Scores) -> bool:
    """Whether a log axis fits: all scores are positive, the middle one far below the greatest."""
    if not sample.scores[0] > 0 or not np.isfinite(sample.scores[-1]):
        return False
    total = np.cumsum(sample.counts.sum(axis=0))
    middle = sample.scores[int(np.searchsorted(total, total[-1] / 2))]
    return bool(middle < sample.scores[-1] / _WIDE)


def _binned(name: str, sample: Scores, log: bool) -> list[dict[str, object]]:
    finite = np.isfinite(sample.scores)
    scores, counts = sample.scores[finite].astype(np.float64), sample.counts[:, finite]
    if not len(scores):
        return []
    space = np.geomspace if log else np.linspace
    scale = 0.5 if np.abs(scores[[0, -1]]).max() > _HALF else 1.0  # so that no difference overflows
    goals = space(scores[0] * scale, scores[-1] * scale, BINS + 1)[:-1] / scale
    starts = sorted_distinct(np.searchsorted(scores, goals, "left"))
    starts = starts[starts < len(scores)]
    rows: list[dict[str, object]] = []
    for label, of_class in zip(reversed(sample.classes), counts, strict=True):
        all_ = int(of_class.sum())
        if not all_:
            continue
        shares = np.add.reduceat(of_class, starts) / all_
        for x, y in zip(scores[starts].tolist(), shares.tolist(), strict=True):
            rows.append({"series": name, "class": label, "x": number(x), "y": y})
        rows.append({**rows[-1], "x": float(scores[-1])})  # the end of the last step
    return rows


@dataclass(frozen=True, slots=True)
class Bin:
    """The rows of a bin. lower, upper: the interval of the positive share; nan if there is none."""

    mean_score: float
    positive_share: float
    units: int
    lower: float = math.nan
    upper: float = math.nan


def reliability(
    series: Mapping[str, Sequence[Bin]], *, title: str = "Reliability", theme: str = "light"
) -> Spec:
    """The share of positives over the mean score of each bin that has rows, by series; bins with
    less than 1 % of the rows are faded.

    The points of a calibrated model lie on the thin line.

    >>> reliability({"": [Bin(0.25, 0.5, 8)]})["data"]["values"][0]["y"]
    0.5
    """
    rows: list[dict[str, object]] = []
    for name, bins in series.items():
        least = _THIN * sum(bin_.units for bin_ in bins)
        for bin_ in bins:
            if bin_.units and math.isfinite(bin_.mean_score) and math.isfinite(bin_.positive_share):
                row = {"series": name, "x": bin_.mean_score, "y": bin_.positive_share}
                row |= {"units": bin_.units, "thin": bin_.units < least}
                if math.isfinite(bin_.lower) and math.isfinite(bin_.upper):
                    row |= {"lower": number(bin_.lower), "upper": number(bin_.upper)}
                rows.append(row)
    names = list(dict.fromkeys(str(row["series"]) for row in rows)) or [""]
    far, top, cut = _axes([bin_ for bins in series.values() for bin_ in bins])
    x = quantity("x", "mean score of the bin", scale={"domain": [0, far]})
    axis_title = "share of positives (the axis is cut)" if cut else "share of positives"
    y = quantity("y", axis_title, scale={"domain": [0, top]})
    fields = (
        *(("series", "series"), ("x", "mean score"), ("y", "share of positives")),
        *(("units", "rows (units of weight)"), ("lower", "lower"), ("upper", "upper")),
    )
    corner = min(far, top)
    layers = [straight((0, 0), (corner, corner))]
    if some(rows, "lower"):
        mark: Spec = {"type": "rule", "strokeWidth": 1, "clip": True}
        rules = layer_between(mark, x, y, ("lower", "upper"), names)
        cast("Spec", rules["encoding"])["opacity"] = faded(0.5)
        layers.append(rules)
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.5, "clip": True},
        "encoding": {"x": x, "y": {**y, "field": "line"}, **series_colors(names, "dash")},
        "transform": [not_thin("y")],
    }
    points: Spec = {
        "mark": {"type": "point", "filled": True, "size": 45, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            **series_colors(names),
            "opacity": faded(1),
            "tooltip": tooltip(*fields[names == [""] :]),
        },
    }
    return figure(
        "reliability",
        title=title,
        description="Share of positives over mean score, by bin; calibrated scores lie on the "
        "diagonal.",
        rows=rows,
        layers=[*layers, line, points],
        series=names,
        theme=theme,
        size=(360, 320),
    )


def _axes(bins: Sequence[Bin]) -> tuple[float, float, bool]:
    """The ends of the score and share axes, and whether a share lies beyond its axis: bins with
    less than 1 % of the rows do not affect the share axis."""
    occupied = [bin_ for bin_ in bins if bin_.units and math.isfinite(bin_.mean_score)]
    rows = sum(bin_.units for bin_ in occupied)
    far = max((bin_.mean_score for bin_ in occupied), default=0.0)
    heavy = [bin_.positive_share for bin_ in occupied if 100 * bin_.units >= rows]
    top = max([far, *(share for share in heavy if math.isfinite(share))])
    far, top = (min(1.0, 1.05 * end) if end > 0 else 1.0 for end in (far, top))
    return far, top, any(bin_.positive_share > top for bin_ in occupied)


def confusion(
    matrices: Mapping[str, NDArray[np.int64]],
    *,
    title: str = "Confusion matrix",
    theme: str = "light",
) -> Spec:
    """Counts [truth, prediction] of each series, coloured by their share of the class.

    With more than 15 classes the rarest are merged into one.

    >>> spec = confusion({"": np.array([[3, 1], [0, 2]])})
    >>> spec["data"]["values"][1]
    {'series': '', 'truth': '0', 'prediction': '1', 'count': 1, 'share': 0.25}
    """
    whole = {name: matrix for name, matrix in matrices.items() if matrix.sum()}
    rows: list[dict[str, object]] = []
    lines: list[str] = []
    if whole:
        support = sum(matrix.sum(axis=1) for matrix in whole.values())
        names, chosen = _chosen(np.asarray(support))
    for series, matrix in whole.items():
        table = _merged(matrix, chosen)
        for i, truth in enumerate(names):
            line = f"{series}: {truth}" if series else truth
            lines.append(line)
            total = int(table[i].sum())
            for j, prediction in enumerate(names):
                count = int(table[i, j])
                row = {"series": series, "truth": line, "prediction": prediction}
                rows.append({**row, "count": count, "share": count / total if total else 0.0})
    columns = list(dict.fromkeys(str(row["prediction"]) for row in rows))
    wide = max([_CELL, *(7 * len(f"{row['count']:,}") + 10 for row in rows)])
    x: Spec = {"field": "prediction", "type": "nominal", "sort": None, "title": "predicted"}
    y: Spec = {"field": "truth", "type": "nominal", "sort": None, "title": "truth"}
    label = max([0, *map(len, lines)]) * _LETTER
    y["axis"] = NAMES
    x |= {"scale": {"domain": columns}, "axis": {"labelAngle": 0}}
    y["scale"] = {"domain": lines}
    shade = quantity("share", "share of the class", scale={"domain": [0, 1]})
    shade["legend"] = {"format": "~%", "gradientLength": 160}
    tooltips = tooltip(("truth", "truth"), ("prediction", "predicted"), ("count", "rows"))
    tooltips += tooltip(("share", "share of the class"))
    layers: list[Spec] = [
        {
            "mark": {"type": "rect"},
            "encoding": {"x": x, "y": y, "color": shade, "tooltip": tooltips},
        },
        {
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {"x": x, "y": y, "text": {"field": "count", "format": ",d"}},
        },
    ]
    return figure(
        "confusion",
        title=title,
        description="Rows by true and predicted class.",
        rows=rows,
        layers=layers,
        series=lines + columns,
        theme=theme,
        size=(max(220, wide * len(columns)) + int(min(label, _LABEL)), max(120, 32 * len(lines))),
    )


def _chosen(support: NDArray[np.int64]) -> tuple[list[str], list[int] | None]:
    """The names of rows and columns, and the classes that are kept (None: all)."""
    if len(support) <= MOST_CLASSES:
        return [str(i) for i in range(len(support))], None
    order = np.argsort(-support, kind="stable")[: MOST_CLASSES - 1]
    classes = sorted(order.tolist())
    return [*map(str, classes), REST], classes


def _merged(matrix: NDArray[np.int64], chosen: list[int] | None) -> NDArray[np.int64]:
    if chosen is None:
        return matrix
    place = np.full(len(matrix), len(chosen))
    place[chosen] = np.arange(len(chosen))
    table = np.zeros((len(chosen) + 1, len(chosen) + 1), np.int64)
    truth, predicted = np.meshgrid(place, place, indexing="ij")
    np.add.at(table, (truth, predicted), matrix)
    return table
