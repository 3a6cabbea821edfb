"""Frozen results of metrics: rates, curves, averages, each with its denominators.

The public names here read any result without knowledge of its metric.
"""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.core.bounded import Bounded
    from streammetrics.core.interval import interval_of
    from streammetrics.present.figures import figure_by_series, figure_of, kinds_of
    from streammetrics.present.notebook import html_table
    from streammetrics.present.value_rows import is_exact
    from streammetrics.present.view import Direction
    from streammetrics.present.views import (
        counts_of,
        direction_of,
        headlines_of,
        range_of,
        texts_of,
        value_of,
        views_of,
    )
    from streammetrics.results.drift_result import Drift
    from streammetrics.results.has_intervals import band_of, doubts_of
    from streammetrics.results.join_results import ClosedRows, OutcomeDelays, PendingRows

__all__ = [
    "Bounded",
    "ClosedRows",
    "Direction",
    "Drift",
    "OutcomeDelays",
    "PendingRows",
    "band_of",
    "counts_of",
    "direction_of",
    "doubts_of",
    "figure_by_series",
    "figure_of",
    "headlines_of",
    "html_table",
    "interval_of",
    "is_exact",
    "kinds_of",
    "range_of",
    "texts_of",
    "value_of",
    "views_of",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.core.bounded": "Bounded",
            "streammetrics.core.interval": "interval_of",
            "streammetrics.present.figures": "figure_by_series figure_of kinds_of",
            "streammetrics.present.notebook": "html_table",
            "streammetrics.present.value_rows": "is_exact",
            "streammetrics.present.view": "Direction",
            "streammetrics.present.views": (
                "counts_of direction_of headlines_of range_of texts_of value_of views_of"
            ),
            "streammetrics.results.drift_result": "Drift",
            "streammetrics.results.has_intervals": "band_of doubts_of",
            "streammetrics.results.join_results": "ClosedRows OutcomeDelays PendingRows",
        },
    )
