"""ROC, precision-recall, gain, lift and uplift, each with a band that certainly holds the exact
curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.rows import sorted_distinct
from streammetrics.kernels.curves.steps import Steps
from streammetrics.kernels.curves.uplift import ArmSteps, heights
from streammetrics.present.spec import (
    Row,
    each,
    figure,
    layer_between,
    level,
    number,
    quantity,
    series_colors,
    straight,
    tooltip,
)
from streammetrics.present.themes import Spec

Floats = NDArray[np.float64]
Bounds = tuple[float, float, float]  # a value and its certain bounds
C = TypeVar("C")

PARTS: Final = 20  # equal parts of the rows, for gain and lift
_ROUNDED: Final = 2.0**-50  # exceeds a few roundings of counts and shares
_ONE_CLASS: Final = "a class has no rows"
_NO_POSITIVES: Final = "there are no positives"
_ONE_ARM: Final = "an arm has no rows"
_SHARE: Final = "share of the rows, highest scores first"


@dataclass(frozen=True, eq=False)
class Curve:
    """The data of the curves of two classes.

    steps: counts at each threshold. thresholds: [k + 1], those of the steps. exact: each step is
    one score; with buckets the curve may be anywhere in the box of a step. reason: why the curve
    is unknown, or "".
    """

    steps: Steps
    thresholds: NDArray[np.floating]
    exact: bool
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Effects:
    """The data of the uplift curve, as in `Curve`."""

    steps: ArmSteps
    thresholds: NDArray[np.floating]
    exact: bool
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Points [k] of a curve, and the bounds [k] of its band from each point to the next.

    The band holds the exact curve, including the omitted points; None if the curve is exact and no
    point was omitted.
    """

    x: Floats
    y: Floats
    thresholds: Floats
    band: tuple[Floats, Floats] | None


def kept(position: Floats, most: int) -> NDArray[np.intp]:
    """At most `most` of the indices [k] of a curve's points, with the first and the last.

    position: [k], ascending: the distance of each point along the curve. Between two adjacent kept
    points either none is omitted, or the distance is less than 2 / most of the whole length.

    >>> kept(np.linspace(0.0, 1.0, 101), 6).tolist()
    [0, 50, 51, 100]
    >>> kept(np.array([0.0, 0.5, 1.0]), 6).tolist()
    [0, 1, 2]
    """
    count = len(position)
    if count <= most:
        return np.arange(count)
    steps = max(1, (most - 2) // 2)
    goals = np.linspace(position[0], position[-1], steps + 1)[1:-1]
    after = np.searchsorted(position, goals, "right")
    ends = np.array([0, count - 1])
    indices = sorted_distinct(np.concatenate([ends, after - 1, after]))
    return indices[(indices >= 0) & (indices < count)]


def roc_points(curve: Curve, most: int) -> Drawn:
    """The ROC curve, thinned to `most` points; both classes must have rows."""
    steps = curve.steps
    fpr = steps.fp.astype(np.float64) / steps.negatives
    tpr = steps.tp.astype(np.float64) / steps.positives
    indices = kept(fpr + tpr, most)
    x, y = fpr[indices], tpr[indices]
    band = None
    if not curve.exact or len(indices) < len(fpr):
        band = y[:-1], y[1:]
    return _drawn(x, y, curve.thresholds[indices], band)


def pr_points(curve: Curve, most: int) -> Drawn:
    """The precision-recall curve, thinned to `most` points, from the highest threshold down."""
    steps = curve.steps
    tp, fp = steps.tp.astype(np.float64), steps.fp.astype(np.float64)
    recall = tp / steps.positives
    precision = np.ones(len(tp))
    np.divide(tp, tp + fp, out=precision, where=tp + fp > 0)
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(precision)))])
    indices = kept(recall + along / max(along[-1], 1.0), most)
    x, y = recall[indices], precision[indices]
    band = None
    if not curve.exact or len(indices) < len(tp):
        least, most_tp = tp[indices][:-1], tp[indices][1:]
        fewest, most_fp = fp[indices][:-1], fp[indices][1:]
        low, high = np.zeros(len(least)), np.ones(len(least))
        np.divide(least, least + most_fp, out=low, where=least > 0)
        # With no predicted positives, precision is 1 by convention.
        np.divide(most_tp, most_tp + fewest, out=high, where=least + fewest > 0)
        band = low, high
    return _drawn(x, y, curve.thresholds[indices], band)


def uplift_points(effects: Effects, most: int) -> Drawn:
    """The uplift curve, thinned to `most` points; both arms must have rows."""
    steps = effects.steps
    rows, uplift = steps.rows.astype(np.float64), heights(steps)
    along = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(uplift)))])
    indices = kept(rows / rows[-1] + along / max(along[-1], 1.0), most)
    x, y = rows[indices] / rows[-1], uplift[indices]
    band = None
    if not effects.exact or len(indices) < len(rows):
        # Least with all successes of the control first, greatest with those of the treated first.
        y_c, y_t = (
            np.diff(successes[indices].astype(np.float64)) for successes in (steps.y_c, steps.y_t)
        )
        low, high = y[:-1] - y_c / steps.control, y[:-1] + y_t / steps.treated
        low, high = (low - _ROUNDED).clip(-1.0, 1.0), (high + _ROUNDED).clip(-1.0, 1.0)
        band = np.append(low, low[-1:]), np.append(high, high[-1:])
    return Drawn(x, y, effects.thresholds[indices].astype(np.float64), band)


