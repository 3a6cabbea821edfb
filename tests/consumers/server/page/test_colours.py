"""A variant has one colour: in the tables of the page, in its charts, in both themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

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


@pytest.mark.slow
def test_the_style_sheet_has_the_colours_of_the_charts() -> None:
    text = (files("streammetrics_consumers.server") / "page" / "theme.css").read_text(
        encoding="utf-8"
    )
    pairs = re.findall(r"--place-\d: light-dark\((#\w{6}), (#\w{6})\);", text)
    for which, name in enumerate(("light", "dark")):
        ranges: Any = theme(name)["range"]
        assert [pair[which] for pair in pairs] == [one.lower() for one in ranges["category"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize(
    "query", ["by=variant", "by=variant,phase", "by=variant&where=variant=treatment"]
)
def test_a_variant_has_the_colour_of_its_charts(
    served: Stream, open_page: Open, name: str, query: str
) -> None:
    page = open_page(f"{served.url}?metric=auc&{query}").until("ready").page
    page.emulate_media(color_scheme=name)  # type: ignore[arg-type]
    shown = page.evaluate(_SWATCHES)
    assert shown.keys() <= {"control", "treatment"} and shown
    for kind in ("history", "roc", "effect"):
        asked = f"metric=auc&kind={kind}&theme={name}" + (f"&{query}" if kind != "effect" else "")
        drawn = _colours(served.get(f"api/figure?{asked}"))
        assert drawn or kind == "effect"  # auc is not what the experiment decides by
        for series, colour in drawn.items():
            variant = series.split(", ")[0]
            if variant in shown:
                assert shown[variant] == colour, (kind, series)


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
