"""Series have the colours of their places, whichever others are drawn."""

from __future__ import annotations

import json
from typing import Any

import altair
import pytest

from streammetrics.present import Place, WindowValue, over_time, placed, theme

nan = float("nan")


def drawn(*series: str) -> dict[str, Any]:
    """A figure over time of these series."""
    values = [
        WindowValue(at, at + 1, one, 0.5, 0.4, 0.6, nan, nan) for at in (0, 1) for one in series
    ]
    found = over_time(values, title="ctr", y="ratio")
    return json.loads(json.dumps(found))


def colours(spec: Any) -> dict[str, str]:
    """The colour of each series."""
    scales = [layer["encoding"].get("color", {}).get("scale", {}) for layer in spec["layer"]]
    first, *others = [scale for scale in scales if "range" in scale]
    assert all(one == first for one in others)  # the layers of a figure share a legend
    return dict(zip(first["domain"], first["range"], strict=True))


def category() -> list[str]:
    """All colours."""
    found: Any = theme("light")["range"]
    return list(found["category"])


def test_a_series_that_is_alone_keeps_its_colour() -> None:
    places = {"b": Place(1, 1), "c": Place(2, 2)}
    both = colours(placed(drawn("b", "c"), places))
    assert both == {"b": category()[1], "c": category()[2]}
    alone = colours(placed(drawn("c"), {"c": Place(2, 2)}))
    assert alone == {"c": category()[2]}


def test_series_of_one_colour_have_marks_of_their_own() -> None:
    spec = placed(drawn("b, fit", "b, eval"), {"b, fit": Place(1, 0), "b, eval": Place(1, 1)})
    assert set(colours(spec).values()) == {category()[1]}
    dashes = [
        layer["encoding"]["strokeDash"]["scale"]["range"]
        for layer in spec["layer"]  # type: ignore[attr-defined]
        if "strokeDash" in layer["encoding"]
    ]
    assert dashes and all(one[0] != one[1] for one in dashes)


def test_what_could_not_be_told_apart_stays_as_it_is() -> None:
    spec = {
        "encoding": {"color": {"field": "series", "scale": {"domain": ["a", "b"]}}},
        "config": theme("light"),
    }
    assert placed(spec, {"a": Place(0, 0), "b": Place(0, 1)}) is spec


@pytest.mark.slow
@pytest.mark.parametrize("series", [["a"], ["a", "b"], [""]])
def test_a_placed_figure_is_still_a_figure(series: list[str]) -> None:
    spec = placed(drawn(*series), {one: Place(i + 9, i + 9) for i, one in enumerate(series)})
    altair.Chart.from_dict(json.loads(json.dumps(spec)))  # checks the schema of Vega-Lite