def uplift(
    curves: Mapping[str, Effects], *, title: str = "Uplift curve", theme: str = "light"
) -> Spec:
    """Y_t/N_t - Y_c/N_c over the share of rows above a cut, and its chord as a thin line."""
    reasons = {
        name: effects.reason or ("" if effects.steps.both else _ONE_ARM)
        for name, effects in curves.items()
    }
    usable, reason = _with_reason(curves, reasons)
    points = {name: uplift_points(effects, each(len(usable))) for name, effects in usable.items()}
    x = quantity("x", _SHARE, scale={"domain": [0, 1]})
    y = quantity("y", "effect of treating these rows, per row of all", scale={"zero": True})
    chords = [straight((0, 0), (1, float(line.y[-1]))) for line in points.values()]
    described = "Effect of treating the rows with the highest scores, over their share."
    return _curves("uplift", points, chords, (x, y), title, described, reason, theme)


def roc(curves: Mapping[str, Curve], *, title: str = "ROC curve", theme: str = "light") -> Spec:
    """True positive rate over false positive rate, and chance as a thin line.

    curves: by the name of the series; "" for a single one.
    """
    usable, reason = _usable(curves, needs_negatives=True)
    points = {name: roc_points(curve, each(len(usable))) for name, curve in usable.items()}
    x = quantity("x", "false positive rate", scale={"domain": [0, 1]})
    y = quantity("y", "true positive rate", scale={"domain": [0, 1]})
    chance = straight((0, 0), (1, 1))
    described = "True positive rate over false positive rate, by threshold."
    return _curves("roc", points, [chance], (x, y), title, described, reason, theme)


def pr(
    curves: Mapping[str, Curve],
    *,
    title: str = "Precision and recall",
    theme: str = "light",
) -> Spec:
    """Precision over recall. If precision is small, its axis is cut above the largest precision
    past a recall of 2 %, and its title reports it."""
    usable, reason = _usable(curves, needs_negatives=False)
    points = {name: pr_points(curve, each(len(usable))) for name, curve in usable.items()}
    far = [
        float(line.y[line.x >= 0.02].max()) for line in points.values() if (line.x >= 0.02).any()
    ]
    top = float(f"{1.5 * max(far, default=1.0):.1g}")
    cut = top < 0.5
    x = quantity("x", "recall", scale={"domain": [0, 1]})
    axis_title = "precision (the axis is cut)" if cut else "precision"
    y = quantity("y", axis_title, scale={"domain": [0, top if cut else 1]})
    described = "Precision over recall, by threshold."
    return _curves("pr", points, [], (x, y), title, described, reason, theme)


def _usable(curves: Mapping[str, Curve], *, needs_negatives: bool) -> tuple[dict[str, Curve], str]:
    why = _ONE_CLASS if needs_negatives else _NO_POSITIVES
    reasons = {
        name: curve.reason
        or ("" if curve.steps.positives and (curve.steps.negatives or not needs_negatives) else why)
        for name, curve in curves.items()
    }
    return _with_reason(curves, reasons)


def _with_reason(curves: Mapping[str, C], reasons: Mapping[str, str]) -> tuple[dict[str, C], str]:
    """The curves without a reason against them; if there are none, the first reason."""
    usable = {name: curve for name, curve in curves.items() if not reasons[name]}
    texts = (f"{name}: {why}" if name else why for name, why in reasons.items() if why)
    return usable, "" if usable else next(texts, "there is no curve")


def _drawn(
    x: Floats, y: Floats, thresholds: NDArray[np.floating], band: tuple[Floats, Floats] | None
) -> Drawn:
    if band is not None:
        # Divisions were rounded; the bounds must still hold.
        low = np.clip(band[0] * (1 - _ROUNDED), 0.0, 1.0)
        high = np.clip(band[1] * (1 + _ROUNDED), 0.0, 1.0)
        band = np.append(low, low[-1:]), np.append(high, high[-1:])
    return Drawn(x, y, thresholds.astype(np.float64), band)


