"""The light and dark themes of figures: colours safe for colour-blind readers, and text.

A theme is only the `config` of a specification, so that a page can change it without new data.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, shown

Spec: TypeAlias = dict[str, object]

THEMES: Final = ("light", "dark")
# The colours of Okabe and Ito (2008, Color Universal Design), those with most contrast to the
# background first, and others that are distinct from them under each kind of colour blindness.
# Dashes and shapes differ too, so a figure can be read without colour.
_LIGHT: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#5A1E00"),
)
_DARK: Final = (
    *("#56B4E9", "#E69F00", "#0A8F68", "#CC79A7", "#FFFFFF", "#F0E442", "#C3410F", "#A5E1B4"),
)
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 6], [1, 4])
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
LABEL: Final = 225  # pixels of a name in a legend; longer names are cut
_FONT: Final = "system-ui, sans-serif"


def theme(name: str = "light") -> Spec:
    """The Vega-Lite `config` of a theme, "light" or "dark"; InputError for others.

    >>> theme("dark")["background"]
    '#14181d'
    """
    if not among(name, THEMES):
        raise InputError(
            expected='"light" or "dark"', got=shown(name), where="theme", hint="pass one of these"
        )
    dark = name == "dark"
    ink, quiet, line = (
        ("#e8eaed", "#b6bdc6", "#3a424c") if dark else ("#1b1f24", "#4a535e", "#d5dae0")
    )
    colours = _DARK if dark else _LIGHT
    return {
        "background": "#14181d" if dark else "#ffffff",
        "font": _FONT,
        "aria": True,
        "mark": {"color": colours[0], "aria": False, "tooltip": None},
        "text": {"color": ink},
        "rule": {"color": quiet},
        "title": {"color": ink, "subtitleColor": quiet, "anchor": "start", "fontSize": 14},
        "axis": {
            "labelColor": quiet,
            "titleColor": ink,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": quiet,
            "tickColor": quiet,
            "labelLimit": 160,
            "labelOverlap": "greedy",
            "labelSeparation": 8,
        },
        "axisX": {"tickCount": {"expr": "ceil(width / 80)"}},  # so that each tick has its label
        "legend": {
            "orient": "top",
            "columns": 3,
            "labelColor": ink,
            "titleColor": ink,
            "labelLimit": LABEL,
            "symbolSize": 200,
            "symbolStrokeWidth": 2,
        },
        "view": {"stroke": None},
        "range": {
            "category": list(colours),
            # The theme's text has enough contrast on both ends.
            "heatmap": ["#1a222b", "#1f6f9f"] if dark else ["#f4f7fa", "#8cc4e8"],
        },
    }


def themed(spec: Spec, name: str) -> Spec:
    """The same figure in another theme.

    >>> themed({"mark": "line"}, "light")["mark"]
    'line'
    """
    return {**spec, "config": theme(name)}
