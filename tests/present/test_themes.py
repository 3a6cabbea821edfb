"""The colours of series: as people with each kind of colour blindness see them, and by series.

Simulated by the matrices of Machado, Oliveira and Fernandes (2009) for the whole loss of one kind
of cone; distances are those of Oklab (Ottosson, 2020) times 100, where about 2 is just seen.
"""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import InputError
from streammetrics.present import THEMES, Place, WindowValue, over_time, placed, theme, themed
from streammetrics.present.themes import DASHES, SHAPES
from tests.present.specs import check

Colours = NDArray[np.float64]
SIGHT = {
    "all": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(*colours: str) -> Colours:
    """Shares of light of "#rrggbb"."""
    shares = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def oklab_points(colours: Colours, sight: object) -> Colours:
    """Where they lie in Oklab for such eyes."""
    shares = np.clip(colours @ np.asarray(sight, np.float64).T, 0, 1)
    return 100 * np.cbrt(shares @ CONES.T) @ LAB.T


def least(colours: Colours) -> float:
    """The distance of the two that are most alike."""
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(colours, 2))


def palette(name: str) -> list[str]:
    """The colours of series in a theme."""
    ranges = cast("dict[str, list[str]]", theme(name)["range"])
    return ranges["category"]


def test_whoever_looks_tells_any_two_colours_apart() -> None:
    for name, sight in product(THEMES, SIGHT):
        points = oklab_points(linear(*palette(name)), SIGHT[sight])
        assert least(points[:2]) >= 20, (name, sight)  # most experiments have two variants
        assert least(points) >= 7, (name, sight)


@pytest.mark.parametrize("name", THEMES)
def test_text_and_the_first_colours_stand_out_from_the_background(name: str) -> None:
    config = json.loads(json.dumps(theme(name)))

    def contrast(colour: str) -> float:
        red, green, blue = linear(colour, config["background"]).T
        low, high = sorted((0.2126 * red + 0.7152 * green + 0.0722 * blue).tolist())
        return (high + 0.05) / (low + 0.05)

    texts = [config["text"]["color"], config["axis"]["labelColor"], config["legend"]["labelColor"]]
    assert min(map(contrast, texts)) > 4.5  # WCAG AA
    assert min(map(contrast, config["range"]["category"][:4])) > 2.8


def test_a_theme_changes_the_config_alone() -> None:
    light = drawn("a")
    dark = themed(light, "dark")
    assert {key for key in light if light[key] != dark[key]} == {"config"}
    with pytest.raises(InputError, match='"light" or "dark"'):
        theme("pink")


def test_where_colours_come_again_the_marks_beside_them_differ() -> None:
    for marks in (DASHES, SHAPES):
        for i in range(12):  # as many series as a figure draws
            repeat = (i + len(palette("light"))) % len(marks)
            assert marks[i % len(marks)] != marks[repeat]


def drawn(*series: str) -> dict[str, Any]:
    """A figure over time of these series."""
    values = [
        WindowValue(start, start + 1, name, 0.5, 0.4, 0.6) for start in (0, 1) for name in series
    ]
    return json.loads(json.dumps(over_time(values, title="ctr", y="ratio")))


def colours(spec: Any) -> dict[str, str]:
    """The colour of each series."""
    scales = [layer["encoding"].get("color", {}).get("scale", {}) for layer in spec["layer"]]
    first, *later_scales = [scale for scale in scales if "range" in scale]
    assert all(scale == first for scale in later_scales)  # the layers of a figure share a legend
    return dict(zip(first["domain"], first["range"], strict=True))


def test_a_series_that_is_alone_keeps_its_colour() -> None:
    places, (_, second, third, *_) = {"b": Place(1, 1), "c": Place(2, 2)}, palette("light")
    assert colours(placed(drawn("b", "c"), places)) == {"b": second, "c": third}
    assert colours(placed(drawn("c"), {"c": Place(2, 2)})) == {"c": third}


def test_series_of_one_colour_have_marks_of_their_own() -> None:
    spec = placed(drawn("b, fit", "b, eval"), {"b, fit": Place(1, 0), "b, eval": Place(1, 1)})
    assert set(colours(spec).values()) == {palette("light")[1]}
    dashes = [
        layer["encoding"]["strokeDash"]["scale"]["range"]
        for layer in spec["layer"]  # type: ignore[attr-defined]
        if "strokeDash" in layer["encoding"]
    ]
    assert dashes and all(patterns[0] != patterns[1] for patterns in dashes)


def test_what_could_not_be_told_apart_stays_as_it_is() -> None:
    spec = {
        "encoding": {"color": {"field": "series", "scale": {"domain": ["a", "b"]}}},
        "config": theme("light"),
    }
    assert placed(spec, {"a": Place(0, 0), "b": Place(0, 1)}) is spec


def test_a_placed_figure_is_still_a_figure() -> None:
    for series in (["a"], ["a", "b"], [""]):
        check(placed(drawn(*series), {name: Place(i + 9, i + 9) for i, name in enumerate(series)}))