def _curves(
    kind: str,
    points: Mapping[str, Drawn],
    before: list[Spec],
    axes: tuple[Spec, Spec],
    title: str,
    described: str,
    reason: str,
    theme: str,
) -> Spec:
    x, y = axes
    names = list(points)
    banded = any(drawn.band is not None for drawn in points.values())
    layers = list(before)
    if banded:
        mark: Spec = {"type": "area", "interpolate": "step-after", "opacity": 0.25, "clip": True}
        layers.append(layer_between(mark, x, y, ("low", "high"), names, gaps=False))
        described += " A band is certain to hold the exact curve."
    tooltips = tooltip(("series", "series"), ("threshold", "threshold"), ("x", str(x["title"])))
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.75, "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "order": {"field": "i", "type": "quantitative"},
            **series_colors(names, "dash"),
            "tooltip": [*tooltips[names == [""] :], *tooltip(("y", str(y["title"])))],
        },
    }
    layers.append(line)
    rows = [row for name, drawn in points.items() for row in _rows(name, drawn, banded)]
    return figure(
        kind,
        title=title,
        description=described,
        rows=rows,
        layers=layers,
        series=names,
        reason=reason,
        theme=theme,
        size=(360, 320),
    )


def _rows(name: str, drawn: Drawn, banded: bool) -> list[Row]:
    low, high = drawn.band if drawn.band is not None else (drawn.y, drawn.y)
    columns = zip(
        drawn.x.tolist(), drawn.y.tolist(), drawn.thresholds.tolist(), low.tolist(), high.tolist(),
        strict=True,
    )  # fmt: skip
    rows: list[Row] = []
    for i, (x, y, threshold, bottom, top) in enumerate(columns):
        row: dict[str, object] = {"series": name, "i": i, "x": x, "y": y}
        row["threshold"] = number(threshold)
        if banded:
            row |= {"low": bottom, "high": top}
        rows.append(row)
    return rows


def gain(
    series: Mapping[str, Sequence[Bounds]], *, title: str = "Gain", theme: str = "light"
) -> Spec:
    """The share of the positives among the highest i/k of the scores, i = 1 to k, by series.

    >>> spec = gain({"": [(0.5, 0.5, 0.5), (1.0, 1.0, 1.0)]})
    >>> [row["y"] for row in spec["data"]["values"]]
    [0.0, 0.5, 1.0]
    """
    with_start = {name: [(0.0, 0.0, 0.0), *ends] for name, ends in series.items()}
    x = quantity("x", _SHARE, scale={"domain": [0, 1]})
    y = quantity("y", "share of the positives found", scale={"domain": [0, 1]})
    described = "Share of the positives over the share of the rows with the highest scores."
    chance = straight((0, 0), (1, 1))
    return _shares("gain", with_start, 0, chance, (x, y), title, described, theme)


def lift(
    series: Mapping[str, Sequence[Bounds]], *, title: str = "Lift", theme: str = "light"
) -> Spec:
    """Rate of positives among the highest i/k of the scores, divided by that of all rows."""
    x = quantity("x", _SHARE, scale={"domain": [0, 1]})
    y = quantity("y", "rate of positives over that of all rows", scale={"zero": True})
    described = "Rate of positives in the rows with the highest scores over that of all rows."
    return _shares("lift", series, 1, level("y", 1), (x, y), title, described, theme)


def uplift_parts(
    series: Mapping[str, Sequence[Bounds]], *, title: str = "Uplift by part", theme: str = "light"
) -> Spec:
    """The effect in each of k equal parts of the rows, by series."""
    x = quantity("x", _SHARE, scale={"domain": [0, 1]})
    y = quantity("y", "success rate of the treated less that of the control", scale={"zero": True})
    described = "Effect in equal parts of the rows, by score."
    return _shares("uplift_parts", series, 1, level("y", 0), (x, y), title, described, theme)


def _shares(
    kind: str,
    series_bounds: Mapping[str, Sequence[Bounds]],
    first: int,
    chance: Spec,
    axes: tuple[Spec, Spec],
    title: str,
    described: str,
    theme: str,
) -> Spec:
    x, y = axes
    rows: list[Row] = []
    for name, ends in series_bounds.items():
        parts = len(ends) - 1 + first
        for i, (value, low, high) in enumerate(ends):
            if math.isfinite(value) and math.isfinite(low) and math.isfinite(high):
                place = {"series": name, "x": (i + first) / parts}
                rows.append({**place, "y": value, "low": low, "high": high})
    names = list(dict.fromkeys(str(row["series"]) for row in rows)) or [""]
    tooltips = tooltip(("series", "series"), ("x", str(x["title"])), ("y", str(y["title"])))
    line: Spec = {
        "mark": {"type": "line", "strokeWidth": 1.75, "point": {"size": 20}},
        "encoding": {
            "x": x,
            "y": y,
            **series_colors(names, "dash"),
            "tooltip": tooltips[names == [""] :],
        },
    }
    mark: Spec = {"type": "rule", "strokeWidth": 5, "opacity": 0.35}
    band = layer_between(mark, x, y, ("low", "high"), names, gaps=False)
    return figure(
        kind,
        title=title,
        description=f"{described} Thick lines are certain to hold the exact value.",
        rows=rows,
        layers=[chance, band, line],
        series=names,
        reason="" if rows else "no value is defined",
        theme=theme,
        size=(360, 320),
    )
