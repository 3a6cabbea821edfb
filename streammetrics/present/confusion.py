"""The confusion matrix: what was predicted of the rows of each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.present.spec import figure, quantity, tooltip
from streammetrics.present.theme import Spec

MOST: Final = 15  # classes
REST: Final = "(rest)"


def confusion(
    found: Mapping[str, NDArray[np.int64]],
    *,
    title: str = "Confusion matrix",
    theme: str = "light",
) -> Spec:
    """Counts [truth, prediction] of each series, coloured by their share of the class.

    Of more than 15 classes the rarest are one.

    >>> spec = confusion({"": np.array([[3, 1], [0, 2]])})
    >>> spec["data"]["values"][1]
    {'series': '', 'truth': '0', 'prediction': '1', 'count': 1, 'share': 0.25}
    """
    whole = {name: matrix for name, matrix in found.items() if matrix.sum()}
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
    x: Spec = {"field": "prediction", "type": "nominal", "sort": None, "title": "predicted"}
    y: Spec = {"field": "truth", "type": "nominal", "sort": None, "title": "truth"}
    x |= {"scale": {"domain": columns}, "axis": {"labelAngle": 0}}
    y["scale"] = {"domain": lines}
    shade = quantity("share", "share of the class", scale={"domain": [0, 1]})
    shade["legend"] = {"format": "~%", "gradientLength": 160}
    seen = tooltip(("truth", "truth"), ("prediction", "predicted"), ("count", "rows"))
    seen += tooltip(("share", "share of the class"))
    layers: list[Spec] = [
        {
            "mark": {"type": "rect"},
            "encoding": {"x": x, "y": y, "color": shade, "tooltip": seen},
        },
        {
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {"x": x, "y": y, "text": {"field": "count", "format": ",.4~s"}},
        },
    ]
    return figure(
        "confusion",
        title=title,
        description="Rows by their class and by what was predicted.",
        rows=rows,
        layers=layers,
        series=lines + columns,
        theme=theme,
        size=(max(220, 44 * len(columns)), max(120, 32 * len(lines))),
    )


def _chosen(support: NDArray[np.int64]) -> tuple[list[str], list[int] | None]:
    """The names of rows and columns, and the classes that are kept; None for all."""
    if len(support) <= MOST:
        return [str(i) for i in range(len(support))], None
    order = np.argsort(-support, kind="stable")[: MOST - 1]
    kept = sorted(order.tolist())
    return [*map(str, kept), REST], kept


def _merged(matrix: NDArray[np.int64], chosen: list[int] | None) -> NDArray[np.int64]:
    if chosen is None:
        return matrix
    place = np.full(len(matrix), len(chosen))
    place[chosen] = np.arange(len(chosen))
    table = np.zeros((len(chosen) + 1, len(chosen) + 1), np.int64)
    truth, predicted = np.meshgrid(place, place, indexing="ij")
    np.add.at(table, (truth, predicted), matrix)
    return table
