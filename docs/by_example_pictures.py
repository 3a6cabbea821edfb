"""Draw the pictures of *Metrics by example*: `python -m docs.by_example_pictures`.

`docs/pictures/roc_by_hand.svg`: the ROC curve of the twenty rows of the page, step by step.
`docs/pictures/iso_accuracy.svg`: the same curve with a line of equal accuracy for each share of
positives. `docs/pictures/gains_and_discount.svg`: discounts by rank, and the gains of the films.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias

from streammetrics import ExactAUC
from streammetrics.present import Spec, svg, theme
from streammetrics.results.score_curve import ScoreCurve

FOLDER: Final = Path(__file__).parent / "pictures"
LABELS: Final = [1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0]
SCORES: Final = [
    *(0.9, 0.8, 0.7, 0.6, 0.55, 0.54, 0.53, 0.52, 0.51, 0.505),
    *(0.4, 0.39, 0.38, 0.37, 0.36, 0.35, 0.34, 0.33, 0.3, 0.1),
]
FILMS: Final = [5, 3, 2, 1, 2, 4, 0]
SHARES: Final = {Fraction(1, 5): "#a3260c", Fraction(1, 2): "#7a5195", Fraction(2, 3): "#2a7f4f"}
LINE, DARK, AREA, WARM = "#30638e", "#222222", "#9db4c0", "#d98c1f"
Data: TypeAlias = Sequence[Mapping[str, object]]


def curve() -> ScoreCurve[float]:
    """The curve of the twenty rows."""
    metric = ExactAUC()
    metric.update(LABELS, SCORES)
    return metric.compute()


def axis(field: str, title: str) -> Spec:
    """A rate from 0 to 1."""
    return {
        "field": field, "type": "quantitative", "scale": {"domain": [0, 1], "nice": False},
        "axis": {"title": title, "values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f"},
    }  # fmt: skip


FPR: Final = axis("fpr", "FPR: share of the negative rows")
TPR: Final = axis("tpr", "TPR: share of the positive rows")


def texts(rows: Data, size: int = 12, **mark: object) -> Spec:
    """A text at each point."""
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "fontSize": size, "color": DARK, "align": "left", **mark},
        "encoding": {"x": FPR, "y": TPR, "text": {"field": "text"}},
    }


def steps() -> Data:
    """The points of the curve, from (0, 0) on."""
    roc = curve().roc()
    points = zip(roc.fpr.tolist(), roc.tpr.tolist(), roc.thresholds.tolist(), strict=True)
    return [
        {"fpr": fpr, "tpr": tpr, "order": order, "text": f"{threshold:g}"}
        for order, (fpr, tpr, threshold) in enumerate(points)
    ]


def line(width: float = 2.5) -> Spec:
    """The curve."""
    return {
        "data": {"values": steps()},
        "mark": {"type": "line", "color": LINE, "strokeWidth": width},
        "encoding": {"x": FPR, "y": TPR, "order": {"field": "order"}},
    }


def roc_by_hand() -> Spec:
    """Each step with its threshold, above the area that is counted in squares."""
    points = steps()[1:]
    ends = [*points[:-1], {"fpr": 1, "tpr": 1, "text": ""}]
    columns = [
        {"fpr": k / 10, "right": (k + 1) / 10, "tpr": height, "text": f"{10 * height:.0f}"}
        for k in range(10)
        for height in [max(float(str(p["tpr"])) for p in points if p["fpr"] == k / 10)]
    ]
    squares = [str(column["text"]) for column in columns]
    total = sum(map(int, squares))
    above = [{**end, "fpr": float(str(end["fpr"])) + 0.012} for end in ends]
    counted: Data = [
        {**column, "fpr": float(str(column["fpr"])) + 0.05, "tpr": 0.018} for column in columns
    ]
    diagonal: Data = [{"fpr": 0, "tpr": 0}, {"fpr": 1, "tpr": 1}]
    return {
        "width": 560,
        "height": 420,
        "layer": [
            {"data": {"values": columns},
             "mark": {"type": "rect", "color": AREA, "opacity": 0.35},
             "encoding": {"x": FPR, "x2": {"field": "right"}, "y": {**TPR}, "y2": {"datum": 0}}},
            {"data": {"values": diagonal},
             "mark": {"type": "line", "color": "#777777", "strokeDash": [4, 4], "strokeWidth": 1},
             "encoding": {"x": FPR, "y": TPR}},
            line(),
            {"data": {"values": points},
             "mark": {"type": "point", "filled": True, "size": 45, "color": LINE, "opacity": 1},
             "encoding": {"x": FPR, "y": TPR}},
            texts(above, 10, dy=10),
            texts(counted, 11, align="center"),
            texts([{"fpr": 0.42, "tpr": 0.25, "text": f"{' + '.join(squares)} = {total}"},
                   {"fpr": 0.42, "tpr": 0.15, "text": f"squares of 100: AUC = {total / 100}"}]),
        ],
    }  # fmt: skip


def iso_accuracy() -> Spec:
    """For each share of positives the highest line that touches the curve."""
    result, lines, touched, names = curve(), [], [], []
    for place, share in enumerate(SHARES):
        best = result.best("accuracy", positives_share=share)
        slope, q = float((1 - share) / share), str(share)
        first = best.points[0].rates
        start = first.recall - slope * first.fpr
        right = min(1.0, (1 - start) / slope)
        lines += [
            {"fpr": 0.0, "tpr": start, "q": q},
            {"fpr": right, "tpr": start + slope * right, "q": q},
        ]
        touched += [{"fpr": p.rates.fpr, "tpr": p.rates.recall, "q": q} for p in best.points]
        text = f"q = {share}: slope {slope:g}, highest accuracy {best.value:g}"
        names.append({"fpr": 0.43, "tpr": 0.35 - 0.1 * place, "text": text, "q": q})
    color = {
        "field": "q", "type": "nominal", "legend": None,
        "scale": {"domain": [str(share) for share in SHARES], "range": list(SHARES.values())},
    }  # fmt: skip
    return {
        "width": 560,
        "height": 420,
        "layer": [
            line(2),
            {"data": {"values": lines}, "mark": {"type": "line", "strokeWidth": 1.8},
             "encoding": {"x": FPR, "y": TPR, "color": color}},
            {"data": {"values": touched},
             "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
             "encoding": {"x": FPR, "y": TPR, "color": color}},
            {"data": {"values": names}, "mark": {"type": "text", "align": "left", "fontSize": 12},
             "encoding": {"x": FPR, "y": TPR, "text": {"field": "text"}, "color": color}},
        ],
    }  # fmt: skip


def discounts() -> Spec:
    """What the item of a rank counts."""
    weights = {
        "DCG: 1 / log2(rank + 1)": lambda rank: 1 / math.log2(rank + 1),
        "MRR: 1 / rank": lambda rank: 1 / rank,
        "RBP: 0.8^(rank - 1)": lambda rank: 0.8 ** (rank - 1),
    }
    rows = [
        {"rank": rank, "weight": weight(rank), "of": name}
        for name, weight in weights.items()
        for rank in range(1, 11)
    ]
    return {
        "width": 250,
        "height": 230,
        "data": {"values": rows},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "rank", "type": "quantitative", "scale": {"domain": [1, 10]},
                  "axis": {"title": "rank", "grid": False, "values": list(range(1, 11)),
                           "format": "d"}},
            "y": {"field": "weight", "type": "quantitative", "scale": {"domain": [0, 1]},
                  "axis": {"title": "discount"}},
            "color": {"field": "of", "type": "nominal", "sort": None,
                      "scale": {"range": [LINE, WARM, "#2a7f4f"]},
                      "legend": {"title": None, "orient": "bottom", "columns": 1,
                                 "labelLimit": 260}},
        },
    }  # fmt: skip


def gains() -> Spec:
    """The gain at each rank, and what is left of it, for the shown and the ideal list."""
    lists = {"shown": FILMS[:5], "ideal": sorted(FILMS, reverse=True)[:5]}
    rows = [
        {"rank": f"{rank}", "list": name, "of": series, "gain": float(gain), "text": f"{gain:.4g}"}
        for name, grades in lists.items()
        for rank, grade in enumerate(grades, 1)
        for series, gain in (
            ("gain 2^grade - 1", 2**grade - 1),
            ("discounted", (2**grade - 1) / math.log2(rank + 1)),
        )
    ]
    place = {
        "x": {"field": "rank", "type": "nominal", "axis": {"title": "rank", "labelAngle": 0}},
        "xOffset": {"field": "of", "sort": None},
        "y": {"field": "gain", "type": "quantitative", "axis": {"title": "gain"},
              "scale": {"domain": [0, 34]}},
    }  # fmt: skip
    color = {
        "field": "of", "type": "nominal", "sort": None, "scale": {"range": [AREA, LINE]},
        "legend": {"title": None, "orient": "bottom", "columnPadding": 40, "labelLimit": 200},
    }  # fmt: skip

    def panel(name: str) -> Spec:
        total = sum(
            (2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(lists[name], 1)
        )
        title = f"{name} list: grades {lists[name]}, DCG {total:.4f}"
        return {
            "title": {"text": title, "fontSize": 12},
            "width": 340,
            "height": 90,
            "data": {"values": [row for row in rows if row["list"] == name]},
            "layer": [
                {"mark": "bar", "encoding": {**place, "color": color}},
                {"mark": {"type": "text", "dy": -6, "fontSize": 9, "color": DARK},
                 "encoding": {**place, "text": {"field": "text"}}},
            ],
        }  # fmt: skip

    return {"vconcat": [panel("shown"), panel("ideal")]}


def main() -> None:
    """Draw and write."""
    pictures = {
        "roc_by_hand": roc_by_hand(),
        "iso_accuracy": iso_accuracy(),
        "gains_and_discount": {"hconcat": [discounts(), gains()], "spacing": 30,
                               "resolve": {"scale": {"color": "independent"}}},
    }  # fmt: skip
    for name, picture in pictures.items():
        spec = {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "config": theme("light"),
            "background": "white",
            "padding": 12,
            **picture,
        }
        (FOLDER / f"{name}.svg").write_text(svg(spec), encoding="utf-8")


if __name__ == "__main__":
    main()
