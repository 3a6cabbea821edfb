"""Figures as Vega-Lite specifications, made from plain values; each kind is defined once.

The page, the report and `.plot()` of every result show these. The results themselves are in
`streammetrics.results`.
"""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.present.named_values import NamedValue, values
    from streammetrics.present.notebook import chart
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
    from streammetrics.present.themes import THEMES, Spec, theme, themed
    from streammetrics.present.windows_over_time import (
        EffectValue,
        WindowValue,
        effect_over_time,
        over_time,
    )

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

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.present.named_values": "NamedValue values",
            "streammetrics.present.notebook": "chart",
            "streammetrics.present.spec": "Place charts_javascript placed svg",
            "streammetrics.present.texts": (
                "EXACT_WITHIN UNDEFINED between ci_title decimals_for effect_decimals exact_within "
                "name_text number"
            ),
            "streammetrics.present.themes": "THEMES Spec theme themed",
            "streammetrics.present.windows_over_time": (
                "EffectValue WindowValue effect_over_time over_time"
            ),
        },
    )
