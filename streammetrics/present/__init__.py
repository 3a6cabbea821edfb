"""Figures as Vega-Lite specifications, made from plain values; each kind is defined once.

The page, the report and `.plot()` of every result show these. The results themselves are in
`streammetrics.results`.
"""

from streammetrics.present.notebook import chart
from streammetrics.present.over_time import EffectValue, WindowValue, effect_over_time, over_time
from streammetrics.present.spec import Place, charts_javascript, placed, svg
from streammetrics.present.texts import (
    EXACT_WITHIN,
    UNDEFINED,
    between,
    ci_title,
    decimals_for,
    effect_decimals,
    exact_within,
    name_text,
    number,
)
from streammetrics.present.theme import THEMES, Spec, theme, themed
from streammetrics.present.values import NamedValue, values

__all__ = [
    "EXACT_WITHIN",
    "THEMES",
    "UNDEFINED",
    "EffectValue",
    "NamedValue",
    "Place",
    "Spec",
    "WindowValue",
    "between",
    "chart",
    "charts_javascript",
    "ci_title",
    "decimals_for",
    "effect_decimals",
    "effect_over_time",
    "exact_within",
    "name_text",
    "number",
    "over_time",
    "placed",
    "svg",
    "theme",
    "themed",
    "values",
]
