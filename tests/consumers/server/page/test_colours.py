"""A variant has one colour: in the tables of the page, in its charts, in both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from streammetrics.present import theme
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

Open = Callable[..., Seen]
_SWATCHES = """() => Object.fromEntries(
  [...document.querySelectorAll("table.figures tr:has(.swatch)")].map((row) => [
    row.querySelector("th").textContent,
    getComputedStyle(row.querySelector(".swatch")).backgroundColor,
  ]),
)"""


def test_the_style_sheet_has_the_colours_of_the_charts() -> None:
    text = (files("streammetrics_consumers.server") / "page" / "theme.css").read_text(
        encoding="utf-8"
    )
    pairs = re.findall(r"--place-\d: light-dark\((#\w{6}), (#\w{6})\);", text)
    for index, name in enumerate(("light", "dark")):
        ranges: Any = theme(name)["range"]
        assert [pair[index] for pair in pairs] == [colour.lower() for colour in ranges["category"]]


def test_a_variant_has_the_colour_of_its_charts(served: Stream, open_page: Open) -> None:
    visit = open_page(served.url)
    for query in ("by=variant", "by=variant,phase", "by=variant&where=variant=treatment"):
        page = visit.go(f"{served.url}?metric=auc&{query}").until("ready").page
        for name in ("light", "dark"):
            page.emulate_media(color_scheme=name)  # type: ignore[arg-type]
            shown = page.evaluate(_SWATCHES)
            assert shown.keys() <= {"control", "treatment"} and shown
            for kind in ("history", "roc"):
                drawn = _colours(
                    served.get(f"api/figure?metric=auc&kind={kind}&theme={name}&{query}")
                )
                assert drawn
                for series, colour in drawn.items():
                    assert shown[series.split(", ")[0]] == colour, (query, name, kind, series)


def _colours(spec: Any) -> dict[str, str]:
    for layer in spec["layer"]:
        scale = layer.get("encoding", {}).get("color", {}).get("scale", {})
        if "range" in scale:
            pairs = zip(scale["domain"], scale["range"], strict=True)
            return {series: _rgb(colour) for series, colour in pairs}
    return {}


def _rgb(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"
