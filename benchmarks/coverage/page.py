"""The tables between their marks in docs/inference.md, and its picture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.coverage.looks import COUNTS, NAIVE, SEQUENCE
from streammetrics.present import Spec, svg, theme

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "inference.md"
PICTURE: Final = DOCS / "peeking.svg"
PICTURED: Final = "peeking"


def tables_of(text: str) -> dict[str, str]:
    """The text between `<!-- table NAME -->` and `<!-- end -->`, by name."""
    matches = re.findall(r"<!-- table ([a-z-]+) -->\n(.*?)<!-- end -->", text, re.DOTALL)
    return {name: inside.strip() for name, inside in matches}


def write_table(key: str, table: str) -> None:
    """Write a table between its marks on the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, mark, rest = text.partition(f"<!-- table {key} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        raise SystemExit(f"{PAGE} has no marks for the table {key}")
    PAGE.write_text(f"{before}{mark}\n{table}\n\n{end}{after}", encoding="utf-8")


def draw(figures: Mapping[str, Sequence[float]]) -> None:
    """Draw the share of A/A tests with a false alarm against the number of looks, as an SVG."""
    rows = [
        {"test": name, "looks": count, "share": round(100 * share, 2), "end": count == COUNTS[-1]}
        for name in (NAIVE, SEQUENCE)
        for count, share in zip(COUNTS, figures[name], strict=True)
    ]
    PICTURE.write_text(svg(_spec(rows)), encoding="utf-8")


def _spec(rows: Sequence[Mapping[str, object]]) -> Spec:
    looks = {
        "field": "looks",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [0.9, 2000], "nice": False},
        "axis": {"title": "looks at one experiment", "values": list(COUNTS), "grid": False},
    }
    share = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 50]},
        "axis": {"title": "% of A/A tests with a false alarm"},
    }
    test = {"field": "test", "type": "nominal", "legend": None}
    ends = {"transform": [{"filter": "datum.end"}]}
    # Within the frame, in two lines: the font of a reader may be wider than ours.
    text = {"type": "text", "align": "left", "dx": 9, "lineBreak": ", "}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 620,
        "height": 300,
        "config": theme("light"),
        "background": "white",
        "data": {"values": list(rows)},
        "layer": [
            {
                "mark": {"type": "line", "point": {"size": 60}},
                "encoding": {"x": looks, "y": share, "color": test, "shape": test},
            },
            {
                **ends,
                "mark": text,
                "encoding": {"x": looks, "y": share, "color": test, "text": {"field": "test"}},
            },
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#555555"},
                "encoding": {"y": {"datum": 5}},
            },
            {
                "data": {"values": [{}]},
                "mark": {"type": "text", "align": "left", "dy": -8, "color": "#555555"},
                "encoding": {
                    "x": {"datum": 20},
                    "y": {"datum": 5},
                    "text": {"value": "5 %, the nominal level"},
                },
            },
        ],
    }
