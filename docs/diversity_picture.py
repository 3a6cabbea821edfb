"""Draw `docs/diversity.svg`, the picture of docs/how_to/diversity.md.

    python docs/diversity_picture.py

Lists of the same twelve relevant items of three subtopics, in three orders. The NDCG of each is 1
at every cut, their α-nDCG is not equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streammetrics import NDCG, AlphaNDCG, RankingMetrics
from streammetrics.present import Spec, svg, theme

ITEMS: Final = 12
LISTS: Final = {
    "subtopics take turns": [[i % 3] for i in range(ITEMS)],
    "subtopics in any order": [[i] for i in (0, 0, 1, 0, 2, 1, 1, 2, 0, 2, 1, 2)],
    "one subtopic after the other": [[i // 4] for i in range(ITEMS)],
}


def values() -> list[dict[str, object]]:
    """The value of each measure and list at each cut."""
    cuts = range(1, ITEMS + 1)
    points: list[dict[str, object]] = []
    for name, subtopics in LISTS.items():
        metric = RankingMetrics([m @ k for m in (NDCG, AlphaNDCG) for k in cuts])
        metric.update([[1] * ITEMS], subtopics=[subtopics])
        result = metric.compute()
        for k in cuts:
            points.append({"cut": k, "list": name, "value": result[AlphaNDCG @ k]})
        assert all(result[NDCG @ k] == 1 for k in cuts)
    return points


def picture() -> Spec:
    """The lists."""
    return {
        "width": 520,
        "height": 240,
        "data": {"values": values()},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "cut", "type": "quantitative",
                  "axis": {"title": "cut k", "grid": False, "tickMinStep": 1}},
            "y": {"field": "value", "type": "quantitative",
                  "scale": {"domain": [0, 1.05]},
                  "axis": {"title": "α-nDCG@k", "titlePadding": 12}},
            "color": {"field": "list", "type": "nominal", "sort": None,
                      "legend": {"title": None, "orient": "bottom", "labelLimit": 300,
                                 "columnPadding": 36, "symbolType": "stroke", "symbolSize": 100}},
        },
    }  # fmt: skip


if __name__ == "__main__":
    spec = {**picture(), "config": theme("light"), "background": "white"}
    Path(__file__).with_name("diversity.svg").write_text(svg(spec), encoding="utf-8")
