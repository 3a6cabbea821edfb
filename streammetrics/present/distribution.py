"""The distribution of scores: of positives and of negatives, in bins whose counts are exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.present.spec import figure, number, quantity, tooltip
from streammetrics.present.theme import DASHES, Spec

BINS: Final = 40
_WIDE: Final = 50.0  # times that the middle score lies under the greatest: then the axis is of logs
CLASSES: Final = ("positives", "negatives")


@dataclass(frozen=True, eq=False)
class Scores:
    """scores: [k], ascending; counts: int64 [2, k], negatives and positives there. reason: why
    they are not known, if so."""

    scores: NDArray[np.floating]
    counts: NDArray[np.int64]
    reason: str = ""


def distribution(
    found: Mapping[str, Scores], *, title: str = "Scores", theme: str = "light"
) -> Spec:
    """The share of each class in each bin, as steps.

    Bins are about equally wide; they begin at scores that occurred, so that no bucket is divided.

    >>> spec = distribution({"": Scores(np.array([0.25, 0.5]), np.array([[1, 1], [0, 2]]))})
    >>> [row["y"] for row in spec["data"]["values"] if row["class"] == "negatives"]
    [0.5, 0.5, 0.5]
    """
    known = {name: one for name, one in found.items() if not one.reason and len(one.scores)}
    log = bool(known) and all(map(_skewed, known.values()))
    rows = [row for name, one in known.items() for row in _rows(name, one, log)]
    names = list(known) or [""]
    several = names != [""]
    x = quantity("x", "score", scale={"type": "log"} if log else {"zero": False})
    y = quantity("y", "share of the class in a bin", axis={"format": "~%"})
    legend = {"title": None}
    below = {"title": None, "orient": "bottom"}  # beside the other one it has no room
    of_class: Spec = {"field": "class", "type": "nominal", "sort": None, "legend": below}
    of_class["scale"] = {"domain": list(CLASSES), "range": list(DASHES[:2])}
    colour: Spec = {"field": "series", "type": "nominal", "sort": None, "legend": legend}
    colour["scale"] = {"domain": names}
    if not several:
        colour = {**of_class, "scale": {"domain": list(CLASSES)}}
    seen = tooltip(("series", "series"), ("class", "class"), ("x", "from score"), ("y", "share"))
    line: Spec = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
        "encoding": {
            "x": x,
            "y": y,
            "color": colour,
            "strokeDash": of_class,
            "detail": {"field": "series"},
            "tooltip": seen[not several :],
        },
    }
    reason = next((one.reason for one in found.values() if one.reason), "")
    return figure(
        "scores",
        title=title,
        description="Share of the positives and of the negatives in each bin of scores.",
        rows=rows,
        layers=[line],
        series=names,
        reason="" if rows else reason,
        theme=theme,
    )


def _skewed(one: Scores) -> bool:
    """Whether logs of the scores say more: all are positive, and most far under the greatest."""
    if not one.scores[0] > 0 or not np.isfinite(one.scores[-1]):
        return False
    total = np.cumsum(one.counts.sum(axis=0))
    middle = one.scores[int(np.searchsorted(total, total[-1] / 2))]
    return bool(middle * _WIDE < one.scores[-1])


def _rows(name: str, one: Scores, log: bool) -> list[dict[str, object]]:
    finite = np.isfinite(one.scores)
    scores, counts = one.scores[finite].astype(np.float64), one.counts[:, finite]
    if not len(scores):
        return []
    space = np.geomspace if log else np.linspace
    goals = space(scores[0], scores[-1], BINS + 1)[:-1]
    starts = np.unique(np.searchsorted(scores, goals, "left"))
    starts = starts[starts < len(scores)]
    rows: list[dict[str, object]] = []
    for label, of_class in zip(reversed(CLASSES), counts, strict=True):
        all_ = int(of_class.sum())
        if not all_:
            continue
        shares = np.add.reduceat(of_class, starts) / all_
        for x, y in zip(scores[starts].tolist(), shares.tolist(), strict=True):
            rows.append({"series": name, "class": label, "x": number(x), "y": y})
        rows.append({**rows[-1], "x": float(scores[-1])})  # where the last step ends
    return rows
